"""The local engine: killed, or damaged in part, it ends with the bytes of an undisturbed run."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import psutil

from tests.engines.corpora import HANG_SECONDS, Ground, write_large_corpus
from tests.engines.processes import alive, done, end_session, start_command, tree, wait_until


def test_workers_end_when_their_parent_is_killed(ground: Ground, tmp_path: Path) -> None:
    large = write_large_corpus(tmp_path / "large", shards=8, copies=4)
    process = start_command(
        ground.arguments(large, tmp_path / "out", "--workers", 2), tmp_path, tmp_path / "killed.log"
    )
    workers: list[psutil.Process] = []
    try:
        wait_until(lambda: done(tmp_path / "out") > 0 or process.poll() is not None)
        workers = tree(process.pid)[1:]
        assert len(workers) >= 2
        os.kill(process.pid, signal.SIGKILL)
        process.wait(HANG_SECONDS)
        wait_until(lambda: not any(alive(worker.pid) for worker in workers), every=0.1)
    finally:
        for worker in workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.kill()
        end_session(process)
