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
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.arrays import Float32, Float64, Int32
from corpusveil.compiled import njit
from corpusveil.errors import DataError
from corpusveil.search.slices import in_slices

TILE_ROWS, TILE_COLUMNS = 1024, 1024  # 4 MiB of products at a time, whatever the numbers of points and words
NOMINEES = 64
"""The most candidates of a point (four times k where that is more); one with more is compared with all words."""
LANES = 64
EXTREME = 60
"""Powers of two that bound the largest norm: beyond, squares in float32 overflow or vanish."""


@dataclass(frozen=True, slots=True, eq=False)
class NearestSearch:
    """The data of the search, including the vectors (float32 [V, d], not copied).

    Attributes: vectors: float32 [V, d]. norms: float32 [V], squared norms times ``2^(-2 exponent)``. largest: at least
        the largest norm. exponent: of the power of two next above ``largest``.
    """

    vectors: Float32
    norms: Float32
    largest: float
    exponent: int

    @classmethod
    def from_vectors(cls, vectors: Float32) -> NearestSearch:
        """Prepare the search. Raises UserError where the largest norm is not between 2^-60 and 2^60."""
        squared = np.empty(len(vectors))
        _squared_norms(vectors, squared)
        largest = math.sqrt(float(squared.max())) * (1 + 2.0**-40)
        if not 2.0**-EXTREME <= largest <= 2.0**EXTREME:
            raise DataError(
                f"The longest vector has norm {largest:.3g}, and distances are computed for norms from 2^-60 to "
                "2^60; multiply all vectors by the same number and build the space again."
            )
        exponent = math.frexp(largest)[1]
        return cls(vectors, np.ldexp(squared, -2 * exponent).astype(np.float32), largest, exponent)

    def nearest(self, points: Float64) -> Int32:
        """Return the id of the vector nearest to each point; float64 [T, d], finite -> int32 [T]. Ties: the least."""
        return self.several(points, 1)[:, 0]

    def several(self, points: Float64, k: int) -> Int32:
        """Return the ids of the k nearest vectors, the nearest first; float64 [T, d], finite -> int32 [T, k].

        k is at most the number of vectors. Ties: the lesser id first.
        """
        out = np.empty((len(points), k), np.int32)
        products = np.empty(min(len(points), TILE_ROWS) * min(len(self.vectors), TILE_COLUMNS), np.float32)
        for top in range(0, len(points), TILE_ROWS):
            self._search(points[top : top + TILE_ROWS], products, out[top : top + TILE_ROWS])
        return out

    def _search(self, points: Float64, products: Float32, out: Int32) -> None:
        scaled, factors, doubts = self._scaled(points)
        left = scaled.astype(np.float32)
        candidates = _candidates(points, out.shape[1])
        for first in range(0, len(self.vectors), TILE_COLUMNS):
            right = self.vectors[first : first + TILE_COLUMNS]
            tile = products[: len(left) * len(right)].reshape(len(left), len(right))
            np.matmul(left, right.T, out=tile)
            norms = self.norms[first : first + TILE_COLUMNS]
            in_slices(len(left), _offer, tile, norms, factors, first, candidates)
        in_slices(len(left), _decide, self.vectors, points, doubts, candidates, out)

    def _scaled(self, points: Float64) -> tuple[Float64, Float32, Float64]:
        """Return points times ``2 f``, float64 [T, d], f as the norms want it, float32 [T], and doubts, float64 [T].

        A doubt is twice what two sums of a rank in float64 differ by at most.
        """
        reach = self.largest * (self.largest + 2 * np.sqrt(np.einsum("td,td->t", points, points)))
        scales = -np.frexp(reach)[1]
        factors = np.ldexp(1.0, scales + 2 * self.exponent).astype(np.float32)
        return np.ldexp(points, scales[:, None] + 1), factors, reach * (4.04 * 2.0**-29 * error_bound(points.shape[1]))


def _candidates(points: Float64, k: int) -> tuple[npt.NDArray[Any], ...]:
    """Return the slack, float32 [T], by which a key may be above the k-th least, and room for the candidates.

    The least keys so far, float32 [T, k]; the candidates' keys, float32 [T, K], and ids, int32 [T, K]; and how many
    there are, int64 [T]: above K where there were too many.
    """
    size, dimensions = points.shape
    # 2 eta, and 1 % for its own rounding in float32.
    slack = np.full(size, 2.02 * error_bound(dimensions), np.float32)
    least = np.full((size, k), np.inf, np.float32)
    room = max(NOMINEES, 4 * k)
    keys, rows = np.empty((size, room), np.float32), np.empty((size, room), np.int32)
    return slack, least, keys, rows, np.zeros(size, np.int64)


def error_bound(dimensions: int) -> float:
    """Return eta, the largest difference of a key from its scaled rank."""
    return 1.01 * (dimensions + 16) * 2.0**-24


