"""Nominate the points that may be nearest to a point: float32 matrix products, which never have the last word.

A product in float32 depends on the BLAS, on the block's shape and on the number of threads, so it must not decide
anything. Here it only says which points *may* be nearest, by a lower bound that holds whatever the order of summation.
What decides is the float64 distance, summed dimension by dimension (``mechanisms.md`` §14).

Notation: ``u = 2**-24``; ``c`` the vectors less their mean, times a power of two that brings the largest coordinate
below 1, rounded to float32; ``N`` their squared norms; ``g`` a computed product of two of them. Then

    scaled squared distance of i and j  >=  N_i + N_j - 2 g - eta (N_i + N_j),     eta = 1.01 (d + 16) u,

because twice the product's error is at most ``2 d u sqrt(N_i N_j) <= d u (N_i + N_j)`` (Higham 2002, §3.1), rounding
to ``c`` costs at most ``4 u (N_i + N_j)``, and the norms, the sums and the float64 distances a few ``u`` more. Products
too small for float32 add less than ``TINY`` a dimension.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Bool = npt.NDArray[np.bool_]
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

TINY = 2.0**-120
TILE = 2048
"""Points on each side of a tile of products, which takes 16 MiB."""
LANES = 64
"""Products that are looked at together."""
BLOCK = 8192  # rows of a float64 temporary


@dataclass(frozen=True, slots=True)
class Centred:
    """Points as their products are taken.

    Attributes:
        points: float32 [n, d], centred and scaled.
        weights: float32 [n], lower bounds of ``(1 - eta) N``.
        scale: what a squared distance of the given vectors is multiplied by to be one of these points; a power of two.
    """

    points: Float32
    weights: Float32
    scale: float

    def take(self, rows: Int32) -> Centred:
        return Centred(self.points[rows], self.weights[rows], self.scale)


@dataclass(frozen=True, slots=True)
class Nominations:
    """For each of n points those that may be nearest to it.

    Attributes:
        rows: int32 [n, K], in no order, the point itself usually among them.
        floors: float32 [n]; the scaled squared distance to a point that is not nominated is at least this (infinite
            where all are nominated).
    """

    rows: Int32
    floors: Float32


def centre(vectors: Float32) -> Centred:
    """Centre and scale ``vectors`` (float32 [n, d], finite)."""
    n, d = vectors.shape
    mean = vectors.mean(axis=0, dtype=np.float64)
    largest = max(float(np.abs(vectors[i : i + BLOCK] - mean).max()) for i in range(0, n, BLOCK))
    exponent = -int(np.frexp(largest)[1])
    eta = 1.01 * (d + 16) * 2.0**-24
    points = np.empty((n, d), np.float32)
    weights = np.empty(n, np.float32)
    for i in range(0, n, BLOCK):
        block = points[i : i + BLOCK]
        block[:] = np.ldexp(vectors[i : i + BLOCK] - mean, exponent)
        weights[i : i + BLOCK] = (1 - eta) * np.square(block, dtype=np.float64).sum(axis=1) - d * TINY
    return Centred(points, weights, float(np.ldexp(1.0, 2 * exponent)))


def nominate(centred: Centred, k: int) -> Nominations:
    """Nominate, for each of the n points, the ``min(k, n)`` points of the least lower bounds.

    A product serves both of its points, so that each is computed once: tile by tile, those above the diagonal.
    """
    n = len(centred.points)
    k = min(k, n)
    keys, rows = np.empty((n, 2 * k), np.float32), np.empty((n, 2 * k), np.int32)
    counts, limits = np.zeros(n, np.int64), np.full(n, np.inf, np.float32)
    products = np.empty(min(n, TILE) ** 2, np.float32)
    with ThreadPoolExecutor(_threads()) as pool:
        for top in range(0, n, TILE):
            strip = slice(top, top + TILE)
            left = centred.points[strip]
            buffers = keys[strip], rows[strip], counts[strip], limits[strip]
            for first in range(top, n, TILE):
                others = slice(first, first + TILE)
                right = centred.points[others]
                tile = products[: len(left) * len(right)].reshape(len(left), len(right))
                np.matmul(left, right.T, out=tile)
                _in_slices(pool, len(left), _offer_columns, tile, centred.weights[others], first, *buffers)
                if first != top:
                    theirs = keys[others], rows[others], counts[others], limits[others]
                    _in_slices(pool, len(right), _offer_rows, tile, centred.weights[strip], top, *theirs)
            _in_slices(pool, len(left), _settle, *buffers, k)
    floors = np.full(n, np.inf, np.float32) if k == n else limits + centred.weights
    return Nominations(rows[:, :k].copy(), floors)


def _threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _in_slices(pool: ThreadPoolExecutor, n: int, kernel: Callable[..., Any], *arguments: Any) -> None:
    """Run ``kernel(*arguments, low, high)`` over n rows, a slice a thread (the kernels release the GIL).

    Python's threads, not numba's: a process that used those can't be forked.
    """
    edges = np.linspace(0, n, _threads() + 1).astype(int).tolist()
    for slice_ in [pool.submit(kernel, *arguments, low, high) for low, high in pairwise(edges)]:
        slice_.result()


@njit(nogil=True, cache=True)
def _offer_columns(
    tile: Float32,
    weights: Float32,
    first: int,
    keys: Float32,
    rows: Int32,
    counts: Int64,
    limits: Float32,
    low: int,
    high: int,
) -> None:
    """Offer each row of a tile the points of its columns: ``weights - 2 tile``."""
    columns = tile.shape[1]
    groups = columns // LANES * LANES
    for r in range(low, high):
        for start in range(0, groups, LANES):
            below = 0
            for lane in range(start, start + LANES):
                below += weights[lane] - np.float32(2) * tile[r, lane] < limits[r]
            if below:
                for j in range(start, start + LANES):
                    key = weights[j] - np.float32(2) * tile[r, j]
                    if key < limits[r]:
                        _enter(key, first + j, keys, rows, counts, limits, r)
        for j in range(groups, columns):
            key = weights[j] - np.float32(2) * tile[r, j]
            if key < limits[r]:
                _enter(key, first + j, keys, rows, counts, limits, r)


@njit(nogil=True, cache=True)
def _offer_rows(
    tile: Float32,
    weights: Float32,
    first: int,
    keys: Float32,
    rows: Int32,
    counts: Int64,
    limits: Float32,
    low: int,
    high: int,
) -> None:
    """Offer each column of a tile the points of its rows: ``weights - 2 tile``."""
    groups = low + (high - low) // LANES * LANES
    for r in range(tile.shape[0]):
        weight = weights[r]
        for start in range(low, groups, LANES):
            below = 0
            for lane in range(start, start + LANES):
                below += weight - np.float32(2) * tile[r, lane] < limits[lane]
            if below:
                for j in range(start, start + LANES):
                    key = weight - np.float32(2) * tile[r, j]
                    if key < limits[j]:
                        _enter(key, first + r, keys, rows, counts, limits, j)
        for j in range(groups, high):
            key = weight - np.float32(2) * tile[r, j]
            if key < limits[j]:
                _enter(key, first + r, keys, rows, counts, limits, j)


@njit(nogil=True, cache=True)
def _enter(key: float, point: int, keys: Float32, rows: Int32, counts: Int64, limits: Float32, r: int) -> None:
    """Enter a point into the buffer of r. A full one is cut to its least K, and the limit to the greatest of them."""
    count = counts[r]
    keys[r, count] = key
    rows[r, count] = point
    count += 1
    k = keys.shape[1] // 2
    if count == 2 * k:
        limits[r] = _select(keys[r], rows[r], count, k)
        count = k
    counts[r] = count


@njit(nogil=True, cache=True)
def _settle(keys: Float32, rows: Int32, counts: Int64, limits: Float32, k: int, low: int, high: int) -> None:
    """Cut every buffer to its least K for good; ``limits`` become the greatest keys kept."""
    for r in range(low, high):
        limits[r] = _select(keys[r], rows[r], counts[r], k)


@njit(nogil=True, cache=True)
def _select(keys: Float32, rows: Int32, n: int, k: int) -> np.float32:
    """Bring the least k of the first n keys, and their rows, to the front; return the k-th (Hoare's selection)."""
    low = 0
    high = n - 1
    while low < high:
        pivot = keys[(low + high) >> 1]
        i = low
        j = high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                rows[i], rows[j] = rows[j], rows[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    kth: np.float32 = keys[k - 1]
    return kth


@njit(nogil=True, cache=True)
def squared_distance(vectors: Float32, a: int, b: int) -> float:
    """Return the squared distance of two words, summed in float64 dimension by dimension: the one that decides."""
    total = 0.0
    for i in range(vectors.shape[1]):
        gap = np.float64(vectors[a, i]) - np.float64(vectors[b, i])
        total += gap * gap
    return total
