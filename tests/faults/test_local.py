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
from tests.engines.corpora import BLOCK, HANG_SECONDS
from tests.engines.processes import alive, end_session, kill_tree, tree, wait_until
from tests.faults.crashes import (
    Undisturbed,
    assert_nothing_is_half_written,
    assert_undisturbed,
    begin,
    done,
    kill_in_the_middle,
    records_of,
    run_again,
)


def workers_of(pid: int) -> list[psutil.Process]:
    """Return the worker processes of a run: what its fork server has forked, or else spawned interpreters."""
    found = []
    for member in tree(pid)[1:]:
        with contextlib.suppress(psutil.Error):
            own = " ".join(member.cmdline())
            if "spawn_main" in own or ("forkserver" in own and own == " ".join((member.parent() or member).cmdline())):
                found.append(member)
    return found


@pytest.mark.nightly
def test_killed_with_one_process(undisturbed: Undisturbed, tmp_path: Path) -> None:
    output = tmp_path / "output"
    before = kill_in_the_middle(undisturbed, output)
    assert 0 < before < undisturbed.shards
    assert_nothing_is_half_written(undisturbed, output)
    shard = next(iter(sorted((output / "data").glob("part-*"))))
    written = shard.stat().st_mtime_ns
    run_again(undisturbed, output)
    assert shard.stat().st_mtime_ns == written, "a shard that was done is done again"


@pytest.mark.nightly
def test_killed_twice_and_finished_in_other_row_ranges_by_another_engine(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    kill_in_the_middle(undisturbed, output, "--rows-per-task", 2 * BLOCK)
    process = begin(undisturbed, output, "--workers", 2)
    before = done(output)
    wait_until(lambda: done(output) > before or process.poll() is not None)
    kill_tree(process)
    assert_nothing_is_half_written(undisturbed, output)
    run_again(undisturbed, output, "--engine", "beam", "--rows-per-task", BLOCK)


@pytest.mark.nightly
def test_a_killed_worker_ends_the_run_in_a_sentence_and_a_second_run_completes(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    process = begin(undisturbed, output, "--workers", 2)
    try:
        wait_until(lambda: done(output) > 0 or process.poll() is not None)
        os.kill(workers_of(process.pid)[0].pid, signal.SIGKILL)
        status = process.wait(HANG_SECONDS)
    finally:
        end_session(process)
    said = (tmp_path / "killed.log").read_text()
    assert status == 1, said
    assert said.splitlines()[-1].startswith("corpusveil: A worker process was killed")
    assert "run the same command again" in said.splitlines()[-1]
    assert "Traceback" not in said
    assert_nothing_is_half_written(undisturbed, output)
    run_again(undisturbed, output, "--workers", 2)


def test_workers_end_when_their_parent_is_killed(undisturbed: Undisturbed, tmp_path: Path) -> None:
    output = tmp_path / "output"
    process = begin(undisturbed, output, "--workers", 2)
    workers: list[psutil.Process] = []
    try:
        wait_until(lambda: done(output) > 0 or process.poll() is not None)
        workers = tree(process.pid)[1:]
        assert len(workers_of(process.pid)) == 2
        os.kill(process.pid, signal.SIGKILL)
        process.wait(HANG_SECONDS)
        wait_until(lambda: not any(alive(worker.pid) for worker in workers), every=0.1)
    finally:
        for worker in workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.kill()
        end_session(process)


@pytest.mark.parametrize("damage", ["cut", "changed", "removed", "no record", "damaged record"])
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
        if damage == "damaged record":
            record.write_text(record.read_text()[:-20])
            fails(undisturbed.ground.arguments(undisturbed.ground.corpus, output), "damaged-record", record)
        record.unlink()
    completed = succeeds(*undisturbed.ground.arguments(undisturbed.ground.corpus, output))
    assert undisturbed.content in completed.out
    assert_undisturbed(undisturbed, output)
