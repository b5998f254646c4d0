"""Vectors in chunks of 32 words, and their distances and exponentials, computed in a fixed order."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from corpusveil.arrays import Float32
from corpusveil.compiled import njit
from corpusveil.spaces import Space

LANES = 32
TABLE_BYTES = 320 << 20
"""The most bytes of the running totals of all rows at one epsilon."""


@dataclass(frozen=True, slots=True, eq=False)
class VectorBlocks:
    """The vectors of a space in chunks of 32 words, dimension by dimension.

    ``chunks`` float32 [C, d', 32], d' the dimensions filled up with zeros to a multiple of 4; a block is ``per_block``
    chunks; ``blocks`` is their number, ``words`` that of the words. ``vectors`` float32 [V, d] as given.
    """

    vectors: Float32
    chunks: Float32
    words: int
    per_block: int
    blocks: int

    @classmethod
    def from_vectors(cls, vectors: Float32, table_bytes: int = TABLE_BYTES) -> VectorBlocks:
        n, d = vectors.shape
        count = -(-n // LANES)
        chunks = np.zeros((count, -(-d // 4) * 4, LANES), dtype=np.float32)
        for k in range(count):
            some = vectors[k * LANES : (k + 1) * LANES]
            chunks[k, :d, : len(some)] = some.T
        per_block = max(1, -(-(n * count * 8) // table_bytes))
        return cls(vectors, chunks, n, per_block, -(-count // per_block))


@functools.lru_cache(maxsize=4)
def blocks_of(space: Space, *, unit: bool = False) -> VectorBlocks:
    """Return the chunks of a space's vectors, or of these at length 1; prepared once a process."""
    return VectorBlocks.from_vectors(unit_vectors(space.vectors) if unit else space.vectors)


def unit_vectors(vectors: Float32) -> Float32:
    """Return the vectors at length 1, in one order of summation; float32 [V, d]. None of them may be 0."""
    out = np.empty_like(vectors)
    _normalize(vectors, out)
    return out


@njit()
def _normalize(vectors: Any, out: Any) -> None:
    for v in range(vectors.shape[0]):
        largest = 0.0
        for j in range(vectors.shape[1]):
            largest = max(largest, abs(np.float64(vectors[v, j])))
        total = 0.0
        for j in range(vectors.shape[1]):
            value = np.float64(vectors[v, j]) / largest
            total += value * value
        length = math.sqrt(total)
        for j in range(vectors.shape[1]):
            out[v, j] = np.float32(np.float64(vectors[v, j]) / largest / length)


@njit()
def exponential(x: float) -> float:
    """Return exp(x) for -46 <= x <= 0, to 2^-44: a Taylor polynomial at x / 128, squared seven times."""
    y = x * 0.0078125
    p = y * (1.0 / 6227020800.0) + (1.0 / 479001600.0)
    p = p * y + (1.0 / 39916800.0)
    p = p * y + (1.0 / 3628800.0)
    p = p * y + (1.0 / 362880.0)
    p = p * y + (1.0 / 40320.0)
    p = p * y + (1.0 / 5040.0)
    p = p * y + (1.0 / 720.0)
    p = p * y + (1.0 / 120.0)
    p = p * y + (1.0 / 24.0)
    p = p * y + (1.0 / 6.0)
    p = p * y + 0.5
    p = p * y + 1.0
    p = p * y + 1.0
    for _ in range(7):
        p = p * p
    return p


@njit()
def squared_distances(chunk: Any, point: Any, out: Any) -> None:
    """Write the squared distances of a chunk's 32 words from a point, each summed dimension by dimension."""
    for lane in range(LANES):
        out[lane] = 0.0
    for j in range(0, point.size, 4):
        a = point[j]
        b = point[j + 1]
        c = point[j + 2]
        e = point[j + 3]
        for lane in range(LANES):
            total = out[lane]
            gap = np.float64(chunk[j, lane]) - a
            total += gap * gap
            gap = np.float64(chunk[j + 1, lane]) - b
            total += gap * gap
            gap = np.float64(chunk[j + 2, lane]) - c
            total += gap * gap
            gap = np.float64(chunk[j + 3, lane]) - e
            total += gap * gap
            out[lane] = total
