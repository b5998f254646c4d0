"""Shorter lists: a greedy tour, improved by 2-opt and Or-opt.

The greedy tour is closed into a ring, and moves are made until none shortens it any more, beyond rounding errors: 2-opt
replaces two edges and reverses the words between them; Or-opt moves one to three adjacent words, perhaps reversed, to
another place. As usual (Johnson and McGeoch 1997), only moves that join a word to one of its 10 nearest words are
considered, and only around words whose surroundings changed. The ring is cut at its longest edge, which a path
mechanism loses.

Distances are float64 sums in a fixed order, and words are processed in a fixed order, so a list is the same everywhere.
At most ``FARTHEST`` words are reversed or moved past, so that 400,000 words take minutes.
"""

from __future__ import annotations

import numpy as np

from corpusveil.arrays import Float32, Float64, Int32, Int64
from corpusveil.compiled import called, njit
from corpusveil.search.neighbors import squared_distance

NEIGHBORS = 10
SMALLEST = 5
"""Lists with fewer words are not changed."""
FARTHEST = 50_000
SEGMENT = 3
TOLERANCE = 1e-9
"""The least gain of a move, as a share of the two removed edges."""
MOVES = 50
"""The most moves per word: never reached, a guard against cycles."""


def improve(vectors: Float32, order: Int32, near: Int32) -> Int32:
    """Return a list that is no longer than ``order`` as a ring: int32 [V], position -> id.

    Args:
        vectors: float32 [V, d], finite, V >= 5.
        order: int32 [V], the list to begin with.
        near: int32 [V, K], the nearest words of each, nearest first.
    """
    tour = order.astype(np.int64)
    _improve(vectors, near.astype(np.int64), tour, FARTHEST)
    edges: Float64 = _edges(vectors, tour)
    return np.roll(tour, -1 - int(edges.argmax())).astype(np.int32)


@njit()
def _distance(vectors: Float32, a: int, b: int) -> float:
    return float(np.sqrt(squared_distance(vectors, a, b)))


@njit()
def _edges(vectors: Float32, tour: Int64) -> Float64:
    out = np.empty(len(tour), np.float64)
    for i in range(len(tour)):
        out[i] = _distance(vectors, tour[i], tour[i + 1 if i + 1 < len(tour) else 0])
    return out


