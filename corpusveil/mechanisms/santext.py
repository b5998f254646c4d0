"""SanText (Yue, Du, Wang, Li, Sun, Chow 2021): the exponential mechanism on Euclidean distances of vectors.

    P[w, u] is proportional to exp(-(epsilon/2) |phi(w) - phi(u)|)

over the whole vocabulary. ``epsilon |phi(w) - phi(w')|``-private: half of epsilon is in the exponent, half is for the
normalizers of two words, which differ by at most ``exp((epsilon/2) d)``. Only extreme layouts need that half (random
vectors in 50 dimensions realize 0.5 to 0.62 of epsilon), so ``tight-exponential`` is sharper at an equal guarantee.
Plain LDP is at most epsilon times the diameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from corpusveil.arrays import Float64
from corpusveil.mechanisms.base import INTEGER_WEIGHTS, Guarantee, promise
from corpusveil.mechanisms.distances import euclidean
from corpusveil.mechanisms.exponential_rows import ExponentialRows, rows_of
from corpusveil.mechanisms.on_distances import FLOAT_KERNEL, OnDistances
from corpusveil.mechanisms.registry import register
from corpusveil.sampling.weights import check_epsilon


@register
@dataclass(frozen=True, slots=True)
class SanText(OnDistances):
    """The exponential mechanism on vectors; distance is Euclidean, on the vectors as given."""

    name: ClassVar[str] = "santext"
    paper: ClassVar[str] = "SanText (Yue, Du, Wang, Li, Sun, Chow 2021)"
    summary: ClassVar[str] = "exponential mechanism on vectors: epsilon times Euclidean distance"
    ranged: ClassVar[bool] = True

    def rows(self, epsilon: float) -> ExponentialRows:
        return rows_of(self.space, check_epsilon(epsilon) / 2)

    def reach(self, epsilon: float) -> float:
        return epsilon / 2 * self.diameter()

    def distances(self, word: int, epsilon: float) -> Float64:  # noqa: ARG002 - the same at any
        return euclidean(self.space, self.check_id(word))

    @property
    def distance(self) -> str:
        return f"the Euclidean distance of vectors in {self.space.dimensions} dimensions"

    def guarantee(self, epsilon: float) -> Guarantee:
        epsilon = check_epsilon(epsilon)
        return promise(
            self,
            epsilon,
            metric=self.distance,
            plain_ldp=self.plain_ldp(epsilon),
            assumptions=(INTEGER_WEIGHTS, FLOAT_KERNEL),
            claim="epsilon times the Euclidean distance",
            notes=self.retention_note(),
        )
