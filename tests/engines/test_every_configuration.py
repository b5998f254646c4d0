"""Every mechanism, list configuration and form gives the same bytes on every engine, split or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.errors import UserError
from corpusveil.jobs.spark import SparkEngine, spark_session
from corpusveil.mechanisms import find, names
from corpusveil.mechanisms.on_lists import OnLists
from corpusveil.pipelines.beam import BeamEngine
from corpusveil.pipelines.local import LocalEngine
from corpusveil.spaces import Space, Vectors
from corpusveil.storage.formats import SUFFIXES
from corpusveil.storage.rows import Columns
from corpusveil.transforms.corpus import privatize_corpus
from tests.engines.corpora import BLOCK, TEST_KEY, WORDS, Ground, release_files, rows, write_shard

pytestmark = pytest.mark.spark

SHARDS = (BLOCK + 40, 30, 0)


def vectors(seed: int, words: Sequence[str]) -> Vectors:
    """Return random vectors of words."""
    random = np.random.default_rng(seed).standard_normal((len(words), 8)).astype(np.float32)
    return Vectors(list(words), random, source=f"E{seed}")


CONFIGURATIONS: dict[str, Callable[[], Space]] = {
    "one list": lambda: cv.build_space(vectors(1, WORDS)),
    "five lists": lambda: cv.build_space(vectors(1, WORDS), lists=5),
    "five embeddings, a list each": lambda: cv.build_space([vectors(n, WORDS[n:]) for n in range(5)]),
    "two embeddings, all their words": lambda: cv.build_space(
        [vectors(1, WORDS[:300]), vectors(2, WORDS[90:])], lists=2, union=True
    ),
    "two embeddings, two lists each": lambda: cv.build_space([vectors(1, WORDS), vectors(2, WORDS[50:])], lists=2),
}


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    session = spark_session("local[2]")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three shards, one of two blocks and one of none."""
    folder = tmp_path_factory.mktemp("corpus")
    for number, size in enumerate(SHARDS):
        write_shard(folder / f"{number}.jsonl", rows(size, number))
    return folder


def same_everywhere(release: cv.Release, source: Path, folder: Path, **options: Any) -> dict[str, str]:
    """Run on every engine; return the files that all of them wrote."""
    engines: list[tuple[Any, int | None]] = [(BeamEngine(), None)]
    engines += [(engine, split) for engine in (LocalEngine(), SparkEngine()) for split in (None, BLOCK)]
    told = []
    for number, (engine, rows_per_task) in enumerate(engines):
        output = folder / str(number)
        privatize_corpus(release, [str(source)], str(output), engine, rows_per_task=rows_per_task, **options)
        told.append(release_files(output))
    assert len(told[0]) == len(SHARDS) + 1
    for other in told[1:]:
        assert other == told[0]
    return told[0]


@pytest.mark.usefixtures("spark")
class TestTheSameBytes:
    @pytest.mark.parametrize("per", ["token", "document"])
    @pytest.mark.parametrize("configuration", CONFIGURATIONS)
    @pytest.mark.parametrize("name", names())
    def test_of_every_mechanism_and_list_configuration(
        self, corpus: Path, tmp_path: Path, name: str, configuration: str, per: Any
    ) -> None:
        space = CONFIGURATIONS[configuration]().save(str(tmp_path / "space"))
        if space.places is not None and not issubclass(find(name), OnLists):
            with pytest.raises(UserError, match="some words have none"):
                cv.mechanism(name, space)
            return
        epsilon = 1e6 if name == "truncated-gumbel" else 8.0  # which is not defined at small ones
        release = cv.Release(
            cv.mechanism(name, space), cv.Budget(epsilon, per), key=cv.Key(TEST_KEY), accept_no_guarantee=True
        )
        same_everywhere(release, corpus, tmp_path)

    @pytest.mark.parametrize("suffix", [suffix for suffix in SUFFIXES if suffix != ".jsonl"])
    def test_of_every_form(self, ground: Ground, corpus: Path, tmp_path: Path, suffix: str) -> None:
        """In and out: JSON lines become a private corpus in this form, and that becomes a further one."""
        release = cv.Release(cv.mechanism("ring-geometric", ground.space), cv.Budget(1.0), key=cv.Key(TEST_KEY))
        columns = Columns() if suffix.startswith(".txt") else Columns(id="id", keep=("id", "extra"))
        same_everywhere(release, corpus, tmp_path / "a", format=suffix[1:], columns=columns)
        same_everywhere(release, tmp_path / "a" / "0" / "data", tmp_path / "b", columns=columns)
