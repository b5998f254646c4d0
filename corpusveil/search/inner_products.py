"""The rows with the largest inner products with a point, exactly, over int8: equal on every processor and BLAS.

Products of int8 vectors of at most 1,040 dimensions are whole numbers below 2^24, and so is each partial sum, whatever
the order: float32 holds them all, so a product of matrices in float32 is exact. Equal products rank by id, the lesser
first. The answer for a point depends on it and on the rows alone, not on its batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from corpusveil.arrays import Int8, Int32, Integers
from corpusveil.compiled import njit
from corpusveil.errors import SettingError
from corpusveil.search.slices import in_slices

MOST_DIMENSIONS = (1 << 24) // 127**2
_POINTS, _ROWS = 256, 4096
"""Points and rows of a tile of products, 4 MiB."""
_BLOCK = 64
"""Products that are passed over at once if the largest of them is too small."""


@dataclass(frozen=True, slots=True, eq=False)
class ProductSearch:
    """The search over ``rows``, int8 [N, d] without -128, not copied. Raises UserError above 1,040 dimensions."""

    rows: Int8

    def __post_init__(self) -> None:
        if self.rows.shape[1] > MOST_DIMENSIONS:
            raise SettingError(f"vectors of {self.rows.shape[1]:,} dimensions: give at most {MOST_DIMENSIONS:,}.")

    def several(self, points: Int8, k: int) -> tuple[Int32, Int32]:
        """Return the ids of the k rows that rank first, and their products: int8 [T, d] -> int32 [T, k], twice."""
        return self._best(points, np.full(len(points), k, np.int64))

    def at_ranks(self, points: Int8, ranks: Integers) -> Int32:
        """Return the id of the row at the rank of each point, from 0: int8 [T, d], integers [T] -> int32 [T]."""
        ids, _ = self._best(points, np.asarray(ranks, np.int64) + 1)
        return np.asarray(ids[np.arange(len(points)), ranks], np.int32)

    def _best(self, points: Int8, sizes: Integers) -> tuple[Int32, Int32]:
        ids = np.empty((len(points), int(sizes.max(initial=1))), np.int32)
        products = np.full(ids.shape, -np.inf, np.float32)
        tile = np.empty(_POINTS * min(_ROWS, len(self.rows)), np.float32)
        for first in range(0, len(points), _POINTS):
            some = slice(first, first + _POINTS)
            left = points[some].astype(np.float32)
            for top in range(0, len(self.rows), _ROWS):
                right = self.rows[top : top + _ROWS].astype(np.float32)
                made = tile[: len(left) * len(right)].reshape(len(left), len(right))
                np.matmul(left, right.T, out=made)
                in_slices(len(left), _offer, made, top, sizes[some], products[some], ids[some])
        return ids, np.maximum(products, -(2.0**24)).astype(np.int32)


@njit()
def _offer(made: Any, top: int, sizes: Any, products: Any, ids: Any, low: int, high: int) -> None:
    """Enter each row's columns among its best so far, which descend; equal products stay after earlier ones."""
    columns = made.shape[1]
    lanes = np.empty(_BLOCK, np.float32)
    for r in range(low, high):
        last = sizes[r] - 1
        for start in range(0, columns, _BLOCK):
            stop = min(start + _BLOCK, columns)
            largest = made[r, start]
            for j in range(start, stop):
                lanes[j - start] = made[r, j]
            for j in range(stop - start):
                largest = lanes[j] if lanes[j] > largest else largest  # noqa: FURB136 - compiles to vectors
            if largest <= products[r, last]:
                continue
            for j in range(start, stop):
                value = made[r, j]
                if value <= products[r, last]:
                    continue
                at = last
                while at > 0 and products[r, at - 1] < value:
                    products[r, at] = products[r, at - 1]
                    ids[r, at] = ids[r, at - 1]
                    at -= 1
                products[r, at] = value
                ids[r, at] = top + j
