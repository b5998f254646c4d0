"""One-dimensional lists: orders in which near words have near places.

``greedy`` is Algorithm 1 of 1-Diffractor (Meisenbacher et al. 2024): from the last word go to the nearest of *all*
unused words. The distance is Euclidean; its square is summed in float64, dimension by dimension, and equal distances go
to the lowest id. The result is exact on every machine: ``nominations.py`` only skips distances that cannot matter.
Cost: half the products of all words with all words, then a walk that rarely needs more than its nominees. ``improved``
starts from this order (``tour_improvement.py``).

More words than can be ordered together are cut into *cells* of near words, for lists that request this: halved
repeatedly, across the direction in which they vary most (sums are float64, in a fixed order, so cells are the same
everywhere). A cell is ordered exactly and separately; then the list continues at the nearest word of all remaining
cells. So a word's neighbors on the list are near words of its cell, and nearer words in another cell are missed. A
mechanism's guarantee is not affected: it measures distance on the list, and any order of the words is a list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from corpusveil.arrays import Bool, Float32, Float64, Int32, Int64, UInt64
from corpusveil.compiled import njit
from corpusveil.spaces.nominations import Nominations, least_distance, nominate, squared_distance
from corpusveil.spaces.tour_improvement import NEIGHBORS, SMALLEST, improve, neighbors_among
from corpusveil.waiting import muted, reached

NOMINEES = 40
# A word whose nominees are all used needs a full scan of the words left. New nominations among them pay for their
# matrix product once there are at most this share of the words that had the last ones, and the scans since reach a
# share of the words left (measured with vectors of 300 dimensions: at 34,573 words 136 scans, 1 renewal).
SHRUNK = 0.8
SCANS = 1 / 64
BLOCK = 8192
LOOKED_AT, TIMES = 4096, 32
"""The number of evenly spaced words that determine a direction, and the steps of its power iteration."""
SMALLEST_CELL = 16


def greedy_orders(vectors: Float32, starts: Sequence[int], cell: int | None = None) -> Int32:
    """Return a greedy tour for every start word, int32 [L, V]; the tours share the first nominations.

    ``vectors`` float32 [V, d] are finite; more than ``cell`` different ones are ordered in cells.

    Example:
        >>> greedy_orders(np.float32([[0], [5], [1], [2]]), starts=[0]).tolist()
        [[0, 2, 3, 1]]
    """
    return _orders(vectors, starts, cell, improved=False)


def improved_orders(vectors: Float32, starts: Sequence[int], cell: int | None = None) -> Int32:
    """Return the greedy tours improved by 2-opt and Or-opt, as rings cut at their longest edge; int32 [L, V].

    With cells, moves join near words within a cell.
    """
    return _orders(vectors, starts, cell, improved=True)


def _orders(vectors: Float32, starts: Sequence[int], cell: int | None, *, improved: bool) -> Int32:
    vectors = np.ascontiguousarray(vectors, np.float32)
    orders = np.empty((len(starts), len(vectors)), np.int32)
    if not len(starts):
        return orders
    lowest = _lowest_equal(vectors)
    ids, group = np.unique(lowest, return_inverse=True)
    neighbored = improved and len(ids) >= SMALLEST
    cells = Cells.of(vectors, ids, cell, kept=len(starts) > 1, neighbored=neighbored)
    whole = vectors if len(ids) == len(vectors) or not neighbored else vectors[ids]
    for order, start in zip(orders, starts, strict=True):
        tour = cells.tour(int(group[start]))
        if neighbored:
            reached("improving the list", 0.0)
            tour = improve(whole, tour, cells.near)
        rank = np.empty(len(ids), np.int64)
        rank[tour] = np.arange(len(ids))
        order[:] = np.argsort(rank[group], kind="stable")
        if not improved:
            # The start word comes first, also if a word of a lower id has the same vector.
            at = int(np.flatnonzero(order == start)[0])
            order[: at + 1] = np.roll(order[: at + 1], 1)
    return orders


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The D different vectors, and their groups that are ordered together: all in one cell, or several cells.

    Attributes:
        vectors: float32 [V, d].
        ids: int64 [D], ascending; the other attributes number the different vectors from 0.
        cells: int64 [n] each, ascending; each vector is in one of them.
        near: int32 [D, K], the nearest of each in its cell, if the order is improved; the rows of a cell are filled
            when a tour goes through it.
        made: the data of each cell so far; empty unless kept for further tours.
        kept, neighbored: whether there will be further tours, and whether ``near`` is wanted.
    """

    vectors: Float32
    ids: Int64
    cells: list[Int64]
    near: Int32
    made: dict[int, tuple[Float32, Nominations]]
    kept: bool
    neighbored: bool

    @classmethod
    def of(cls, vectors: Float32, ids: Int64, cell: int | None, *, kept: bool, neighbored: bool) -> Self:
        cells = [ids] if cell is None else cells_of(vectors, ids, -(-len(ids) // cell))
        neighbors = min(NEIGHBORS, min(map(len, cells)) - 1) if neighbored else 0
        near = np.empty((len(ids), neighbors), np.int32)
        return cls(vectors, ids, [np.searchsorted(ids, some) for some in cells], near, {}, kept, neighbored)

    def tour(self, start: int) -> Int32:
        """Return the tour of all vectors from ``start``: a cell to its end, then the nearest vector of those left."""
        left = set(range(len(self.cells)))
        number = next(n for n in left if start in self.cells[n])
        done: list[Int64] = []
        while True:
            left.remove(number)
            if len(self.cells) == 1:
                return self._through(number, start).astype(np.int32)
            reached("cells", len(done) / len(self.cells))
            with muted():
                done.append(self._through(number, start))
            if not left:
                return np.concatenate(done).astype(np.int32)
            last = int(self.ids[done[-1][-1]])
            _, id, number = min((*nearest_of(self.vectors, self.ids[self.cells[n]], last), n) for n in left)
            start = int(np.searchsorted(self.ids, id))

    def _through(self, number: int, start: int) -> Int64:
        """Return the tour of a cell; its memory is released before the next cell."""
        some = self.cells[number]
        vectors, nominations = self._prepared(number)
        tour: Int64 = some[_tour(vectors, nominations, int(np.searchsorted(some, start)))[0]]
        return tour

    def _prepared(self, number: int) -> tuple[Float32, Nominations]:
        if number in self.made:
            return self.made[number]
        some = self.cells[number]
        vectors = self.vectors if len(some) == len(self.vectors) else self.vectors[self.ids[some]]
        prepared = vectors, nominate(vectors, NOMINEES)
        if self.neighbored:
            self.near[some] = some[neighbors_among(self.near.shape[1], *prepared)]
        if self.kept:
            self.made[number] = prepared
        return prepared


ORDERS: Mapping[str, Callable[..., Int32]] = {"greedy": greedy_orders, "improved": improved_orders}
"""The names for ``order=``."""


def _lowest_equal(vectors: Float32) -> Int64:
    """Return, for every word, the lowest id of the same vector.

    Equal vectors are adjacent on a greedy tour, by id, so the walk needs only one of them; thousands of equal vectors
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


def _fingerprints(vectors: Float32) -> UInt64:
    """Return uint64 [V], equal for equal vectors and hardly ever for others."""
    n, d = vectors.shape
    # Odd factors: multiplication by them modulo 2^64 loses no bit.
    odd = np.random.Generator(np.random.PCG64(0)).integers(0, 2**63, d, dtype=np.uint64) * 2 + 1
    sums = np.empty(n, np.uint64)
    for i in range(0, n, BLOCK):
        bits = np.ascontiguousarray(vectors[i : i + BLOCK] + np.float32(0)).view(np.uint32)  # -0 becomes 0
        sums[i : i + BLOCK] = (bits * odd).sum(axis=1, dtype=np.uint64)
    return sums


def _tour(vectors: Float32, nominations: Nominations, start: int) -> tuple[Int32, int]:
    """Return the tour of all words from ``start``, and how many full scans it took."""
    order = np.empty(len(vectors), np.int32)
    order[0] = word = start
    used = np.zeros(len(vectors), np.bool_)
    used[start] = True
    rows, floors = nominations.rows.copy(), nominations.floors.copy()
    at, scans, since, nominated = 1, 0, 0, len(vectors)
    while True:
        at, word = _walk(vectors, rows, floors, used, order, at, word)
        left = len(order) - at
        reached("going from word to word", at / len(order))
        if not left:
            return order, scans
        unused = np.flatnonzero(~used)
        if since >= SCANS * left and left <= SHRUNK * nominated:
            renewed = nominate(vectors, rows.shape[1], unused)
            rows[unused, : renewed.rows.shape[1]] = renewed.rows
            rows[unused, renewed.rows.shape[1] :] = renewed.rows[:, :1]
            floors[unused] = renewed.floors
            since, nominated = 0, left
        word = int(nearest_of(vectors, unused, word)[1])
        used[word] = True
        order[at] = word
        at, scans, since = at + 1, scans + 1, since + 1


@njit(nogil=True, cache=True)
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


def cells_of(vectors: Float32, ids: Int64, parts: int) -> list[Int64]:
    """Cut words, ``ids`` int64 [n], ascending, into cells of about one size; neighbors in this list are near."""
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
    return [*cells_of(vectors, lower, first), *cells_of(vectors, upper, parts - first)]


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
    """Return the squared distance and the id of the word among ascending ``ids`` nearest to a word, ties by id."""
    best = np.inf
    nearest = ids[0]
    for other in ids:
        if least_distance(vectors, word, other) < best:
            squared = squared_distance(vectors, word, other)
            if squared < best:
                best = squared
                nearest = other
    return best, nearest
