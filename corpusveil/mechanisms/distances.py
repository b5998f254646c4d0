"""Distances of vectors, as guarantees and claims measure them, and the common code of mechanisms on vectors."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from corpusveil.arrays import Float64
from corpusveil.compiled import njit
from corpusveil.mechanisms.base import INTEGER_WEIGHTS, Mechanism
from corpusveil.search.neighbors import squared_distance
from corpusveil.spaces import Space
from corpusveil.spaces.vocabulary import BLOCK

FLOAT_KERNEL = "Distances and exponentials are computed in float64, to 2^-40 of each, before they are made integers."


@dataclass(frozen=True, slots=True)
class OverVectors(Mechanism):
    """A mechanism on vectors. Its distance is Euclidean, on the vectors as given, unless it says otherwise."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (INTEGER_WEIGHTS, FLOAT_KERNEL)

    @property
    def distance(self) -> str:
        return f"the Euclidean distance of vectors in {self.space.dimensions} dimensions"

    def distances(self, word: int, epsilon: float) -> Float64 | None:  # noqa: ARG002 - the same at any
        return euclidean(self.space, self.check_id(word))

    def diameter(self) -> float:
        """Return an upper bound of the distance of two words."""
        return diameter_bound(self.space)


def euclidean(space: Space, word: int) -> Float64:
    """Return the Euclidean distance of the vectors of all words from that of ``word``; float64 [V]."""
    out = np.empty(len(space))
    _euclidean(space.vectors, word, out)
    return out


@njit()
def _euclidean(vectors: Any, word: int, out: Any) -> None:
    for u in range(out.size):
        out[u] = math.sqrt(squared_distance(vectors, word, u))


def discrete(space: Space, word: int) -> Float64:
    """Return 1 for every word but ``word``, 0 for that; float64 [V]."""
    out = np.ones(len(space))
    out[word] = 0.0
    return out


@functools.lru_cache(maxsize=4)
def diameter_bound(space: Space) -> float:
    """Return twice the largest distance from the mean vector, an upper bound of the distance of two words."""
    mean, largest = space.vectors.mean(axis=0, dtype=np.float64), 0.0
    for first in range(0, len(space), BLOCK):
        gaps = space.vectors[first : first + BLOCK] - mean
        largest = max(largest, float(np.einsum("vd,vd->v", gaps, gaps).max()))
    # The factor covers what rounding takes off a sum of squares in any order.
    return 2 * math.sqrt(largest) * (1 + 2.0**-30)
