"""The words nearest to a word, exactly: of nominated words or of all, by squared distances that decide, then by id."""

from __future__ import annotations

import numpy as np

from corpusveil.arrays import Bool, Float32, Float64, Int32, Int64, Integers
from corpusveil.compiled import njit
from corpusveil.search.nominations import Nominations, least_distance, nominate, squared_distance

NOMINEES = 64


def neighbors(vectors: Float32, k: int) -> Int32:
    """Return the k nearest other words of each word, nearest first, ties by id: int32 [V, K].

    K is less than k when there are fewer words.
    """
    vectors = np.ascontiguousarray(vectors, np.float32)
    return neighbors_among(k, vectors, nominate(vectors, max(NOMINEES, 4 * k)))


def neighbors_among(k: int, vectors: Float32, nominations: Nominations) -> Int32:
    """Return the result of ``neighbors`` from existing nominations.

    It is exact for any nominations: in doubt, all words are compared.

    Args:
        k: how many, at least 1.
        vectors: float32 [V, d], contiguous.
        nominations: of all of them among all of them; some more than k each.
    """
    size = len(vectors)
    k = min(k, size - 1)
    near, squares = np.empty((size, k), np.int32), np.empty((size, k), np.float64)
    unsure = np.zeros(size, np.bool_)
    _choose(vectors, nominations.rows, nominations.floors, near, squares, unsure)
    for row in np.flatnonzero(unsure).tolist():
        near[row] = nearest(vectors, row, k)[0]
    return near


def nearest(vectors: Float32, row: int, k: int, among: Int64 | None = None) -> tuple[Int32, Float64]:
    """Return the k words nearest to a word, nearest first, ties by id, and their squared distances.

    Compares all other words, or those ``among`` them, int64 [n], of which there are k at least.
    """
    near, squares = np.empty(k, np.int32), np.empty(k, np.float64)
    _scan(vectors, row, np.arange(len(vectors)) if among is None else among, near, squares)
    return near, squares


@njit()
def _choose(vectors: Float32, nominees: Int32, floors: Float64, near: Int32, squares: Float64, unsure: Bool) -> None:
    for row in range(len(near)):
        used = _scan(vectors, row, nominees[row], near[row], squares[row])
        unsure[row] = used < near.shape[1] or not squares[row, -1] < floors[row]


@njit()
def _scan(vectors: Float32, row: int, others: Integers, near: Int32, squares: Float64) -> int:
    """Write the nearest of other words, nearest first, and their squared distances; return how many there were."""
    k, used, limit = near.size, 0, np.inf
    for word in others:
        other = np.int64(word)
        if least_distance(vectors, row, other) > limit or other == row:
            continue
        squared = squared_distance(vectors, row, other)
        if squared > limit or (squared == limit and other > near[k - 1]):
            continue
        at = min(used, k - 1)
        while at > 0 and (squares[at - 1] > squared or (squares[at - 1] == squared and near[at - 1] > other)):
            near[at] = near[at - 1]
            squares[at] = squares[at - 1]
            at -= 1
        near[at] = other
        squares[at] = squared
        used = min(used + 1, k)
        limit = squares[k - 1] if used == k else np.inf
    return used
