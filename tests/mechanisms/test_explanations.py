"""What explains a released word is Bayes' rule over the whole vocabulary; samples come near it."""

from __future__ import annotations

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.mechanisms.risk import explain, explain_sampled
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors

SIZE = 30


@pytest.fixture(scope="module")
def space() -> Space:
    rng = np.random.default_rng(2)
    vectors = Vectors([f"w{i}" for i in range(SIZE)], rng.normal(size=(SIZE, 1)).astype(np.float32))
    return cv.build_space(vectors, lists=2)


@pytest.fixture(scope="module")
def shares() -> np.ndarray:
    law = 1 / np.arange(1, SIZE + 1)
    return law / law.sum()


@pytest.mark.parametrize("name", ["ring-geometric", "diffractor-exponential", "santext", "custext"])
def test_explanations_are_bayes_rule(space: Space, shares: np.ndarray, name: str) -> None:
    mechanism, every = cv.mechanism(name, space), np.arange(SIZE)
    joint = shares[:, None] * mechanism.distributions(every, 0.7)
    found = explain(mechanism, 0.7, every, shares, every, 5)
    for output in range(SIZE):
        best = np.lexsort((every, -joint[:, output]))[:5]
        assert joint[found.words[output], output] == pytest.approx(joint[best, output])
        assert found.joint[output] == pytest.approx(joint[best, output])
    assert found.evidence == pytest.approx(joint.sum(axis=0))
    assert found.own == pytest.approx(np.diag(joint) / shares)


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_samples_come_near_the_exact_law(space: Space, shares: np.ndarray, factor: float) -> None:
    """Of a mechanism that has both; those of another epsilon are noticed."""
    mechanism, every = cv.mechanism("cmp", space), np.arange(SIZE)
    exact = explain(mechanism, 2.0, every, shares, every, 8)
    near = explain_sampled(mechanism, 2.0 * factor, every, shares, every, 8)
    worst = np.abs(near.evidence - exact.evidence).max()
    agree = np.mean(near.words[:, 0] == exact.words[:, 0])
    assert (worst < 0.004 and agree > 0.8) == (factor == 1.0)
    assert (near.own > 0).all()
