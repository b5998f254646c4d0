"""Tokens and vectors: what ``tokenize`` and ``train`` write, that they can be stopped, and what they refuse."""

from __future__ import annotations

import gzip
import itertools
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusveil as cv
from corpusveil.collocations.tokenize import tokenize_corpus
from corpusveil.collocations.training import train_vectors
from corpusveil.collocations.word2vec import Training
from corpusveil.jobs.beam import Beam
from corpusveil.jobs.local import Local
from corpusveil.jobs.spark import Spark
from tests.calls import succeeds
from tests.collocations.corpora import WORDS, Made, make, write
from tests.engines.corpora import release_files

pytestmark = pytest.mark.xdist_group("spark")

PAIRS = [(WORDS[0], WORDS[1]), (WORDS[1], WORDS[0]), (WORDS[2], WORDS[0]), (WORDS[0], WORDS[2], WORDS[1])]
SMALL = Training(dimensions=12, epochs=2, min_count=2)


@pytest.fixture(scope="module")
def made() -> Made:
    return make(900, 11)


@pytest.fixture(scope="module")
def source(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("source"), made, 3)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("table") / "collocations.parquet"
    rows = {"ngram": [" ".join(words) for words in PAIRS], "n": pa.array([2, 2, 2, 3], pa.int8()), "count": [9] * 4}
    pq.write_table(pa.table({**rows, "score": [3.0, 2.0, 5.0, 9.0]}), path)
    return str(path)


def lines_of(output: Path) -> list[list[str]]:
    """Return the tokens of each line of an artifact."""
    paths = sorted((output / "lines").iterdir())
    return [line.split(" ") for path in paths for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def rows_of(output: Path) -> list[list[str]]:
    """Return the tokens of each document of an artifact."""
    return [row for path in sorted((output / "tokens").iterdir()) for row in pq.read_table(path)["tokens"].to_pylist()]


def flat(rows: list[list[str]]) -> list[str]:
    return list(itertools.chain.from_iterable(rows))


@pytest.fixture(scope="module")
def tokens(source: Path, table: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("tokens") / "gst"
    tokenize_corpus([str(source)], str(output), Local(), "gst", table)
    return output


class TestTokenize:
    def test_words_are_those_of_the_text(self, made: Made, source: Path, tmp_path: Path) -> None:
        """Every word once, lower-cased, in order; a row a document, a line a sentence; counts and totals."""
        told = tokenize_corpus([str(source)], str(tmp_path / "out"), Local())
        rows, lines = rows_of(tmp_path / "out"), lines_of(tmp_path / "out")
        assert flat(rows) == flat(lines)
        expected = Counter({word: count for word, count in made.counts.items() if " " not in word})
        assert Counter(flat(rows)) == expected
        counts = pq.read_table(tmp_path / "out" / "counts.parquet").to_pylist()
        assert {row["token"]: row["count"] for row in counts} == expected
        assert counts == sorted(counts, key=lambda row: (-row["count"], row["token"].encode()))
        assert (
            (told["documents"], told["sentences"]) == (len(made.documents), made.sentences) == (len(rows), len(lines))
        )
        assert told["words"] == told["tokens"] == made.words

    @pytest.mark.spark
    @pytest.mark.usefixtures("spark")
    def test_every_engine_writes_the_same_bytes(self, source: Path, table: str, tokens: Path, tmp_path: Path) -> None:
        """Tokens are those of one local process."""
        for name, engine in (("local", Local(2)), ("beam", Beam()), ("spark", Spark())):
            tokenize_corpus([str(source)], str(tmp_path / name), engine, "gst", table)
            assert release_files(tmp_path / name) == release_files(tokens)


class TestTrain:
    def test_vectors_are_a_space(self, tokens: Path, tmp_path: Path) -> None:
        """From tokens to vectors to a space, in which words and collocations live together, with their counts."""
        arguments = ["train", "--tokens", str(tokens), "--output", str(tmp_path / "vectors"), "--progress", "none"]
        succeeds(*arguments, "--dimensions", "12", "--epochs", "2", "--min-count", "2")
        read = cv.read_vectors(str(tmp_path / "vectors"))
        counts = Counter(flat(lines_of(tokens)))
        assert dict(zip(read.words, np.asarray(read.counts).tolist(), strict=True)) == {
            token: count for token, count in counts.items() if count >= 2
        }
        assert {"_".join(words) for words in PAIRS} <= set(read.words)
        succeeds("space", "--vectors", tmp_path / "vectors", "--output", tmp_path / "space")
        lengths = pq.read_table(tmp_path / "space" / "vocabulary.parquet").to_pydict()
        assert {n for token, n in zip(lengths["token"], lengths["words"], strict=True) if "_" in token} == {2, 3}

    def test_is_deterministic(self, tokens: Path, tmp_path: Path) -> None:
        """With one worker: the same vectors again, from however many shards, and nothing but the artifact is left."""
        first = train_vectors(str(tokens), str(tmp_path / "a"), Local(), SMALL)
        whole = shutil.copytree(tokens, tmp_path / "whole")
        paths = sorted((whole / "lines").iterdir())
        data = b"".join(gzip.decompress(path.read_bytes()) for path in paths)
        for path in paths:
            path.unlink()
        paths[0].write_bytes(gzip.compress(data))
        again = train_vectors(str(whole), str(tmp_path / "b"), Local(), SMALL)
        assert first["vectors_sha256"] == again["vectors_sha256"]
        names = ["_artifact.json", "vectors.npy", "vocabulary.parquet"]
        assert sorted(path.name for path in (tmp_path / "a").iterdir()) == names

    @pytest.mark.spark
    @pytest.mark.usefixtures("spark")
    @pytest.mark.nightly
    def test_on_spark_it_is_the_same_artefact(self, tokens: Path, tmp_path: Path) -> None:
        """gensim in a job on an executor makes the vectors that it makes here."""
        arguments = ["train", "--tokens", str(tokens), "--dimensions", "12", "--min-count", "2", "--epochs", "1"]
        quiet = ["--progress", "none", "--output"]
        succeeds(*arguments, "--engine", "spark", *quiet, tmp_path / "job")
        succeeds(*arguments, *quiet, tmp_path / "here")
        job, here = (np.load(tmp_path / name / "vectors.npy") for name in ("job", "here"))
        assert np.array_equal(job, here)
