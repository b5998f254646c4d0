"""Nominate the words that may be nearest to a word, by float32 products, which never decide.

They only show which words *may* be nearest, by a lower bound that holds for any order of summation. The float64
distance, summed dimension by dimension, decides (``mechanisms.md`` §14).

Let ``c`` be the vectors less their mean, times a power of two that brings the largest coordinate below 1, rounded to
float32, and ``u = 2**-24``. With N their squared norms and g a computed product of two, the squared distance is

    D  >=  N_i + N_j - 2 g - eta (N_i + N_j),     eta = 1.01 (d + 16) u,

because twice the product's error is at most ``2 d u sqrt(N_i N_j) <= d u (N_i + N_j)`` (Higham 2002, §3.1), rounding
to ``c`` costs at most ``4 u (N_i + N_j)``, and the norms, the sums and the float64 distances a few ``u`` more.

Products too small for float32 add less than ``TINY`` a dimension.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from corpusveil.arrays import Float32, Float64, Int32, Int64
from corpusveil.compiled import called, njit
from corpusveil.search.slices import in_slices, together
from corpusveil.waiting import reached

TINY = 2.0**-120
TILE = 1024
"""Words on each side of a tile of products, which takes 4 MiB."""
COLUMNS = 64
"""Columns of a tile that are compared with their limits together."""
BLOCK = 8192  # rows of a float64 temporary


@dataclass(frozen=True, slots=True)
class Nominations:
    """For each of n words those that may be nearest to it.

    Attributes:
        rows: int32 [n, K], ids in no order, the word itself usually among them.
        floors: float64 [n]; the squared distance to a word that is not nominated is at least this (infinite where all
            are nominated).
    """

    rows: Int32
    floors: Float64


def nominate(vectors: Float32, k: int, ids: Int64 | None = None) -> Nominations:
    """Nominate, for each word, the ``min(k, n)`` words of the least lower bounds.

    A product serves both of its words, so that each is computed once.

    Args:
        vectors: float32 [V, d], finite.
        k: how many, at least 1.
        ids: int64 [n], ascending: nominate these words for each other. None: all.
    """
    whole = ids is None
    ids = np.arange(len(vectors)) if ids is None else ids
    points, weights, exponent = _centred(vectors, ids)
    n = len(ids)
    k, blocks = min(k, n), range(0, n, TILE)
    keys, rows = np.empty((n, 2 * k), np.float32), np.empty((n, 2 * k), np.int32)
    counts, limits = np.zeros(n, np.int64), np.full(n, np.inf, np.float32)

    def offer(left: int, right: int) -> None:
        products = points[left : left + TILE] @ points[right : right + TILE].T
        _offer(products, weights, left, right, (keys, rows, counts, limits))

    for number, pairs in enumerate(rounds(len(blocks))):
        if whole:  # not for the words that a tour has left
            reached("comparing words", number / len(blocks))
        together(offer, [(blocks[left], blocks[right]) for left, right in pairs])
    in_slices(n, _settle, keys, rows, counts, limits, k)
    floors = np.full(n, np.inf) if k == n else np.ldexp(limits + weights.astype(np.float64), 1 - 2 * exponent)
    return Nominations(ids.astype(np.int32)[rows[:, :k]], floors)


def _centred(vectors: Float32, ids: Int64) -> tuple[Float32, Float32, int]:
    """Return ``c`` of these words, float32 [n, d], half of ``(1 - eta) N`` or less, float32 [n], and the exponent."""
    d = vectors.shape[1]
    mean = vectors.mean(axis=0, dtype=np.float64)
    strips = range(0, len(ids), BLOCK)
    largest = max(float(np.abs(vectors[ids[i : i + BLOCK]] - mean).max()) for i in strips)
    exponent = -int(np.frexp(largest)[1])
    eta = 1.01 * (d + 16) * 2.0**-24
    points, weights = np.empty((len(ids), d), np.float32), np.empty(len(ids), np.float32)
    for i in strips:
        some = points[i : i + BLOCK]
        some[:] = np.ldexp(vectors[ids[i : i + BLOCK]] - mean, exponent)
        weights[i : i + BLOCK] = (1 - eta) / 2 * np.square(some, dtype=np.float64).sum(axis=1) - d * TINY
    return points, weights, exponent


def rounds(blocks: int) -> Iterator[list[tuple[int, int]]]:
    """Yield rounds in which each block meets at most one other block, so that no two threads write one buffer.

    After all rounds, each has met each, and itself.
    """
    yield [(block, block) for block in range(blocks)]
    circle = [*range(blocks), *([-1] if blocks % 2 else [])]
    for _ in range(len(circle) - 1):
        pairs = zip(circle[: len(circle) // 2], reversed(circle), strict=False)
        yield [(left, right) for left, right in pairs if left >= 0 and right >= 0]
        circle[1:] = [circle[-1], *circle[1:-1]]


@njit()
def _offer(products: Float32, weights: Float32, left: int, right: int, kept: Any) -> None:
    """Offer the words of two blocks to each other; within one block, each word to each.

    The key of j for i is ``weights[j] - products[i, j]``: half of the bound without ``weights[i]``. float32 [R, C],
    float32 [n], the first words of the blocks, and the buffers of all words (``_enter``).
    """
    keys, rows, counts, limits = kept
    end = right + products.shape[1]
    below = np.zeros(COLUMNS, np.uint8)
    groups = below.view(np.uint64)
    limit = np.empty(COLUMNS, np.float32)
    for first in range(right, end, COLUMNS):
        width = min(COLUMNS, end - first)
        weight = weights[first : first + width]
        below[:] = 0
        for c in range(width):
            # Within a block, each word meets each as a row, so its columns are offered nothing.
            limit[c] = limits[first + c] if left != right else np.float32(-np.inf)
        for r in range(products.shape[0]):
            i = left + r
            own, bar = weights[i], limits[i]
            line = products[r, first - right : first - right + width]
            for c in range(width):
                below[c] = (weight[c] - line[c] < bar) | (own - line[c] < limit[c])
            for group in range(len(groups)):
                if not groups[group]:
                    continue
                for c in range(8 * group, min(8 * group + 8, width)):
                    if below[c] and weight[c] - line[c] < limits[i]:
                        _enter(weight[c] - line[c], first + c, keys, rows, counts, limits, i)
                    if below[c] and own - line[c] < limit[c]:
                        _enter(own - line[c], i, keys, rows, counts, limits, first + c)
                        limit[c] = limits[first + c]


@called
def _enter(key: float, word: int, keys: Float32, rows: Int32, counts: Int64, limits: Float32, r: int) -> None:
    """Enter a word into the buffer of r.

    A full buffer is cut to its K smallest keys, and the limit to the largest of these.
    """
    count = counts[r]
    keys[r, count] = key
    rows[r, count] = word
    count += 1
    k = keys.shape[1] // 2
    if count == 2 * k:
        limits[r] = _select(keys[r], rows[r], count, k)
        count = k
    counts[r] = count


@njit()
def _settle(keys: Float32, rows: Int32, counts: Int64, limits: Float32, k: int, low: int, high: int) -> None:
    """Cut every buffer to its K smallest keys; ``limits`` become the largest keys kept."""
    for r in range(low, high):
        limits[r] = _select(keys[r], rows[r], counts[r], k)


@called
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
