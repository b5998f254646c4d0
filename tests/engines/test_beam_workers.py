"""Worker processes of Beam's local runner: what they raise is said once, and one that is killed does not hang a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
SCRIPT = """
import os, signal, sys, time
from corpusveil.errors import CorpusveilError, WorkError

def raises(task):
    raise WorkError("Shard 1 could not be done: OSError.")

def is_killed(task):
    if task == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1)

if __name__ == "__main__":
    import job
    from corpusveil.pipelines.beam import BeamEngine
    try:
        BeamEngine(workers=2).run(getattr(job, sys.argv[1]), [1, 2, 3])
    except CorpusveilError as error:
        print(error)
"""


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        (
            "raises",
            "The Beam pipeline failed: Shard 1 could not be done: OSError. What was finished is kept; run again.",
        ),
        ("is_killed", "A worker process was killed (perhaps for want of memory)."),
    ],
)
def test_what_becomes_of_a_worker_is_one_sentence_and_no_traceback(what: str, sentence: str, tmp_path: Path) -> None:
    """Beam itself prints the traceback of what a worker raises, and waits for ever for one that is killed."""
    (tmp_path / "job.py").write_text(SCRIPT)
    here = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    told = subprocess.run(
        [sys.executable, str(tmp_path / "job.py"), what],
        env={**os.environ, "PYTHONPATH": here}, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert told.stdout.startswith(sentence)
    assert "Traceback" not in told.stderr
