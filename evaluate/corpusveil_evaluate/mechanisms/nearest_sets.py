"""Each word with its nearest others: the candidates of CusText as published, and of truncated Gumbel."""

from __future__ import annotations

import functools

import numpy as np

from corpusveil.mechanisms.on_sets import Sets
from corpusveil.search.neighbors import neighbors
from corpusveil.spaces import Space


@functools.lru_cache(maxsize=8)
def nearest_sets(space: Space, size: int) -> Sets:
    """Return each word with its size - 1 nearest others, by distance and then by id: exact, in float64."""
    near = neighbors(space.vectors, min(size, len(space)) - 1)
    members = np.column_stack([np.arange(len(space), dtype=np.int32), near])
    return Sets(members, np.full(len(space), members.shape[1], dtype=np.int64))
