"""``syntf``: the contract, its closed form, and that choosing among synonyms only would promise nothing."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.syntf import SynTf
from corpusveil.mechanisms.vector_blocks import unit_vectors
from corpusveil.sampling.weights import EXTRA_LOG_RATIO, TOTAL
from corpusveil.spaces import Space
from tests.calls import refused
from tests.contracts.mechanism import ROUNDING, Case, MechanismContract, matrix
from tests.mechanisms import spaces
from tests.mechanisms.spaces import Floats, excess, mechanism_excess, normal, random_spaces, space_of


def apart_of(space: Space) -> Floats:
    return 1 - np.eye(len(space))


def scores(space: Space) -> Floats:
    """Return (1 + cosine) / 2 of every two words, by numpy."""
    points = space.vectors.astype(np.float64)
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray((1 + np.clip(points @ points.T, -1, 1)) / 2)


def case(name: str, vectors: npt.ArrayLike) -> Case:
    space = space_of(vectors)
    apart = apart_of(space)
    return Case(name, SynTf(space), lambda _epsilon: apart)


CASES = [
    case("two opposite words", [[-0.7, 0.1], [0.7, -0.1]]),
    case("equal directions", [[1, 1], [2, 2], [-1, 0], [0, 3], [1e-20, 0], [3e18, 1e18]]),
    case("a chunk and one", normal(33, 5)),
]


class TestSynTf(MechanismContract):
    name = "syntf"
    control = 6.0

    @classmethod
    def cases(cls) -> list[Case]:
        return CASES

    @classmethod
    def integers(cls, mechanism: Mechanism, word: int, epsilon: float) -> list[int]:
        assert isinstance(mechanism, SynTf)
        return [int(weight) for weight in mechanism.rows(epsilon).row(word)]

    def test_rows_total_two_to_the_64(self, case: Case, epsilon: float) -> None:
        for word in range(len(case.mechanism.space)):
            assert sum(self.integers(case.mechanism, word, epsilon)) == TOTAL

    def test_distribution_is_the_closed_form(self, case: Case, epsilon: float) -> None:
        """P is proportional to exp(epsilon rho / 2), but for the floor and for vectors of length 1 in float32."""
        size = len(case.mechanism.space)
        if epsilon > 100:
            return  # there a last digit of the vectors decides between equal directions
        expected = spaces.exponential(epsilon / 2 * scores(case.mechanism.space))
        mixed = (1 - size * 2.0**-44) * expected + 2.0**-44
        for word in range(size):
            assert case.mechanism.distribution(word, epsilon) == pytest.approx(mixed[word], rel=1e-6 * max(epsilon, 1))

    test_a_weaker_guarantee_would_be_noticed = None  # half of epsilon is realised; see below


def test_the_promise_holds_on_random_spaces() -> None:
    """25 spaces: epsilon for any two words, whatever the vectors; the control at 4 epsilon breaks it."""
    refuted = 0
    for number, space in enumerate(random_spaces()):
        epsilon = (0.1, 1.0, 5.0)[number % 3]
        mechanism, apart = SynTf(space), apart_of(space)
        assert mechanism_excess(mechanism, apart, epsilon) <= EXTRA_LOG_RATIO + ROUNDING
        refuted += excess(matrix(mechanism, 4 * epsilon), apart, epsilon) > 1e-3
    assert refuted >= 12


def test_synonyms_only_are_refuted() -> None:
    """Planted defect: the three nearest words as the only outputs make some of them impossible for others."""
    space = space_of(normal(30, 4))
    score = scores(space)
    allowed = score >= np.sort(score, axis=1)[:, [-3]]
    law = spaces.exponential(np.where(allowed, score, -np.inf))
    assert math.isinf(excess(law, apart_of(space), 1.0))


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
