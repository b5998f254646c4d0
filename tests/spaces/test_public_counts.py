"""Counts come from public tables, word by word; words that the table lacks get 0, bad rows are named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusveil.spaces import Vocabulary, load_space
from corpusveil.spaces.public_counts import read_counts
from tests.calls import command, refused, succeeds

VOCABULARY = Vocabulary.from_words(["river", "new_york", "_", "never", '"', "я"])
EXPECTED = [7, 4, 3, 0, 2, 1]
NGRAMS = {
    "ngram": ["river", "new york", "_", '"', "я", "unknown", "river bank"],
    "n": pa.array([1, 2, 1, 1, 1, 1, 2], pa.int8()),
    "count": pa.array([7, 4, 3, 2, 1, 9, 5], pa.int64()),
}


def test_ngram_counts_are_read_from_a_file_and_from_an_artefact(tmp_path: Path) -> None:
    table = pa.table(NGRAMS)
    pq.write_table(table, tmp_path / "part-0.parquet", row_group_size=2)
    assert read_counts(str(tmp_path / "part-0.parquet"), VOCABULARY).tolist() == EXPECTED
    pq.write_table(table.slice(3), tmp_path / "part-1.parquet")
    pq.write_table(table.slice(0, 3), tmp_path / "part-0.parquet")
    counts = read_counts(str(tmp_path), VOCABULARY)
    assert counts.tolist() == EXPECTED
    assert counts.dtype == np.int64


def test_the_folder_that_count_wrote_is_taken(tmp_path: Path) -> None:
    """``space --counts`` gets the unigram counts out of the artifact, and those of collocations."""
    (tmp_path / "in.txt").write_text("the river the bank\nthe river of new york\n")
    succeeds("count", tmp_path / "in.txt", "--min-count", "1", "--output", tmp_path / "counts")
    (tmp_path / "v.txt").write_text("river 1 0\nbank 0 1\nnew_york 1 1\nsea 2 1\n")
    words = ["space", "--vectors", tmp_path / "v.txt", "--counts", tmp_path / "counts", "--output"]
    succeeds(*words, tmp_path / "space")
    space = load_space(str(tmp_path / "space"))
    assert space.counts is not None
    assert space.counts.tolist() == [2, 1, 1, 0]
    description = json.loads((tmp_path / "counts" / "_artifact.json").read_text())
    for other, said in (
        ({"tokenizer": "0/unicode-1"}, "counted by tokenizer 0/unicode-1"),
        ({"kind": "tokens"}, "of the kind tokens, not counts; 'corpusveil count' makes counts"),
        ({"kind": 3}, "this record is damaged"),
    ):
        (tmp_path / "counts" / "_artifact.json").write_text(json.dumps({**description, **other}))
        ended = command(*words, tmp_path / "other")
        assert ended.status == 2
        assert said in ended.err
    (tmp_path / "counts" / "_artifact.json").write_text(json.dumps(description))
    said = command("space", "--vectors", tmp_path / "counts", "--output", tmp_path / "other").err
    assert "of the kind counts, not vectors; 'corpusveil train' makes vectors" in said
    for part in (tmp_path / "counts" / "ngrams").iterdir():
        part.unlink()
    assert "there are no counts here" in command(*words, tmp_path / "other").err


@pytest.mark.parametrize(("header", "suffix"), [("", "txt.gz"), ("word\tcount\n", "tsv")])
def test_a_table_of_words_is_read(tmp_path: Path, header: str, suffix: str) -> None:
    """Of equal words the counts add up, with a line of names or without."""
    path = tmp_path / f"counts.{suffix}"
    data = (header + 'river\t3\nnew_york\t4\n_\t3\n"\t2\nя\t1\nunknown\t9\nriver\t4\n').encode()
    path.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
    assert read_counts(str(path), VOCABULARY).tolist() == EXPECTED


@pytest.mark.parametrize("row", ["river", "river\tmany", "river\t-1", "river\t1.5", "a\tb\t3", ""])
def test_a_bad_row_is_named(tmp_path: Path, row: str) -> None:
    """By its file and number."""
    path = tmp_path / "c.tsv"
    path.write_text(f"_\t1\n{row}\nя\t2\n", encoding="utf-8")
    with refused("unsuitable-data", "c.tsv", "row 2"):
        read_counts(str(path), VOCABULARY)


def test_counts_of_other_words_are_refused(tmp_path: Path) -> None:
    """A file that knows none of the words is the wrong file, and would silently make every count 0."""
    (tmp_path / "c.tsv").write_text("unknown\t5\n")
    with refused("unsuitable-data"):
        read_counts(str(tmp_path / "c.tsv"), VOCABULARY)
