"""The words nearest to a point, exactly: float32 products nominate, float64 decides.

Words are ranked by ``|p - v|^2 - |p|^2 = sum_j v_j (v_j - 2 p_j)``, in float64, summed dimension by dimension, equal
sums by id. So the answer depends only on the point and the public vectors, not on the batch, the BLAS or threads
(``mechanisms.md`` §14). It is also meaningful if a point is so far away that ``|p|^2`` swallows all differences.

Products in float32 say which words *may* rank first. Notation: ``u = 2^-24``, M at least the largest norm of a vector,
f the power of two with ``f (M^2 + 2 |p| M)`` in [1/2, 1). The float32 key ``f N_v - <2 f p, v>``, computed in any
order, is within ``eta = 1.01 (d + 16) u`` of f times the rank: the product errs by at most ``d u |2 f p| M`` (Higham
2002, §3.1), rounding ``2 f p`` and N by one u each, the difference by one, and the float64 sum by far less. So a word
whose key exceeds the k-th least by more than ``2 eta`` is not among the k nearest. Since norms are between 2^-60 and
2^60, underflow is below a 2^-40th of eta.

Products of eight-bit integers (``integer_products.py``) do the same on machines where they are fast. They use the words
minus their mean, which changes all keys of a point alike; their error has a bound for each point. A point with too many
words within this bound is searched by float32.
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

from corpusveil.arrays import Float32, Float64, Int32, Int64, UInt8
from corpusveil.errors import DataError
from corpusveil.spaces import byte_products
from corpusveil.spaces.integer_products import Quantized, packed
from corpusveil.spaces.nearest_word_kernels import UNDECIDED, decide, offer, offer_packed, squared_norms
from corpusveil.spaces.space import Space

TILE_ROWS, TILE_COLUMNS = 1024, 4096  # 16 MiB of products at a time, whatever the numbers of points and words
NOMINEES = 64
"""The most candidates of a point; a point with more is compared with all words in float64."""
INTEGER_NOMINEES = 512
"""The same for integer products; a point with more is searched by float32."""
WORTH, FEW = 1_000_000, 32
"""Numbers of values of all vectors, and of points, below which integer products are not used."""
EXTREME = 60
"""Powers of two that bound the largest norm: beyond, squares in float32 overflow or vanish."""


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """The data of the search, including the vectors (float32 [V, d], not copied).

    Attributes: vectors: float32 [V, d]. norms: float32 [V], squared norms times ``2^(-2 exponent)``. largest: at least
        the largest norm. exponent: of the power of two next above ``largest``. integers: the same words for integer
        products; None where float32 is faster.
    """

    vectors: Float32
    norms: Float32
    largest: float
    exponent: int
    integers: IntegerWords | None

    @classmethod
    def of(cls, vectors: Float32) -> Search:
        """Prepare the search. Raises UserError where the largest norm is not between 2^-60 and 2^60."""
        squared = np.empty(len(vectors))
        squared_norms(vectors, squared)
        largest = math.sqrt(float(squared.max())) * (1 + 2.0**-40)
        if not 2.0**-EXTREME <= largest <= 2.0**EXTREME:
            raise DataError(
                f"The longest vector has norm {largest:.3g}, and distances are computed for norms from 2^-60 to "
                "2^60; multiply all vectors by the same number and build the space again."
            )
        exponent = math.frexp(largest)[1]
        integers = IntegerWords.of(vectors) if byte_products.FAST and vectors.size >= WORTH else None
        return cls(vectors, np.ldexp(squared, -2 * exponent).astype(np.float32), largest, exponent, integers)

    def nearest(self, points: Float64) -> Int32:
        """Return the id of the vector nearest to each point; float64 [T, d], finite -> int32 [T]. Ties: the least."""
        return self.search(points)[0]

    def search(self, points: Float64) -> tuple[Int32, Int64]:
        """Return the nearest ids, int32 [T], and how many words were compared in float64 for each, int64 [T]."""
        ids, compared = self._search(points, 1)
        return ids[:, 0], compared

    def several(self, points: Float64, k: int) -> Int32:
        """Return the ids of the k nearest vectors, the nearest first; float64 [T, d], finite -> int32 [T, k].

        k is at most the number of vectors. Ties: the lesser id first.
        """
        return self._search(points, k)[0]

    def _search(self, points: Float64, k: int) -> tuple[Int32, Int64]:
        out = np.empty((len(points), k), np.int32)
        compared = np.empty(len(points), np.int64)
        products = np.empty(min(len(points), TILE_ROWS) * min(len(self.vectors), TILE_COLUMNS), np.float32)
        for top in range(0, len(points), TILE_ROWS):
            strip = slice(top, min(top + TILE_ROWS, len(points)))
            some, found, counted = points[strip], out[strip], compared[strip]
            if self.integers is None or len(some) < FEW:
                self._by_floats(some, products, found, counted)
                continue
            self._by_integers(self.integers, some, found, counted)
            if len(rest := np.flatnonzero(counted == UNDECIDED)):
                part, many = found[rest], counted[rest]
                self._by_floats(some[rest], products, part, many)
                found[rest], counted[rest] = part, many
        return out, compared

    def _by_floats(self, points: Float64, products: Float32, out: Int32, compared: Int64) -> None:
        strip = Strip.of(self, points, out.shape[1], NOMINEES)
        left = strip.points.astype(np.float32)
        strip.slack[:] = 2.02 * error_bound(points.shape[1])
        ones = np.ones(max(len(left), TILE_COLUMNS), np.float32)
        for first in range(0, len(self.vectors), TILE_COLUMNS):
            right = self.vectors[first : first + TILE_COLUMNS]
            tile = products[: len(left) * len(right)].reshape(len(left), len(right))
            np.matmul(left, right.T, out=tile)
            norms = self.norms[first : first + TILE_COLUMNS]
            in_slices(len(left), offer, tile, norms, strip.factors, ones, ones, first, *strip.candidates)
        in_slices(len(left), decide, self.vectors, points, strip.doubts, *strip.candidates, True, out, compared)

    def _by_integers(self, words: IntegerWords, points: Float64, out: Int32, compared: Int64) -> None:
        """Set ``compared`` to ``UNDECIDED`` if too many words are within the error."""
        strip = Strip.of(self, points, out.shape[1], INTEGER_NOMINEES)
        left = Quantized.of(strip.points, np.zeros(points.shape[1]))
        lengths = np.sqrt(np.einsum("td,td->t", strip.points, strip.points)) * (1 + 2.0**-40)
        error = left.lost * words.largest + (lengths + left.lost) * words.lost
        strip.slack[:] = (2.0 * error + 4.04 * error_bound(points.shape[1])) * (1 + 2.0**-20)
        sums = left.values.sum(axis=1, dtype=np.int32)
        there = self.norms, strip.factors, left.scales, words.scales
        in_slices(len(points), offer_packed, left.values, sums, words.panels, *there, *strip.candidates)
        in_slices(len(points), decide, self.vectors, points, strip.doubts, *strip.candidates, False, out, compared)


@dataclass(frozen=True, slots=True, eq=False)
class IntegerWords:
    """The words minus their mean, as integers.

    Attributes: panels: as ``packed`` lays them out. scales: float32 [V]. largest: at least the largest length of a word
    less the mean. lost: at least the largest length of what rounding took away.
    """

    panels: UInt8
    scales: Float32
    largest: float
    lost: float

    @classmethod
    def of(cls, vectors: Float32) -> IntegerWords:
        words = Quantized.of(vectors, vectors.mean(axis=0, dtype=np.float64))
        lengths = np.sqrt(np.square(words.values, dtype=np.float64).sum(axis=1)) * words.scales + words.lost
        largest = float(lengths.max()) * (1 + 2.0**-20)
        return cls(packed(words.values), words.scales, largest, float(words.lost.max()))


@dataclass(frozen=True, slots=True, eq=False)
class Strip:
    """Points that are searched together, and the candidates of each.

    Attributes:
        points: float64 [T, d], times ``2 f``.
        factors: float32 [T], f as the norms want it.
        doubts: float64 [T], twice what two sums of a rank in float64 differ by at most.
        slack: float32 [T], by which a key may be above the k-th least.
        least: float32 [T, k], the least keys so far.
        keys: float32 [T, K], of the candidates.
        rows: int32 [T, K], their ids.
        counts: int64 [T], how many there are; above K where there were too many.
    """

    points: Float64
    factors: Float32
    doubts: Float64
    slack: Float32
    least: Float32
    keys: Float32
    rows: Int32
    counts: Int64

    @classmethod
    def of(cls, search: Search, points: Float64, k: int, room: int) -> Strip:
        size = len(points)
        reach = search.largest * (search.largest + 2 * np.sqrt(np.einsum("td,td->t", points, points)))
        scales = -np.frexp(reach)[1]
        return cls(
            np.ldexp(points, scales[:, None] + 1),
            np.ldexp(1.0, scales + 2 * search.exponent).astype(np.float32),
            reach * (4.04 * 2.0**-29 * error_bound(points.shape[1])),
            np.empty(size, np.float32),
            np.full((size, k), np.inf, np.float32),
            np.empty((size, room), np.float32),
            np.empty((size, room), np.int32),
            np.zeros(size, np.int64),
        )

    @property
    def candidates(self) -> tuple[npt.NDArray[Any], ...]:
        return self.slack, self.least, self.keys, self.rows, self.counts


def error_bound(dimensions: int) -> float:
    """Return eta, the largest difference of a key from its scaled rank."""
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
    """Return the number of threads to use: the number of cores, or fewer if the BLAS has a limit."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    setting = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores, int(setting))) if setting.isdigit() else cores


def in_slices(n: int, kernel: Callable[..., Any], *arguments: Any) -> None:
    """Run ``kernel(*arguments, low, high)`` over n rows, a slice a thread; the kernels release the GIL.

    If such a kernel calls it, it does all rows itself.
    """
    threads = _threads()
    if threads == 1 or getattr(_inside, "here", False):
        kernel(*arguments, 0, n)
        return
    edges = np.linspace(0, n, threads + 1).astype(int).tolist()
    pool = _pool(os.getpid())
    for slice_ in [pool.submit(kernel, *arguments, low, high) for low, high in pairwise(edges)]:
        slice_.result()
