"""Shards that are split: what is written does not change, however a run and the one before it split them."""

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
from corpusveil.mechanisms import make_mechanism
from corpusveil.sampling.keys import Key
from corpusveil.storage import tasks
from corpusveil.storage.inputs import InputShard, find_shards
from corpusveil.storage.rows import BLOCK_ROWS, Columns
from corpusveil.storage.tasks import MOST_PIECES, SPLIT_FROM_BYTES, plan
from corpusveil.transforms.release.corpus import Outcome
from corpusveil.transforms.release.job import ShardJob
from corpusveil.transforms.release.release import Release
from tests.calls import Halting, privatize_corpus, refused
from tests.contracts.spaces import small_space
from tests.engines.corpora import make_release, make_space, release_files, write_shard

LARGE = 4 * SPLIT_FROM_BYTES


def shards(*sizes: int) -> list[InputShard]:
    return [InputShard(f"{number}.json", f"{number}.json", size) for number, size in enumerate(sizes)]


def sizes_of(*sizes: int, slots: int) -> list[int]:
    """Return into how many pieces each shard is split."""
    split = tasks._shares(shards(*sizes), lambda: slots)
    return [split.get(number, 1) for number in range(len(sizes))]


def test_what_is_split() -> None:
    """Large shards of two shares or more, in no more pieces than so many; equal shards if they are half the slots."""
    assert sizes_of(LARGE, slots=2) == [2]
    assert sizes_of(LARGE, slots=1) == [1]
    first, *others = sizes_of(LARGE, *[1000] * 50, slots=8)
    assert first == 7
    assert others == [1] * 50
    for slots in (2, 8, 10, 15):
        assert sizes_of(*[LARGE] * 8, slots=slots) == [1] * 8
    for slots in (16, 23):
        assert sizes_of(*[LARGE] * 8, slots=slots) == [2] * 8
    assert sizes_of(SPLIT_FROM_BYTES - 1, slots=64) == [1]
    assert sizes_of(1000 * LARGE, slots=1000) == [MOST_PIECES]
    assert tasks._shares(shards(1, 2, 3), lambda: pytest.fail("an engine has to be started to answer")) == {}


def test_a_split_shard_is_written_as_a_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the guess of its rows was far off: pieces past its end are empty, the last takes what is left."""
    rows = 2 * BLOCK_ROWS + 5
    source = write_shard(tmp_path / "a.json.gz", [{"text": f"bababa dedede {row}"} for row in range(rows)])
    release = make_release(make_space(tmp_path / "space"))
    whole = tmp_path / "whole"
    privatize_corpus(release, [str(source)], str(whole), Local())
    monkeypatch.setattr(tasks, "SPLIT_FROM_BYTES", 1)
    assert len(plan(find_shards([str(source)]), None, None, lambda: 2)) > 1
    guesses: list[Any] = [tasks.about_rows, lambda *_: 10 * rows, lambda *_: 1 + rows // 10]
    for number, guess in enumerate(guesses):
        monkeypatch.setattr(tasks, "about_rows", guess)
        output = tmp_path / f"split{number}"
        privatize_corpus(release, [str(source)], str(output), _Two())
        assert release_files(output) == release_files(whole)


class _Two(Local):
    """One process that says it were two."""

    def slots(self) -> int:
        return 2


ROWS = 20_000
KILLS = 20


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows = [{"text": f"aaab aaac {row}", "url": f"u{row}"} for row in range(ROWS)]
    return str(write_shard(tmp_path_factory.mktemp("in") / "a.json.gz", rows))


@pytest.fixture(scope="module")
def release() -> Release:
    return made()


def made() -> Release:
    return Release(make_mechanism("ring-geometric", small_space(40)), Budget(1.0), key=Key.for_tests())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, shard: str, release: Release) -> Outcome:
    return privatize_corpus(release, [shard], str(tmp_path_factory.mktemp("whole") / "out"), Local())


@pytest.mark.parametrize(("first", "done", "second"), [(1, 1, 2), (2, 1, 1), (1, 2, None)])
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
    privatize_corpus(made(), [shard], output, Local(), rows_per_task=BLOCK_ROWS)
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

    def run(self, function: Any, tasks: Sequence[Any]) -> None:
        super().run(function, tasks)
        for task in tasks:
            function.do(task)


def test_a_join_may_be_tried_twice(tmp_path: Path, shard: str, release: Release, whole: Outcome) -> None:
    """An engine that does every task again writes the same release."""
    output = str(tmp_path / "out")
    assert (
        privatize_corpus(release, [shard], output, _Twice(), rows_per_task=BLOCK_ROWS).content_sha256
        == whole.content_sha256
    )
