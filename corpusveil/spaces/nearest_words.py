"""The words nearest to a point, exactly: float32 products nominate, float64 decides.

Words are ranked by ``|p - v|^2 - |p|^2 = sum_j v_j (v_j - 2 p_j)``, in float64, summed dimension by dimension, equal
sums by id. So the answer depends on the point and the public vectors only, and not on the batch, the BLAS or threads
(``mechanisms.md`` §14); and it keeps its sense where a point is so far away that ``|p|^2`` swallows all differences.

Products in float32 say which words *may* rank first. Notation: ``u = 2^-24``, M at least the largest norm of a vector,
f the power of two with ``f (M^2 + 2 |p| M)`` in [1/2, 1). The float32 key ``f N_v - <2 f p, v>``, computed in any
order, is within ``eta = 1.01 (d + 16) u`` of f times the rank: the product errs by at most ``d u |2 f p| M`` (Higham
2002, §3.1), rounding ``2 f p`` and N by one u each, the difference by one, and the float64 sum by far less. So a
word whose key exceeds the k-th least by more than ``2 eta`` is not among the k nearest. That norms are between 2^-60
and 2^60 keeps what underflows below a 2^-40th of eta.
"""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from corpusveil.errors import DataError
from corpusveil.spaces.space import Space

TILE_ROWS, TILE_COLUMNS = 1024, 4096  # 16 MiB of products at a time, whatever the numbers of points and words
NOMINEES = 64
"""Words a point keeps as candidates; a point with more is compared with all words in float64."""
LANES = 64
EXTREME = 60
"""Of two, for the largest norm: beyond, squares in float32 overflow or vanish."""


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """What the search needs beside the vectors (float32 [V, d], not copied).

    Attributes:
        vectors: float32 [V, d].
        norms: float32 [V], squared norms times ``2^(-2 exponent)``.
        largest: at least the largest norm.
        exponent: of the power of two next above ``largest``.
    """

    vectors: npt.NDArray[np.float32]
    norms: npt.NDArray[np.float32]
    largest: float
    exponent: int

    @classmethod
    def of(cls, vectors: npt.NDArray[np.float32]) -> Search:
        """Prepare the search. Raises UserError where the largest norm is not between 2^-60 and 2^60."""
        squared = np.empty(len(vectors))
        _squared_norms(vectors, squared)
        largest = math.sqrt(float(squared.max())) * (1 + 2.0**-40)
        if not 2.0**-EXTREME <= largest <= 2.0**EXTREME:
            raise DataError(
                f"The longest vector has norm {largest:.3g}; distances are computed for norms from 2^-60 to 2^60: "
                "multiply all vectors by one number and build the space again."
            )
        exponent = math.frexp(largest)[1]
        return cls(vectors, np.ldexp(squared, -2 * exponent).astype(np.float32), largest, exponent)

    def nearest(self, points: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
        """Return the id of the vector nearest to each point; float64 [T, d], finite -> int32 [T]. Ties: the least."""
        return self.search(points)[0]

    def search(self, points: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Return the nearest ids, int32 [T], and how many words were compared in float64 for each, int64 [T]."""
        ids, compared = self._search(points, 1)
        return ids[:, 0], compared

    def several(self, points: npt.NDArray[np.float64], k: int) -> npt.NDArray[np.int32]:
        """Return the ids of the k nearest vectors, the nearest first; float64 [T, d], finite -> int32 [T, k].

        k is at most the number of vectors. Ties: the lesser id first.
        """
        return self._search(points, k)[0]

    def _search(self, points: npt.NDArray[np.float64], k: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        out = np.empty((len(points), k), np.int32)
        compared = np.empty(len(points), np.int64)
        products = np.empty(min(len(points), TILE_ROWS) * min(len(self.vectors), TILE_COLUMNS), np.float32)
        for top in range(0, len(points), TILE_ROWS):
            strip = slice(top, min(top + TILE_ROWS, len(points)))
            self._strip(points[strip], products, out[strip], compared[strip])
        return out, compared

    def _strip(
        self,
        points: npt.NDArray[np.float64],
        products: npt.NDArray[np.float32],
        out: npt.NDArray[np.int32],
        compared: npt.NDArray[np.int64],
    ) -> None:
        size, words = len(points), len(self.vectors)
        reach = self.largest * (self.largest + 2 * np.sqrt(np.einsum("td,td->t", points, points)))
        scales = -np.frexp(reach)[1]
        left = np.ldexp(points, scales[:, None] + 1).astype(np.float32)
        factors = np.ldexp(1.0, scales + 2 * self.exponent).astype(np.float32)
        slack = np.float32(2.02 * error_bound(points.shape[1]))
        least = np.full((size, out.shape[1]), np.inf, np.float32)
        keys, rows = np.empty((size, NOMINEES), np.float32), np.empty((size, NOMINEES), np.int32)
        counts = np.zeros(size, np.int64)
        for first in range(0, words, TILE_COLUMNS):
            right = self.vectors[first : first + TILE_COLUMNS]
            tile = products[: size * len(right)].reshape(size, len(right))
            np.matmul(left, right.T, out=tile)
            norms = self.norms[first : first + TILE_COLUMNS]
            in_slices(size, _offer, tile, norms, factors, slack, first, least, keys, rows, counts)
        in_slices(size, _decide, self.vectors, points, slack, least, keys, rows, counts, out, compared)


def error_bound(dimensions: int) -> float:
    """Return eta, what a key differs from its scaled rank by at most."""
    return 1.01 * (dimensions + 16) * 2.0**-24


@functools.lru_cache(maxsize=4)
def search_of(space: Space) -> Search:
    """Return the search over a space's vectors; prepared once a process."""
    return Search.of(space.vectors)


@functools.cache
def _pool(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - threads do not survive a fork
    return ThreadPoolExecutor(_threads(), initializer=_enter)


def _enter() -> None:
    _inside.here = True


_inside = threading.local()
"""Marks the pool's own threads, which must not wait for the pool."""


def _threads() -> int:
    """Return how many threads to use: as many as there are cores, or fewer where the BLAS is told so, too."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    setting = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores, int(setting))) if setting.isdigit() else cores


def in_slices(n: int, kernel: Callable[..., Any], *arguments: Any) -> None:
    """Run ``kernel(*arguments, low, high)`` over n rows, a slice a thread; the kernels release the GIL.

    Called by a kernel that runs so already, it does all rows itself.
    """
    threads = _threads()
    if threads == 1 or getattr(_inside, "here", False):
        kernel(*arguments, 0, n)
        return
    edges = np.linspace(0, n, threads + 1).astype(int).tolist()
    pool = _pool(os.getpid())
    for slice_ in [pool.submit(kernel, *arguments, low, high) for low, high in pairwise(edges)]:
        slice_.result()


@njit(cache=True)
def _squared_norms(vectors: Any, out: Any) -> None:
    for v in range(vectors.shape[0]):
        total = 0.0
        for j in range(vectors.shape[1]):
            total += np.float64(vectors[v, j]) * np.float64(vectors[v, j])
        out[v] = total


@njit(nogil=True, cache=True)
def _offer(
    tile: Any,
    norms: Any,
    factors: Any,
    slack: Any,
    first: int,
    least: Any,
    keys: Any,
    rows: Any,
    counts: Any,
    low: int,
    high: int,
) -> None:
    """Keep, for each row, the words whose key is within ``slack`` of the k-th least so far; ``least`` float32 [T, k].

    Columns are looked at in ``LANES`` interleaved groups: the least key of each group takes one vector instruction for
    many columns, and few groups have to be looked at again. The k least of the groups' least keys bound the k least
    keys from above.
    """
    columns = tile.shape[1]
    groups = columns // LANES * LANES
    minima = np.empty(LANES, np.float32)
    for r in range(low, high):
        factor = factors[r]
        minima[:] = np.inf
        for start in range(0, groups, LANES):
            for lane in range(LANES):
                key = factor * norms[start + lane] - tile[r, start + lane]
                kept = minima[lane]
                minima[lane] = key if key < kept else kept  # noqa: FURB136 - min() does not compile to vectors
        last = least.shape[1] - 1
        for lane in range(LANES):
            _lower(least[r], minima[lane])
        for j in range(groups, columns):
            _lower(least[r], factor * norms[j] - tile[r, j])
        for lane in range(LANES):
            if minima[lane] <= least[r, last] + slack:
                _keep(tile[r], norms, factor, slack, first, lane, groups, LANES, least, keys, rows, counts, r)
        _keep(tile[r], norms, factor, slack, first, groups, columns, 1, least, keys, rows, counts, r)


@njit(nogil=True, cache=True)
def _lower(least: Any, key: Any) -> None:
    """Enter a key among the least, which ascend."""
    last = least.size - 1
    if key >= least[last]:
        return
    at = last
    while at > 0 and least[at - 1] > key:
        least[at] = least[at - 1]
        at -= 1
    least[at] = key


@njit(nogil=True, cache=True)
def _keep(
    products: Any,
    norms: Any,
    factor: Any,
    slack: Any,
    first: int,
    start: int,
    stop: int,
    step: int,
    least: Any,
    keys: Any,
    rows: Any,
    counts: Any,
    r: int,
) -> None:
    """Enter those columns ``start, start + step, ..`` among row r's candidates that are within the limit."""
    room = keys.shape[1]
    limit = least[r, least.shape[1] - 1] + slack
    for j in range(start, stop, step):
        key = factor * norms[j] - products[j]
        if key <= limit and counts[r] <= room:
            if counts[r] == room:
                counts[r] = _compact(keys[r], rows[r], room, limit)
            if counts[r] < room:
                keys[r, counts[r]] = key
                rows[r, counts[r]] = first + j
            counts[r] += 1


@njit(nogil=True, cache=True)
def _compact(keys: Any, rows: Any, count: int, limit: Any) -> int:
    """Bring the candidates within the limit to the front; return how many they are."""
    kept = 0
    for i in range(count):
        if keys[i] <= limit:
            keys[kept] = keys[i]
            rows[kept] = rows[i]
            kept += 1
    return kept


@njit(nogil=True, cache=True)
def _rank(vectors: Any, v: int, point: Any) -> float:
    total = 0.0
    for j in range(point.size):
        value = np.float64(vectors[v, j])
        total += value * (value - 2 * point[j])
    return total


@njit(nogil=True, cache=True)
def _decide(
    vectors: Any,
    points: Any,
    slack: Any,
    least: Any,
    keys: Any,
    rows: Any,
    counts: Any,
    out: Any,
    compared: Any,
    low: int,
    high: int,
) -> None:
    """Choose among the candidates of each row by rank in float64, then by id; ``out`` int32 [T, k]."""
    room = keys.shape[1]
    wanted = out.shape[1]
    best = np.empty(wanted)
    for r in range(low, high):
        every = counts[r] > room
        count = vectors.shape[0] if every else _compact(keys[r], rows[r], counts[r], least[r, wanted - 1] + slack)
        compared[r] = count
        if not every and count == 1:
            out[r, 0] = rows[r, 0]
            compared[r] = 0
            continue
        found = 0
        for i in range(count):
            v = i if every else rows[r, i]
            rank = _rank(vectors, v, points[r])
            at = found
            while at > 0 and (rank < best[at - 1] or (rank == best[at - 1] and v < out[r, at - 1])):
                if at < wanted:
                    best[at] = best[at - 1]
                    out[r, at] = out[r, at - 1]
                at -= 1
            if at < wanted:
                best[at] = rank
                out[r, at] = v
                found = min(found + 1, wanted)
