"""Nominations leave no word out that is nearer than their floor, however hard float32 is on the numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from corpusveil.search import neighbors, slices
from corpusveil.search.nearest_words import NearestSearch
from corpusveil.search.neighbors import least_distance, nominate, squared_distance
from corpusveil.spaces.list_orders import greedy_orders

from .test_list_orders import brute_force, cases

Floats = npt.NDArray[np.float32]


def wrong_floors(vectors: Floats) -> int:
    """Count the words with a floor above the squared distance to a word that they do not nominate."""
    found = nominate(vectors, 8)
    assert (np.diff(np.sort(found.rows, axis=1)) > 0).all(), "a word is nominated twice"
    points = vectors.astype(np.float64)
    count = 0
    for i in range(0, len(points), 7):
        squared = ((points - points[i]) ** 2).sum(axis=1)
        squared[found.rows[i]] = np.inf
        count += squared.min() * (1 + 1e-13) < found.floors[i]
    return count


@pytest.mark.parametrize("name", cases())
def test_blocks_and_threads_change_neither_floors_nor_tour(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = cases()[name].astype(np.float32)
    monkeypatch.setattr(neighbors, "TILE_ROWS", 130)
    monkeypatch.setattr(slices, "_threads", lambda: 3)
    assert wrong_floors(vectors) == 0
    assert np.array_equal(greedy_orders(vectors, [3])[0], brute_force(vectors, 3))


def test_floors_of_fewer_words_than_were_compared_would_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a search that leaves a word out nominates others, whose floors are too high."""
    vectors = cases()["gaussian"].astype(np.float32)
    several = NearestSearch.several
    monkeypatch.setattr(NearestSearch, "several", lambda self, points, k: several(self, points, k + 1)[:, 1:])
    assert wrong_floors(vectors) > 0


@pytest.mark.parametrize("name", cases())
def test_the_least_distance_is_below_the_distance(name: str) -> None:
    """Control: in 60 dimensions, the sums that it is made from are above some."""
    vectors = cases()[name].astype(np.float32)
    least = np.array([least_distance(vectors, 0, i) for i in range(len(vectors))])
    exact = np.array([squared_distance(vectors, 0, i) for i in range(len(vectors))])
    assert (least <= exact).all()
    assert (least >= exact * (1 - 1e-12)).all()
    if name == "gaussian":
        assert (least / (1 - (vectors.shape[1] + 4) * 2.0**-51) > exact).any()
