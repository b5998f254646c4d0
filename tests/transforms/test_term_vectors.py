"""Term vectors: m private terms a document, by the published law, and m epsilon between any two documents."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.spaces import Space
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from tests.calls import refused
from tests.contracts.statistics import LEVEL, fit_p_value
from tests.engines.corpora import TEST_KEY

WORDS = ["alder", "birch", "cedar", "elder", "maple"]


@pytest.fixture(scope="module")
def space() -> Space:
    vectors = np.random.default_rng(5).normal(size=(5, 3)).astype(np.float32)
    return build_space(Vectors(WORDS, vectors, counts=np.array([5, 4, 3, 2, 1])), lists=0)


def release_of(space: Space, epsilon: float = 6.0, mechanism: str = "syntf") -> cv.Release:
    return cv.Release(cv.mechanism(mechanism, space), cv.Budget(epsilon), cv.TextPolicy(), cv.Key(TEST_KEY))


def law_of(space: Space, text: str, epsilon: float) -> np.ndarray:
    """Return the law of one output term, by the definition."""
    mechanism = cv.mechanism("syntf", space)
    counted = Counter(text.split())
    return sum(
        n / counted.total() * mechanism.distribution(space.vocabulary.id(word), epsilon) for word, n in counted.items()
    )  # type: ignore[return-value]


def drawn(space: Space, text: str, epsilon: float, documents: int = 20_000, terms: int = 3) -> np.ndarray:
    """Return the ids of all terms of so many copies of a text."""
    found = cv.term_vectors([text] * documents, release_of(space, epsilon), terms, cv.RowNumbers("copies"))
    return np.array([space.vocabulary.id(w) for one in found for w, n in one.items() for _ in range(n)], dtype=np.int32)


def test_terms_follow_the_published_law(space: Space) -> None:
    """Frequencies of the text's terms, mixed by the mechanism. Controls: equal frequencies, another epsilon."""
    text = "alder alder alder birch elder elder"
    out = drawn(space, text, 6.0)
    assert out.size == 60_000
    assert fit_p_value(out, law_of(space, text, 6.0)) > LEVEL
    assert fit_p_value(out, law_of(space, "alder birch elder", 6.0)) < LEVEL
    assert fit_p_value(out, law_of(space, text, 5.0)) < LEVEL


def test_two_documents_are_m_epsilon_apart_at_most() -> None:
    """All documents of up to three words: exactly, for one term; m terms are independent. Control: 2.2 epsilon."""
    space = build_space(Vectors(["ash", "oak"], np.array([[1, 0.1], [-1, 0]], np.float32)), lists=0)
    texts = [" ".join(words) for n in (1, 2, 3) for words in itertools.product(["ash", "oak"], repeat=n)]

    def worst(epsilon: float) -> float:
        logs = np.log([law_of(space, text, epsilon) for text in texts])
        return float((logs[:, None] - logs[None]).max())

    assert worst(1.5) <= 1.5 + 2**-19
    assert worst(2.2 * 1.5) > 1.5


def test_same_key_same_terms(space: Space) -> None:
    """Under one key, for a text with one identity; each term has a draw of its own."""
    release = release_of(space)
    texts = ["alder birch", "cedar", "maple maple elder"]
    first = cv.term_vectors(texts, release, 50, ids=["a", "b", "c"])
    assert cv.term_vectors(texts[::-1], release, 50, ids=["c", "b", "a"]) == first[::-1]
    assert cv.term_vectors(texts, release, 50, ids=["x", "b", "c"])[0] != first[0]
    assert cv.term_vectors(texts, release, 51, ids=["a", "b", "c"])[1:] != first[1:]
    assert all(sum(one.values()) == 50 for one in first)
    assert len(first[1]) > 1


def test_a_text_without_terms_is_drawn_from_public_counts(space: Space) -> None:
    """An empty one too: nothing says that it has none but what all outputs can be."""
    found = cv.term_vectors(["", "zzz qqq"] * 4000, release_of(space, 1000.0), 5, cv.RowNumbers("empty"))
    out = np.array([space.vocabulary.id(w) for one in found for w, n in one.items() for _ in range(n)], dtype=np.int32)
    assert fit_p_value(out, np.array([5, 4, 3, 2, 1]) / 15) > LEVEL


def test_what_can_not_be_done_is_said(space: Space, tmp_path: Path) -> None:
    release = release_of(space)
    unsound = cv.Release(
        cv.mechanism("custext-per-word", space), cv.Budget(1.0), key=release.key, accept_no_guarantee=True
    )
    for call, code in (
        (lambda: cv.term_vectors("a b", release, 3, ["a"]), "wrong-type"),
        (lambda: cv.term_vectors(["a"], release, 0, ["a"]), "wrong-value"),
        (lambda: cv.term_vectors(["a", None], release, 2, ["a", "b"]), "bad-row"),  # type: ignore[list-item]
        (lambda: cv.term_vectors(["a"], unsound, 2, ["a"]), "no-guarantee"),
    ):
        with refused(code):
            call()
    shared = cv.Release(release.mechanism, cv.Budget(5.0, "document"), cv.TextPolicy(), cv.Key(TEST_KEY))
    with refused("conflicting-settings", "per='document'"):
        cv.term_vectors(["a"], shared, 2, ["a"])
    assert math.isfinite(release.mechanism.guarantee(6.0).plain_ldp or math.inf)
