"""The common part of the Vickrey mechanisms: sometimes the second-nearest word to a noisy vector is the output.

Of candidates at distances ``r1 <= r2`` the nearer is chosen with probability ``(1 - t) r2 / (t r1 + (1 - t) r2)``: with
t = 0 always, with t = 1 never. Over the whole vocabulary this looks at the noisy vector and at public vectors only, so
the noise's guarantee holds (post-processing). If the input word is not a candidate, the candidates depend on it: an
output is then certainly not the input, which distinguishes inputs, and no guarantee holds.
"""

from __future__ import annotations

import functools
import math
from typing import Any, ClassVar

import numpy as np

from corpusveil.arrays import Float32, Float64, Int32
from corpusveil.compiled import njit
from corpusveil.errors import DataError
from corpusveil.mechanisms.base import Guarantee, nothing_holds
from corpusveil.mechanisms.on_vectors import OnVectors
from corpusveil.sampling.draws import MECHANISM, DrawKey, Draws
from corpusveil.sampling.gamma import uniforms
from corpusveil.sampling.weights import check_epsilon
from corpusveil.spaces.cell_boundaries import RAYS
from corpusveil.spaces.nearest_words import search_of

SUMMARY = "of the two words nearest to the noisy vector, sometimes the second"


class TwoNearest:
    """Chooses between the two nearest words of the whole vocabulary. Mixed into a mechanism with a field ``t``."""

    __slots__ = ()

    def candidates(self: Any, points: Float64, ids: Int32) -> Int32:  # noqa: ARG002 - which others leave out
        """Return the two candidates, the nearer first; int32 [T, 2]."""
        return search_of(self.space).several(points, 2)

    def choose(self: Any, points: Float64, ids: Int32, draws: Draws) -> Int32:
        near = self.candidates(points, ids)
        second = uniforms(draws.pair(MECHANISM)[1])  # the first of the pair is the floor's
        chosen = second < first_chances(self.space.vectors, points, near, self.t)
        return np.asarray(np.where(chosen, near[:, 0], near[:, 1]))

    def retention(self: Any, epsilon: float) -> float:
        """Return an estimate of the mean probability that a word stays unchanged, from 1,024 words."""
        shares = _shares(self, check_epsilon(epsilon))
        return float(self.mixed(shares.mean()) if self.floored else shares.mean())

    def retention_error(self: Any, epsilon: float) -> float:
        """Return the standard error of ``retention``."""
        return float(_shares(self, check_epsilon(epsilon)).std() / math.sqrt(RAYS))

    def distribution(self: Any, word: int, epsilon: float) -> Float64:
        """Raise NoClosedForm: even on a line, the choice between two words has no closed form."""
        return OnVectors.distribution(self, word, epsilon)


class Excluding(TwoNearest):
    """As published: the two nearest words, except the input."""

    __slots__ = ()

    private: ClassVar[bool] = False
    floored: ClassVar[bool] = False

    def candidates(self: Any, points: Float64, ids: Int32) -> Int32:
        if len(self.space) < 3:
            raise DataError(f"{self.name}: it needs a space of at least three words.")
        three = search_of(self.space).several(points, 3)
        at = np.argmax(three == ids[:, None], axis=1)
        out = np.where((three == ids[:, None]).any(axis=1), at, 2)
        return np.asarray(three[np.arange(3) != out[:, None]].reshape(-1, 2))

    def distances(self, word: int, epsilon: float) -> Float64 | None:  # noqa: ARG002 - for none
        """Return None: nothing is promised."""
        return None

    def claimed_distances(self, word: int, epsilon: float) -> Float64 | None:
        """Return the distances of the mechanism that considers all words."""
        sound: Any = super()
        return np.asarray(sound.distances(word, epsilon))

    def unknown_bound(self, epsilon: float, public: Float64) -> float:  # noqa: ARG002 - at any
        """Return infinity: the input itself is impossible."""
        return math.inf

    def unknown_bound_at_most(self, public: Float64) -> float:  # noqa: ARG002 - for any
        return math.inf

    @property
    def distance(self) -> str:
        return "none: an output word was certainly not the input"

    def guarantee(self: Any, epsilon: float) -> Guarantee:
        check_epsilon(epsilon)
        return nothing_holds(
            self,
            self.claim,
            "The published claim is false. A word is never its own output, so a reader knows with certainty that an "
            "output word was not the input.",
        )


@functools.lru_cache(maxsize=64)
def _shares(mechanism: Any, epsilon: float) -> Float64:
    """Return, for 1,024 words with one noise each, the probability that the word is chosen; the same in every run."""
    size = len(mechanism.space)
    rng = np.random.default_rng(0)
    words = np.concatenate([rng.permutation(size) for _ in range(-(-RAYS // size))])[:RAYS].astype(np.int32)
    draws = Draws.of_tokens(DrawKey(bytes(16), bytes(32)), RAYS)  # public: nothing is released of it
    points = mechanism.noise(draws, np.full(RAYS, epsilon)) + mechanism.space.vectors[words]
    near = mechanism.candidates(points, words)
    first = first_chances(mechanism.space.vectors, points, near, mechanism.t)
    return np.where(near[:, 0] == words, first, np.where(near[:, 1] == words, 1 - first, 0.0))


def first_chances(vectors: Float32, points: Float64, near: Int32, t: float) -> Float64:
    """Return the probability that the first of two candidates is chosen; float64 [T, d], int32 [T, 2] -> float64 [T].

    Of two candidates at distance 0, the first is chosen.
    """
    out = np.empty(len(points))
    _chances(vectors, points, near, t, out)
    return out


@njit(nogil=True, cache=True)
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
