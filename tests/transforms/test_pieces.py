"""Shards that are split: however a run and the one before it split them, no row is lost or written twice."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from corpusveil.budget import Budget
from corpusveil.jobs.local import Local
from corpusveil.mechanisms import make
from corpusveil.sampling.keys import Key
from corpusveil.storage.rows import BLOCK_ROWS, Columns
from corpusveil.transforms.release.corpus import Outcome, privatize_corpus
from corpusveil.transforms.release.job import ShardJob
from corpusveil.transforms.release.release import Release
from tests.calls import Halting, refused
from tests.contracts.spaces import small_space

ROWS = 20_000
KILLS = 20


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("in") / "a.json.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps({"text": f"aaab aaac {row}", "url": f"u{row}"}) + "\n" for row in range(ROWS))
    return str(path)


@pytest.fixture(scope="module")
def release() -> Release:
    return made()


def made() -> Release:
    return Release(make("ring-geometric", small_space(40)), Budget(1.0), key=Key.for_tests())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, shard: str, release: Release) -> Outcome:
    return privatize_corpus(release, [shard], str(tmp_path_factory.mktemp("whole") / "out"), Local())


@pytest.mark.parametrize(
    ("first", "done", "second"),
    [(1, 1, 2), (2, 1, 1), (1, 2, None)],
)
def test_a_run_that_splits_otherwise_than_the_one_it_continues_loses_nothing(
    tmp_path: Path, shard: str, release: Release, whole: Outcome, first: int | None, done: int, second: int | None
) -> None:
    """Pieces of other rows are not taken for this run's."""
    output = str(tmp_path / "out")
    with refused("work-failed", "halted"):
        privatize_corpus(release, [shard], output, Halting(done), rows_per_task=first and first * BLOCK_ROWS)
    again = privatize_corpus(release, [shard], output, Local(), rows_per_task=second and second * BLOCK_ROWS)
    assert again.counts.documents == ROWS
    assert again.content_sha256 == whole.content_sha256
    assert not list((tmp_path / "out.records").glob("pieces/*"))


def test_pieces_written_with_other_columns_are_not_used(tmp_path: Path, shard: str, release: Release) -> None:
    """A column that was kept by an interrupted run does not reach the release of one that does not keep it."""
    output = tmp_path / "out"
    with refused("work-failed", "halted"):
        privatize_corpus(
            release, [shard], str(output), Halting(9), rows_per_task=BLOCK_ROWS, columns=Columns(keep=("url",))
        )
    (tmp_path / "out.records" / "run.json").unlink()
    privatize_corpus(release, [shard], str(output), Local(), rows_per_task=BLOCK_ROWS)
    with gzip.open(next((output / "data").iterdir()), "rt") as file:
        assert all(list(json.loads(line)) == ["text"] for line in file)


def privatize_and_die(shard: str, output: str, moment: int | None) -> None:
    """Privatize in pieces, and kill this process when it opens, renames, lists or removes a file for the n-th time.

    Counted from the beginning of the join. Without a moment, their number is written beside the output.
    """
    met, join = [], ShardJob._join

    def meet(event: str, _: object) -> None:
        if met and event in ("open", "os.rename", "os.remove", "os.listdir", "os.scandir"):
            met.append(event)
            if len(met) - 1 == moment:
                os.kill(os.getpid(), signal.SIGKILL)

    def begun(*arguments: object) -> object:
        met.append("join")
        return join(*arguments)  # type: ignore[arg-type]

    ShardJob._join = begun  # type: ignore[method-assign, assignment]
    sys.addaudithook(meet)
    privatize_corpus(made(), [shard], output, Local(), rows_per_task=BLOCK_ROWS, page=False)
    Path(f"{output}.moments").write_text(str(len(met) - 1))


def in_process(*arguments: object) -> int | None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=privatize_and_die, args=arguments)
    process.start()
    process.join()
    return process.exitcode


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory, shard: str) -> int:
    output = str(tmp_path_factory.mktemp("moments") / "out")
    assert in_process(shard, output, None) == 0
    return int(Path(f"{output}.moments").read_text())


@pytest.mark.parametrize("kill", range(KILLS))
def test_a_join_that_is_killed_is_gone_on_with(
    tmp_path: Path, shard: str, release: Release, whole: Outcome, moments: int, kill: int
) -> None:
    """From its first read to the manifest, at moments that are spread over it."""
    assert moments > KILLS
    output = tmp_path / "out"
    assert in_process(shard, str(output), 1 + kill * moments // KILLS) == -signal.SIGKILL
    again = privatize_corpus(release, [shard], str(output), Local(), rows_per_task=BLOCK_ROWS)
    assert (again.content_sha256, again.counts.private()) == (whole.content_sha256, whole.counts.private())
    assert not [*(tmp_path / "out.records").glob("pieces/*"), *tmp_path.rglob(".*.part")]


class _Twice(Local):
    """An engine whose tasks are all done a second time after their first attempt has recorded them."""

    def run(self, function: Any, tasks: Sequence[Any]) -> dict[str, int]:
        measured = super().run(function, tasks)
        for task in tasks:
            function.do(task)
        return measured


def test_a_join_may_be_tried_twice(tmp_path: Path, shard: str, release: Release, whole: Outcome) -> None:
    output = str(tmp_path / "out")
    assert (
        privatize_corpus(release, [shard], output, _Twice(), rows_per_task=BLOCK_ROWS).content_sha256
        == whole.content_sha256
    )
