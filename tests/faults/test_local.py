"""The local engine: killed, or damaged in part, it ends with the bytes of an undisturbed run."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.calls import fails, succeeds
from tests.engines.corpora import HANG_SECONDS, Ground, data_files, release_files, write_large_corpus
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


@pytest.fixture(scope="module")
def finished(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ground, Path]:
    """A corpus, and its release."""
    folder = tmp_path_factory.mktemp("finished")
    small = replace(ground, corpus=write_large_corpus(folder / "in", shards=4, copies=1))
    succeeds(*small.arguments(small.corpus, folder / "out"))
    return small, folder / "out"


@pytest.mark.parametrize("damage", ["cut", "changed", "removed", "record"])
def test_a_damaged_part_of_an_unfinished_run_is_done_again(
    finished: tuple[Ground, Path], tmp_path: Path, damage: str
) -> None:
    """A copy of a finished run, without what is written last; a damaged record is named, and may be removed."""
    (ground, whole), output, records = finished, tmp_path / "out", tmp_path / "out.records"
    shutil.copytree(whole, output)
    shutil.copytree(whole.with_name("out.records"), records)
    (output / "manifest.json").unlink()
    (records / "run.json").write_text((records / "run.json").read_text().replace(str(whole), str(output)))
    shard, record = data_files(output)[2], sorted((records / "shards").iterdir())[2]
    data = shard.read_bytes()
    if damage == "record":
        record.write_text(record.read_text()[:-20])
        fails(ground.arguments(ground.corpus, output), "damaged-record", record)
        record.unlink()
    elif damage == "removed":
        shard.unlink()
    else:
        shard.write_bytes(data[:-100] if damage == "cut" else data[:-1] + bytes([data[-1] ^ 1]))
    succeeds(*ground.arguments(ground.corpus, output))
    assert release_files(output) == release_files(whole)
    assert not list(records.rglob("*.part"))
    assert not list((records / "progress").glob("*"))
