"""SanText (Yue, Du, Wang, Li, Sun, Chow 2021): the exponential mechanism on Euclidean distances of vectors.

    P[w, u] is proportional to exp(-(epsilon/2) |phi(w) - phi(u)|)

over the whole vocabulary. ``epsilon |phi(w) - phi(w')|``-private: half of epsilon is in the exponent, half is for the
normalizers of two words, which differ by at most ``exp((epsilon/2) d)``. Only extreme layouts need that half (random
vectors in 50 dimensions realize 0.5 to 0.62 of epsilon), so ``tight-exponential`` (of ``corpusveil-evaluate``) is
sharper at an equal guarantee. Plain LDP is at most epsilon times the diameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from corpusveil.mechanisms.exponential_rows import ExponentialRows, rows_of
from corpusveil.mechanisms.on_distances import OnDistances
from corpusveil.mechanisms.registry import register
from corpusveil.sampling.weights import check_epsilon


@register
@dataclass(frozen=True, slots=True)
class SanText(OnDistances):
    """The exponential mechanism on Euclidean distances of vectors (Yue, Du, Wang, Li, Sun, Chow 2021).

    >>> cv.SanText(space).guarantee(epsilon=1.0).holds
    True
    """

    name: ClassVar[str] = "santext"
    paper: ClassVar[str] = "SanText (Yue, Du, Wang, Li, Sun, Chow 2021)"
    summary: ClassVar[str] = "exponential mechanism on vectors: epsilon times Euclidean distance"
    claim: ClassVar[str] = "epsilon times the Euclidean distance"

    def exponential_rows(self, epsilon: float) -> ExponentialRows:
        return rows_of(self.space, check_epsilon(epsilon) / 2)

    def reach(self, epsilon: float) -> float:
        return epsilon / 2 * self.diameter()
