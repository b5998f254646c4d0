"""Vickrey (Xu, Aggarwal, Feyisetan, Teissier 2021) on the noise of ``cmp`` or of ``mahalanobis``.

    x = phi(w) + N,   u_1 and u_2 the words nearest to x, at r_1 <= r_2,
    P[u_1 | x] = (1 - t) r_2 / (t r_1 + (1 - t) r_2),   P[u_2 | x] = t r_1 / (t r_1 + (1 - t) r_2)

With t = 0 the nearest word is always chosen, as without Vickrey; with t = 1 never. Over the whole vocabulary this looks
at the noisy vector and at public vectors only, so the noise's guarantee holds (post-processing). As published, the
input itself is not a candidate, so the candidates depend on it: an output is then certainly not the input, which
distinguishes inputs, and no guarantee holds. The mechanisms named ``-excluding`` of ``corpusveil-evaluate`` do this.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from corpusveil.arrays import Float64, Int32
from corpusveil.compiled import njit
from corpusveil.mechanisms.base import check_fraction
from corpusveil.mechanisms.cmp import Cmp
from corpusveil.mechanisms.mahalanobis import Mahalanobis
from corpusveil.mechanisms.on_vectors import RAYS, OnVectors, ray_words, search_of
from corpusveil.mechanisms.registry import register
from corpusveil.sampling.draws import MECHANISM, DrawKey, Draws
from corpusveil.sampling.gamma import uniforms
from corpusveil.sampling.weights import check_epsilon

SUMMARY = "of the two words nearest to the noisy vector, sometimes the second"


class TwoNearest:
    """Chooses between the two nearest words of the whole vocabulary. Mixed into a mechanism with a field ``t``."""

    __slots__ = ()

    paper: ClassVar[str] = "Vickrey (Xu, Aggarwal, Feyisetan, Teissier 2021)"

    def __post_init__(self: Any) -> None:
        super().__post_init__()  # type: ignore[misc] # of the mechanism that it is mixed into
        check_fraction("t", self.t, ends=True)

    def candidates(self: Any, points: Float64, ids: Int32) -> Int32:  # noqa: ARG002 - which others leave out
        """Return the two candidates, the nearer first; int32 [T, 2]."""
        return search_of(self.space).several(points, 2)

    def chances(self: Any, points: Float64, near: Int32) -> Float64:
        """Return the probability of the first candidate, 1 at distance 0; float64 [T]."""
        out = np.empty(len(points))
        _chances(self.space.vectors, points, near, self.t, out)
        return out

    def choose(self: Any, points: Float64, ids: Int32, draws: Draws) -> Int32:
        near = self.candidates(points, ids)
        second = uniforms(draws.pair(MECHANISM)[1])  # the first of the pair is the floor's
        chosen = second < self.chances(points, near)
        return np.asarray(np.where(chosen, near[:, 0], near[:, 1]))

    # Even on a line, where ``cmp`` has one, the choice between two words has no closed form.
    distribution, retention, retention_error = OnVectors.distribution, OnVectors.retention, OnVectors.retention_error

    def _returns(self: Any, epsilon: float) -> Float64:
        return _shares(self, check_epsilon(epsilon))


@register
@dataclass(frozen=True, slots=True)
class VickreyCmp(TwoNearest, Cmp):
    """Noise of ``cmp``, then one of the two nearest words (Xu, Aggarwal, Feyisetan, Teissier 2021).

    ``t``, from 0 to 1: the larger, the more often the second-nearest. Raises UserError otherwise.

    >>> cv.VickreyCmp(space).guarantee(epsilon=1.0).holds
    True
    """

    t: float = 0.5

    name: ClassVar[str] = "vickrey-cmp"
    summary: ClassVar[str] = f"cmp noise; {SUMMARY}"


@register
@dataclass(frozen=True, slots=True)
class VickreyMahalanobis(TwoNearest, Mahalanobis):
    """Noise of ``mahalanobis``, then one of the two nearest words (Xu, Aggarwal, Feyisetan, Teissier 2021).

    ``lam`` is that of ``Mahalanobis``, ``t`` that of ``VickreyCmp``. Raises UserError for values out of range.

    >>> cv.VickreyMahalanobis(space).guarantee(epsilon=1.0).holds
    True
    """

    t: float = 0.5

    name: ClassVar[str] = "vickrey-mahalanobis"
    summary: ClassVar[str] = f"mahalanobis noise; {SUMMARY}"


@functools.lru_cache(maxsize=64)
def _shares(mechanism: Any, epsilon: float) -> Float64:
    """Return, for 1,024 words with one noise each, the probability that the word is chosen; the same in every run."""
    words = ray_words(np.random.default_rng(0), len(mechanism.space)).astype(np.int32)
    draws = Draws.of_tokens(DrawKey(bytes(16), bytes(32)), RAYS)  # public: nothing is released of it
    points = mechanism.noise(draws, np.full(RAYS, epsilon)) + mechanism.space.vectors[words]
    near = mechanism.candidates(points, words)
    first = mechanism.chances(points, near)
    return np.where(near[:, 0] == words, first, np.where(near[:, 1] == words, 1 - first, 0.0))


@njit()
def _chances(vectors: Any, points: Any, near: Any, t: float, out: Any) -> None:
    for row in range(out.size):
        largest = 0.0
        for j in range(points.shape[1]):
            largest = max(largest, abs(points[row, j]))
        scale = max(largest, 1.0)  # squares of far points would overflow
        first = 0.0
        second = 0.0
        for j in range(points.shape[1]):
            gap = (vectors[near[row, 0], j] - points[row, j]) / scale
            first += gap * gap
            gap = (vectors[near[row, 1], j] - points[row, j]) / scale
            second += gap * gap
        first = math.sqrt(first)
        second = math.sqrt(second)
        whole = t * first + (1 - t) * second
        out[row] = (1 - t) * second / whole if whole > 0.0 else 1.0
