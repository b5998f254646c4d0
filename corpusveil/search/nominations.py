"""Nominate the points that may be nearest to a point, by cheap products, which never decide.

They only show which points *may* be nearest, by a lower bound that holds for any order of summation. The float64
distance, summed dimension by dimension, decides (``mechanisms.md`` §14).

Let ``c`` be the vectors less their mean, times a power of two that brings the largest coordinate below 1, and
``u = 2**-24``. There are two bounds of the squared distance D of i and j.

*Bytes.* Round each ``c`` to ``s q``, with eight-bit integers q; l is the length of the rounding error. By the triangle
inequality ``sqrt(D) >= sqrt(E) - (l_i + l_j)``, with E the squared distance of the rounded vectors, and so, for any t
in (0, 1) (``(a - b)**2 >= (1 - t) a**2 - (1/t - 1) b**2``, and ``(l_i + l_j)**2 <= 2 (l_i**2 + l_j**2)``),

    D  >=  (1 - t) (W_i + W_j - 2 s_i s_j <q_i, q_j>),     W = |s q|**2 - (2/t) l**2.

The product of integers has no rounding (``byte_products.py``); ``SLACK`` of ``|s q|**2`` and ``l**2`` covers the few
operations in float32 and float64 round it. t is near twice the usual ratio of l to ``|c|``, where the bound is best: it
then costs 3 % of ``|c|**2`` with 300 dimensions.

*Floats*, on processors without byte products, and if points are closer together than bytes can resolve. With ``c``
rounded to float32, N their squared norms and g a computed product of two,

    D  >=  N_i + N_j - 2 g - eta (N_i + N_j),     eta = 1.01 (d + 16) u,

because twice the product's error is at most ``2 d u sqrt(N_i N_j) <= d u (N_i + N_j)`` (Higham 2002, §3.1), rounding
to ``c`` costs at most ``4 u (N_i + N_j)``, and the norms, the sums and the float64 distances a few ``u`` more.

Products too small for float32 add less than ``TINY`` a dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from corpusveil.arrays import Float32, Float64, Int8, Int32, Int64
from corpusveil.compiled import njit
from corpusveil.search import byte_products
from corpusveil.search.byte_products import LARGEST, offer_pair, offer_tile, padded, quantize, settle
from corpusveil.search.byte_products import bounds as byte_bounds
from corpusveil.search.slices import in_slices, together
from corpusveil.waiting import reached

BYTES = byte_products.FAST
"""Whether products of bytes are tried first."""
TINY = 2.0**-120
SLACK = 2.0**-18
TILE = 2048
"""Points on each side of a tile of float32 products, which takes 16 MiB."""
PAIRED = 4096
"""Points of a block for products of bytes."""
BLOCK = 8192  # rows of a float64 temporary
LOOKED_AT, UNSURE = 1024, 1 / 8
"""The number of points whose byte nominees are checked, and the largest accepted share without a certain nearest."""


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Some of the vectors, in the form of their products, and in bytes.

    Attributes:
        vectors: float32 [V, d], all of them, as given.
        ids: int32 [n], which these are, ascending.
        mean: float64 [d], of all.
        exponent: of the power of two that they are multiplied by.
        weights: float32 [n], lower bounds of ``(1 - eta) N``.
        rounded: of the same points in bytes: values int8 [n, d'], q, d' being d made up to a multiple of 4 by zeros;
            scales float32 [n], s; lower bounds of W, float32 [n]; and the sums of the values, int32 [n].
        share: at most ``1 - t``.
    """

    vectors: Float32
    ids: Int32
    mean: Float64
    exponent: int
    weights: Float32
    rounded: tuple[Int8, Float32, Float32, Int32]
    share: float

    @property
    def scale(self) -> float:
        """The factor from a squared distance of vectors to that of these points; a power of two."""
        return float(np.ldexp(1.0, 2 * self.exponent))

    def take(self, rows: Int32) -> Points:
        """Return some of all vectors."""
        values, scales, bounds, sums = self.rounded
        rounded = values[rows], scales[rows], bounds[rows], sums[rows]
        return replace(self, ids=self.ids[rows], weights=self.weights[rows], rounded=rounded)

    def floats(self) -> Float32:
        """Return the points, float32 [n, d]."""
        out = np.empty((len(self.ids), self.vectors.shape[1]), np.float32)
        for i in range(0, len(out), BLOCK):
            out[i : i + BLOCK] = np.ldexp(self.vectors[self.ids[i : i + BLOCK]] - self.mean, self.exponent)
        return out


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


