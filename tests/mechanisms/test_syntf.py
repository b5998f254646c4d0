"""``syntf``: the contract, its closed form, and that choosing among synonyms only would promise nothing."""

from __future__ import annotations

import numpy as np
import pytest

from corpusveil.mechanisms.syntf import SynTf
from corpusveil.mechanisms.vector_blocks import unit_vectors
from corpusveil.spaces import Space
from tests.calls import refused
from tests.contracts.mechanism import Case
from tests.mechanisms import spaces
from tests.mechanisms.spaces import Floats, RowsContract, normal, space_of


def scores(space: Space) -> Floats:
    """Return (1 + cosine) / 2 of every two words, by numpy."""
    points = space.vectors.astype(np.float64)
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray((1 + np.clip(points @ points.T, -1, 1)) / 2)


class TestSynTf(RowsContract):
    name = "syntf"
    control = 6.0
    excessive = 4.0
    test_a_weaker_guarantee_would_be_noticed = None  # half of epsilon is realized

    @classmethod
    def case(cls, name: str, space: Space) -> Case:
        apart = 1 - np.eye(len(space))
        return Case(name, SynTf(space), lambda _epsilon: apart)

    @classmethod
    def cases(cls) -> list[Case]:
        return [
            cls.case("two opposite words", space_of([[-0.7, 0.1], [0.7, -0.1]])),
            cls.case("equal directions", space_of([[1, 1], [2, 2], [-1, 0], [0, 3], [1e-20, 0], [3e18, 1e18]])),
            cls.case("a chunk and one", space_of(normal(33, 5))),
        ]

    def test_distribution_is_the_closed_form(self, case: Case, epsilon: float) -> None:
        """P is proportional to exp(epsilon rho / 2), but for the floor and for vectors of length 1 in float32."""
        size = len(case.mechanism.space)
        if epsilon > 100:
            return  # there a last digit of the vectors decides between equal directions
        expected = spaces.exponential(epsilon / 2 * scores(case.mechanism.space))
        mixed = (1 - size * 2.0**-44) * expected + 2.0**-44
        for word in range(size):
            assert case.mechanism.distribution(word, epsilon) == pytest.approx(mixed[word], rel=1e-6 * max(epsilon, 1))


def test_lengths_of_vectors_do_not_matter() -> None:
    """Unit vectors are of length 1 whatever length was given, also where squares overflow in float32."""
    vectors = normal(20, 7)
    factors = (10.0 ** np.linspace(-30, 30, 20)[:, None]).astype(np.float32)
    assert np.linalg.norm(unit_vectors(vectors * factors).astype(float), axis=1) == pytest.approx(1, rel=1e-6)
    assert unit_vectors(vectors * factors) == pytest.approx(unit_vectors(vectors), abs=1e-6)


def test_a_word_without_a_direction_is_named() -> None:
    space = space_of([[1, 0], [0, 0], [0, 1]])
    with refused("unsuitable-data", space.word(1)):
        SynTf(space)
