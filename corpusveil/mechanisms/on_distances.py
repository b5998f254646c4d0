"""The common part of the exponential mechanisms on distances of vectors: rows by epsilon, the law, bounds in words.

For ``P[w, u]`` proportional to ``exp(-(epsilon/2) d(w, u))`` over the whole vocabulary, ``ln P`` of two inputs differs
by ``(epsilon/2) d(w, w')`` in the exponent, and by at most as much in the normalizer: ``epsilon d``-private. That needs
one vocabulary of outputs for every input, so no word is left out (``exponential_rows.py``).
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass

import numpy as np

from corpusveil.arrays import Float64, Int32, Integers
from corpusveil.mechanisms.base import by_epsilon
from corpusveil.mechanisms.distances import OverVectors
from corpusveil.mechanisms.exponential_rows import ExponentialRows
from corpusveil.sampling import weights
from corpusveil.sampling.draws import MECHANISM, Draws
from corpusveil.sampling.weights import check_epsilon

RETENTION_WORDS = 2048
"""In a larger vocabulary, the share of unchanged words is the mean over this many: rows cost milliseconds each."""


@dataclass(frozen=True, slots=True)
class OnDistances(OverVectors):
    """A mechanism whose law is an exponential kernel of distances."""

    @abc.abstractmethod
    def exponential_rows(self, epsilon: float) -> ExponentialRows:
        """Return the rows of integer weights at one epsilon; cached."""

    @abc.abstractmethod
    def reach(self, epsilon: float) -> float:
        """Return the largest exponent ``s d`` between any two words, or more."""

    def privatize(self, ids: Int32, epsilon: float | Float64, draws: Draws) -> Int32:
        self.check_tokens(ids, draws)
        lanes = draws.uint64(MECHANISM)
        out = np.empty(ids.size, dtype=np.int32)
        for value, at in by_epsilon(epsilon, ids.size):
            out[at] = self.exponential_rows(value).sample(ids[at], lanes[at])
        return out

    def distribution(self, word: int, epsilon: float) -> Float64:
        law: Float64 = self.distributions(np.array([self.check_id(word)]), epsilon)[0]
        return law

    def distributions(self, words: Integers, epsilon: float) -> Float64:
        return self.exponential_rows(check_epsilon(epsilon)).several(words).astype(np.float64) / weights.TOTAL

    def retention(self, epsilon: float) -> float:
        """Return the mean probability that a word stays unchanged; above 2,048 words, of a fixed sample."""
        words = np.sort(np.random.default_rng(0).permutation(len(self.space))[:RETENTION_WORDS])
        return float(self.exponential_rows(check_epsilon(epsilon)).own_shares(words).mean())

    def notes(self, epsilon: float) -> tuple[str, ...]:  # noqa: ARG002 - the same at any
        """Say that the share of unchanged words is an estimate, if it is."""
        if len(self.space) <= RETENTION_WORDS:
            return ()
        return (f"The expected share of unchanged words is the mean over {RETENTION_WORDS:,} words of the vocabulary.",)

    def plain_ldp(self, epsilon: float) -> float:
        """Return an upper bound on any log-ratio: epsilon times the diameter, never more than the floor allows."""
        return min(2 * self.reach(epsilon), math.log(weights.TOTAL / weights.FLOOR))

    def unknown_bound(self, epsilon: float, public: Float64) -> float:
        """Return a bound from ``exp(-s D) / n <= P[w, u] <= exp(s D) / n``, D the diameter, and from the floor."""
        reach, even = self.reach(check_epsilon(epsilon)), math.log(len(self.space))
        low = min(reach + even, math.log(weights.TOTAL / weights.FLOOR))
        high = min(reach - even, 0.0)
        bound = max(math.log(public.max()) + low, high - math.log(public.min()))
        return min(bound + weights.EXTRA_LOG_RATIO, self.unknown_bound_at_most(public))
