"""A run that is told to end says one sentence, ends with the signal's status, and leaves no process, at any moment."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from corpusveil.jobs.startup import ended_later
from tests.engines.corpora import COMMAND, HANG_SECONDS, Ground, write_large_corpus
from tests.engines.processes import done, end_session, start, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.spark]
MARK = "CORPUSVEIL_TEST_MARK"
ENGINES = {
    "local": (),
    "local-2": ("--workers", 2),
    "spark": ("--engine", "spark", "--workers", 2),
    "beam": ("--engine", "beam"),
}
SAID = "corpusveil: interrupted; run the same command again to continue."


@pytest.fixture(scope="module")
def large(ground: Ground) -> Ground:
    """A corpus that takes every engine a while."""
    return replace(ground, corpus=write_large_corpus(ground.folder / "for-signals", shards=8, copies=2))


def marked(mark: str) -> list[psutil.Process]:
    """Return the processes that inherited a mark in their environment and run."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def is_caught(pid: int, number: int) -> bool:
    """Say whether a process has a handler for a signal: its first instruction of ours has been executed."""
    told = Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in told.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (number - 1) & 1)


@contextlib.contextmanager
def running(large: Ground, folder: Path, engine: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    mark = secrets.token_hex(8)
    arguments = large.arguments(large.corpus, folder / "out", *ENGINES[engine])
    process = start([*COMMAND, *arguments], folder, folder / "said.log", **{MARK: mark})
    try:
        yield process, mark
    finally:
        end_session(process)
        for left in marked(mark):
            left.kill()


MOMENTS = (0.0, 0.05, 0.3, 1.0, 3.0, "mid-run")
BY_DAY = {("local", 0.0, signal.SIGINT), ("local-2", "mid-run", signal.SIGINT), ("spark", 0.3, signal.SIGINT)}
"""While an engine starts, and amid the work of processes; the others are nightly."""


@pytest.mark.parametrize(
    ("engine", "moment", "number"),
    [
        pytest.param(*case, marks=[] if case in BY_DAY else [pytest.mark.nightly])
        for case in itertools.product(ENGINES, MOMENTS, (signal.SIGINT, signal.SIGTERM))
    ],
)
def test_one_sentence_and_no_process_left(
    large: Ground, tmp_path: Path, engine: str, moment: float | str, number: signal.Signals
) -> None:
    """Seconds after the handlers are there, while libraries are imported, Java and workers start, and amid the work."""
    with running(large, tmp_path, engine) as (process, mark):
        wait_until(lambda: is_caught(process.pid, signal.SIGTERM), every=0.001)
        if isinstance(moment, str):
            wait_until(lambda: process.poll() is not None or done(tmp_path / "out") > 0, every=0.01)
        else:
            time.sleep(moment)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does, which sends it to all processes
        else:
            process.send_signal(number)
        status = process.wait(HANG_SECONDS)
        if status == 0 and moment != "mid-run":  # it was faster, or an import swallowed the signal
            assert (tmp_path / "out" / "manifest.json").exists()
            return
        # a shell calls both the same: a process that Python ends by SIGINT, since the interruption met an exec
        assert status in (128 + number, -number, -signal.SIGINT), (tmp_path / "said.log").read_text()
        said = (tmp_path / "said.log").read_text().splitlines()
        if engine == "beam" and SAID not in said:  # Beam's threads make failures of their own of it
            said = [*(line for line in said if "failed" not in line), SAID]
        assert said.count(SAID) == 1
        assert not [line for line in said if "Traceback" in line or "Error" in line or "Exception" in line]
        wait_until(lambda: not marked(mark), every=0.05)
    assert not list((tmp_path / "out.records").glob("lease*.json")) or isinstance(moment, float)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGALRM])  # an import puts it off by the last
def test_an_interruption_waits_for_what_starts(number: signal.Signals) -> None:
    heard: list[int] = []
    before = signal.signal(number, lambda *_: heard.append(number))
    with ended_later():
        signal.raise_signal(number)
        assert not heard
    signal.signal(number, before)
    assert heard == [number]


def test_workers_end_when_their_parent_is_killed(large: Ground, tmp_path: Path) -> None:
    with running(large, tmp_path, "local-2") as (process, mark):
        wait_until(lambda: process.poll() is not None or done(tmp_path / "out") > 0, every=0.01)
        assert len(marked(mark)) > 2
        process.kill()
        wait_until(lambda: not marked(mark), every=0.1)
