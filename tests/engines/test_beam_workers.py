"""Worker processes of Beam's local runner: what they raise is said once, and one that is killed does not hang a run."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.engines.corpora import HANG_SECONDS
from tests.engines.processes import alive, end_session, tree, wait_until

pytestmark = pytest.mark.slow
BEAM_GIVES_UP = 100
"""Before so many seconds, no worker of Beam gives up by itself on a run that does not answer (128 s were seen)."""
SCRIPT = """
import sys, time
from corpusveil.errors import CorpusveilError, WorkError

def raises(task):
    raise WorkError("Shard 1 could not be done: OSError.")

def works(task):
    open(f"begun-{task}", "w").close()
    time.sleep(36000)

if __name__ == "__main__":
    import job
    from corpusveil.jobs.beam import Beam
    try:
        Beam(workers=2).run(getattr(job, sys.argv[1]), [1, 2, 3])
    except CorpusveilError as error:
        print(error)
"""


def begin(folder: Path, what: str) -> subprocess.Popen[str]:
    (folder / "job.py").write_text(SCRIPT)
    here = os.pathsep.join([str(folder), str(Path(__file__).parents[2])])
    return subprocess.Popen(
        [sys.executable, "job.py", what], cwd=folder, env={**os.environ, "PYTHONPATH": here}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def test_what_a_worker_raises_is_one_sentence_and_no_traceback(tmp_path: Path) -> None:
    """Beam itself prints the traceback."""
    said, complained = begin(tmp_path, "raises").communicate(timeout=HANG_SECONDS)
    assert said.startswith(
        "The Beam pipeline failed: Shard 1 could not be done: OSError. Finished work is kept; run the same command "
        "again."
    )
    assert "Traceback" not in complained


def workers_of(pid: int) -> list[psutil.Process]:
    """Return the worker processes of a run."""
    found = []
    for member in tree(pid)[1:]:
        with contextlib.suppress(psutil.Error):
            if member.name() != "sh" and "sdk_worker_main" in " ".join(member.cmdline()):
                found.append(member)
    return found


@pytest.mark.parametrize(("moment", "which"), [
    ("works", 1), *(pytest.param(moment, 0, marks=pytest.mark.nightly) for moment in ("begins", 0.4, 1.5, "works on"))
])  # fmt: skip
def test_a_killed_worker_ends_the_run_at_once(moment: str | float, which: int, tmp_path: Path) -> None:
    """Whenever it is killed: the others, which would work for hours, are ended first, and no process is left."""
    job = begin(tmp_path, "works")
    members: list[psutil.Process] = []
    try:
        wait_until(lambda: len(workers_of(job.pid)) == 2, every=0.02)
        members = workers_of(job.pid)
        if isinstance(moment, str) and moment.startswith("works"):
            wait_until(lambda: len(list(tmp_path.glob("begun-*"))) == 2, every=0.05)
        time.sleep(moment if isinstance(moment, float) else 2.0 * (moment == "works on"))
        members[which].kill()
        said, complained = job.communicate(timeout=HANG_SECONDS)
        assert said.startswith("A worker process was killed (perhaps it ran out of memory).")
        assert "Traceback" not in complained
        assert not [member for member in members if alive(member.pid)]
    finally:
        for member in members:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        end_session(job)


def test_workers_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    """From their first instruction on: by itself, Beam's worker tries for two minutes to reach the run."""
    job = begin(tmp_path, "works")
    members: list[psutil.Process] = []
    try:
        wait_until(lambda: len(workers_of(job.pid)) == 2, every=0.02)
        members = tree(job.pid)[1:]
        job.kill()
        wait_until(lambda: not any(alive(member.pid) for member in members), seconds=BEAM_GIVES_UP, every=0.05)
    finally:
        for member in members:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        end_session(job)
