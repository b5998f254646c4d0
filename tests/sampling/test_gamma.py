"""Noise with density proportional to exp(-epsilon |z|): its length, its direction, and where its draws come from."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from corpusveil.sampling.draws import NOISE, DrawKey, Draws
from corpusveil.sampling.gamma import _uniform, gamma_noise
from corpusveil.sampling.keys import Key
from tests.contracts.statistics import LEVEL

KEY = DrawKey.derive(Key.for_tests(), "00" * 32)
DIMENSIONS = [1, 2, 7, 25]


def noise(dimensions: int, epsilon: float = 1.0, count: int = 40_000) -> npt.NDArray[np.float64]:
    return gamma_noise(Draws.of_tokens(KEY, count), dimensions, np.full(count, epsilon))


def slow(lanes: list[int], k: int, epsilon: float) -> list[float]:
    """Build one vector from its lanes, plainly."""
    m = -(-k // 2)
    uniforms = [((lane >> 12) + 0.5) / 2**52 for lane in lanes]
    normals = []
    for u, t in zip(uniforms[: 2 * m : 2], uniforms[1 : 2 * m : 2], strict=True):
        normals += [math.sqrt(-2 * math.log(u)) * f(2 * math.pi * t) for f in (math.cos, math.sin)]
    length = -sum(math.log(u) for u in [*uniforms[: 2 * m : 2], *uniforms[2 * m : k + m]]) / epsilon
    return [length * z / math.hypot(*normals[:k]) for z in normals[:k]]


@pytest.mark.parametrize("k", DIMENSIONS)
def test_lengths_are_gamma(k: int) -> None:
    """|z| is Gamma(k, 1/epsilon). Controls: Gamma(k + 1/2), another scale and a Gaussian's length are rejected."""
    lengths = np.linalg.norm(noise(k, 0.7), axis=1)
    assert stats.kstest(lengths, stats.gamma(k, scale=1 / 0.7).cdf).pvalue > LEVEL
    assert stats.kstest(lengths, stats.gamma(k + 0.5, scale=1 / 0.7).cdf).pvalue < LEVEL
    assert stats.kstest(lengths, stats.gamma(k, scale=1.1 / 0.7).cdf).pvalue < LEVEL
    if k > 1:
        chi = stats.chi(k, scale=k / 0.7 / stats.chi(k).mean())
        assert stats.kstest(lengths, chi.cdf).pvalue < LEVEL


@pytest.mark.parametrize("k", [2, 3, 10])
def test_directions_are_uniform_and_independent_of_lengths(k: int) -> None:
    """A coordinate of a uniform direction has a Beta law, every coordinate and any mixture of them, at every length."""
    vectors = noise(k)
    lengths = np.linalg.norm(vectors, axis=1)
    directions = vectors / lengths[:, None]
    law = stats.beta((k - 1) / 2, (k - 1) / 2, loc=-1, scale=2)
    mixture = np.random.default_rng(2).normal(size=k)
    for axis in (*np.eye(k)[[0, k // 2, k - 1]], mixture / np.linalg.norm(mixture)):
        along = directions @ axis
        assert stats.kstest(along, law.cdf).pvalue > LEVEL
        for part in (along[lengths < np.median(lengths)], along[lengths >= np.median(lengths)]):
            assert stats.kstest(part, law.cdf).pvalue > LEVEL
    normals = np.random.default_rng(1).normal(size=len(vectors)) / math.sqrt(k)
    assert stats.kstest(normals, law.cdf).pvalue < LEVEL or k > 10


@pytest.mark.parametrize("k", [1, 2, 5, 300])
def test_vectors_are_what_the_formula_says(k: int) -> None:
    """Number by number against a plain computation from the draws of purpose NOISE, attempts 0, 1, ..."""
    m = -(-k // 2)
    draws = Draws.of_tokens(KEY, 20)
    pairs = [draws.pair(NOISE, attempt) for attempt in range(m + -(-(k - m) // 2))]
    lanes = np.array([lane for pair in pairs for lane in pair]).T.tolist()
    expected = [slow(row, k, 0.3) for row in lanes]
    assert gamma_noise(draws, k, np.full(20, 0.3)) == pytest.approx(np.array(expected), rel=1e-12)


def test_lanes_are_the_pairs_of_all_attempts() -> None:
    """``Draws.lanes`` is ``pair`` for attempts 0, 1, ...: where the low half of a counter overflows, too."""
    tags = np.array([[2**64 - 2 - (NOISE << 32), 7], [2**64 - 1, 2**64 - 1]], dtype=np.uint64)
    draws = Draws(KEY, tags, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 5]))
    lanes = draws.lanes(NOISE, 6)
    assert lanes.shape == (4, 12)
    for attempt in range(6):
        one, other = draws.pair(NOISE, attempt)
        assert np.array_equal(lanes[:, 2 * attempt], one)
        assert np.array_equal(lanes[:, 2 * attempt + 1], other)


def test_uniforms_are_never_0_or_1() -> None:
    """So no logarithm is infinite and no direction is missing: the extreme lanes give 2^-53 and its mirror."""
    ends = [_uniform(np.uint64(lane)) for lane in (0, 2**64 - 1)]
    assert ends == [2.0**-53, 1 - 2.0**-53]
