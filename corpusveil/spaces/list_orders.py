"""One-dimensional lists: orders in which near words stand near each other.

``greedy`` is Algorithm 1 of 1-Diffractor (Meisenbacher et al. 2024): from the last word go to the nearest of *all*
unused words. The distance is Euclidean; its square is summed in float64, dimension by dimension, and equal distances go
to the lowest id. The result is exact on every machine: ``nominations.py`` only spares distances that cannot matter.
Cost: half a matrix product of all words with all words, then a walk that rarely looks beyond its nominees.
``improved`` goes on from there (``tour_improvement.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from numba import njit

from corpusveil.spaces.nominations import (
    Bool,
    Centred,
    Float32,
    Int32,
    Int64,
    Nominations,
    centre,
    nominate,
    squared_distance,
)
from corpusveil.spaces.tour_improvement import NEIGHBORS, SMALLEST, improve, neighbors_among

NOMINEES = 64
# A word whose nominees are all used needs a full scan of the words left, which are copied together whenever they are
# this share of those copied last. New nominations among them pay for their matrix product once the scans since the last
# ones reach a share of the words left (measured with vectors of 300 dimensions: at 34,573 words 136 scans, 1 renewal).
SHRUNK = 0.8
SCANS = 1 / 64
BLOCK = 8192


@dataclass(frozen=True, slots=True)
class Pool:
    """Unused words, and some that were used since: what a full scan looks at.

    Attributes:
        ids: int32 [n], ascending.
        centred: their points.
    """

    ids: Int32
    centred: Centred

    @classmethod
    def of(cls, ids: Int32, centred: Centred) -> Self:
        return cls(ids, centred.take(ids) if len(ids) < len(centred.points) else centred)


def greedy_order(vectors: Float32, start: int) -> Int32:
    """Return the greedy tour from word ``start``: int32 [V], position -> id.

    Args:
        vectors: float32 [V, d], finite, V >= 1.
        start: id of the first word.

    Example:
        >>> greedy_order(np.float32([[0], [5], [1], [2]]), start=0).tolist()
        [0, 2, 3, 1]
    """
    order: Int32 = greedy_orders(vectors, [start])[0]
    return order


def greedy_orders(vectors: Float32, starts: Sequence[int]) -> Int32:
    """Return a greedy tour for every start word, int32 [L, V]; the tours share the first nominations."""
    return _orders(vectors, starts, improved=False)


def improved_orders(vectors: Float32, starts: Sequence[int]) -> Int32:
    """Return the greedy tours improved by 2-opt and Or-opt, as rings cut at their longest edge; int32 [L, V]."""
    return _orders(vectors, starts, improved=True)


def _orders(vectors: Float32, starts: Sequence[int], *, improved: bool) -> Int32:
    vectors = np.ascontiguousarray(vectors, np.float32)
    orders = np.empty((len(starts), len(vectors)), np.int32)
    if not len(starts):
        return orders
    lowest = _lowest_equal(vectors)
    distinct, group = np.unique(lowest, return_inverse=True)
    whole = vectors if len(distinct) == len(vectors) else vectors[distinct]
    centred = centre(whole)
    nominations = nominate(centred, NOMINEES)
    near = None
    if improved and len(whole) >= SMALLEST:
        near = neighbors_among(whole, NEIGHBORS, centred, nominations)
    for order, start in zip(orders, starts, strict=True):
        tour = _tour(whole, centred, nominations, int(group[start]))[0]
        if near is not None:
            tour = improve(whole, tour, near)
        rank = np.empty(len(whole), np.int64)
        rank[tour] = np.arange(len(whole))
        order[:] = np.argsort(rank[group], kind="stable")
        if not improved:
            at = int(np.flatnonzero(order == start)[0])
            order[: at + 1] = np.roll(order[: at + 1], 1)
    return orders


ORDERS: Mapping[str, Callable[[Float32, Sequence[int]], Int32]] = {
    "greedy": greedy_orders,
    "improved": improved_orders,
}
"""What ``order=`` may name: (vectors float32 [V, d], L start ids) -> int32 [L, V]."""


def _lowest_equal(vectors: Float32) -> Int64:
    """Return, for every word, the lowest id of the same vector.

    Equal vectors stand together on a greedy tour, by id, so one of them is enough to walk; thousands of equal ones
    (unknown words at the origin) would otherwise defeat the nominations.
    """
    _, first, inverse = np.unique(_fingerprints(vectors), return_index=True, return_inverse=True)
    lowest: Int64 = first[inverse].astype(np.int64)
    alike = np.flatnonzero(lowest != np.arange(len(vectors)))
    for i in range(0, len(alike), BLOCK):
        ids = alike[i : i + BLOCK]
        by_chance = ids[(vectors[ids] != vectors[lowest[ids]]).any(axis=1)]
        lowest[by_chance] = by_chance
    return lowest


def _fingerprints(vectors: Float32) -> npt.NDArray[np.uint64]:
    """Return uint64 [V], the same for equal vectors and hardly ever for others."""
    n, d = vectors.shape
    odd = np.random.Generator(np.random.PCG64(0)).integers(0, 2**63, d, dtype=np.uint64) * 2 + 1
    sums = np.empty(n, np.uint64)
    for i in range(0, n, BLOCK):
        bits = np.ascontiguousarray(vectors[i : i + BLOCK] + np.float32(0)).view(np.uint32)  # -0 becomes 0
        sums[i : i + BLOCK] = (bits * odd).sum(axis=1, dtype=np.uint64)
    return sums


def _tour(vectors: Float32, centred: Centred, nominations: Nominations, start: int) -> tuple[Int32, int]:
    """Return the tour of ``vectors`` from ``start``, and how many full scans it took."""
    order = np.empty(len(vectors), np.int32)
    order[0] = word = start
    used = np.zeros(len(vectors), np.bool_)
    used[start] = True
    rows, floors = nominations.rows.copy(), nominations.floors.copy()
    pool = Pool.of(np.arange(len(vectors), dtype=np.int32), centred)
    at, scans, since, nominated = 1, 0, 0, len(vectors)
    while True:
        at, word = _walk(vectors, rows, floors, centred.scale, used, order, at, word)
        left = len(order) - at
        if not left:
            return order, scans
        if left <= SHRUNK * len(pool.ids):
            pool = Pool.of(np.flatnonzero(~used).astype(np.int32), centred)
        if since >= SCANS * left and left <= SHRUNK * nominated:
            renewed = nominate(pool.centred, rows.shape[1])
            rows[pool.ids, : renewed.rows.shape[1]] = pool.ids[renewed.rows]
            rows[pool.ids, renewed.rows.shape[1] :] = pool.ids[renewed.rows[:, :1]]
            floors[pool.ids] = renewed.floors
            since, nominated = 0, left
        word = _scan(vectors, pool, centred, used, word)
        used[word] = True
        order[at] = word
        at, scans, since = at + 1, scans + 1, since + 1


@njit(nogil=True, cache=True)
def _walk(
    vectors: Float32, nominees: Int32, floors: Float32, scale: float, used: Bool, order: Int32, at: int, word: int
) -> tuple[int, int]:
    """Go from word to word while the nearest unused nominee is certainly the nearest unused word."""
    while at < len(order):
        best = np.inf
        nearest = -1
        for other in nominees[word]:
            if not used[other]:
                squared = squared_distance(vectors, word, np.int64(other))
                if squared < best or (squared == best and other < nearest):
                    best = squared
                    nearest = other
        if not best * scale < floors[word]:
            break
        word = nearest
        used[word] = True
        order[at] = word
        at += 1
    return at, word


def _scan(vectors: Float32, pool: Pool, centred: Centred, used: Bool, word: int) -> int:
    """Return the unused word nearest to ``word``."""
    products = pool.centred.points @ centred.points[word]
    weight = centred.weights[word]
    return int(_nearest(vectors, pool.ids, products, pool.centred.weights, weight, centred.scale, used, word))


@njit(nogil=True, cache=True)
def _nearest(
    vectors: Float32,
    ids: Int32,
    products: Float32,
    weights: Float32,
    weight: float,
    scale: float,
    used: Bool,
    word: int,
) -> np.int64:
    """Choose in float64 wherever the lower bound does not exclude a word."""
    least = np.float32(np.inf)
    likely = np.int64(-1)
    for j in range(len(ids)):
        key = weights[j] - np.float32(2) * products[j]
        if key < least and not used[ids[j]]:
            least = key
            likely = np.int64(ids[j])
    best = squared_distance(vectors, word, likely)
    nearest = likely
    for j in range(len(ids)):
        bound = weight + (weights[j] - np.float32(2) * products[j])
        if bound <= best * scale and not used[ids[j]]:
            squared = squared_distance(vectors, word, np.int64(ids[j]))
            if squared < best or (squared == best and ids[j] < nearest):
                best = squared
                nearest = ids[j]
    return nearest
