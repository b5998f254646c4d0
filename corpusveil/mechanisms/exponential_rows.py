"""Exponential laws over distances of vectors as integer weights: one row a word, sampled by one 64-bit draw, no cut.

    P[w, u] is proportional to c_u exp(-s min(|phi(w) - phi(u)|, gamma))

or, with ``squared``, to ``c_u exp(-s min(|psi(w) - psi(u)|^2, gamma))``, psi being the vectors at length 1.

Row w has integer weights that total exactly 2^64: another word u gets ``floor(t_w c_u exp(-s min(d, gamma))) + 2^20``,
``t_w = (2^64 - n 2^20) / Z_w``, and w itself what is left. All n^2 weights do not fit in memory. For each word, this
module keeps its own weight, ``t_w``, and the running totals of blocks of 32 words (or more, so that all rows together
take at most ``TABLE_BYTES``). For a draw that does not select w, binary search finds the block, and only the weights of
that block are computed again, by the same function. So there are no stored neighbors and no approximated rest: every
word has its exact integer.

Rows are built when a word first occurs. Distances are summed in float64 dimension by dimension, and the exponential is
a polynomial: additions, multiplications and square roots only, which IEEE 754 makes equal on every machine, whatever
the BLAS, the math library or the number of threads. Relative errors are below 2^-40.
"""

from __future__ import annotations

import collections
import math
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.arrays import Float64, Int32, UInt64
from corpusveil.compiled import njit
from corpusveil.mechanisms.vector_blocks import LANES, VectorBlocks, blocks_of, exponential, squared_distances
from corpusveil.sampling import weights
from corpusveil.search.slices import in_slices
from corpusveil.spaces import Space

CACHE_BYTES = 1 << 30
"""The limit of a process's cached rows, over all epsilons; beyond it, the least recently used epsilon is dropped."""
BUILD_ROWS = 4096
TOGETHER = 8
"""Rows built in one pass over the chunks, so that a chunk is read from memory once for all rows."""
_LOWEST = -46.0
"""exp(-46) 2^64 is below 1, so smaller values round to the same integer, 0."""
_FLOOR = np.uint64(weights.FLOOR)


@njit()
def kernel_values(chunk: Any, point: Any, s: float, gamma: float, squared: bool, factors: Any, out: Any) -> None:
    """Write ``c_u exp(-s min(d, gamma))`` of a chunk's words, d the distance or its square."""
    squared_distances(chunk, point, out)
    for lane in range(LANES):
        distance = out[lane] if squared else math.sqrt(out[lane])
        exponent = -s * (distance if distance < gamma else gamma)  # noqa: FURB136 - min() does not compile to vectors
        out[lane] = factors[lane] * exponential(exponent if exponent > _LOWEST else _LOWEST)  # noqa: FURB136


@njit()
def place_point(vectors: Any, word: int, out: Any) -> None:
    out[:] = 0.0
    for j in range(vectors.shape[1]):
        out[j] = vectors[word, j]


@njit()
def _weight(value: float, scale: float) -> Any:
    return np.uint64(np.int64(scale * value)) + _FLOOR  # below 2^63: two weights of a row may be 2^64 together