@called
def _turn(tour: Int64, at: Int64, first: int, count: int) -> None:
    """Reverse ``count`` words from position ``first`` on."""
    n = len(tour)
    low = first % n
    high = (first + count - 1) % n
    for _ in range(count // 2):
        a = tour[low]
        b = tour[high]
        tour[low] = b
        at[b] = low
        tour[high] = a
        at[a] = high
        low = low + 1 if low + 1 < n else 0
        high = high - 1 if high > 0 else n - 1


@called
def _turn_between(tour: Int64, at: Int64, first: int, last: int, farthest: int) -> bool:
    """Reverse the words from position ``first`` to ``last``, or all others, which gives the same ring."""
    n = len(tour)
    count = (last - first) % n + 1
    if min(count, n - count) > farthest:
        return False
    if count <= n - count:
        _turn(tour, at, first, count)
    else:
        _turn(tour, at, last + 1, n - count)
    return True


@called
def _two_opt(vectors: Float32, near: Int64, tour: Int64, at: Int64, a: int, farthest: int, touched: Int64) -> bool:
    """Make the first 2-opt move that joins ``a`` to one of its neighbors and gains; say whether there was one."""
    n = len(tour)
    for step in (1, -1):
        i = at[a]
        b = tour[(i + step) % n]
        gone = _distance(vectors, a, b)
        for c in near[a]:
            come = _distance(vectors, a, c)
            if come >= gone:
                break
            j = at[c]
            d = tour[(j + step) % n]
            if c == b or d == a:
                continue
            before = gone + _distance(vectors, c, d)
            if before - come - _distance(vectors, b, d) <= TOLERANCE * before:
                continue
            done = (
                _turn_between(tour, at, (i + 1) % n, j, farthest)
                if step == 1
                else _turn_between(tour, at, i, (j - 1) % n, farthest)
            )
            if done:
                touched[0], touched[1], touched[2], touched[3] = a, b, c, d
                return True
    return False


@called
def _move(tour: Int64, at: Int64, first: int, count: int, gap: int, turned: bool, farthest: int) -> bool:
    """Move ``count`` words from position ``first`` to after the word at position ``gap``, perhaps reversed."""
    n = len(tour)
    last = first + count - 1
    ahead = (gap - last) % n
    behind = n - count - ahead
    if ahead <= behind:
        if ahead > farthest:
            return False
        _turn(tour, at, first, count + ahead)
        _turn(tour, at, first, ahead)
        if not turned:
            _turn(tour, at, first + ahead, count)
    else:
        if behind > farthest:
            return False
        _turn(tour, at, gap + 1, behind + count)
        _turn(tour, at, gap + 1 + count, behind)
        if not turned:
            _turn(tour, at, gap + 1, count)
    return True


@called
def _or_opt(vectors: Float32, near: Int64, tour: Int64, at: Int64, a: int, farthest: int, touched: Int64) -> bool:
    """Make the first move of a segment that ends in ``a`` to one of its neighbors and gains."""
    n = len(tour)
    for count in range(1, min(SEGMENT, n - 3) + 1):
        for step in (1, -1):  # the segment goes from a in this direction
            i = at[a]
            far = tour[(i + step * (count - 1)) % n]
            outer = tour[(i - step) % n]
            inner = tour[(i + step * count) % n]
            before = _distance(vectors, outer, a) + _distance(vectors, far, inner)
            gained = before - _distance(vectors, outer, inner)
            if gained <= 0:
                continue
            for c in near[a]:
                come = _distance(vectors, a, c)
                if come >= gained:
                    break
                if (step * (at[c] - i)) % n < count:
                    continue  # in the segment
                for side in (1, -1):
                    e = tour[(at[c] + side) % n]
                    if (step * (at[e] - i)) % n < count:
                        continue
                    cut = _distance(vectors, c, e)
                    whole = before + cut
                    if gained + cut - come - _distance(vectors, far, e) <= TOLERANCE * whole:
                        continue
                    first = i if step == 1 else (i - count + 1) % n
                    gap = at[c] if side == 1 else at[e]
                    if _move(tour, at, first, count, gap, step != side, farthest):
                        touched[0], touched[1], touched[2] = a, far, outer
                        touched[3], touched[4], touched[5] = inner, c, e
                        return True
    return False


@njit()
def _improve(vectors: Float32, near: Int64, tour: Int64, farthest: int) -> int:
    """Improve a ring in place; return how many moves were made."""
    n = len(tour)
    at = np.empty(n, np.int64)
    for i in range(n):
        at[tour[i]] = i
    queue = np.empty(n, np.int64)
    waiting = np.zeros(n, np.bool_)
    head = 0
    held = 0
    moves = 0
    touched = np.empty(6, np.int64)
    swept = -1  # moves before the last time that all words were taken up
    while moves < MOVES * n:
        if not held:
            if moves == swept:
                break
            swept = moves
            for i in range(n):  # a move also depends on the neighbors of the other word, so all words are checked again
                queue[i] = tour[i]
                waiting[i] = True
            head = 0
            held = n
        a = queue[head]
        head = head + 1 if head + 1 < n else 0
        held -= 1
        waiting[a] = False
        while True:
            for k in range(touched.size):
                touched[k] = -1
            if not (
                _two_opt(vectors, near, tour, at, a, farthest, touched)
                or _or_opt(vectors, near, tour, at, a, farthest, touched)
            ):
                break
            moves += 1
            for word in touched:
                if word >= 0 and word != a and not waiting[word]:
                    waiting[word] = True
                    queue[(head + held) % n] = word
                    held += 1
    return moves
