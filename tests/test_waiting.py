"""Who waits is told so, and nobody else is."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator

import pytest

from corpusveil import waiting


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
