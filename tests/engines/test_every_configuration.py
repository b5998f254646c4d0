"""Every mechanism, list configuration and form gives the same bytes on every engine, split or not."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.jobs.beam import Beam
from corpusveil.jobs.local import Local
from corpusveil.jobs.spark import Spark
from corpusveil.mechanisms import names
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage.formats import SUFFIXES
from corpusveil.storage.rows import Columns
from tests.calls import privatize_corpus
from tests.engines.corpora import BLOCK, TEST_KEY, WORDS, Ground, make_release, release_files, rows, write_shard
from tests.storage.test_values import parquet_of_every_type

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SHARDS = (BLOCK + 40, 30, 0)


def vectors(seed: int, words: Sequence[str]) -> Vectors:
    """Return random vectors of words."""
    random = np.random.default_rng(seed).standard_normal((len(words), 8)).astype(np.float32)
    return Vectors(list(words), random, source=f"E{seed}")


CONFIGURATIONS: dict[str, Callable[[], Space]] = {
    "one list": lambda: cv.build_space(vectors(1, WORDS)),
    "five lists": lambda: cv.build_space(vectors(1, WORDS), lists=5),
    "five embeddings, a list each": lambda: cv.build_space([vectors(n, WORDS[n:]) for n in range(5)]),
    "two embeddings, two lists each": lambda: cv.build_space([vectors(1, WORDS), vectors(2, WORDS[50:])], lists=2),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three shards, one of two blocks, with rows without text in both, and one of none."""
    folder = tmp_path_factory.mktemp("corpus")
    for number, size in enumerate(SHARDS):
        documents = rows(size, number)
        for row in documents[7::BLOCK]:
            row["text"] = None
        write_shard(folder / f"{number}.jsonl", documents)
    return folder


WAYS: dict[str, tuple[Callable[[], Any], int | None]] = {
    "Beam": (Beam, None),
    "Spark": (Spark, None),
    "row ranges": (Local, BLOCK),
    "Spark, row ranges": (Spark, BLOCK),
    "two processes, row ranges": (lambda: Local(2), 2 * BLOCK),
}
"""The ways to run that have to write what the local engine does, shard by shard; the last takes long."""


def same_everywhere(
    release: cv.Release, source: Path, folder: Path, ways: Iterable[str], **options: Any
) -> dict[str, str]:
    """Run on the local engine and in other ways; return the files that all of them wrote."""
    told = []
    for number, (engine, rows_per_task) in enumerate([(Local, None), *(WAYS[way] for way in ways)]):
        output = folder / str(number)
        privatize_corpus(release, [str(source)], str(output), engine(), rows_per_task=rows_per_task, **options)
        told.append(release_files(output))
    assert len(told[0]) == len(SHARDS) + 1
    for other in told[1:]:
        assert other == told[0]
    return told[0]


PERS = ("token", "document")


def _combinations() -> Iterator[Any]:
    """Yield half of the mechanisms by day in one configuration, at night all in all; budgets and ways take turns."""
    for row, name in enumerate(names()):
        for turn, configuration in enumerate(CONFIGURATIONS):
            rest = (configuration, PERS[(row + turn) % 2], list(WAYS)[(row + turn) % 4])
            yield pytest.param(name, *rest, marks=() if turn == row % 10 else (pytest.mark.nightly,))


FORMS_BY_DAY = (".csv", ".json.gz", ".jsonl.zst", ".parquet", ".txt")


def _forms() -> Iterator[Any]:
    """Yield each form of text and each compression with one way to write and another to read it."""
    ways = list(WAYS)
    for number, suffix in enumerate(suffix for suffix in SUFFIXES if suffix != ".jsonl"):
        marks = () if suffix in FORMS_BY_DAY else (pytest.mark.nightly,)
        yield pytest.param(suffix, (ways[number % 4], ways[(number + 1) % 4]), id=suffix, marks=marks)


@pytest.mark.usefixtures("spark")
class TestTheSameBytes:
    @pytest.mark.parametrize(("name", "configuration", "per", "way"), list(_combinations()))
    def test_of_every_mechanism_and_list_configuration(
        self, corpus: Path, tmp_path: Path, name: str, configuration: str, per: Any, way: str
    ) -> None:
        """Whatever is drawn does not depend on who draws it, nor on how shards are split."""
        space = CONFIGURATIONS[configuration]().save(str(tmp_path / "space"))
        epsilon = 1e6 if "gumbel" in name else 8.0  # which is not defined at small ones
        release = cv.Release(
            cv.mechanism(name, space), cv.Budget(epsilon, per), key=cv.Key(TEST_KEY), accept_no_guarantee=True
        )
        same_everywhere(release, corpus, tmp_path, [way])

    @pytest.mark.parametrize(("suffix", "ways"), list(_forms()))
    def test_of_every_form(
        self, ground: Ground, corpus: Path, tmp_path: Path, suffix: str, ways: tuple[str, ...]
    ) -> None:
        """In and out: JSON lines become a private corpus in this form, and that becomes a further one."""
        release = cv.Release(cv.mechanism("ring-geometric", ground.space), cv.Budget(1.0), key=cv.Key(TEST_KEY))
        columns = Columns() if suffix.startswith(".txt") else Columns(id="id", keep=("id", "secret"))
        same_everywhere(release, corpus, tmp_path / "a", ways[:1], format=suffix[1:], columns=columns)
        same_everywhere(release, tmp_path / "a" / "0" / "data", tmp_path / "b", ways[1:], columns=columns)

    def test_of_kept_columns_of_every_type(self, ground: Ground, tmp_path: Path) -> None:
        """Nanoseconds and years beyond those of Python too, in a process that has imported pandas."""
        importlib.import_module("pandas")
        release = make_release(ground.space)
        for number in range(len(SHARDS)):
            columns = Columns(keep=parquet_of_every_type(tmp_path / "in" / f"{number}.parquet"))
        for form in ("parquet", "jsonl", "csv"):
            same_everywhere(release, tmp_path / "in", tmp_path / form, ["Beam", "Spark"], format=form, columns=columns)

    def test_of_all_that_a_release_may_have(self, tmp_path: Path) -> None:
        """Spans of two treatments, however a shard is split, on every engine."""
        numbers = ("1999", "2024-05-17", "12:30", "9/11", "3rd", "10KM", "\u0663\u0664", "7" * 40, "1,234.5")
        for number, size in enumerate(SHARDS):
            documents = rows(size, number)
            for at, row in enumerate(documents):
                row["text"] += f" {numbers[at % 9]} {numbers[at % 4]} {WORDS[3]} {WORDS[5]} {WORDS[6]}"
            write_shard(tmp_path / "in" / f"{number}.jsonl", documents)
        (tmp_path / "terms").write_text(f"{WORDS[3]}\nplace\t{WORDS[5]} {WORDS[6]}\nrest\t{WORDS[9]}\n")
        spans = cv.SpanPolicy(find=[str(tmp_path / "terms")], treat={"place": "resample", "rest": "resample"})
        space = cv.build_space(vectors(1, WORDS)).save(str(tmp_path / "space"))
        release = cv.Release(
            cv.mechanism("ring-geometric", space), cv.Budget(1.0),
            cv.TextPolicy(case="restore", layout="keep"), key=cv.Key(TEST_KEY), spans=spans,
        )  # fmt: skip
        same_everywhere(release, tmp_path / "in", tmp_path / "out", ("two processes, row ranges", "Spark"))
        text = (tmp_path / "out" / "0" / "data" / "part-00000-of-00003.jsonl").read_text()
        assert not any(number in text for number in ("2024-05-17", "7" * 40))
        assert text.count("[name]") > 50
