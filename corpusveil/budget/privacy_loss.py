"""A bound on the privacy loss of one replaced word that changes in a stated way.

For laws P, Q of the outputs of two words, the *hockey-stick divergence* at x is ``sum_u max(P[u] - e^x Q[u], 0)``: the
least delta for which (x, delta) holds. A ``PrivacyLoss`` bounds it from above for every pair of words that the change
allows, in both directions. Such a bound is convex in e^x, so that values on a grid of x, connected by straight lines in
e^x, bound it everywhere (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022), and bounds of independent tokens compose
(Zhu, Dong, Wang 2022). Privacy losses of different pairs need not be ordered; the bound is the largest at each x.

Each has ``largest``, the most nats; ``points``, the number of steps from 0 to ``largest`` for which losses are on or
near the grid; ``rho``, the zero-concentrated bound of the token (Bun, Steinke 2016); and ``deltas``, which returns an
upper bound of the divergence at each x, ascending, float64 [K] -> float64 [K].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

import numpy as np

from corpusveil.arrays import Float64


@dataclass(frozen=True, slots=True)
class Pure:
    """Any pair with log-ratios of at most ``largest``: randomized response bounds it (Kairouz, Oh, Viswanath 2015)."""

    largest: float
    points: ClassVar[int] = 1

    @property
    def rho(self) -> float:
        return self.largest**2 / 2

    def deltas(self, x: Float64) -> Float64:
        inside = -np.expm1(np.minimum(x - self.largest, 0.0)) / (1 + math.exp(-self.largest))
        return np.where(x <= -self.largest, -np.expm1(np.minimum(x, 0.0)), inside)


@dataclass(frozen=True, slots=True)
class BoundedRange:
    """Any pair whose log-ratios lie in an interval of length ``largest`` = η (Dong, Durfee, Rogers 2020).

    A pair with log-ratios between t - η and t is bounded by the two-point pair with losses t and t - η, whose
    divergence at x is ``(e^η - e^t)(1 - e^(x - t))/(e^η - 1)``. The largest over t, at t = (η + x)/2, is
    ``(e^(η/2) - e^(x/2))²/(e^η - 1)``. The token is η²/8-zero-concentrated (Cesar, Rogers 2021), a quarter of ``Pure``.
    """

    largest: float
    points: ClassVar[int] = 32

    @property
    def rho(self) -> float:
        return self.largest**2 / 8

    def deltas(self, x: Float64) -> Float64:
        half = np.expm1((np.minimum(x, self.largest) - self.largest) / 2)  # e^((x - η)/2) - 1
        inside = half**2 / -np.expm1(-self.largest)
        return np.where(x <= -self.largest, -np.expm1(np.minimum(x, 0.0)), inside)


@dataclass(frozen=True, slots=True, eq=False)
class OfLaws:
    """Given pairs of laws, of N cells each: float64 [N] and [N], all above 0. ``steps`` divides the range of losses."""

    pairs: Sequence[tuple[Float64, Float64]]
    steps: int
    largest: float = field(init=False)

    def __post_init__(self) -> None:
        both = max(float(np.abs(np.log(p) - np.log(q)).max(initial=0.0)) for p, q in self.pairs)
        object.__setattr__(self, "largest", both)

    @property
    def points(self) -> int:
        return max(1, self.steps)

    @property
    def rho(self) -> float:
        return self.largest**2 / 2

    def deltas(self, x: Float64) -> Float64:
        worst = np.maximum(-np.expm1(x), 0.0)
        for pair in self.pairs:
            for p, q in (pair, pair[::-1]):
                place = np.searchsorted(x, np.log(p) - np.log(q), side="left")
                above, below = (np.bincount(place, law, x.size + 1)[::-1].cumsum()[::-1][1:] for law in (p, q))
                np.maximum(worst, above - np.exp(x) * below, out=worst)
        return worst


PrivacyLoss: TypeAlias = Pure | BoundedRange | OfLaws
