"""A vocabulary gives every word one id, back and forth, and never repeats a word that it does not know."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from corpusveil.errors import SettingError
from corpusveil.spaces import Vocabulary
from corpusveil.spaces.vocabulary import read_vocabulary, read_words, rows_without, write_vocabulary
from tests.calls import refused


def test_an_unknown_word_is_refused_and_not_repeated() -> None:
    vocabulary = Vocabulary.from_words(["a", "b"])
    with pytest.raises(SettingError) as error:
        vocabulary.id("secret")
    assert "not among the 2 words" in str(error.value)
    assert "secret" not in str(error.value)
    assert "secret" not in vocabulary
    for id in (-1, 2):
        with refused("wrong-setting"):
            vocabulary.word(id)


@pytest.mark.parametrize("counts", [None, np.array([5, 0, 7, 2**40, 1, 1])])
def test_it_survives_parquet_and_pickle(tmp_path: Path, counts: np.ndarray | None) -> None:
    """Ids, words and counts are the same in a file and in a worker."""
    words = ["a", "new_york_city", "_", "__init__", "я", "a_"]
    path = str(tmp_path / "vocabulary.parquet")
    vocabulary = Vocabulary.from_words(words, counts)
    write_vocabulary(vocabulary, path)
    for copy in (read_vocabulary(path), pickle.loads(pickle.dumps(vocabulary))):
        assert list(copy.words) == words
        np.testing.assert_array_equal(copy.text, vocabulary.text)
        np.testing.assert_array_equal(copy.offsets, vocabulary.offsets)
        assert (copy.counts is None) == (counts is None)
        np.testing.assert_array_equal(copy.counts, counts)
    table = pq.read_table(path)
    assert [str(kind) for kind in table.schema.types] == ["int32", "string", "int8", "int64"]
    assert table.column_names == ["id", "token", "words", "count"]
    assert table["words"].to_pylist() == [1, 3, 1, 1, 1, 1]


def test_duplicates_are_refused() -> None:
    """A word has one id."""
    with refused("wrong-setting", "once"):
        Vocabulary.from_words(["a", "a"])


def test_an_excluded_word_is_left_out_however_its_file_writes_it(tmp_path: Path) -> None:
    """In any case, with accents as characters of their own, either apostrophe, and any ends of lines."""
    words, file = ["café", "don't", "straße", "old_café", "tea", "café's"], tmp_path / "words.txt"
    for listed in ("café\ndon't\nstraße", "CAFE\u0301\r\nDon’t\r\n\r\nSTRASSE\r\n"):
        file.write_bytes(b"\xef\xbb\xbf" + listed.encode())
        assert rows_without(words, read_words(str(file))) == [4], listed
