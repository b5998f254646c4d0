"""``cmp``: the contract on a line, exact laws in the plane, rays in ten dimensions, and audits that can refute."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from corpusveil.budget import Budget
from corpusveil.mechanisms import find, make
from corpusveil.mechanisms.cmp import Cmp, laplace_mass
from corpusveil.mechanisms.on_vectors import walk
from corpusveil.sampling.draws import NOISE, Draws
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import FLOOR, TOTAL
from corpusveil.spaces import Space
from corpusveil.spaces.nearest_words import NearestSearch
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.release.release import Release
from corpusveil.transforms.release.statement import statement
from tests.contracts.mechanism import Case, ContractWithoutLaw, MechanismContract, draws_of
from tests.contracts.statistics import LEVEL, fit_p_value
from tests.mechanisms.rays import angles, lower_bound, masses, sphere
from tests.mechanisms.spaces import Floats, distances, normal, space_of

SAMPLES = 100_000
EPSILON = 2.0


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


def draw(space: Space, word: int, epsilon: float, count: int = SAMPLES, name: str = "a") -> npt.NDArray[np.int32]:
    return Cmp(space).privatize(np.full(count, word, np.int32), epsilon, draws_of(count, document=f"{name}{word}"))


@pytest.mark.parametrize("epsilon", [0.2, EPSILON, 8.0])
def test_samples_in_the_plane_follow_the_exact_law(epsilon: float) -> None:
    """Angles times the Gamma law, in two dimensions: the law of the samples.

    Controls: another scale, and Gaussian noise of the same mean length, are rejected.
    """
    points = PLANE.vectors.astype(np.float64)
    for word in (0, 7):
        law = planar_law(word, epsilon)
        assert law.sum() == pytest.approx(1, abs=1e-9)
        assert fit_p_value(draw(PLANE, word, epsilon), law) > LEVEL
        if epsilon != EPSILON:
            continue
        assert fit_p_value(draw(PLANE, word, 1.2 * epsilon), law) < LEVEL
        sigma = (2 / epsilon) / math.sqrt(math.pi / 2)  # the mean length of a Gaussian in the plane is this sqrt(pi/2)
        noise = np.random.default_rng(1).normal(scale=sigma, size=(SAMPLES, 2))
        assert fit_p_value(NearestSearch.of(PLANE.vectors).nearest(points[word] + noise), law) < LEVEL


def test_realised_epsilon_in_the_plane_is_reached_and_not_exceeded() -> None:
    """Of the exact law: at most epsilon, and at least 0.97 of it, so that nothing of the budget is wasted.

    Control: the law at 1.1 epsilon exceeds it.
    """
    apart = distances(PLANE) + np.eye(8)

    def realised(epsilon: float) -> float:
        logs = np.log([planar_law(word, epsilon, 100_000) for word in range(8)])
        return float(((logs[:, None] - logs[None]).max(axis=2) / apart).max())

    assert 0.97 * EPSILON < realised(EPSILON) <= EPSILON * (1 + 1e-4)
    assert realised(1.1 * EPSILON) > EPSILON * (1 + 1e-2)


def test_samples_in_ten_dimensions_agree_with_random_rays() -> None:
    """In any dimension random rays estimate the law without bias: every frequency is within 7 standard errors.

    Control: samples at 1.15 epsilon are not.
    """
    space = space_of(normal(12, 10))
    points, epsilon = space.vectors.astype(np.float64), 3.0

    def worst(word: int, spent: float) -> float:
        by_ray = masses(points, word, epsilon, sphere(40_000, 10))
        law, error = by_ray.mean(axis=0), by_ray.var(axis=0) / len(by_ray)
        seen = np.bincount(draw(space, word, spent), minlength=12) / SAMPLES
        return float((np.abs(seen - law) / np.sqrt(error + law / SAMPLES)).max())

    for word in (0, 5):
        assert worst(word, epsilon) < 7
        assert worst(word, 1.15 * epsilon) > 7


# What is printed


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_estimated_share_of_unchanged_words_is_that_of_the_law(epsilon: float) -> None:
    """The printed share is within 6 of its own standard errors of the exact one; at 1.5 epsilon it is not."""
    mechanism = Cmp(PLANE)
    exact = np.mean([planar_law(word, epsilon)[word] for word in range(8)])
    error = mechanism.retention_error(epsilon)
    assert 0 < error < 0.016  # a share's standard deviation is at most 1/2, and there are 1,024 of them
    assert abs(mechanism.retention(epsilon) - exact) < 6 * error
    assert abs(mechanism.retention(1.5 * epsilon) - exact) > 6 * error


def test_exits_are_where_another_word_becomes_the_nearest() -> None:
    """On each ray the nearest word changes at the exit; of two equal vectors only the first ever comes back."""
    space = space_of(np.concatenate([normal(50, 4), normal(3, 4), normal(50, 4) + 1e-4]))
    words, rays = np.arange(103) % 103, sphere(103, 4)
    ends = walk(space, words, rays)
    starts = space.vectors[words].astype(np.float64)
    search = NearestSearch.of(space.vectors)
    finite = np.isfinite(ends) & (ends > 0)
    assert finite.sum() > 60
    before = search.nearest(starts + 0.99 * np.where(finite, ends, 1e3)[:, None] * rays)
    after = search.nearest(starts + 1.01 * np.where(finite, ends, 0)[:, None] * rays)
    twins = [u for u in range(50, 53) if (space.vectors[:50] == space.vectors[u]).all(axis=1).any()]
    assert twins == [50, 51, 52]
    assert (ends[twins] == 0).all()
    assert (before[ends > 0] == words[ends > 0]).all()
    assert (after[finite] != words[finite]).all()


def test_guarantee_is_euclidean_and_never_pure() -> None:
    """What is said: the metric, float64 sampling error, the floor, and plain LDP of the diameter or of the floor."""
    mechanism = make("cmp", PLANE)
    assert isinstance(mechanism, find("cmp"))
    low, high = mechanism.guarantee(0.5), mechanism.guarantee(50.0)
    assert "Euclidean" in low.metric
    assert any("float64" in text and "not pure" in text for text in low.assumptions)
    assert any("float64" in text for text in low.notes)
    assert low.plain_ldp is not None
    diameter = distances(PLANE).max()
    assert 0.5 * diameter <= low.plain_ldp <= 2 * 0.5 * diameter
    assert high.plain_ldp == pytest.approx(44 * math.log(2))
    laws = np.log([planar_law(word, 0.5) for word in range(8)])
    assert (laws[:, None] - laws[None]).max() <= low.plain_ldp


@pytest.mark.parametrize("per", ["token", "document"])
def test_statement_has_finite_bounds_and_names_the_metric(per: str) -> None:
    """A release by cmp says its metric; its bound for unknown words, ln(2^44 / 8), comes from the floor."""
    said = statement(Release(Cmp(PLANE), Budget(20.0, per=per), TextPolicy(), Key.for_tests()))
    text = " ".join(said["guarantee_in_words"])
    assert "Euclidean distance of vectors in 2 dimensions" in text
    assert "unbounded" not in text
    assert f"at most {math.ceil(100 * (44 * math.log(2) - math.log(8))) / 100:g} nats" in text
    assert any("float64" in sentence for sentence in said["guarantee"]["assumptions"])


def test_every_word_has_its_floor_of_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """A draw below 2^20 times the words gives the word of that multiple of 2^20, and no other draw does.

    So with draws of 64 bits every word has at least 2^20 of 2^64, whatever the noise.
    """
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
    draw(PLANE, 0, 1.0, 100)
    assert set(asked) == {NOISE}


@pytest.mark.parametrize("epsilon", [1e-100, 1e-30, 1e300])
def test_any_epsilon_is_worked_with(epsilon: float) -> None:
    """Noise of any length gives words, and where it swallows the vectors the words of the hull by their angles."""
    out = draw(PLANE, 7, epsilon, 20_000)
    if epsilon > 1:
        assert (out == 7).all()
    else:
        law = planar_law(7, 1e-6)
        assert fit_p_value(out, law) > LEVEL


# Audit (mechanisms.md §15)


def test_audit_does_not_refute_the_promise_and_refutes_half_the_noise() -> None:
    """The nearest pair in the plane: samples at epsilon pass for it, samples at 2 epsilon do not."""
    space = space_of(0.3 * normal(8, 2))
    apart = distances(space) + 10 * np.eye(8)
    w, other = (int(i) for i in np.unravel_index(apart.argmin(), apart.shape))
    epsilon = 5.0
    sound, broken = (
        lower_bound(Cmp(space), w, other, spent, distances(space)[w, other]) for spent in (epsilon, 2 * epsilon)
    )
    assert 0.3 * epsilon < sound <= epsilon
    assert broken > epsilon


def test_laplace_masses_keep_their_digits() -> None:
    """Masses far out, and of narrow intervals, to full relative precision: differences of a CDF would be 0."""
    left, right = np.array([40.0, -90.0, -1e-12, 0.0]), np.array([41.0, -80.0, 1e-12, np.inf])
    expected = [math.exp(-40) * -math.expm1(-1) / 2, math.exp(-80) * -math.expm1(-10) / 2, 1e-12, 0.5]
    assert laplace_mass(left, right, 1.0) == pytest.approx(expected, rel=1e-11, abs=0)