@njit()
def _build(ids: Any, law: Any, own: Any, scales: Any, totals: Any, low: int, high: int) -> None:
    vectors, chunks, per_block, s, gamma, squared, factors = law
    n = vectors.shape[0]
    count = chunks.shape[0]
    values = np.empty((TOGETHER, count * LANES))
    points = np.empty((TOGETHER, chunks.shape[1]))
    z = np.empty(TOGETHER)
    room = 2.0**64 - n * 2.0**20
    for start in range(low, high, TOGETHER):
        group = min(TOGETHER, high - start)
        for r in range(group):
            place_point(vectors, ids[start + r], points[r])
        z[:] = 0.0
        for k in range(count):
            for r in range(group):
                part = values[r, k * LANES : (k + 1) * LANES]
                kernel_values(chunks[k], points[r], s, gamma, squared, factors[k], part)
                # Chunk by chunk: this order of summation decides the integers.
                inside = 0.0
                for lane in range(LANES):
                    inside += part[lane]
                z[r] += inside
        for r in range(group):
            word = ids[start + r]
            scale = room / z[r]
            running = np.uint64(0)
            for k in range(count):
                for u in range(k * LANES, min((k + 1) * LANES, n)):
                    if u != word:
                        running += _weight(values[r, u], scale)
                totals[word, k // per_block] = running
            scales[word] = scale
            # What the others leave of 2^64, which is 0 in 64 bits.
            own[word] = np.uint64(0) - running


def padded(blocks: VectorBlocks, factors: Float64 | None) -> Float64:
    """Return the factors by chunk, 0 where a chunk has no word; float64 [C, 32]. None: all are 1."""
    padded = np.zeros(len(blocks.chunks) * LANES)
    padded[: blocks.words] = 1.0 if factors is None else factors
    return padded.reshape(-1, LANES)


@njit()
def _find(ids: Any, draws: Any, own: Any, totals: Any, blocks: Any, rests: Any, out: Any, low: int, high: int) -> None:
    """Write the output and block -1 for draws of the word itself; for others, the block and the place in it."""
    for t in range(low, high):
        word = ids[t]
        draw = draws[t]
        if draw < own[word]:
            out[t] = word
            blocks[t] = -1
            continue
        draw -= own[word]
        first = 0
        last = totals.shape[1] - 1
        while first < last:
            middle = (first + last) // 2
            if draw < totals[word, middle]:
                last = middle
            else:
                first = middle + 1
        blocks[t] = first
        rests[t] = draw - totals[word, first - 1] if first > 0 else draw
        out[t] = -1


@njit()
def _by_block(blocks: Any, count: int) -> Any:
    """Return the tokens that have a block, grouped by block; int64."""
    starts = np.zeros(count + 1, dtype=np.int64)
    for t in range(blocks.size):
        starts[blocks[t] + 1] += 1
    starts[0] = 0
    for k in range(count):
        starts[k + 1] += starts[k]
    order = np.empty(starts[count], dtype=np.int64)
    for t in range(blocks.size):
        if blocks[t] >= 0:
            order[starts[blocks[t]]] = t
            starts[blocks[t]] += 1
    return order


@njit()
def _scan(order: Any, ids: Any, blocks: Any, rests: Any, law: Any, scales: Any, out: Any, low: int, high: int) -> None:
    """Write the outputs: walk through the weights of the block, computed again."""
    vectors, chunks, per_block, s, gamma, squared, factors = law
    n = vectors.shape[0]
    values = np.empty(LANES)
    point = np.empty(chunks.shape[1])
    for i in range(low, high):
        t = order[i]
        word = ids[t]
        rest = rests[t]
        place_point(vectors, word, point)
        for k in range(blocks[t] * per_block, min((blocks[t] + 1) * per_block, chunks.shape[0])):
            kernel_values(chunks[k], point, s, gamma, squared, factors[k], values)
            for u in range(k * LANES, min((k + 1) * LANES, n)):
                if u != word:
                    weight = _weight(values[u - k * LANES], scales[word])
                    if rest < weight:
                        out[t] = u
                        break
                    rest -= weight
            if out[t] >= 0:
                break


@njit()
def _rows(words: Any, law: Any, own: Any, scales: Any, out: Any, low: int, high: int) -> None:
    vectors, chunks, _, s, gamma, squared, factors = law
    n = vectors.shape[0]
    values = np.empty(LANES)
    point = np.empty(chunks.shape[1])
    for at in range(low, high):
        word = words[at]
        place_point(vectors, word, point)
        for k in range(chunks.shape[0]):
            kernel_values(chunks[k], point, s, gamma, squared, factors[k], values)
            for u in range(k * LANES, min((k + 1) * LANES, n)):
                out[at, u] = own[word] if u == word else _weight(values[u - k * LANES], scales[word])


def law_of(blocks: VectorBlocks, s: float, gamma: float, squared: bool, factors: Float64) -> tuple[Any, ...]:
    """Return the arrays of a law for the compiled loops."""
    return blocks.vectors, blocks.chunks, blocks.per_block, s, gamma, squared, factors


class ExponentialRows:
    """The rows of one law: ``exp(-s min(d, gamma))``, and factors float64 [V] in (0, 1] where words have them.

    A word's own kernel value must be a good part of its Z (above a 2^-24th), since its weight is what the others leave.
    """

    def __init__(
        self,
        blocks: VectorBlocks,
        s: float,
        gamma: float,
        factors: Float64 | None = None,
        *,
        squared: bool = False,
    ) -> None:
        n = blocks.words
        self.squared = squared
        self.blocks, self.s, self.gamma = blocks, float(s), float(gamma)
        self.factors = padded(blocks, factors)
        self.law = law_of(blocks, self.s, self.gamma, squared, self.factors)
        self.own = np.zeros(n, dtype=np.uint64)
        self.scales = np.zeros(n)
        self.totals = np.empty((n, blocks.blocks), dtype=np.uint64)
        self.ready = np.zeros(n, dtype=bool)
        self._lock = threading.Lock()

    @property
    def built_bytes(self) -> int:
        """The bytes of the rows that are built; memory without rows is not allocated."""
        return int(self.ready.sum()) * self.blocks.blocks * 8 + self.ready.size * 49

    def build(self, ids: npt.NDArray[Any]) -> None:
        missing = ids[~self.ready[ids]]
        if not missing.size:
            return
        with self._lock:
            missing = np.unique(missing[~self.ready[missing]]).astype(np.int64)
            for first in range(0, missing.size, BUILD_ROWS):
                some = missing[first : first + BUILD_ROWS]
                in_slices(some.size, _build, some, self.law, self.own, self.scales, self.totals)
                self.ready[some] = True

    def sample(self, ids: Int32, draws: UInt64) -> Int32:
        """Return the cell of each draw in its word's row; int32 [T], uint64 [T] -> int32 [T]."""
        self.build(ids)
        out = np.empty(ids.size, dtype=np.int32)
        outputs, rests = np.empty(ids.size, dtype=np.int32), np.empty(ids.size, dtype=np.uint64)
        in_slices(ids.size, _find, ids, draws, self.own, self.totals, outputs, rests, out)
        order = _by_block(outputs, self.blocks.blocks)  # so that a block is read from memory once for all its tokens
        in_slices(order.size, _scan, order, ids, outputs, rests, self.law, self.scales, out)
        if out.size and out.min() < 0:
            message = "a draw is outside its block: the weights of a row were computed in two ways"
            raise RuntimeError(message)
        return out

    def several(self, words: npt.NDArray[Any]) -> UInt64:
        """Return the integer weights of several words' rows; uint64 [N, V], total 2^64 each."""
        self.build(words)
        out = np.empty((words.size, self.blocks.words), dtype=np.uint64)
        in_slices(words.size, _rows, words, self.law, self.own, self.scales, out)
        return out

    def own_shares(self, ids: npt.NDArray[Any]) -> Float64:
        """Return the probability that each of these words stays unchanged; float64."""
        self.build(ids)
        return np.asarray(self.own[ids].astype(np.float64) / weights.TOTAL)


_cache: collections.OrderedDict[tuple[Any, ...], ExponentialRows] = collections.OrderedDict()
_cache_lock = threading.Lock()


def rows_of(
    space: Space, s: float, gamma: float = math.inf, factors: Float64 | None = None, *, squared: bool = False
) -> ExponentialRows:
    """Return the rows of a space's kernel, cached up to ``CACHE_BYTES``; ``squared``: of vectors at length 1."""
    with _cache_lock:
        key = (space, s, gamma, squared, factors is None)
        if key not in _cache:
            _cache[key] = ExponentialRows(blocks_of(space, unit=squared), s, gamma, factors, squared=squared)
        _cache.move_to_end(key)
        while len(_cache) > 1 and sum(rows.built_bytes for rows in _cache.values()) > CACHE_BYTES:
            _cache.popitem(last=False)
        return _cache[key]
