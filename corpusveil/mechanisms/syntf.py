"""SynTF (Weggenmann, Kerschbaum 2018), token by token: the exponential mechanism on cosine similarity.

    P[w, u] is proportional to exp(epsilon rho(w, u) / 2),   rho = (1 + cosine of the vectors)/2

over the whole vocabulary. rho is between 0 and 1, so epsilon holds for *any* two words, whatever their distance: plain
LDP, of which about half is realized. This is expensive: at epsilon = 1 all words are nearly equally probable. ``1 -
rho`` is a quarter of the squared distance of the vectors at length 1, which is how it is computed, never above 1.

As published, it takes a document's terms and returns m terms, each from a term drawn by its frequency: m epsilon
between any two documents. The paper also chooses among a term's synonyms only. Other outputs are then impossible, and
no guarantee holds, so this variant is not offered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from corpusveil.arrays import Float64
from corpusveil.errors import DataError
from corpusveil.mechanisms.distances import discrete
from corpusveil.mechanisms.exponential_rows import ExponentialRows, rows_of
from corpusveil.mechanisms.on_distances import OnDistances
from corpusveil.mechanisms.registry import register
from corpusveil.sampling.weights import check_epsilon

LONGEST = 4.0
"""The largest squared distance of two vectors of length 1."""


@register
@dataclass(frozen=True, slots=True)
class SynTf(OnDistances):
    """The exponential mechanism on cosine similarity, for any two words (Weggenmann, Kerschbaum 2018).

    No vector may be 0: raises UserError.

    >>> round(cv.SynTf(space).guarantee(epsilon=1.0).plain_ldp, 3)
    1.0
    """

    name: ClassVar[str] = "syntf"
    paper: ClassVar[str] = "SynTF (Weggenmann, Kerschbaum 2018)"
    summary: ClassVar[str] = "exponential mechanism on cosine similarity: epsilon for any two words"
    claim: ClassVar[str] = "epsilon for any two words, m epsilon for a document of m output terms"

    def __post_init__(self) -> None:
        OnDistances.__post_init__(self)
        zero = np.flatnonzero(~self.space.vectors.any(axis=1))
        if zero.size:
            raise DataError(
                f"syntf: the vector of {self.space.word(int(zero[0]))!r} is 0 and has no direction; remove the word "
                "from the vectors."
            )

    def exponential_rows(self, epsilon: float) -> ExponentialRows:
        return rows_of(self.space, check_epsilon(epsilon) / 2 / LONGEST, LONGEST, squared=True)

    def reach(self, epsilon: float) -> float:
        return epsilon / 2

    def distances(self, word: int, epsilon: float) -> Float64:  # noqa: ARG002 - the same at any
        return discrete(self.space, self.check_id(word))

    @property
    def distance(self) -> str:
        return "1 for any two different words"
