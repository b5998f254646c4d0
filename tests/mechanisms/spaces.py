"""Spaces of given vectors, the audits that exponential mechanisms share, and exact laws along rays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special

from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.on_distances import OnDistances
from corpusveil.sampling.weights import EXTRA_LOG_RATIO, TOTAL
from corpusveil.spaces import Space
from tests.contracts.mechanism import ROUNDING, Case, MechanismContract, draws_of, matrix
from tests.contracts.spaces import small_space

Floats = npt.NDArray[np.float64]


def space_of(vectors: Any) -> Space:
    """Return a space of these vectors, without a list."""
    return small_space(len(vectors), lists=0, vectors=np.asarray(vectors, dtype=np.float32))


def distances(space: Space) -> Floats:
    points = space.vectors.astype(np.float64)
    return np.array([np.sqrt(((points - point) ** 2).sum(axis=1)) for point in points])


def normal(words: int, dimensions: int, seed: int = 3) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(words, dimensions)).astype(np.float32)


def random_spaces(count: int = 12) -> Iterator[Space]:
    """Yield spaces of 8 to 500 words in 2 to 300 dimensions, clustered, with near-duplicates and exact ones."""
    random = np.random.default_rng(11)
    for number in range(count):
        size = int(np.exp(random.uniform(np.log(8), np.log(500 if number % 6 == 0 else 120))))
        dimensions = int(np.exp(random.uniform(np.log(2), np.log(300))))
        centres = random.normal(size=(max(1, size // 6), dimensions)) * random.choice([0.3, 1, 5])
        vectors = centres[random.integers(0, len(centres), size)] + random.normal(size=(size, dimensions))
        vectors[1] = vectors[0] + 1e-6 * random.normal(size=dimensions)
        vectors[3] = vectors[2]
        yield space_of(vectors)


def excess(law: Floats, apart: Floats, epsilon: float) -> float:
    """Return the largest log-ratio less epsilon d, over all pairs and outputs; infinite where supports differ."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(law)
        worst = -np.inf
        for word in range(len(law)):
            ratios = logs[word] - logs
            ratios[np.isnan(ratios)] = -np.inf
            worst = max(worst, float((ratios.max(axis=1) - epsilon * apart[word]).max()))
    return worst


def mechanism_excess(mechanism: Mechanism, apart: Floats, epsilon: float, spent: float | None = None) -> float:
    return excess(matrix(mechanism, spent or epsilon), apart, epsilon)


def exponential(scores: Floats) -> Floats:
    """Return rows proportional to exp(scores)."""
    kernel = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))


class RowsContract(MechanismContract):
    """The contract of a mechanism whose law is a row of integers, and its promise on random spaces."""

    excessive: ClassVar[float] = 3.0
    """Times as much epsilon breaks the promise, where the floor of the weights does not hide it."""

    @classmethod
    def case(cls, name: str, space: Space) -> Case:
        raise NotImplementedError

    @classmethod
    def integers(cls, mechanism: Mechanism, word: int, epsilon: float) -> list[int]:
        assert isinstance(mechanism, OnDistances)
        return [int(weight) for weight in mechanism.exponential_rows(epsilon).several(np.array([word]))[0]]

    def test_distribution_is_the_closed_form(self, case: Case, epsilon: float) -> None:
        """P is proportional to exp(-(epsilon/2) d), but for the floor of 2^-44 that every word gets."""
        assert case.distances is not None
        expected = exponential(-epsilon / 2 * case.distances(epsilon))
        mixed = (1 - len(expected) * 2.0**-44) * expected + 2.0**-44
        law = matrix(case.mechanism, epsilon)
        assert law == pytest.approx(mixed, rel=2.0**-20)
        assert law == pytest.approx(mixed, abs=1e-12)

    def test_rows_total_two_to_the_64(self, case: Case, epsilon: float) -> None:
        """The integers are a law without a rounding error."""
        for word in range(len(case.mechanism.space)):
            assert sum(self.integers(case.mechanism, word, epsilon)) == TOTAL

    def test_the_promise_holds_on_random_spaces(self) -> None:
        """8 to 500 words in 2 to 300 dimensions, clusters, near and exact duplicates; control: more epsilon fails."""
        refuted = 0
        for number, space in enumerate(random_spaces()):
            epsilon, case = (0.1, 1.0, 5.0)[number % 3], self.case("random", space)
            assert case.distances is not None
            apart = case.distances(epsilon)
            assert mechanism_excess(case.mechanism, apart, epsilon) <= EXTRA_LOG_RATIO + ROUNDING
            refuted += mechanism_excess(case.mechanism, apart, epsilon, self.excessive * epsilon) > 1e-3
        assert refuted >= 6


def draw(mechanism: Mechanism, word: int, epsilon: float, count: int, name: str = "a") -> npt.NDArray[np.int32]:
    """Return ``count`` replacements of a word."""
    return mechanism.privatize(np.full(count, word, np.int32), epsilon, draws_of(count, document=f"{name}{word}"))


# Oracles: the cell of u cuts a ray from w in one interval [low, high] of lengths (mechanisms.md §7)


def cuts(points: Floats, word: int, rays: Floats) -> tuple[Floats, Floats]:
    """Return where the cell of each word begins and ends on each ray from ``word``; float64 [R, V] each."""
    low = np.zeros((len(rays), len(points)))
    high = np.full((len(rays), len(points)), np.inf)
    away = ((points - points[word]) ** 2).sum(axis=1)
    for u in range(len(points)):
        for v in range(len(points)):
            if u == v:
                continue
            slope, gap = 2 * rays @ (points[v] - points[u]), away[v] - away[u]
            with np.errstate(divide="ignore", invalid="ignore"):
                at = gap / slope
            high[:, u] = np.where(slope > 0, np.minimum(high[:, u], at), high[:, u])
            low[:, u] = np.where(slope < 0, np.maximum(low[:, u], at), low[:, u])
            never = (slope == 0) & (gap < 0)
            high[never, u] = -1.0
    return low, np.maximum(high, low)


def masses(points: Floats, word: int, epsilon: float, rays: Floats) -> Floats:
    """Return each word's probability on each ray; float64 [R, V]. Their mean over directions is the law."""
    low, high = cuts(points, word, rays)
    k = points.shape[1]
    return special.gammainc(k, epsilon * high) - special.gammainc(k, epsilon * low)


def angles(count: int) -> Floats:
    theta = (np.arange(count) + 0.5) * 2 * np.pi / count
    return np.column_stack([np.cos(theta), np.sin(theta)])
