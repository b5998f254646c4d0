"""The words nearest to a word, exactly: squared distances in float64, summed dimension by dimension, decide; then ids.

``nominate`` finds the words that may be nearest, by the exact search (``nearest_words.py``) over the vectors less their
mean, times a power of two, rounded to float32. Each floor is a lower bound: it allows for the rounding of the sums,
``3 e M^2`` with ``e = (d + 4) 2^-51`` and M the largest norm, and for that of the vectors, ``2^-22 M`` a distance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corpusveil.arrays import Bool, Float32, Float64, Int32, Int64, Integers
from corpusveil.compiled import njit
from corpusveil.search.nearest_words import TILE_ROWS, NearestSearch
from corpusveil.waiting import reached

MORE = 16
"""How many more words than asked for are nominated, so that few floors are in doubt."""


class Nominations(NamedTuple):
    """For each of n words those that may be nearest to it.

    Attributes:
        rows: int32 [n, K], ids, the word itself usually among them.
        floors: float64 [n]; the squared distance to a word that is not nominated is at least this (infinite where all
            are nominated).
    """

    rows: Int32
    floors: Float64


def nominate(vectors: Float32, k: int) -> Nominations:
    """Nominate ``min(k, V)`` words for each word of float32 [V, d], finite; k is at least 1."""
    n = len(vectors)
    points, exponent = _centred(vectors)
    if n <= k or not points.any():  # all are nominated, or all are alike
        rows = np.tile(np.arange(min(k, n), dtype=np.int32), (n, 1))
        return Nominations(rows, np.full(n, np.inf if n <= k else 0.0))
    search = NearestSearch.from_vectors(points)
    slack = (vectors.shape[1] + 4) * 2.0**-51
    rows, floors = np.empty((n, k), np.int32), np.empty(n)
    for first in range(0, n, TILE_ROWS):
        reached("comparing words", first / n)
        some = points[first : first + TILE_ROWS].astype(np.float64)
        near = search.several(some, k)
        squares = ((some - points[near[:, -1]]) ** 2).sum(axis=1) * (1 - slack) - 3 * slack * search.largest**2
        distances = np.sqrt(np.maximum(squares, 0)) - 2.0**-22 * search.largest
        floors[first : first + TILE_ROWS] = np.maximum(distances, 0) ** 2 * (1 - slack)
        rows[first : first + TILE_ROWS] = near
    return Nominations(rows, np.ldexp(floors, -2 * exponent))


def _centred(vectors: Float32) -> tuple[Float32, int]:
    """Return vectors less their mean, times 2^exponent, float32 [V, d] below 1; and the exponent."""
    mean = vectors.mean(axis=0, dtype=np.float64)
    strips = range(0, len(vectors), TILE_ROWS)
    largest = max(float(np.abs(vectors[i : i + TILE_ROWS] - mean).max()) for i in strips)
    exponent = -int(np.frexp(largest)[1])
    points = np.empty(vectors.shape, np.float32)
    for i in strips:
        points[i : i + TILE_ROWS] = np.ldexp(vectors[i : i + TILE_ROWS] - mean, exponent)
    return points, exponent


def neighbors(vectors: Float32, k: int) -> Int32:
    """Return the k nearest other words of each word, nearest first, ties by id: int32 [V, K].

    K is less than k when there are fewer words.
    """
    vectors = np.ascontiguousarray(vectors, np.float32)
    return neighbors_among(k, vectors, nominate(vectors, k + MORE))


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

    Compares all other words, or those ``among`` them, int64 [n], at least k.
    """
    near, squares = np.empty(k, np.int32), np.empty(k, np.float64)
    _scan(vectors, row, np.arange(len(vectors)) if among is None else among, near, squares)
    return near, squares


@njit()
def squared_distance(vectors: Float32, a: int, b: int) -> float:
    """Return the squared distance of two words, summed in float64 dimension by dimension: the one that decides."""
    total = 0.0
    for i in range(vectors.shape[1]):
        gap = np.float64(vectors[a, i]) - np.float64(vectors[b, i])
        total += gap * gap
    return total


@njit(fastmath={"reassoc", "contract"})
def least_distance(vectors: Float32, a: int, b: int) -> float:
    """Return a lower bound of ``squared_distance``, several times as fast: summed in any order.

    Either sum of squares is within ``(d + 2) 2**-53`` of the exact one, times that (Higham 2002, §3.1).
    """
    total = 0.0
    for i in range(vectors.shape[1]):
        gap = np.float64(vectors[a, i]) - np.float64(vectors[b, i])
        total += gap * gap
    least: float = total * (1 - (vectors.shape[1] + 4) * 2.0**-51)
    return least


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
