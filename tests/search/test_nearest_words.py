"""The search finds the nearest word exactly, however hard float32 is on the numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from corpusveil.search import nearest_words, slices
from corpusveil.search.nearest_words import NearestSearch
from tests.calls import refused

Floats = npt.NDArray[np.float64]


def brute_force(vectors: npt.NDArray[np.float32], points: Floats) -> npt.NDArray[np.int64]:
    """Rank every word in float64, dimension by dimension; ties by id."""
    ranks = np.zeros((len(points), len(vectors)))
    for j in range(vectors.shape[1]):
        value = vectors[:, j].astype(np.float64)
        ranks += value * (value - 2 * points[:, j, None])
    return ranks.argsort(axis=1, kind="stable")


def _cases() -> dict[str, tuple[npt.NDArray[np.float32], Floats]]:
    rng = np.random.default_rng(12)
    normal = rng.normal
    plain = normal(size=(700, 30)).astype(np.float32)
    near = plain[rng.integers(0, 700, 300)].astype(np.float64)
    offset = (normal(size=(500, 20)) + 1e4).astype(np.float32)
    corners = rng.integers(0, 2, (600, 9)).astype(np.float32)
    grid = rng.integers(0, 12, (700, 2)).astype(np.float32)
    twice = np.tile(normal(size=(90, 6)), (6, 1)).astype(np.float32)
    magnitudes = (normal(size=(300, 12)) * 10.0 ** rng.integers(-15, 15, (300, 12))).astype(np.float32)
    return {
        "at the words": (plain, near),
        "a little beside": (plain, near + 0.1 * normal(size=near.shape)),
        "far away": (plain, near + 1e4 * normal(size=near.shape)),
        "so far that distances are all equal": (plain, 1e60 * normal(size=near.shape)),
        "each at a scale of its own": (plain, normal(size=near.shape) * 10.0 ** rng.integers(-30, 100, (300, 1))),
        "one dimension": (plain[:, :1].copy(), 3 * normal(size=(400, 1))),
        "far from the origin, more nominees than kept": (offset, offset[:200] + normal(size=(200, 20))),
        "corners of a cube and its centre": (corners, np.r_[rng.integers(0, 2, (200, 9)), np.full((3, 9), 0.5)]),
        "midway on a grid": (grid, rng.integers(0, 24, (500, 2)) / 2),
        "duplicates": (twice, twice[::-1][:200] + 0.3 * normal(size=(200, 6))),
        "all words equal": (np.ones((200, 4), np.float32), normal(size=(50, 4))),
        "all magnitudes": (magnitudes, magnitudes.astype(np.float64)),
        "tiny": (plain * np.float32(2.0**-58), near * 2.0**-58),
        "huge": (plain * np.float32(2.0**55), near * 2.0**55 + 2.0**54 * normal(size=near.shape)),
        "two words": (plain[:2].copy(), normal(size=(40, 30))),
    }


CASES = _cases()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("k", [3])
@pytest.mark.parametrize("shape", [(1024, 4096), (7, 100)])
def test_several_are_the_brute_force_nearest(
    name: str, k: int, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The k nearest in their order, equal ones by id; the first is the nearest."""
    monkeypatch.setattr(nearest_words, "TILE_ROWS", shape[0])
    monkeypatch.setattr(nearest_words, "TILE_COLUMNS", shape[1])
    vectors, points = CASES[name]
    k = min(k, len(vectors))
    points = points.astype(np.float64)
    found = NearestSearch.from_vectors(vectors).several(points, k)
    assert found.shape == (len(points), k)
    assert np.array_equal(found, brute_force(vectors, points)[:, :k])
    assert np.array_equal(found[:, 0], NearestSearch.from_vectors(vectors).nearest(points))


def test_products_in_float32_alone_would_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: without the slack for rounding the search is wrong, and the cases above notice."""
    vectors, points = CASES["far from the origin, more nominees than kept"]
    expected = brute_force(vectors, points)[:, 0]
    assert np.array_equal(NearestSearch.from_vectors(vectors).nearest(points), expected)
    monkeypatch.setattr(nearest_words, "error_bound", lambda _dimensions: 0.0)
    assert (NearestSearch.from_vectors(vectors).nearest(points) != expected).mean() > 0.01


@pytest.mark.parametrize("factor", [0.0, 2.0**-64, 2.0**64])
def test_norms_out_of_range_are_refused(factor: float) -> None:
    """Where squares would overflow or vanish in float32 the vectors are refused with a sentence."""
    with refused("unsuitable-data", "norm"):
        NearestSearch.from_vectors(np.full((3, 2), factor, np.float32))


def test_slices_within_slices_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is run in slices may ask for slices itself: it does them alone, and waits for nobody."""
    monkeypatch.setattr(slices, "_threads", lambda: 2)
    done = np.zeros((8, 10), np.int64)

    def inner(row: int, low: int, high: int) -> None:
        done[row, low:high] += 1

    def outer(low: int, high: int) -> None:
        for row in range(low, high):
            slices.in_slices(10, inner, row)

    slices.in_slices(8, outer)
    assert (done == 1).all()
