"""The local engine: killed in the middle, or in part, it ends with the bytes of an undisturbed run."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from pathlib import Path

import psutil
import pytest

from tests.calls import fails, succeeds
from tests.engines.corpora import HANG_SECONDS
from tests.engines.processes import alive, end_session, tree, wait_until
from tests.faults.crashes import (
    Undisturbed,
    assert_undisturbed,
    begin,
    done,
    records_of,
)


def test_workers_end_when_their_parent_is_killed(undisturbed: Undisturbed, tmp_path: Path) -> None:
    output = tmp_path / "output"
    process = begin(undisturbed, output, "--workers", 2)
    workers: list[psutil.Process] = []
    try:
        wait_until(lambda: done(output) > 0 or process.poll() is not None)
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


@pytest.mark.parametrize("damage", ["cut", "changed", "removed", "damaged record"])
def test_a_damaged_part_of_an_unfinished_run_is_done_again(
    undisturbed: Undisturbed, tmp_path: Path, damage: str
) -> None:
    """A copy of a finished run, without what is written last; a damaged record is named, and may be removed."""
    output, records = tmp_path / "output", undisturbed.ground.folder / "output.records"
    shutil.copytree(undisturbed.ground.folder / "output", output)
    shutil.copytree(records, records_of(output))
    (output / "manifest.json").unlink()
    text = (records_of(output) / "run.json").read_text()
    (records_of(output) / "run.json").write_text(text.replace(str(records.parent / "output"), str(output)))
    shard, record = (sorted(folder.iterdir())[2] for folder in (output / "data", records_of(output) / "shards"))
    data = shard.read_bytes()
    if damage in ("cut", "changed"):
        shard.write_bytes(data[:-100] if damage == "cut" else data[:-1] + bytes([data[-1] ^ 1]))
    elif damage == "removed":
        shard.unlink()
    else:
        record.write_text(record.read_text()[:-20])
        fails(undisturbed.ground.arguments(undisturbed.ground.corpus, output), "damaged-record", record)
        record.unlink()
    completed = succeeds(*undisturbed.ground.arguments(undisturbed.ground.corpus, output))
    assert undisturbed.content in completed.out
    assert_undisturbed(undisturbed, output)
