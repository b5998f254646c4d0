"""One-dimensional lists: orders in which near words have near places.

``greedy`` is Algorithm 1 of 1-Diffractor (Meisenbacher et al. 2024): from the last word go to the nearest of *all*
unused words. The distance is Euclidean; its square is summed in float64, dimension by dimension, and equal distances go
to the lowest id. The result is exact on every machine: nominations only skip distances that cannot matter.
Cost: the products of all words with all words, then a walk that rarely needs more than its nominees. ``improved``
starts from this order (``tour_improvement.py``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from corpusveil.arrays import Bool, Float32, Float64, Int32, Int64
from corpusveil.compiled import njit
from corpusveil.search.neighbors import (
    Nominations,
    least_distance,
    nearest,
    neighbors_among,
    nominate,
    squared_distance,
)
from corpusveil.spaces.tour_improvement import NEIGHBORS, SMALLEST, improve
from corpusveil.waiting import reached

NOMINEES = 56
BLOCK = 8192


def greedy_orders(vectors: Float32, starts: Sequence[int]) -> Int32:
    """Return a greedy tour for every start word, int32 [L, V]; the tours share the first nominations.

    ``vectors`` float32 [V, d] are finite.

    Example:
        >>> greedy_orders(np.float32([[0], [5], [1], [2]]), starts=[0]).tolist()
        [[0, 2, 3, 1]]
    """
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
    ids, group = np.unique(lowest, return_inverse=True)
    distinct = vectors if len(ids) == len(vectors) else vectors[ids]
    nominations = nominate(distinct, NOMINEES)
    near = neighbors_among(NEIGHBORS, distinct, nominations) if improved and len(ids) >= SMALLEST else None
    for order, start in zip(orders, starts, strict=True):
        tour = _tour(distinct, nominations, int(group[start]))
        if near is not None:
            reached("improving the list", 0.0)
            tour = improve(distinct, tour, near)
        rank = np.empty(len(ids), np.int64)
        rank[tour] = np.arange(len(ids))
        order[:] = np.argsort(rank[group], kind="stable")
        if not improved:
            # The start word comes first, also if a word of a lower id has the same vector.
            at = int(np.flatnonzero(order == start)[0])
            order[: at + 1] = np.roll(order[: at + 1], 1)
    return orders


ORDERS: Mapping[str, Callable[..., Int32]] = {"greedy": greedy_orders, "improved": improved_orders}
"""The names for ``order=``."""


def _lowest_equal(vectors: Float32) -> Int64:
    """Return, for every word, the lowest id of the same vector.

    Equal vectors are adjacent on a greedy tour, by id, so the walk needs only one of them; thousands of equal vectors
    (unknown words at the origin) would otherwise defeat the nominations.
    """
    first: dict[bytes, int] = {}
    rows = (vectors[i : i + BLOCK] + np.float32(0) for i in range(0, len(vectors), BLOCK))  # -0 becomes 0
    digests = (hashlib.blake2b(row.data, digest_size=16).digest() for block in rows for row in block)
    return np.array([first.setdefault(digest, word) for word, digest in enumerate(digests)], np.int64)


def _tour(vectors: Float32, nominations: Nominations, start: int) -> Int32:
    """Return the tour of all words from ``start``; if all nominees of a word are used, all words left are scanned."""
    order = np.empty(len(vectors), np.int32)
    order[0] = word = start
    used = np.zeros(len(vectors), np.bool_)
    used[start] = True
    at = 1
    while True:
        at, word = _walk(vectors, nominations.rows, nominations.floors, used, order, at, word)
        reached("going from word to word", at / len(order))
        if at == len(order):
            return order
        word = int(nearest(vectors, word, 1, np.flatnonzero(~used))[0][0])
        used[word] = True
        order[at] = word
        at += 1


@njit()
def _walk(
    vectors: Float32, nominees: Int32, floors: Float64, used: Bool, order: Int32, at: int, word: int
) -> tuple[int, int]:
    """Go from word to word while the nearest unused nominee is certainly the nearest unused word."""
    while at < len(order):
        best = np.inf
        nearest = -1
        for other in nominees[word]:
            if not used[other] and least_distance(vectors, word, np.int64(other)) <= best:
                squared = squared_distance(vectors, word, np.int64(other))
                if squared < best or (squared == best and other < nearest):
                    best = squared
                    nearest = other
        if not best < floors[word]:
            break
        word = nearest
        used[word] = True
        order[at] = word
        at += 1
    return at, word
