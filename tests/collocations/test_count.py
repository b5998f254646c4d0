"""n-gram counts: exact, the same on every engine and for every partitioning, and additive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pytest

from corpusveil.collocations import count, counting_stages, ngrams
from corpusveil.collocations.collocation_table import most_words
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.errors import WorkError
from corpusveil.jobs.beam import Beam
from corpusveil.jobs.local import Local
from corpusveil.jobs.spark import Spark
from corpusveil.storage.rows import BLOCK_ROWS
from tests.calls import Halting, refused
from tests.collocations.corpora import Made, kept, make, write
from tests.engines.corpora import ROOT, release_files, write_shard

pytestmark = pytest.mark.xdist_group("spark")


def table(output: Path) -> list[tuple[str, int, int]]:
    """Return the counts of an artifact, sorted."""
    read = pa.dataset.dataset(str(output / "ngrams")).to_table()
    assert read.schema.equals(pa.schema([("ngram", pa.string()), ("n", pa.int8()), ("count", pa.int64())]))
    return sorted(zip(*(read[name].to_pylist() for name in ("ngram", "n", "count")), strict=True))


@pytest.fixture(scope="module")
def made() -> Made:
    made = make(3000, 1)
    for number, document in enumerate(made.documents):
        document["text"] = document["text"].replace(" 17 ", (" 17 ", " 1984 ", " 10:30 ")[number % 3])
    return made


@pytest.fixture(scope="module")
def corpus(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("corpus"), made, 5)


@pytest.fixture(scope="module")
def reference(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("reference") / "counts"
    count_corpus([str(corpus)], str(output), Local())
    return output


class TestCounts:
    @pytest.mark.parametrize(("max_n", "min_count"), [(1, 1), (5, 2)])
    def test_of_any_length_and_least_count(self, tmp_path: Path, max_n: int, min_count: int) -> None:
        """They are those of a plain count by hand."""
        made = make(400, max_n, max_n)
        options = CountOptions(max_n, min_count)
        count_corpus([str(write(tmp_path / "in", made, 2))], str(tmp_path / "out"), Local(), options)
        assert table(tmp_path / "out") == sorted(kept(made.counts, min_count))

    @pytest.mark.nightly
    def test_spilling_changes_nothing(
        self, made: Made, corpus: Path, reference: Path, monkeypatch: Any, tmp_path: Path
    ) -> None:
        """Tables and buffers of a few entries, put away again and again, add up to the same counts."""
        monkeypatch.setattr(ngrams, "MOST_KEYS", 3000)
        monkeypatch.setattr(counting_stages, "MOST_WORDS", 200)
        monkeypatch.setattr(count, "PART_BYTES", 30_000)
        told = count_corpus([str(corpus)], str(tmp_path / "out"), Local())
        assert told["parts"] > 4
        assert table(tmp_path / "out") == table(reference) == sorted(kept(made.counts, 5))


@pytest.mark.spark
class TestEngines:
    @pytest.mark.parametrize("engine", ["local", "spark", "beam"])
    @pytest.mark.usefixtures("spark")
    def test_give_the_same_bytes(self, corpus: Path, reference: Path, tmp_path: Path, engine: str) -> None:
        """Counts are those of one local process."""
        made = {"local": Local(2), "spark": Spark(), "beam": Beam()}[engine]
        count_corpus([str(corpus)], str(tmp_path / "out"), made)
        assert release_files(tmp_path / "out") == release_files(reference)


KILLED = """
import sys
from corpusveil.collocations import count, counting_stages
from corpusveil.jobs.local import Local
import os, signal

def stop(stage, task, do=getattr(counting_stages, sys.argv[3]).do):
    if task.record_name.startswith("part-00002"):
        os.kill(os.getpid(), signal.SIGKILL)
    return do(stage, task)

getattr(counting_stages, sys.argv[3]).do = stop
count.count_corpus([sys.argv[1]], sys.argv[2], Local())
"""


class TestInterrupted:
    @pytest.mark.parametrize("stage", ["CountWords", "AddNgrams"])
    def test_goes_on_where_it_stopped(self, corpus: Path, reference: Path, tmp_path: Path, stage: str) -> None:
        """Killed in the middle of any stage and run again, the artifact is the same to the byte."""
        command = [sys.executable, "-c", KILLED, str(corpus), str(tmp_path / "out"), stage]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
        assert done.returncode == -signal.SIGKILL
        assert not (tmp_path / "out" / "_artifact.json").exists()
        kept_before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("done/*")}
        count_corpus([str(corpus)], str(tmp_path / "out"), Watching(kept_before))
        assert release_files(tmp_path / "out") == release_files(reference)


class TestPieces:
    """A large shard is counted in row ranges; what that gives is what counting it whole gives, to the byte."""

    def test_of_any_split_are_equal(self, tmp_path: Path) -> None:
        """Also of a run that was stopped after its first stage and is run again in other pieces."""
        made = make(600, 11, sentences=3)
        made.documents *= 34  # two and a half times BLOCK_ROWS
        source, whole = [str(write(tmp_path / "in", made, 1))], tmp_path / "whole"
        count_corpus(source, str(whole), Local())
        with pytest.raises(WorkError):
            count_corpus(source, str(tmp_path / "stopped"), Halting(99), rows_per_task=BLOCK_ROWS)
        for name, blocks in (("stopped", 2), ("fresh", 1)):
            count_corpus(source, str(tmp_path / name), Local(), rows_per_task=blocks * BLOCK_ROWS)
            assert release_files(tmp_path / name) == release_files(whole)


class Watching(Local):
    """Fails when a task that was done is done again."""

    def __init__(self, before: dict[Path, int]) -> None:
        super().__init__()
        object.__setattr__(self, "before", before)

    def run(self, function: Any, tasks: Any) -> None:
        super().run(function, tasks)
        for path, time in self.before.items():  # type: ignore[attr-defined]
            assert path.stat().st_mtime_ns == time


class TestWrong:
    def test_more_words_than_keys_hold(self, tmp_path: Path) -> None:
        """An overflow is an error that says what to do, never a wrong count."""
        words = [f"{a}{b}{c}" for a in "bcdfghjklmnpqrst" for b in "aeiouy" for c in "bcdfghjklmnpqrstvwxz" * 3]
        different = sorted({f"{one}{other}" for one in words for other in ("a", "e", "i")})
        assert len(different) > most_words(5)
        write_shard(tmp_path / "x.jsonl", [{"text": " ".join(different)}])
        with refused("unsuitable-data", "min_count", "max_n"):
            count_corpus([str(tmp_path / "x.jsonl")], str(tmp_path / "out"), Local(), CountOptions(5, 1))

    def test_what_another_count_left_behind_goes(self, corpus: Path, reference: Path, tmp_path: Path) -> None:
        """Parts of an interrupted count in another number of parts do not stay beside those of this one."""
        (tmp_path / "out" / "ngrams").mkdir(parents=True)
        (tmp_path / "out" / "ngrams" / "part-00007-of-00008.parquet").write_bytes(b"old")
        count_corpus([str(corpus)], str(tmp_path / "out"), Local())
        assert release_files(tmp_path / "out") == release_files(reference)
