"""The Vickrey mechanisms: the contract without a law, and the law of their samples in the plane."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from corpusveil.mechanisms import make_mechanism
from corpusveil.mechanisms.vickrey import VickreyCmp
from tests.contracts.mechanism import Case, ContractWithoutLaw
from tests.contracts.statistics import LEVEL, fit_p_value
from tests.mechanisms.spaces import Floats, angles, draw, normal, space_of

EPSILON = 2.0
PLANE = space_of([*normal(7, 2), [0.0, 0.0]])
EVERY = ("vickrey-cmp", "vickrey-mahalanobis")


class Contract(ContractWithoutLaw):
    """What holds without a closed form."""

    control = 4.0
    bad = (("t", -0.5), ("t", 1.5), ("t", float("nan")))
    space = space_of(normal(20, 5))

    @classmethod
    def cases(cls) -> list[Case]:
        mechanism = make_mechanism(cls.name, cls.space)
        if not mechanism.private:
            return [Case("five dimensions", mechanism, None)]
        apart = np.array([mechanism.distances(word, 1.0) for word in range(20)])
        return [Case("five dimensions", mechanism, lambda _epsilon: apart)]


class TestVickreyCmp(Contract):
    name = "vickrey-cmp"


class TestVickreyMahalanobis(Contract):
    name = "vickrey-mahalanobis"


# Oracle: the law by midpoints over angles and quantiles of the Gamma law (in the plane), of plain distances


def law_of(word: int, epsilon: float, t: float, *, excluding: bool = False, fine: int = 720) -> Floats:
    """Return the law of a word in the plane by quadrature: ``fine`` angles times as many lengths."""
    points = PLANE.vectors.astype(np.float64)
    lengths = special.gammaincinv(2, (np.arange(fine) + 0.5) / fine) / epsilon
    law = np.zeros(len(points))
    rows = np.arange(fine)
    for ray in angles(fine):
        noisy = points[word] + lengths[:, None] * ray
        apart = np.sqrt(sum(np.square(noisy[:, [one]] - points[:, one]) for one in range(2)))
        if excluding:
            apart[:, word] = np.inf
        nearest = apart.argmin(axis=1)
        first = apart[rows, nearest]
        apart[rows, nearest] = np.inf
        next_one = apart.argmin(axis=1)
        second = apart[rows, next_one]
        chance = (1 - t) * second / (t * first + (1 - t) * second)
        law += np.bincount(nearest, chance, minlength=len(points))
        law += np.bincount(next_one, 1 - chance, minlength=len(points))
    return np.asarray(law / law.sum())


@pytest.mark.parametrize("t", [0.25, 1.0])
def test_samples_in_the_plane_follow_the_law(t: float) -> None:
    """Two words at every noisy vector, the second at times. Controls: another t and another scale are rejected."""
    mechanism = make_mechanism("vickrey-cmp", PLANE, t=t)
    for word in (0, 7):
        assert fit_p_value(draw(mechanism, word, EPSILON, 50_000), law_of(word, EPSILON, t)) > LEVEL
    law = law_of(0, EPSILON, t)
    assert fit_p_value(draw(make_mechanism("vickrey-cmp", PLANE, t=0.9 * t - 0.1), 0, EPSILON, 50_000), law) < LEVEL
    assert fit_p_value(draw(mechanism, 0, 1.25 * EPSILON, 50_000), law) < LEVEL


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("t", [0.0, 1.0])
def test_ends_of_t(name: str, t: float) -> None:
    """t = 0 is the mechanism without the second word, draw by draw; t = 1 never takes the nearest."""
    base = draw(make_mechanism(name.removeprefix("vickrey-"), PLANE), 2, EPSILON, 20_000)
    found = draw(make_mechanism(name, PLANE, t=t), 2, EPSILON, 20_000)
    assert np.array_equal(found, base) if t == 0 else (found != base).all()


def test_chances_are_those_of_the_definition() -> None:
    """(1 - t) r2 / (t r1 + (1 - t) r2): by hand, for equal candidates, at no distance, and where squares overflow."""
    space = space_of([[0], [3], [0]])

    def chance(point: float, near: list[int], t: float) -> float:
        mechanism = VickreyCmp(space, t=t)
        return float(mechanism.chances(np.array([[point]]), np.array([near], np.int32))[0])

    assert chance(1.0, [0, 1], 0.5) == pytest.approx(2 / 3)
    assert chance(1.0, [0, 1], 0.75) == pytest.approx(0.25 * 2 / (0.75 + 0.25 * 2))
    assert chance(1.5, [0, 1], 0.5) == pytest.approx(0.5)
    assert chance(0.0, [0, 2], 0.5) == 1.0
    assert chance(0.0, [0, 1], 1.0) == 1.0
    assert chance(1e200, [0, 1], 0.25) == pytest.approx(0.75)
