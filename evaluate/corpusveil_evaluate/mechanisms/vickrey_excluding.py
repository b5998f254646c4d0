"""Vickrey as published (Xu, Aggarwal, Feyisetan, Teissier 2021): the input is not among its candidates.

So the candidates depend on the input: an output is certainly not the input, and no guarantee holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from corpusveil.arrays import Float64, Int32
from corpusveil.errors import DataError
from corpusveil.mechanisms.on_vectors import search_of
from corpusveil.mechanisms.registry import register
from corpusveil.mechanisms.vickrey import SUMMARY, TwoNearest, VickreyCmp, VickreyMahalanobis
from corpusveil_evaluate.mechanisms.refuted import Refuted


class Excluding(Refuted, TwoNearest):
    """As published: the two nearest words, except the input."""

    __slots__ = ()

    floored: ClassVar[bool] = False
    flaw: ClassVar[str] = (
        "The published claim is false. A word is never its own output, so a reader knows with certainty that an "
        "output word was not the input."
    )

    def candidates(self: Any, points: Float64, ids: Int32) -> Int32:
        if len(self.space) < 3:
            raise DataError(f"{self.name}: it needs a space of at least three words.")
        three = search_of(self.space).several(points, 3)
        at = np.argmax(three == ids[:, None], axis=1)
        out = np.where((three == ids[:, None]).any(axis=1), at, 2)
        return np.asarray(three[np.arange(3) != out[:, None]].reshape(-1, 2))

    def claimed_distances(self, word: int, epsilon: float) -> Float64 | None:
        """Return the distances of the mechanism that considers all words."""
        sound: Any = super(Refuted, self)
        return np.asarray(sound.distances(word, epsilon))

    @property
    def distance(self) -> str:
        return "none: an output word was certainly not the input"


@register
@dataclass(frozen=True, slots=True)
class VickreyCmpExcluding(Excluding, VickreyCmp):
    """As published: the input word is not among the candidates. It guarantees nothing.

    >>> cv.VickreyCmpExcluding(space).guarantee(1.0).metric
    'none: an output word was certainly not the input'
    """

    name: ClassVar[str] = "vickrey-cmp-excluding"
    summary: ClassVar[str] = f"cmp noise; {SUMMARY}, never the input, as published"


@register
@dataclass(frozen=True, slots=True)
class VickreyMahalanobisExcluding(Excluding, VickreyMahalanobis):
    """As published: the input word is not among the candidates. It guarantees nothing.

    >>> cv.VickreyMahalanobisExcluding(space).guarantee(1.0).plain_ldp is None
    True
    """

    name: ClassVar[str] = "vickrey-mahalanobis-excluding"
    summary: ClassVar[str] = f"mahalanobis noise; {SUMMARY}, never the input, as published"
