"""GST and MST: no token lost or repeated, and what each promises."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusveil.collocations.collocation_table import Collocations
from corpusveil.collocations.tokenizers import METHODS, segment
from corpusveil.errors import SettingError
from corpusveil.text.sentences import sentence_ends
from corpusveil.text.tokens import Tokenizer

Table = dict[tuple[str, ...], float]


def compiled(table: Table) -> Collocations:
    rows = {" ".join(words): score for words, score in table.items()}
    numbers = pa.array([len(words) for words in table], pa.int8())
    return Collocations.from_table(pa.table({"ngram": list(rows), "n": numbers, "score": list(rows.values())}))


def units(texts: list[str], table: Table, method: Any) -> list[list[str]]:
    """Return the units of each text, words joined by ``_``, lower-cased."""
    collocations = compiled(table)
    tokens = Tokenizer.of_words(collocations.words).tokenize(texts)
    found = segment(tokens.ids, sentence_ends(tokens), collocations, method)
    told = []
    for document in range(len(texts)):
        first, last = int(tokens.offsets[document]), int(tokens.offsets[document + 1])
        row = []
        for t in range(first, last):
            length = int(found.lengths[t])
            if length:
                words = [tokens.text(k).lower() for k in range(t, t + length)]
                row.append("_".join(words))
                entry = int(found.entries[t])
                assert (entry >= 0) == (length > 1)
                assert entry < 0 or collocations.tokens[entry] == row[-1]
        told.append(row)
    return told


def plain_gst(words: list[str], table: Table) -> list[str]:
    out, i = [], 0
    while i < len(words):
        length = next((n for n in (5, 4, 3, 2) if tuple(words[i : i + n]) in table and i + n <= len(words)), 1)
        out.append("_".join(words[i : i + length]))
        i += length
    return out


def plain_mst(words: list[str], table: Table) -> list[str]:
    found = [
        (-table[tuple(words[i : i + n])], -n, i)
        for n in range(2, 6)
        for i in range(len(words) - n + 1)
        if tuple(words[i : i + n]) in table
    ]
    owner: dict[int, tuple[int, int]] = {}
    for _, minus, i in sorted(found):
        if not any(k in owner for k in range(i, i - minus)):
            owner.update(dict.fromkeys(range(i, i - minus), (i, -minus)))
    return ["_".join(words[i : i + owner.get(i, (i, 1))[1]]) for i in range(len(words)) if owner.get(i, (i, 1))[0] == i]


WORDS = st.sampled_from(["aa", "bb", "cc"])
TABLES = st.dictionaries(
    st.lists(WORDS, min_size=2, max_size=4).map(tuple), st.integers(1, 6).map(float), min_size=1, max_size=25
)
SENTENCES = st.lists(WORDS, min_size=0, max_size=9)


class TestProperties:
    @given(TABLES, st.lists(SENTENCES, min_size=1, max_size=4))
    def test_every_token_once_and_as_defined(self, table: Table, sentences: list[list[str]]) -> None:
        """In dense tables, where a word and a collocation occur again and again, against plain versions of each."""
        texts = [" ".join(words) for words in sentences]
        for method in METHODS:
            got = units(texts, table, method)
            assert ["_".join(row).split("_") if row else [] for row in got] == sentences
            for row, words in zip(got, sentences, strict=True):
                if method == "gst":
                    assert row == plain_gst(words, table)
                else:
                    assert row == plain_mst(words, table)

    @given(TABLES, st.lists(st.tuples(SENTENCES, st.sampled_from([". Aa", ", ", " 7 ", "\n", "! "])), max_size=5))
    def test_nothing_goes_across_marks_and_sentences(self, table: Table, parts: list[tuple[list[str], str]]) -> None:
        """Units are within one run of words, whatever stands between the runs."""
        text = "".join(" ".join(words) + mark for words, mark in parts)
        tokens = Tokenizer.of_words([]).tokenize([text])
        ends = sentence_ends(tokens)
        for method in METHODS:
            (row,) = units([text], table, method)
            at = 0
            for unit in row:
                length = len(unit.split("_"))
                assert not ends[at : at + length - 1].any()
                assert length == 1 or (tokens.classes[at : at + length] == 0).all()
                at += length
            assert at == len(tokens)


class TestTables:
    def test_words_the_tokenizer_never_gives_are_left_out(self) -> None:
        found = compiled({("a", "b"): 1.0, ("a", "12"): 2.0, ("well-known", "b"): 3.0})
        assert (len(found), found.left_out) == (1, 2)

    def test_only_those_of_a_vocabulary(self) -> None:
        found = compiled({("a", "b"): 1.0, ("b", "c"): 2.0, ("a", "b", "c"): 3.0}).restricted({"a_b", "a_b_c", "x"})
        assert sorted(found.tokens) == ["a_b", "a_b_c"]
        with pytest.raises(SettingError):
            compiled({("a", "b"): 1.0}).restricted({"a", "b"})
