"""The greedy order is Algorithm 1 exactly, and nominations leave out no word that is nearer than their floor.

However hard float32 is on the numbers.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt
import pytest

from corpusveil.search import neighbors, slices
from corpusveil.search.nearest_words import NearestSearch
from corpusveil.search.neighbors import nominate
from corpusveil.spaces.list_orders import greedy_orders

Floats = npt.NDArray[np.float32]


def brute_force(vectors: np.ndarray, start: int) -> np.ndarray:
    """Algorithm 1 word by word in float64, ties by id."""
    points = vectors.astype(np.float64)
    used = np.zeros(len(points), bool)
    tour = [start]
    used[start] = True
    while len(tour) < len(points):
        squared = np.zeros(len(points))
        for k in range(points.shape[1]):
            squared += (points[:, k] - points[tour[-1], k]) ** 2
        squared[used] = np.inf
        tour.append(int(squared.argmin()))
        used[tour[-1]] = True
    return np.array(tour, np.int32)


@functools.cache
def cases() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(11)
    normal = rng.normal
    clusters = normal(size=(5, 20))[rng.integers(0, 5, 300)]
    return {
        "one dimension": normal(size=(450, 1)),
        "gaussian": normal(size=(350, 60)),
        "grid with exact ties": rng.integers(0, 25, (450, 2)),
        "corners of a cube": rng.integers(0, 2, (400, 9)),
        "duplicates": np.r_[normal(size=(80, 7))[rng.integers(0, 80, 250)], np.zeros((150, 7)), -np.zeros((9, 7))],
        "all equal": np.ones((150, 3)),
        "clusters": normal(size=(300, 20)) * 1e-3 + clusters * 1e3,
        "large common offset": normal(size=(300, 30)) + 1e5,
        "two far clusters, beyond float32 products": normal(size=(300, 10)) + rng.choice([-1e6, 1e6], (300, 1)),
        "one far word": np.r_[normal(size=(300, 10)), np.full((1, 10), 1e30)],
        "tiny": normal(size=(300, 8)) * 1e-41,
        "huge": normal(size=(300, 8)) * 5e37,
        "all magnitudes": normal(size=(300, 12)) * 10.0 ** rng.integers(-15, 15, (300, 12)),
    }


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
