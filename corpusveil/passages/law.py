"""The law of an exchange: one of the K nearest pieces, or one of all N pieces of the store; uniform in either case.

Let h be the probability of drawing among the K nearest. For all inputs x and x' and every piece s, however pieces are
ranked,

    P[s | x] / P[s | x'] <= 1 + h N / (K (1 - h)),    so    epsilon = ln(1 + h N / (K (1 - h)))

(``docs/mathematics.md``, Passages). Draws are two 64-bit integers: the first is below the threshold t with probability
``h = t / 2^64``, the second chooses among K or N by multiplication, where cells differ by at most one. The bound of
exactly these integers, with ``c_K`` the largest cell of K and ``c_N`` the smallest of N, is

    epsilon(t) = ln(1 + t c_K / ((2^64 - t) c_N))

and t is the largest integer at which it does not exceed the epsilon that was asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from corpusveil.arrays import Float64, Int64, UInt64
from corpusveil.budget.accounting import upward
from corpusveil.compiled import compiled
from corpusveil.errors import SettingError
from corpusveil.sampling.weights import TOTAL, check_epsilon

NEAR_ODDS, FEWEST, MOST_NATS = 4, 4, 100.0
"""The default K: four pieces become a near one for each that becomes any, but it is at least 4."""
_DIGITS = 60
"""Digits of decimal logarithms and powers; float64 keeps 16."""


def cells(number: int, of: int) -> int:
    """Return how many 64-bit integers choose the piece ``number`` of ``of``: ``floor(2^64 / of)``, or one more."""
    return -(-(number + 1) * TOTAL // of) - -(-number * TOTAL // of)


@dataclass(frozen=True, slots=True)
class Exchange:
    """The integers of one epsilon: ``pieces`` N, ``neighbors`` K, and the threshold below which a draw is near."""

    pieces: int
    neighbors: int
    threshold: int

    @classmethod
    def at(cls, epsilon: float, pieces: int, neighbors: int) -> Exchange:
        """Return the law with the largest threshold whose bound is at most ``epsilon``, above 0.

        Raises UserError for an epsilon at which the first draw would always be near: no guarantee would hold.
        """
        epsilon = check_epsilon(epsilon)
        largest, smallest = -(-TOTAL // neighbors), TOTAL // pieces
        with localcontext(prec=_DIGITS, rounding=ROUND_FLOOR):
            odds = Decimal(min(epsilon, MOST_NATS)).exp().next_minus() - 1
            threshold = int(odds * smallest * TOTAL / (largest + odds * smallest))
        law = cls(pieces, neighbors, threshold)
        if threshold >= TOTAL or law.epsilon > epsilon:
            law = cls(pieces, neighbors, threshold - 1)
        if law.threshold >= TOTAL - 1 and cls(pieces, neighbors, TOTAL - 1).epsilon < epsilon:
            raise SettingError(
                f"epsilon = {epsilon:g}: with {pieces:,} pieces 64-bit draws reach at most "
                f"{cls(pieces, neighbors, TOTAL - 1).epsilon:.4g}; give a smaller epsilon."
            )
        return law

    @property
    def odds(self) -> Fraction:
        """The largest ratio of probabilities less 1, exactly."""
        largest, smallest = -(-TOTAL // self.neighbors), TOTAL // self.pieces
        return Fraction(self.threshold * largest, (TOTAL - self.threshold) * smallest)

    @property
    def epsilon(self) -> float:
        """The guarantee of these integers in nats, rounded up."""
        with localcontext(prec=_DIGITS):
            ratio = 1 + Decimal(self.odds.numerator) / Decimal(self.odds.denominator)
            return upward(Fraction(ratio.ln()))

    @property
    def near(self) -> float:
        """The probability h that one of the K pieces ranked first is drawn as such."""
        return self.threshold / TOTAL

    def weights(self, ranking: Int64) -> list[int]:
        """Return how many of 2^128 pairs of draws give each piece, by its id; ``ranking`` int64 [K] are ids."""
        out = [(TOTAL - self.threshold) * cells(piece, self.pieces) for piece in range(self.pieces)]
        for rank, piece in enumerate(ranking.tolist()):
            out[piece] += self.threshold * cells(rank, self.neighbors)
        return out

    def mean(self, similarity: Float64, overall: float) -> float:
        """Return the mean similarity of what is drawn: ``similarity`` float64 [K] by rank, ``overall`` of any piece."""
        return self.near * math.fsum(similarity[: self.neighbors]) / self.neighbors + (1 - self.near) * overall

    def draw(self, first: UInt64, second: UInt64) -> tuple[Int64, Int64]:
        """Return for T pairs of draws a rank, or -1, and a piece, which counts where the rank is -1; int64 [T] each."""
        ranks, pieces = np.empty(first.size, np.int64), np.empty(first.size, np.int64)
        _draw(
            first, second, np.uint64(self.threshold), np.uint64(self.neighbors), np.uint64(self.pieces), ranks, pieces
        )
        return ranks, pieces


@compiled
def _draw(first: Any, second: Any, threshold: Any, neighbors: Any, pieces: Any, ranks: Any, out: Any) -> None:
    low_half, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for t in range(first.size):
        lane = second[t]
        near = first[t] < threshold
        size = neighbors if near else pieces
        # The high half of a product of 64 and of 32 bits.
        high = (lane >> half) * size + (((lane & low_half) * size) >> half)
        ranks[t] = np.int64(high >> half) if near else -1
        out[t] = np.int64(high >> half)


def usual_neighbors(epsilon: float, pieces: int) -> int:
    """Return the default K: the fewest, at least 4, with which four in five pieces are drawn near.

    It follows from epsilon and N alone. docs/decisions says why these numbers.
    """
    with localcontext(prec=_DIGITS):
        fewest = NEAR_ODDS * pieces / (Decimal(min(epsilon, MOST_NATS)).exp() - 1)
    return min(pieces, max(FEWEST, math.ceil(fewest)))
