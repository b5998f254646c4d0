"""``--order improved``: never longer than greedy, and a list of every word."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from corpusveil.spaces.list_orders import greedy_orders, improved_orders

Points = npt.NDArray[np.float32]


def points(size: int, dimensions: int, seed: int = 0) -> Points:
    return np.random.default_rng(seed).standard_normal((size, dimensions)).astype(np.float32)


def length(vectors: Points, tour: npt.NDArray[Any]) -> float:
    """Return the length of a list that is closed into a ring."""
    ring = vectors[np.append(tour, tour[0])].astype(np.float64)
    return float(np.linalg.norm(np.diff(ring, axis=0), axis=1).sum())


@pytest.mark.parametrize(("size", "dimensions"), [(n, d) for n in (1, 2, 3, 6, 700) for d in (1, 30)])
def test_a_list_of_every_word_that_is_no_longer(size: int, dimensions: int) -> None:
    """Every list is a permutation, and as a ring no longer than the greedy one it began with."""
    vectors = points(size, dimensions)
    starts = list(range(min(3, size)))
    greedy, improved = greedy_orders(vectors, starts), improved_orders(vectors, starts)
    for before, after in zip(greedy, improved, strict=True):
        assert sorted(after.tolist()) == list(range(size))
        assert length(vectors, after) <= length(vectors, before) * (1 + 1e-9)


def test_equal_vectors_stand_together() -> None:
    """Thousands of equal vectors cost no time, and stand side by side."""
    vectors = np.concatenate([points(100, 4), np.zeros((3000, 4), np.float32)])
    order = improved_orders(vectors, [5])[0]
    places = np.flatnonzero(order >= 100)
    assert sorted(order.tolist()) == list(range(3100))
    assert np.ptp(places) == 2999
