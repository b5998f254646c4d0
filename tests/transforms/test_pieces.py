"""Shards that are split: however a run and the one before it split them, no row is lost or written twice."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from corpusveil.budget import Budget
from corpusveil.jobs.local import Local
from corpusveil.mechanisms import make
from corpusveil.sampling.keys import Key
from corpusveil.storage.rows import BLOCK_ROWS, Columns
from corpusveil.transforms.release.corpus import Outcome, privatize_corpus
from corpusveil.transforms.release.release import Release
from tests.calls import Halting, refused
from tests.contracts.spaces import small_space

ROWS = 20_000


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("in") / "a.json.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps({"text": f"aaab aaac {row}", "url": f"u{row}"}) + "\n" for row in range(ROWS))
    return str(path)


@pytest.fixture(scope="module")
def release() -> Release:
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