@njit()
def _squared_norms(vectors: Any, out: Any) -> None:
    """Write the squared norms of vectors; float32 [V, d], float64 [V]."""
    for v in range(vectors.shape[0]):
        total = 0.0
        for j in range(vectors.shape[1]):
            total += np.float64(vectors[v, j]) * np.float64(vectors[v, j])
        out[v] = total


@njit()
def _offer(tile: Any, norms: Any, factors: Any, first: int, candidates: Any, low: int, high: int) -> None:
    """Keep, for each row, the words whose key is within ``slack`` of the k-th least so far.

    A key is ``factors norms - tile``. Columns are processed in ``LANES`` interleaved groups: the least key of each
    group takes one vector instruction for many columns, and few groups need a second pass. The k least of the groups'
    least keys bound the k least keys from above.
    """
    slack, least = candidates[:2]
    columns = tile.shape[1]
    groups = columns // LANES * LANES
    minima, line = np.empty(LANES, np.float32), np.empty(columns, np.float32)
    for r in range(low, high):
        factor = factors[r]
        minima[:] = np.inf
        for start in range(0, groups, LANES):
            for lane in range(LANES):
                key = factor * norms[start + lane] - tile[r, start + lane]
                line[start + lane] = key
                kept = minima[lane]
                minima[lane] = key if key < kept else kept  # noqa: FURB136 - min() does not compile to vectors
        for j in range(groups, columns):
            line[j] = factor * norms[j] - tile[r, j]
            _lower(least[r], line[j])
        for lane in range(LANES):
            _lower(least[r], minima[lane])
        for lane in range(LANES):
            if minima[lane] <= least[r, -1] + slack[r]:
                _keep(line, first, lane, groups, LANES, candidates, r)
        _keep(line, first, groups, columns, 1, candidates, r)


@njit()
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


@njit()
def _keep(line: Any, first: int, start: int, stop: int, stride: int, candidates: Any, r: int) -> None:
    """Enter those columns ``start, start + stride, ..`` among row r's candidates whose key is within the limit."""
    slack, least, keys, rows, counts = candidates
    room = keys.shape[1]
    limit = least[r, -1] + slack[r]
    for j in range(start, stop, stride):
        if line[j] <= limit and counts[r] <= room:
            if counts[r] == room:
                counts[r] = _compact(keys[r], rows[r], room, limit)
            if counts[r] < room:
                keys[r, counts[r]] = line[j]
                rows[r, counts[r]] = first + j
            counts[r] += 1


@njit()
def _compact(keys: Any, rows: Any, count: int, limit: Any) -> int:
    """Move the candidates within the limit to the front; return their number."""
    kept = 0
    for i in range(count):
        if keys[i] <= limit:
            keys[kept] = keys[i]
            rows[kept] = rows[i]
            kept += 1
    return kept


@njit()
def _rank(vectors: Any, v: int, point: Any) -> float:
    """Return the deciding rank, summed dimension by dimension."""
    total = 0.0
    for j in range(point.size):
        value = np.float64(vectors[v, j])
        total += value * (value - 2 * point[j])
    return total


@njit(fastmath={"reassoc", "contract"})
def _quick_rank(vectors: Any, v: int, point: Any) -> float:
    """Return the rank as any order of summation gives it: several times as fast."""
    total = 0.0
    for j in range(point.size):
        value = np.float64(vectors[v, j])
        total += value * (value - 2 * point[j])
    return total


@njit()
def _decide(vectors: Any, points: Any, doubts: Any, candidates: Any, out: Any, low: int, high: int) -> None:
    """Choose among the candidates of each row by rank in float64, then by id; ``out`` int32 [T, k].

    Quickly summed ranks differ from the deciding ranks by less than half of ``doubts``, float64 [T]; only words within
    this of the k-th least are ranked again. If there were too many candidates, all words are ranked.
    """
    slack, least, keys, rows, counts = candidates
    room = keys.shape[1]
    wanted = out.shape[1]
    best = np.empty(wanted)
    quick = np.empty(vectors.shape[0])
    for r in range(low, high):
        every = counts[r] > room
        many = vectors.shape[0] if every else _compact(keys[r], rows[r], counts[r], least[r, wanted - 1] + slack[r])
        if many == 1:
            out[r, 0] = 0 if every else rows[r, 0]
            continue
        best[:] = np.inf
        for i in range(many):
            quick[i] = _quick_rank(vectors, i if every else rows[r, i], points[r])
            _lower(best, quick[i])
        limit = best[wanted - 1] + doubts[r]
        ranked = 0
        for i in range(many):
            if quick[i] > limit:
                continue
            v = i if every else rows[r, i]
            rank = _rank(vectors, v, points[r])
            at = ranked
            while at > 0 and (rank < best[at - 1] or (rank == best[at - 1] and v < out[r, at - 1])):
                if at < wanted:
                    best[at] = best[at - 1]
                    out[r, at] = out[r, at - 1]
                at -= 1
            if at < wanted:
                best[at] = rank
                out[r, at] = v
                ranked = min(ranked + 1, wanted)