def points_of(vectors: Float32) -> Points:
    """Centre, scale and round ``vectors`` (float32 [n, d], finite)."""
    n, d = vectors.shape
    mean = vectors.mean(axis=0, dtype=np.float64)
    largest = max(float(np.abs(vectors[i : i + BLOCK] - mean).max()) for i in range(0, n, BLOCK))
    exponent = -int(np.frexp(largest)[1])
    eta = 1.01 * (d + 16) * 2.0**-24
    weights = np.empty(n, np.float32)
    values, scales, squares, lost = padded(n, d), np.empty(n, np.float32), np.empty(n), np.empty(n)
    zeros = np.zeros(d)
    for i in range(0, n, BLOCK):
        strip = slice(i, i + BLOCK)
        exact = np.ldexp(vectors[strip] - mean, exponent)
        single = exact.astype(np.float32)
        weights[strip] = (1 - eta) * np.square(single, dtype=np.float64).sum(axis=1) - d * TINY
        quantize(exact, zeros, LARGEST, values[strip], scales[strip], squares[strip], lost[strip])
    lengths = np.sqrt(squares)
    # What rounding in float64 can take off these lengths.
    lost += SLACK**2 * (lengths + lost)
    t = float(np.clip(2 * np.median(lost / np.maximum(lengths, TINY)), SLACK, 0.5))
    bounds = (1 - SLACK) * squares - (1 + SLACK) * (2 / t) * np.square(lost) - d * TINY
    sums = values.sum(axis=1, dtype=np.int32)
    rounded = values, scales, bounds.astype(np.float32), sums
    return Points(vectors, np.arange(n, dtype=np.int32), mean, exponent, weights, rounded, (1 - t) * (1 - SLACK))


def nominate(points: Points, k: int) -> Nominations:
    """Nominate, for each of the n points, the ``min(k, n)`` points of the least lower bounds."""
    if BYTES and points.rounded[0].shape[1] <= byte_products.WIDEST:
        nominations = nominate_by_bytes(points, k)
        if unsure(points, nominations) <= UNSURE:
            return nominations
    return nominate_by_floats(points, k)


def nominate_by_bytes(points: Points, k: int) -> Nominations:
    """Nominate by byte products."""

    def offer(left: int, right: int, kept: Any) -> None:
        offer_pair(*points.rounded, left, right, PAIRED, kept)

    return _nominated(points, k, PAIRED, offer, points.rounded[2], points.share)


def nominate_by_floats(points: Points, k: int) -> Nominations:
    """Nominate by products in float32."""
    whole = points.floats()

    def offer(left: int, right: int, kept: Any) -> None:
        offer_tile(whole[left : left + TILE] @ whole[right : right + TILE].T, points.weights, left, right, kept)

    return _nominated(points, k, TILE, offer, points.weights, 1.0)


def _nominated(
    points: Points, k: int, size: int, offer: Callable[[int, int, Any], None], weights: Float32, share: float
) -> Nominations:
    """Offer the points of each two blocks to each other: a product serves both, so that each is computed once.

    ``offer`` enters keys, which are bounds less a point's own of the ``weights``, times ``share`` (``enter``).
    """
    n = len(points.ids)
    k, blocks = min(k, n), range(0, n, size)
    keys, rows = np.empty((n, 2 * k), np.float32), np.empty((n, 2 * k), np.int32)
    counts, limits = np.zeros(n, np.int64), np.full(n, np.inf, np.float32)
    kept = keys, rows, counts, limits
    for number, pairs in enumerate(rounds(len(blocks))):
        if n == len(points.vectors):  # not of the points that a tour has left
            reached("comparing words", number / len(blocks))
        together(offer, [(blocks[left], blocks[right], kept) for left, right in pairs])
    in_slices(n, settle, *kept, k)
    floors = np.full(n, np.inf, np.float32) if k == n else np.float32(share) * (limits + weights)
    return Nominations(rows[:, :k].copy(), floors)


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


def unsure(points: Points, nominations: Nominations) -> float:
    """Return the share of sampled points whose nearest other point is not certainly among their nominees."""
    some = np.unique(np.linspace(0, len(points.ids) - 1, LOOKED_AT).astype(np.int64))
    rows, floors = nominations.rows[some], nominations.floors[some]
    return int(_unsure(points.vectors, points.ids, some, rows, floors, points.scale)) / len(some)


@njit(nogil=True, cache=True)
def _unsure(vectors: Float32, ids: Int32, some: Int64, rows: Int32, floors: Float32, scale: float) -> int:
    count = 0
    for r in range(len(some)):
        best = np.inf
        for other in rows[r]:
            if other != some[r]:
                best = min(best, squared_distance(vectors, np.int64(ids[some[r]]), np.int64(ids[other])))
        count += not best * scale < floors[r]
    return count


def bounds(points: Points, of: Points, word: int) -> Float32:
    """Return lower bounds of the scaled squared distances of some points from one of all; float32 [n].

    Args:
        points: all vectors.
        of: some of them.
        word: id.
    """
    row, scale, weight, _ = (part[word] for part in points.rounded)
    out = np.empty(len(of.ids), np.float32)
    byte_bounds(*of.rounded[:3], row, scale, weight, of.share, out)
    return out


@njit(nogil=True, cache=True)
def squared_distance(vectors: Float32, a: int, b: int) -> float:
    """Return the squared distance of two words, summed in float64 dimension by dimension: the one that decides."""
    total = 0.0
    for i in range(vectors.shape[1]):
        gap = np.float64(vectors[a, i]) - np.float64(vectors[b, i])
        total += gap * gap
    return total
