"""Content risk is that of brute force; whose words count is public; kept stop words are known to every reader."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.language.context_risk import context_risk
from corpusveil.language.model import LanguageModel
from corpusveil.mechanisms.content import FREQUENT, content_weights, stop_words_of
from corpusveil.mechanisms.risk import prior_of, word_risk
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from corpusveil.text.stopwords import STOP_WORDS
from corpusveil_evaluate.statistics.perplexity import KneserNey
from tests.calls import refused
from tests.language.random_texts import corpus

SIZE = 5
KEPT = cv.TextPolicy(stop_words="keep")
WEIGHTS = np.array([0.0, 2.5, 0.0, 1.0, 0.25])
EXACT = ("ring-geometric", "diffractor-geometric", "diffractor-exponential", "tight-exponential", "santext", "tem",
         "custext", "syntf")  # fmt: skip


def space_of(words: list[str], counts: Any = None, **more: Any) -> Space:
    vectors = np.random.default_rng(2).normal(size=(len(words), 3)).astype(np.float32)
    counts = np.random.default_rng(3).integers(1, 100, len(words)) if counts is None else counts
    return cv.build_space(Vectors(words, vectors), counts=counts, **more)


@pytest.fixture(scope="module")
def space() -> Space:
    """Return two stop words and three other words."""
    return space_of(["the", "river", "of", "doctor", "ran"], lists=2)


def weights_of(space: Space, **by_word: float) -> np.ndarray:
    return np.array([by_word.get(word, 1.0) for word in space.vocabulary.words])


def best_of_all_rules(joint: np.ndarray) -> float:
    """Return how much the best of all V^V rules that guess a word from an output gets right."""
    rules = itertools.product(range(len(joint)), repeat=joint.shape[1])
    return max(sum(joint[guess, u] for u, guess in enumerate(rule)) for rule in rules)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("policy", [cv.TextPolicy(), KEPT], ids=["privatized", "kept"])
def test_both_shares_are_those_of_the_best_of_all_guessing_rules(
    space: Space, name: str, policy: cv.TextPolicy
) -> None:
    """All 5^5 rules, enumerated; a kept word is itself with certainty, and a replacement may look like one."""
    mechanism, shares, epsilon = cv.mechanism(name, space), prior_of(space).shares, 3.0 if name == "santext" else 0.7
    law = mechanism.distributions(np.arange(SIZE), epsilon)
    if policy is KEPT:
        stops = stop_words_of(space)
        law[stops] = np.eye(SIZE)[stops]
    found = word_risk(mechanism, epsilon, policy=policy, content=WEIGHTS)
    for shown, weights in ((found, np.ones(SIZE)), (found.content, WEIGHTS)):
        counted = shares * weights
        joint = counted[:, None] * law
        assert shown.share == pytest.approx(best_of_all_rules(joint) / counted.sum(), rel=1e-12)
        assert shown.unchanged == pytest.approx(np.trace(joint) / counted.sum(), rel=1e-12)
        assert shown.blind == pytest.approx(counted.max() / counted.sum(), rel=1e-12)
    assert found.exact


def test_masked_stop_words_are_guessed_alike_and_dropped_ones_not(space: Space) -> None:
    mechanism, shares, stops = cv.RingGeometric(space), prior_of(space).shares, stop_words_of(space)
    joint = (shares * ~stops)[:, None] * mechanism.distributions(np.arange(SIZE), 1.0)
    for policy, more in (("drop", 0.0), ("mask", (shares * stops).max())):
        found = word_risk(mechanism, 1.0, policy=cv.TextPolicy(stop_words=policy))  # type: ignore[arg-type]
        assert found.share == pytest.approx(max(joint.max(axis=0).sum() + more, shares.max()), rel=1e-12)


class TestWhoseWordsCount:
    def test_by_default_those_that_are_no_english_function_words(self) -> None:
        """Of the demo: nor collocations of these alone."""
        space = space_of([*sorted(STOP_WORDS), "river", "of_the", "of_rivers"], lists=0)
        counted = {word for word, weight in zip(space.vocabulary.words, content_weights(space), strict=True) if weight}
        assert counted == {"river", "of_rivers"}

    @pytest.mark.parametrize(("size", "functions"), [(400, FREQUENT), (100, 50)])
    def test_in_another_language_those_that_are_not_most_frequent(self, size: int, functions: int) -> None:
        """At most half of all words are function words."""
        space = space_of([f"w{i}" for i in range(size)], np.random.default_rng(0).permutation(size), lists=0)
        weights = content_weights(space)
        assert (weights == 0).sum() == functions
        assert space.counts is not None
        assert space.counts[weights == 0].min() > space.counts[weights == 1].max()

    def test_or_those_of_a_file_with_weights(self, space: Space, tmp_path: Path) -> None:
        file = tmp_path / "words.txt"
        file.write_text("the\nriver\t2.5\nunknown\n\ndoctor\t0\n", encoding="utf-8")
        weights = content_weights(space, str(file))
        assert weights.tolist() == weights_of(space, the=0, river=2.5, doctor=0).tolist()
        ring = cv.RingGeometric(space)
        chosen = cv.epsilon_for_risk(ring, 0.75, of="content", content=weights)
        assert chosen.measured == round(word_risk(ring, chosen.epsilon, content=weights).content.share, 9)
        assert chosen.weights is not None
        assert cv.epsilon_for_risk(ring, 0.75, of="content").weights is None

    @pytest.mark.parametrize(("content", "code", "named"), [
        ("the\nriver\tmuch", "bad-row", "line 2"), ("river\t-1", "bad-row", "line 1"),
        ("river\tnan", "bad-row", "line 1"),
        ("bank\nboat", "unsuitable-data", "none"), ("the\nof\nriver\ndoctor\nran", "unsuitable-data", "above 0"),
    ])  # fmt: skip
    def test_what_cannot_be_used_is_said(
        self, space: Space, tmp_path: Path, content: str, code: str, named: str
    ) -> None:
        (tmp_path / "words.txt").write_text(content, encoding="utf-8")
        with refused(code, "words.txt", named):
            content_weights(space, str(tmp_path / "words.txt"))


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return KneserNey.of_texts([text.replace("aa", "the").replace("ab", "of") for text in corpus(800, 1, 40)]).model


@pytest.fixture(scope="module")
def words(model: LanguageModel) -> Space:
    return space_of(list(model.vocabulary.words), model.vocabulary.counts, lists=1)


class TestFromContext:
    def test_kept_stop_words_are_known_and_tell_about_the_others(self, words: Space, model: LanguageModel) -> None:
        mechanism = cv.RingGeometric(words)
        texts = [text.replace("aa", "the").replace("ab", "of") for text in corpus(3000, 2, 40)]
        others = 1.0 - stop_words_of(words)
        plain, kept, *hidden = (
            context_risk(mechanism, 0.5, model, texts=texts, content=others, policy=cv.TextPolicy(stop_words=policy))  # type: ignore[arg-type]
            for policy in ("privatize", "keep", "mask", "drop")
        )
        assert kept.content.share > plain.content.share + 2 * plain.content.error
        assert kept.share > plain.share + 0.1
        for read in hidden:
            assert read.share < plain.share
            assert read.words == plain.words
