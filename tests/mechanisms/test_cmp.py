"""``cmp``: the contract on a line, exact laws in the plane, and rays in ten dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from corpusveil.mechanisms.cmp import Cmp, laplace_mass
from corpusveil.sampling.draws import NOISE, Draws
from corpusveil.sampling.weights import FLOOR, TOTAL
from corpusveil.search.nearest_words import NearestSearch
from tests.contracts.mechanism import Case, ContractWithoutLaw, MechanismContract, draws_of
from tests.contracts.statistics import LEVEL, fit_p_value
from tests.mechanisms.spaces import Floats, angles, distances, draw, masses, normal, space_of

SAMPLES = 100_000
EPSILON = 2.0
nightly = pytest.mark.nightly


def case(name: str, vectors: Any) -> Case:
    space = space_of(vectors)
    apart = distances(space)
    return Case(name, Cmp(space), lambda _epsilon: apart)


LINE = [
    case("two words", [[-0.7], [0.6]]),
    case("irregular", 3 * normal(12, 1)),
    case("duplicates and ties", [[0], [2], [1], [2], [0], [3], [-1], [3.5]]),
    case("thirty words far from the origin", 20 + 3 * normal(30, 1)),
]


class TestOnALine(MechanismContract):
    """In one dimension the law is exact: Laplace noise over the words' intervals."""

    name = "cmp"

    @classmethod
    def cases(cls) -> list[Case]:
        return LINE


class TestInFiveDimensions(ContractWithoutLaw):
    """Without a closed form everything else of the contract holds; the law itself is looked at below."""

    name = "cmp"
    control = 4.0

    @classmethod
    def cases(cls) -> list[Case]:
        return [case("five dimensions", normal(20, 5))]


PLANE = space_of([*normal(7, 2), [0.0, 0.0]])


def planar_law(word: int, epsilon: float, count: int = 20_000) -> Floats:
    return masses(PLANE.vectors.astype(np.float64), word, epsilon, angles(count)).mean(axis=0)


@pytest.mark.parametrize("epsilon", [pytest.param(0.2, marks=nightly), EPSILON, pytest.param(8.0, marks=nightly)])
def test_samples_in_the_plane_follow_the_exact_law(epsilon: float) -> None:
    """Angles times the Gamma law, in two dimensions: the law of the samples."""
    points = PLANE.vectors.astype(np.float64)
    for word in (0, 7):
        law = planar_law(word, epsilon)
        assert law.sum() == pytest.approx(1, abs=1e-9)
        assert fit_p_value(draw(Cmp(PLANE), word, epsilon, SAMPLES), law) > LEVEL
        if epsilon != EPSILON:
            continue
        assert fit_p_value(draw(Cmp(PLANE), word, 1.2 * epsilon, SAMPLES), law) < LEVEL
        sigma = (2 / epsilon) / math.sqrt(math.pi / 2)  # the mean length of a Gaussian in the plane is this sqrt(pi/2)
        noise = np.random.default_rng(1).normal(scale=sigma, size=(SAMPLES, 2))
        assert fit_p_value(NearestSearch.from_vectors(PLANE.vectors).nearest(points[word] + noise), law) < LEVEL


# What is printed


@pytest.mark.parametrize("epsilon", [0.5, pytest.param(2.0, marks=nightly), pytest.param(6.0, marks=nightly)])
def test_estimated_share_of_unchanged_words_is_that_of_the_law(epsilon: float) -> None:
    """The printed share is within 6 of its own standard errors of the exact one; at 1.5 epsilon it is not."""
    mechanism = Cmp(PLANE)
    exact = np.mean([planar_law(word, epsilon)[word] for word in range(8)])
    error = mechanism.retention_error(epsilon)
    assert 0 < error < 0.016  # a share's standard deviation is at most 1/2, and there are 1,024 of them
    assert abs(mechanism.retention(epsilon) - exact) < 6 * error
    assert abs(mechanism.retention(1.5 * epsilon) - exact) > 6 * error


def test_guarantee_is_euclidean_and_never_pure() -> None:
    """What is said: the metric, float64 sampling error, the floor, and plain LDP of the diameter or of the floor."""
    mechanism = Cmp(PLANE)
    low, high = mechanism.guarantee(0.5), mechanism.guarantee(50.0)
    assert "Euclidean" in low.metric
    assert any("float64" in text and "not pure" in text for text in low.assumptions)
    assert low.plain_ldp is not None
    diameter = distances(PLANE).max()
    assert 0.5 * diameter <= low.plain_ldp <= 2 * 0.5 * diameter
    assert high.plain_ldp == pytest.approx(44 * math.log(2))
    laws = np.log([planar_law(word, 0.5) for word in range(8)])
    assert (laws[:, None] - laws[None]).max() <= low.plain_ldp


def test_every_word_has_its_floor_of_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """A draw below 2^20 times the words gives the word of that multiple of 2^20, and no other draw does."""
    edges = [0, FLOOR - 1, FLOOR, 8 * FLOOR - 1, 8 * FLOOR, TOTAL - 1]
    monkeypatch.setattr(Draws, "uint64", lambda self, purpose, attempt=0: np.array(edges, np.uint64))
    out = Cmp(PLANE).privatize(np.full(6, 3, np.int32), 1e6, draws_of(6))
    assert out.tolist() == [0, 0, 1, 7, 3, 3]


def test_noise_and_floor_take_different_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise comes from a purpose of its own, so it can't depend on whether a uniform word is drawn."""
    asked: list[int] = []
    lanes = Draws.lanes

    def noted(self: Draws, purpose: int, pairs: int) -> npt.NDArray[np.uint64]:
        asked.append(purpose)
        return lanes(self, purpose, pairs)

    monkeypatch.setattr(Draws, "lanes", noted)
    draw(Cmp(PLANE), 0, 1.0, 100)
    assert set(asked) == {NOISE}


@pytest.mark.parametrize("epsilon", [1e-100, 1e-30, 1e300])
def test_any_epsilon_is_worked_with(epsilon: float) -> None:
    """Noise of any length gives words, and where it swallows the vectors the words of the hull by their angles."""
    out = draw(Cmp(PLANE), 7, epsilon, 20_000)
    if epsilon > 1:
        assert (out == 7).all()
    else:
        law = planar_law(7, 1e-6)
        assert fit_p_value(out, law) > LEVEL


def test_laplace_masses_keep_their_digits() -> None:
    """Masses far out, and of narrow intervals, to full relative precision: differences of a CDF would be 0."""
    left, right = np.array([40.0, -90.0, -1e-12, 0.0]), np.array([41.0, -80.0, 1e-12, np.inf])
    expected = [math.exp(-40) * -math.expm1(-1) / 2, math.exp(-80) * -math.expm1(-10) / 2, 1e-12, 0.5]
    assert laplace_mass(left, right, 1.0) == pytest.approx(expected, rel=1e-11, abs=0)
