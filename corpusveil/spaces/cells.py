"""Cells: more words than can be ordered together, cut into parts of near words, for lists that request this.

The words are halved repeatedly, across the direction in which they vary most. A cell is ordered exactly and separately;
then the list continues at the nearest word of all remaining cells. So a word's neighbors on the list are near words of
its cell, and nearer words in another cell are missed.

A mechanism's guarantee is not affected: it measures distance on the list, and any order of the words is a list.

Sums are float64, in a fixed order, so cells are the same everywhere.
"""

from __future__ import annotations

import numpy as np

from corpusveil.arrays import Float32, Float64, Int64
from corpusveil.compiled import njit
from corpusveil.spaces.nominations import squared_distance

LOOKED_AT, TIMES = 4096, 32
"""The number of evenly spaced words that determine a direction, and the steps of its power iteration."""
SMALLEST_CELL = 16


def cells_of(vectors: Float32, ids: Int64, cell: int) -> list[Int64]:
    """Cut words into ``ceil(n / cell)`` cells of about one size, none above ``cell``; neighbors in this list are near.

    Args:
        vectors: float32 [V, d], finite.
        ids: int64 [n], ascending.
        cell: words of a cell at most.
    """
    return _cut(vectors, ids, -(-len(ids) // cell))


def _cut(vectors: Float32, ids: Int64, parts: int) -> list[Int64]:
    if parts == 1:
        return [ids]
    some = np.unique(np.linspace(0, len(ids) - 1, min(len(ids), LOOKED_AT)).astype(np.int64))
    direction = np.empty(vectors.shape[1])
    _direction(vectors[ids[some]].astype(np.float64), TIMES, direction)
    along = np.empty(len(ids))
    _project(vectors, ids, direction, along)
    ranked = np.argsort(along, kind="stable")
    first = parts // 2
    middle = len(ids) * first // parts
    lower, upper = np.sort(ids[ranked[:middle]]), np.sort(ids[ranked[middle:]])
    return [*_cut(vectors, lower, first), *_cut(vectors, upper, parts - first)]


@njit(nogil=True, cache=True)
def _direction(points: Float64, times: int, out: Float64) -> None:
    """Find the direction in which points vary most by power iteration, from the point farthest from their mean.

    Changes ``points`` to what they are less their mean. float64 [n, d], int, float64 [d].
    """
    n, d = points.shape
    for k in range(d):
        total = 0.0
        for i in range(n):
            total += points[i, k]
        mean = total / n
        for i in range(n):
            points[i, k] -= mean
    farthest, at = -1.0, 0
    for i in range(n):
        square = 0.0
        for k in range(d):
            square += points[i, k] * points[i, k]
        if square > farthest:
            farthest, at = square, i
    out[:] = points[at]
    following = np.empty(d)
    for _ in range(times):
        following[:] = 0.0
        for i in range(n):
            product = 0.0
            for k in range(d):
                product += points[i, k] * out[k]
            for k in range(d):
                following[k] += product * points[i, k]
        largest = 0.0
        for k in range(d):
            largest = max(largest, abs(following[k]))
        if not (0.0 < largest < np.inf):
            break
        for k in range(d):
            out[k] = following[k] / largest


@njit(nogil=True, cache=True)
def _project(vectors: Float32, ids: Int64, direction: Float64, out: Float64) -> None:
    for i in range(len(ids)):
        product = 0.0
        for k in range(vectors.shape[1]):
            product += np.float64(vectors[ids[i], k]) * direction[k]
        out[i] = product


@njit(nogil=True, cache=True)
def nearest_of(vectors: Float32, ids: Int64, word: int) -> tuple[float, int]:
    """Return the squared distance and the id of the word among ``ids`` nearest to a word; ties go to the lowest id."""
    best = np.inf
    found = ids[0]
    for other in ids:
        squared = squared_distance(vectors, word, other)
        if squared < best:
            best = squared
            found = other
    return best, found
