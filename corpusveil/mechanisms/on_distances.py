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

from corpusveil.arrays import Float64, Int32, Int64, Integers
from corpusveil.budget.privacy_loss import BoundedRange, PrivacyLoss
from corpusveil.mechanisms.base import Mechanism, levels
from corpusveil.mechanisms.exponential_risk import guessed
from corpusveil.mechanisms.exponential_rows import ExponentialRows
from corpusveil.mechanisms.on_vectors import diameter_bound
from corpusveil.sampling import weights
from corpusveil.sampling.draws import MECHANISM, Draws
from corpusveil.sampling.weights import check_epsilon

RETENTION_WORDS = 2048
"""In a larger vocabulary, the share of unchanged words is the mean over this many: rows cost milliseconds each."""

FLOAT_KERNEL = "Distances and exponentials are computed in float64, to 2^-40 of each, before they are made integers."


def sample_words(n: int) -> Int64:
    """Return the words that shares are taken over: all, or a sample from a fixed public seed, the same in every run."""
    if n <= RETENTION_WORDS:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).permutation(n)[:RETENTION_WORDS])


@dataclass(frozen=True, slots=True)
class OnDistances(Mechanism):
    """A mechanism whose law is an exponential kernel of distances. Raises UserError where a word has no vector."""

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        self.space.require_vectors(self.name)

    @abc.abstractmethod
    def rows(self, epsilon: float) -> ExponentialRows:
        """Return the rows of integer weights at one epsilon; cached."""

    @abc.abstractmethod
    def reach(self, epsilon: float) -> float:
        """Return the largest exponent ``s d`` between any two words, or more."""

    def privatize(self, ids: Int32, epsilon: float | Float64, draws: Draws) -> Int32:
        self.check_tokens(ids, draws)
        distinct, which = levels(epsilon, ids.size)
        lanes = draws.uint64(MECHANISM)
        if which is None:
            return self.rows(distinct[0]).sample(ids, lanes)
        out = np.empty(ids.size, dtype=np.int32)
        for level, value in enumerate(distinct):
            at = np.flatnonzero(which == level)
            out[at] = self.rows(value).sample(ids[at], lanes[at])
        return out

    def distribution(self, word: int, epsilon: float) -> Float64:
        word, epsilon = self.check_id(word), check_epsilon(epsilon)
        return self.rows(epsilon).row(word).astype(np.float64) / weights.TOTAL

    def distributions(self, words: Integers, epsilon: float) -> Float64:
        return self.rows(check_epsilon(epsilon)).several(words).astype(np.float64) / weights.TOTAL

    def privacy_loss(self, epsilon: float, distance: float | None) -> PrivacyLoss | None:
        """Return a bounded range, epsilon times the distance long.

        With epsilon/2 in the exponent ``ln P[w, u] - ln P[w', u]`` is a constant plus ``(epsilon/2)(d(w', u) - d(w,
        u))``, which lies within ``(epsilon/2) d(w, w')`` of 0 for every output u. Where the floor of the weights bounds
        any log-ratio by less than half of the range, that bound is taken.
        """
        range_of_any = 2 * self.reach(epsilon)
        if distance is None and 2 * self.plain_ldp(epsilon) < range_of_any:
            return Mechanism.privacy_loss(self, epsilon, distance)
        return BoundedRange(range_of_any if distance is None else min(epsilon * distance, range_of_any))

    def best_guess(self, epsilon: float, words: Int64, shares: Float64) -> tuple[float, float]:
        """Return both shares without the rows of all words, which are too many to build."""
        return guessed(self.rows(epsilon), words, shares)

    def retention(self, epsilon: float) -> float:
        """Return the mean probability that a word stays unchanged: exact up to 2,048 words.

        In a larger vocabulary it is the mean over 2,048 words, drawn from a fixed public seed.
        """
        shares = self.rows(check_epsilon(epsilon)).own_shares(sample_words(len(self.space)))
        return float(shares.mean())

    def retention_note(self) -> tuple[str, ...]:
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

    def diameter(self) -> float:
        """Return an upper bound of the distance of two words."""
        return diameter_bound(self.space)
