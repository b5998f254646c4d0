"""Distances from one word to all others, as guarantees and claims measure them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from corpusveil.arrays import Float64
from corpusveil.compiled import njit
from corpusveil.spaces import Space
from corpusveil.spaces.nominations import squared_distance


def euclidean(space: Space, word: int) -> Float64:
    """Return the Euclidean distance of the vectors of all words from that of ``word``; float64 [V]."""
    out = np.empty(len(space))
    _euclidean(space.vectors, word, out)
    return out


@njit(nogil=True, cache=True)
def _euclidean(vectors: Any, word: int, out: Any) -> None:
    for u in range(out.size):
        out[u] = math.sqrt(squared_distance(vectors, word, u))


def discrete(space: Space, word: int) -> Float64:
    """Return 1 for every word but ``word``, 0 for that; float64 [V]."""
    out = np.ones(len(space))
    out[word] = 0.0
    return out
