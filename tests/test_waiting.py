"""Who waits is told so, and nobody else is."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpusveil import waiting
from corpusveil.storage.records import Beat, Records
from corpusveil.storage.tasks import ShardTask
from corpusveil.transforms.release.job import Progress


class Screen(io.StringIO):
    """A standard error that is a terminal or not."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    token = waiting._manner.set("auto")
    yield
    waiting._manner.reset(token)


def said(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> str:
    """Return what is written while a piece of work with a step lasts, which ends once that is written."""
    shown = Screen(terminal=terminal)
    monkeypatch.setattr(sys, "stderr", shown)
    with waiting.waiting("choosing"), waiting.waiting("an inner step"):
        waiting.reached("epsilon 1", 0.25)
        if terminal:
            while "epsilon 1" not in shown.getvalue():
                pass
    return shown.getvalue()


def test_a_library_call_speaks_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "choosing: epsilon 1" in said(monkeypatch, terminal=True)
    assert not said(monkeypatch, terminal=False)


def test_progress_says_how_much_and_no_share_of_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """How many words changed, or are unknown, is private; standard error of a scheduled run is somebody's log."""
    records = Records(str(tmp_path))
    task = ShardTask(0, 1, "in.jsonl", "in.jsonl", 1, ".jsonl")
    waiting.choose("lines")
    with waiting.waiting("privatizing shards", Progress(records, [task], "token").look):
        records.write(f"progress/{task.record_name}", Beat(tokens=100))
    err = capsys.readouterr().err
    assert "0 of 1, 100 tokens" in err
    assert not re.search("%|changed|known", err)
