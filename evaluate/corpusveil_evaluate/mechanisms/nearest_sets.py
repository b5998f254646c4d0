"""Each word with its nearest others: the candidates of CusText as published, and of truncated Gumbel."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from corpusveil.compiled import njit
from corpusveil.mechanisms.exponential_rows import TOGETHER
from corpusveil.mechanisms.on_sets import Sets, offer
from corpusveil.mechanisms.vector_blocks import LANES, blocks_of, squared_distances
from corpusveil.search.slices import in_slices
from corpusveil.spaces import Space


@functools.lru_cache(maxsize=8)
def nearest_sets(space: Space, size: int) -> Sets:
    """Return each word with its size - 1 nearest others, by distance and then by id: exact, in float64."""
    blocks, n = blocks_of(space), len(space)
    size = min(size, n)
    members = np.empty((n, size), dtype=np.int32)
    in_slices(n, _nearest, blocks.vectors, blocks.chunks, members)
    return Sets(members, np.full(n, size, dtype=np.int64))


@njit(nogil=True, cache=True)
def _nearest(vectors: Any, chunks: Any, members: Any, low: int, high: int) -> None:
    n = vectors.shape[0]
    kept = np.empty((TOGETHER, members.shape[1] - 1))
    points = np.zeros((TOGETHER, chunks.shape[1]))
    counts = np.empty(TOGETHER, dtype=np.int64)
    squares = np.empty(LANES)
    for start in range(low, high, TOGETHER):
        group = min(TOGETHER, high - start)
        counts[:] = 0
        for r in range(group):
            members[start + r, 0] = start + r
            points[r, : vectors.shape[1]] = vectors[start + r]
        for k in range(chunks.shape[0]):
            for r in range(group):
                squared_distances(chunks[k], points[r], squares)
                for u in range(k * LANES, min((k + 1) * LANES, n)):
                    if u != start + r:
                        counts[r] = offer(kept[r], members[start + r, 1:], counts[r], squares[u - k * LANES], u)
