"""The risk of single words is that of brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.spaces.vectors import Vectors
from corpusveil_evaluate.readers.ngrams import laws_on_distances
from corpusveil_evaluate.readers.ngrams.explained import explain, explain_sampled
from corpusveil_evaluate.readers.ngrams.laws_on_lists import guessed_on_a_list
from corpusveil_evaluate.readers.ngrams.word_risk import prior_of, word_risk
from evaluate.tests.readers.random_texts import zipf
from tests.calls import refused
from tests.contracts.spaces import small_space
from tests.mechanisms.spaces import normal


@pytest.mark.parametrize("name", ["ring-geometric", "diffractor-geometric", "diffractor-exponential"])
@pytest.mark.parametrize("size", [2, 3, 4, 40, 90])
def test_the_best_guess_on_a_list_is_that_of_the_law(name: str, size: int) -> None:
    """For some of the words and two readers, where few, most and all words are within reach."""
    space = small_space(size, counts=zipf(size))
    words = np.arange(0, size, 2)
    shares = np.random.default_rng(3).random((2, words.size))
    for epsilon in (0.001, 0.05, 0.4, 2.0, 30.0):
        mechanism: Any = cv.mechanism(name, space)
        law = mechanism.distributions(words, epsilon)
        best, stays = guessed_on_a_list(mechanism, epsilon, words, shares)
        assert best == pytest.approx((shares[:, :, None] * law).max(axis=1), rel=1e-12)
        assert stays == pytest.approx(law[np.arange(words.size), words], rel=1e-12)


@pytest.mark.parametrize("name", ["santext", "tem", "tight-exponential", "syntf"])
@pytest.mark.parametrize("inputs", [None, 150])
def test_blocks_of_rows_give_the_risk_of_the_integers(
    name: str, inputs: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the tolerance that is stated, also of words that are nearly or quite the same, far from the origin."""
    monkeypatch.setattr(laws_on_distances, "TILE", 64)
    rng = np.random.default_rng(8)
    vectors = rng.normal(size=(300, 4)).astype(np.float32) + np.float32(20)
    vectors[250:270] = vectors[:20]
    vectors[270:] = vectors[20:50] + rng.normal(size=(30, 4)).astype(np.float32) * np.float32(1e-4)
    counts = (10_000 / rng.permutation(np.arange(1, 301)) ** 1.2).astype(int)
    space = cv.build_space(Vectors([f"w{i}" for i in range(300)], vectors), lists=0, counts=counts)
    prior, mechanism = prior_of(space, inputs), cv.mechanism(name, space)
    for epsilon in (0.3, 2.0, 60.0, 8.0):
        exact = explain(mechanism, epsilon, prior.words, prior.shares, np.arange(300), 1)
        share, unchanged = float(exact.joint[:, 0].sum()), float(exact.own[prior.words] @ prior.shares)
        found = word_risk(mechanism, epsilon, prior)
        assert found.share == pytest.approx(max(share, prior.guess), rel=laws_on_distances.TOLERANCE)
        assert found.unchanged == pytest.approx(unchanged, rel=laws_on_distances.TOLERANCE)
    other = word_risk(mechanism, 8.1, prior).unchanged  # another epsilon would be noticed
    assert other != pytest.approx(found.unchanged, rel=10 * laws_on_distances.TOLERANCE)


@pytest.mark.parametrize(
    "name", ["ring-geometric", "diffractor-geometric", "diffractor-exponential", "santext", "custext"]
)
@pytest.mark.parametrize(("epsilon", "lists", "inputs"), [(0.05, 3, None), (0.7, 1, None), (3.0, 1, 9), (30.0, 3, 9)])
def test_explanations_are_bayes_rule(name: str, epsilon: float, lists: int, inputs: int | None) -> None:
    """Of a released word over the whole vocabulary or some inputs, several lists, near their ends; of some outputs."""
    space = small_space(61, counts=zipf(61), lists=lists)
    mechanism, prior = cv.mechanism(name, space), prior_of(space, inputs)
    law = mechanism.distributions(np.arange(61), epsilon)
    joint = prior.shares[:, None] * law[prior.words]
    for outputs in (np.arange(61), np.array([3, 60, 17])):
        explained = explain(mechanism, epsilon, prior.words, prior.shares, outputs, 5)
        best = -np.sort(-joint[:, outputs], axis=0)[:5].T
        at = np.searchsorted(np.sort(prior.words), explained.words)
        chosen = joint[np.argsort(prior.words)[at], outputs[:, None]]
        assert chosen == pytest.approx(best, rel=3e-6)
        assert explained.joint == pytest.approx(best, rel=3e-6)
        assert explained.own == pytest.approx(law[outputs, outputs], rel=3e-6)
    other = explain(mechanism, epsilon * 1.3, prior.words, prior.shares, outputs, 5)
    assert other.own != pytest.approx(explained.own, rel=3e-6) or epsilon > 20


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_sampled_explanations_come_near_the_exact_law(factor: float) -> None:
    """Of a mechanism that has both; those of another epsilon are noticed."""
    space, every = small_space(30, vectors=normal(30, 1)), np.arange(30)
    mechanism, shares = cv.mechanism("cmp", space), 1 / np.arange(1, 31) / (1 / np.arange(1, 31)).sum()
    exact = explain(mechanism, 2.0, every, shares, every, 8)
    near = explain_sampled(mechanism, 2.0 * factor, every, shares, every, 8)
    worst = np.abs(near.joint[:, 0] - exact.joint[:, 0]).max()
    agree = np.mean(near.words[:, 0] == exact.words[:, 0])
    assert (worst < 0.004 and agree > 0.8) == (factor == 1.0)
    assert (near.own > 0).all()


def test_what_is_no_mechanism_is_said() -> None:
    with refused("wrong-setting", "str"):
        word_risk("ring-geometric", 1.0)  # type: ignore[arg-type]
