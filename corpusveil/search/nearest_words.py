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

Products of eight-bit integers (``byte_products.py``) do the same on machines where they are fast. They use the words
minus their mean, which changes all keys of a point alike; their error has a bound for each point. A point with too many
words within this bound is searched by float32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.arrays import Float32, Float64, Int8, Int32, Int64, UInt8
from corpusveil.compiled import njit
from corpusveil.errors import DataError
from corpusveil.search import byte_products
from corpusveil.search.byte_products import COLUMNS, LARGEST, ROWS, SHIFT, multiply, packed, padded, quantize
from corpusveil.search.slices import in_slices

TILE_ROWS, TILE_COLUMNS = 1024, 4096  # 16 MiB of products at a time, whatever the numbers of points and words
NOMINEES = 64
"""The most candidates of a point; a point with more is compared with all words in float64."""
INTEGER_NOMINEES = 512
"""The same for integer products; a point with more is searched by float32."""
WORTH, FEW = 1_000_000, 32
"""Numbers of values of all vectors, and of points, below which integer products are not used."""
LANES, UNDECIDED = 64, -1
EXTREME = 60
"""Powers of two that bound the largest norm: beyond, squares in float32 overflow or vanish."""


@dataclass(frozen=True, slots=True, eq=False)
class NearestSearch:
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
    def of(cls, vectors: Float32) -> NearestSearch:
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
        integers = IntegerWords.of(vectors) if byte_products.FAST and vectors.size >= WORTH else None
        return cls(vectors, np.ldexp(squared, -2 * exponent).astype(np.float32), largest, exponent, integers)

    def nearest(self, points: Float64) -> Int32:
        """Return the id of the vector nearest to each point; float64 [T, d], finite -> int32 [T]. Ties: the least."""
        return self.search(points, 1)[0][:, 0]

    def several(self, points: Float64, k: int) -> Int32:
        """Return the ids of the k nearest vectors, the nearest first; float64 [T, d], finite -> int32 [T, k].

        k is at most the number of vectors. Ties: the lesser id first.
        """
        return self.search(points, k)[0]

    def search(self, points: Float64, k: int) -> tuple[Int32, Int64]:
        """Return what ``several`` does, and how many words were compared in float64 for each point, int64 [T]."""
        out = np.empty((len(points), k), np.int32)
        compared = np.empty(len(points), np.int64)
        products = np.empty(min(len(points), TILE_ROWS) * min(len(self.vectors), TILE_COLUMNS), np.float32)
        for top in range(0, len(points), TILE_ROWS):
            strip = slice(top, min(top + TILE_ROWS, len(points)))
            some, ids, counted = points[strip], out[strip], compared[strip]
            if self.integers is None or len(some) < FEW:
                self._by_floats(some, products, ids, counted)
                continue
            self._by_integers(self.integers, some, ids, counted)
            if len(rest := np.flatnonzero(counted == UNDECIDED)):
                part, many = ids[rest], counted[rest]
                self._by_floats(some[rest], products, part, many)
                ids[rest], counted[rest] = part, many
        return out, compared

    def _by_floats(self, points: Float64, products: Float32, out: Int32, compared: Int64) -> None:
        scaled, factors, doubts = self._scaled(points)
        left = scaled.astype(np.float32)
        # 2 eta, and 1 % for its own rounding in float32.
        slack = np.full(len(points), 2.02 * error_bound(points.shape[1]))
        candidates = _candidates(slack, out.shape[1], NOMINEES)
        for first in range(0, len(self.vectors), TILE_COLUMNS):
            right = self.vectors[first : first + TILE_COLUMNS]
            tile = products[: len(left) * len(right)].reshape(len(left), len(right))
            np.matmul(left, right.T, out=tile)
            norms = self.norms[first : first + TILE_COLUMNS]
            in_slices(len(left), _offer, tile, norms, factors, first, candidates)
        in_slices(len(left), _decide, self.vectors, points, doubts, candidates, True, out, compared)

    def _by_integers(self, words: IntegerWords, points: Float64, out: Int32, compared: Int64) -> None:
        """Set ``compared`` to ``UNDECIDED`` if too many words are within the error."""
        scaled, factors, doubts = self._scaled(points)
        left = Quantized.of(scaled, np.zeros(points.shape[1]))
        lengths = np.sqrt(np.einsum("td,td->t", scaled, scaled)) * (1 + 2.0**-40)
        error = left.lost * words.largest + (lengths + left.lost) * words.lost
        # Twice each error: the word's key may be too large, and the k-th least too small.
        slack = (2.0 * error + 4.04 * error_bound(points.shape[1])) * (1 + 2.0**-20)
        candidates = _candidates(slack, out.shape[1], INTEGER_NOMINEES)
        sums = left.values.sum(axis=1, dtype=np.int32)
        there = words.panels, self.norms, words.scales
        in_slices(len(points), _offer_packed, left.values, sums, *there, factors, left.scales, candidates)
        in_slices(len(points), _decide, self.vectors, points, doubts, candidates, False, out, compared)

    def _scaled(self, points: Float64) -> tuple[Float64, Float32, Float64]:
        """Return points times ``2 f``, float64 [T, d], f as the norms want it, float32 [T], and doubts, float64 [T].

        A doubt is twice what two sums of a rank in float64 differ by at most.
        """
        reach = self.largest * (self.largest + 2 * np.sqrt(np.einsum("td,td->t", points, points)))
        scales = -np.frexp(reach)[1]
        factors = np.ldexp(1.0, scales + 2 * self.exponent).astype(np.float32)
        return np.ldexp(points, scales[:, None] + 1), factors, reach * (4.04 * 2.0**-29 * error_bound(points.shape[1]))


