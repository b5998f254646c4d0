"""The word table finds exactly the vocabulary, in any case."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusveil.text.classes import UNKNOWN
from corpusveil.text.output_words import Wording, concatenate
from corpusveil.text.tokens import Tokenizer

LETTERS = st.text(st.sampled_from("abcdeéßσ中"), min_size=1, max_size=4)


def found(tokenizer: Tokenizer, words: list[str]) -> list[int]:
    tokens = tokenizer.tokenize(words)
    assert (np.diff(tokens.offsets) == 1).all()
    return tokens.ids.tolist()


@given(st.lists(LETTERS, unique=True, max_size=60), st.lists(LETTERS, max_size=30))
@settings(max_examples=150)
def test_exactly_the_vocabulary_is_found(vocabulary: list[str], others: list[str]) -> None:
    """Words and only they, whatever shares a beginning, an end or a length with them."""
    vocabulary = list({word.lower(): None for word in vocabulary})
    tokenizer = Tokenizer.of_words(vocabulary)
    assert found(tokenizer, vocabulary) == list(range(len(vocabulary)))
    asked = [*others, *(word + "a" for word in vocabulary), *(word[:-1] or "q" for word in vocabulary)]
    index = {word: id for id, word in enumerate(vocabulary)}
    assert found(tokenizer, asked) == [index.get(word.lower(), UNKNOWN) for word in asked]


@pytest.mark.parametrize(
    ("vocabulary", "id"),
    [
        (["US", "us"], 1),
        (["US", "Us"], 0),
        (["ÉTÉ", "été"], 1),
        (["don’t", "don't"], 1),
    ],
)
def test_of_words_that_differ_in_case_the_lower_case_form_wins_else_the_first(vocabulary: list[str], id: int) -> None:
    """Every way to write such a word has the same id: which capitals it had is not looked at."""
    tokenizer = Tokenizer.of_words(vocabulary)
    for word in vocabulary:
        assert set(found(tokenizer, [word, word.upper(), word.lower(), word.title().replace("'T", "'t")])) == {id}


def test_case_forms_are_those_of_python() -> None:
    """Plain, capitalized, all capitals: each word three times, and room for the longest."""
    words, offsets = concatenate([word.encode() for word in ["river", "straße", "ŉ", "état"]])
    wording = Wording.build(words, offsets, capitals=True)
    raw = wording.words.tobytes()
    forms = [raw[a:b].decode() for a, b in itertools.pairwise(wording.offsets)]
    assert forms == [
        "river", "straße", "ŉ", "état", "River", "Straße", "ʼN", "État", "RIVER", "STRASSE", "ʼN", "ÉTAT",
    ]  # fmt: skip
    assert wording.longest.tolist() == [5, 7, 3, 5]
