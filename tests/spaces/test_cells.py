"""Lists in cells: every word once, each cell in its exact order, and said so; nothing changes without need."""

from __future__ import annotations

import numpy as np
import pytest

from corpusveil.spaces.build import build_space, call_of
from corpusveil.spaces.list_orders import cells_of, greedy_orders
from corpusveil.spaces.vectors import Vectors
from tests.calls import refused

from .test_list_orders import brute_force

CELL = 60


def points(count: int, dimensions: int = 6) -> np.ndarray:
    return np.random.default_rng(4).normal(size=(count, dimensions)).astype(np.float32)


@pytest.mark.parametrize("count", [61, 200, 421])
def test_cells_hold_every_word_once_and_none_too_many(count: int) -> None:
    cells = cells_of(points(count), np.arange(count), -(-count // CELL))
    assert np.array_equal(np.sort(np.concatenate(cells)), np.arange(count))
    sizes = [len(ids) for ids in cells]
    assert max(sizes) <= CELL
    assert max(sizes) - min(sizes) <= len(cells)
    assert all((np.diff(ids) > 0).all() for ids in cells)


@pytest.mark.parametrize("start", [0, 233])
def test_each_cell_has_its_exact_order_and_the_nearest_cell_follows(start: int) -> None:
    """Against a search word by word: greedy in the cell, then the nearest word of all cells that are left."""
    vectors = points(300)
    cells = [set(ids.tolist()) for ids in cells_of(vectors, np.arange(300), 300 // CELL)]
    expected, word = [], start
    while True:
        (number,) = (n for n, ids in enumerate(cells) if word in ids)
        ids = np.array(sorted(cells.pop(number)))
        expected += ids[brute_force(vectors[ids], int(np.searchsorted(ids, word)))].tolist()
        left = np.array(sorted(set().union(*cells)), int)
        if not len(left):
            break
        word = int(left[((vectors[left].astype(float) - vectors[expected[-1]]) ** 2).sum(axis=1).argmin()])
    for starts in ([start], [7, start]):  # alone, and after another tour through the same cells
        assert greedy_orders(vectors, starts, CELL)[-1].tolist() == expected
    assert (greedy_orders(vectors, [start])[0] != expected).any()


def test_cells_too_small_are_refused() -> None:
    with refused("wrong-value", "15", "16"):
        build_space(Vectors(["a", "b"], points(2)), cell=15)


def test_a_space_says_that_its_lists_are_in_cells() -> None:
    vectors = Vectors([f"w{i}" for i in range(80)], points(80))
    plain, celled = build_space(vectors), build_space(vectors, cell=40)
    assert plain.digest != celled.digest
    assert celled.info["made"]["cell"] == 40
    assert "misses nearer words in other cells" in celled.info["made"]["cell_note"]
    assert "cell" not in plain.info["made"]
    how = {"lists": 1, "seed": 0, "counts": None, "order": None, "only": None}
    assert plain.info["call"] == call_of([vectors], **how)
    assert celled.info["call"] == call_of([vectors], **how, cell=40)
    assert plain.info["call"] != celled.info["call"]
    assert "cell" not in build_space(vectors, lists=0, cell=40).info["made"]
