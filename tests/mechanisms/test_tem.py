"""``tem``: the contract, the closed form, gamma by its rule, the two defects of its implementations, refuted."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from corpusveil.mechanisms import Mechanism, make
from corpusveil.mechanisms.santext import SanText
from corpusveil.mechanisms.tem import Tem
from corpusveil.sampling.weights import EXTRA_LOG_RATIO, TOTAL
from tests.calls import refused
from tests.contracts.mechanism import ROUNDING, Case, MechanismContract, draws_of, matrix
from tests.contracts.statistics import LEVEL, fit_p_value
from tests.mechanisms import spaces
from tests.mechanisms.spaces import Floats, distances, excess, mechanism_excess, normal, random_spaces, space_of


def case(name: str, vectors: npt.ArrayLike, gamma: float | None = None) -> Case:
    space = space_of(vectors)
    apart = distances(space)
    mechanism = Tem(space, gamma=gamma)
    return Case(name, mechanism, lambda epsilon: np.minimum(apart, mechanism.gamma_at(epsilon)))


CASES = [
    case("two words", [[-0.7], [0.6]]),
    case("rule", 4 * normal(40, 3)),
    case("gamma given", normal(35, 2), 1.5),
    case("duplicates", [[0, 0], [1, 2], [0, 0], [1, 2], [-1, 3]], 2.0),
]


class TestTem(MechanismContract):
    name = "tem"
    control = 2.0

    @classmethod
    def cases(cls) -> list[Case]:
        return CASES

    @classmethod
    def integers(cls, mechanism: Mechanism, word: int, epsilon: float) -> list[int]:
        assert isinstance(mechanism, Tem)
        return [int(weight) for weight in mechanism.rows(epsilon).row(word)]

    def test_rows_total_two_to_the_64(self, case: Case, epsilon: float) -> None:
        """The integers are a law without a rounding error."""
        for word in range(len(case.mechanism.space)):
            assert sum(self.integers(case.mechanism, word, epsilon)) == TOTAL

    def test_distribution_is_the_closed_form(self, case: Case, epsilon: float) -> None:
        """P is proportional to exp(-(epsilon/2) min(d, gamma)), but for the floor of 2^-44 that every word gets."""
        assert case.distances is not None
        size = len(case.mechanism.space)
        mixed = (1 - size * 2.0**-44) * spaces.exponential(-epsilon / 2 * case.distances(epsilon)) + 2.0**-44
        law = matrix(case.mechanism, epsilon)
        assert law == pytest.approx(mixed, rel=2.0**-20)
        assert law == pytest.approx(mixed, abs=1e-12)


def published(apart: Floats, epsilon: float, gamma: float, *, score: str = "right", swallowed: bool = False) -> Floats:
    """Return the law of TEM as published, with Gumbel noise on scores and a bottom; or with one of its defects."""
    size = len(apart)
    law = np.zeros_like(apart)
    for word in range(size):
        inside = apart[word] <= gamma
        count = int(inside.sum())
        scores = np.where(inside, np.exp(-epsilon / 2 * apart[word]), 0.0)
        outside = {"right": size - count, "wrong": size / count}[score]
        bottom = math.exp(-epsilon / 2 * gamma) * outside if count < size else 0.0
        total = scores.sum() + bottom
        law[word] = scores / total
        if swallowed:
            law[word, word] += bottom / total
        elif count < size:
            law[word, ~inside] = bottom / total / (size - count)
    return law


def test_it_is_the_published_mechanism() -> None:
    """The law that is sampled is that of scores, Gumbel noise and bottom; samples fit the published form."""
    mechanism = Tem(space_of(normal(60, 2)), gamma=0.8)
    law = published(distances(mechanism.space), 3.0, 0.8)
    assert matrix(mechanism, 3.0) == pytest.approx(law, abs=1e-9)
    out = mechanism.privatize(np.full(200_000, 7, dtype=np.int32), 3.0, draws_of(200_000))
    assert fit_p_value(out, law[7]) > LEVEL
    assert fit_p_value(out, law[8]) < LEVEL


def test_the_wrong_score_of_bottom_is_refuted() -> None:
    """Planted defect: ln(n / |L_w|) for ln(n - |L_w|) breaks the promise several times over."""
    vectors = np.vstack([normal(60, 2) / 10, 5 * normal(60, 2, seed=4)])
    apart = distances(space_of(vectors))
    gamma = 1.0
    metric = np.minimum(apart, gamma)
    assert excess(published(apart, 1.0, gamma), metric, 1.0) <= ROUNDING
    assert excess(published(apart, 1.0, gamma, score="wrong"), metric, 1.0) > 1


def test_a_swallowed_bottom_is_refuted() -> None:
    """Planted defect: the input in place of bottom gives words outside no probability, an infinite ratio."""
    apart = distances(space_of(normal(60, 2)))
    assert excess(published(apart, 1.0, 0.8, swallowed=True), np.minimum(apart, 0.8), 1.0) == math.inf


def test_the_promise_holds_on_random_spaces() -> None:
    """25 spaces, gamma by the rule and the median distance: epsilon min(d, gamma) and epsilon gamma; control."""
    refuted = 0
    for number, space in enumerate(random_spaces()):
        apart = distances(space)
        epsilon = (0.1, 1.0, 5.0)[number % 3]
        for gamma in (None, float(np.median(apart))):
            mechanism = Tem(space, gamma=gamma)
            metric = np.minimum(apart, mechanism.gamma_at(epsilon))
            assert mechanism_excess(mechanism, metric, epsilon) <= EXTRA_LOG_RATIO + ROUNDING
            ldp = mechanism.guarantee(epsilon).plain_ldp
            assert ldp is not None
            assert ldp <= epsilon * mechanism.gamma_at(epsilon) + ROUNDING
        more = Tem(space, gamma=gamma).rows(3 * epsilon)
        law = np.array([more.row(word).astype(float) / TOTAL for word in range(len(space))])
        refuted += excess(law, metric, epsilon) > 1e-3
    assert refuted >= 15  # where epsilon gamma is large the floor of the weights hides the rest


def test_gamma_follows_the_rule() -> None:
    """gamma = (2/epsilon) ln((1 - beta)(n - 1)/beta): plain LDP at most 2 ln(...) at every epsilon."""
    space = space_of(100 * normal(50, 3))
    mechanism = Tem(space)
    rule = math.log(0.999 * 49 / 0.001)
    assert mechanism.gamma_at(2.0) == pytest.approx(rule)
    for epsilon in (0.5, 2.0, 8.0):
        ldp = mechanism.guarantee(epsilon).plain_ldp
        assert ldp == pytest.approx(min(2 * rule, epsilon * mechanism.diameter(), 44 * math.log(2)))
        outside = 1 - np.diag(matrix(mechanism, 8.0))
        assert outside.max() <= 0.0011
    assert mechanism.retention(8.0) == pytest.approx(0.999, abs=1e-3)


def test_beyond_the_diameter_it_is_santext() -> None:
    """Where no distance is above gamma nothing is truncated."""
    space = space_of(normal(40, 4))
    assert np.array_equal(matrix(Tem(space, gamma=1e6), 1.0), matrix(SanText(space), 1.0))
    assert not np.array_equal(matrix(Tem(space, gamma=1.0), 1.0), matrix(SanText(space), 1.0))


@pytest.mark.parametrize(
    "parameters", [{"gamma": 0}, {"gamma": -1.0}, {"gamma": math.nan}, {"gamma": math.inf}, {"gamma": True},
                   {"beta": 0.0}, {"beta": 1.0}, {"beta": 0.95}]
)  # fmt: skip
def test_bad_parameters_are_refused(parameters: dict[str, float]) -> None:
    with refused("wrong-value", next(iter(parameters))):
        make("tem", space_of(normal(8, 2)), **parameters)