def _candidates(slack: Float64, k: int, room: int) -> tuple[npt.NDArray[Any], ...]:
    """Return the slack, float32 [T], by which a key may be above the k-th least, and room for the candidates.

    The least keys so far, float32 [T, k]; the candidates' keys, float32 [T, K], and ids, int32 [T, K]; and how many
    there are, int64 [T]: above K where there were too many.
    """
    size = len(slack)
    least = np.full((size, k), np.inf, np.float32)
    keys, rows = np.empty((size, room), np.float32), np.empty((size, room), np.int32)
    return slack.astype(np.float32), least, keys, rows, np.zeros(size, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Quantized:
    """Vectors as ``scales * values``.

    Attributes: values: int8 [n, d'], d' the dimensions filled up with zeros. scales: float32 [n]. lost: float64 [n], at
        least the length of the rounding error.
    """

    values: Int8
    scales: Float32
    lost: Float64

    @classmethod
    def of(cls, vectors: Float32 | Float64, offset: Float64) -> Quantized:
        """Quantize vectors less ``offset``: float32 or float64 [n, d], float64 [d]."""
        n, d = vectors.shape
        values, scales, squares, lost = padded(n, d), np.empty(n, np.float32), np.empty(n), np.empty(n)
        quantize(vectors, offset, LARGEST, values, scales, squares, lost)
        return cls(values, scales, lost * (1 + 2.0**-40))


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


def error_bound(dimensions: int) -> float:
    """Return eta, the largest difference of a key from its scaled rank."""
    return 1.01 * (dimensions + 16) * 2.0**-24


@njit(cache=True)
def _squared_norms(vectors: Any, out: Any) -> None:
    """Write the squared norms of vectors; float32 [V, d], float64 [V]."""
    for v in range(vectors.shape[0]):
        total = 0.0
        for j in range(vectors.shape[1]):
            total += np.float64(vectors[v, j]) * np.float64(vectors[v, j])
        out[v] = total


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def _offer_packed(
    left: Any, sums: Any, panels: Any, norms: Any, scales: Any, factors: Any, steps: Any, candidates: Any, low: int,
    high: int,
) -> None:  # fmt: skip
    """Do the work of ``_offer`` for all words, with integer products that never leave the cache.

    A key is ``factors norms - steps scales product``, the steps by row, the scales by column. ``left`` int8 [T, d'] are
    the points, ``sums`` int32 [T] the sums of their values, ``panels`` the words (``byte_products.packed``).
    """
    slack, least = candidates[:2]
    products = np.empty((ROWS, COLUMNS), np.int32)
    line, close = np.empty(COLUMNS, np.float32), np.zeros(COLUMNS, np.uint8)
    groups = close.view(np.uint64)
    norm, scale = np.zeros(COLUMNS, np.float32), np.zeros(COLUMNS, np.float32)
    for number in range(len(panels)):
        first = COLUMNS * number
        width = min(COLUMNS, len(norms) - first)
        for c in range(width):
            norm[c], scale[c] = norms[first + c], scales[first + c]
        for top in range(low, high, ROWS):
            multiply(left, top, high, panels[number], products)
            for r in range(min(ROWS, high - top)):
                i = top + r
                factor, step = factors[i], steps[i]
                bar = least[i, -1] + slack[i]
                shift = np.int32(SHIFT) * sums[i]
                for c in range(COLUMNS):
                    line[c] = factor * norm[c] - step * scale[c] * np.float32(np.int32(products[r, c] - shift))
                    close[c] = line[c] <= bar
                for group in range(len(groups)):
                    if not groups[group]:
                        continue
                    stop = min(8 * group + 8, width)
                    for c in range(8 * group, stop):
                        if close[c]:
                            _lower(least[i], line[c])
                    _keep(line, first, 8 * group, stop, 1, candidates, i)


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


@njit(nogil=True, cache=True)
def _compact(keys: Any, rows: Any, count: int, limit: Any) -> int:
    """Move the candidates within the limit to the front; return their number."""
    kept = 0
    for i in range(count):
        if keys[i] <= limit:
            keys[kept] = keys[i]
            rows[kept] = rows[i]
            kept += 1
    return kept


@njit(nogil=True, cache=True)
def _rank(vectors: Any, v: int, point: Any) -> float:
    """Return the deciding rank, summed dimension by dimension."""
    total = 0.0
    for j in range(point.size):
        value = np.float64(vectors[v, j])
        total += value * (value - 2 * point[j])
    return total


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _quick_rank(vectors: Any, v: int, point: Any) -> float:
    """Return the rank as any order of summation gives it: several times as fast."""
    total = 0.0
    for j in range(point.size):
        value = np.float64(vectors[v, j])
        total += value * (value - 2 * point[j])
    return total


@njit(nogil=True, cache=True)
def _decide(
    vectors: Any, points: Any, doubts: Any, candidates: Any, all_words: bool, out: Any, compared: Any, low: int,
    high: int,
) -> None:  # fmt: skip
    """Choose among the candidates of each row by rank in float64, then by id; ``out`` int32 [T, k].

    Quickly summed ranks differ from the deciding ranks by less than half of ``doubts``, float64 [T]; only words within
    this of the k-th least are ranked again. ``compared`` counts them, 0 if nothing was in doubt. If there were too many
    candidates, ``all_words`` are ranked, or ``compared`` becomes ``UNDECIDED``.
    """
    slack, least, keys, rows, counts = candidates
    room = keys.shape[1]
    wanted = out.shape[1]
    best = np.empty(wanted)
    quick = np.empty(vectors.shape[0] if all_words else room)
    for r in range(low, high):
        every = counts[r] > room
        if every and not all_words:
            compared[r] = UNDECIDED
            continue
        many = vectors.shape[0] if every else _compact(keys[r], rows[r], counts[r], least[r, wanted - 1] + slack[r])
        compared[r] = 0
        if not every and many == 1:
            out[r, 0] = rows[r, 0]
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
            compared[r] += 1
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
