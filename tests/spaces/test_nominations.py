"""Nominations leave no word out that is nearer than their floor, however hard float32 is on the numbers."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt
import pytest

from corpusveil.spaces import nominations, slices
from corpusveil.spaces.list_orders import greedy_orders
from corpusveil.spaces.nominations import least_distance, nominate, rounds, squared_distance

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
    monkeypatch.setattr(nominations, "TILE", 130)
    monkeypatch.setattr(slices, "_threads", lambda: 3)
    assert wrong_floors(vectors) == 0
    assert np.array_equal(greedy_orders(vectors, [3])[0], brute_force(vectors, 3))


def test_floors_without_what_rounding_takes_away_would_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: of many words at one distance, some seem farther away than they are."""
    vectors = cases()["corners of a cube"].astype(np.float32)
    points, _, exponent = nominations._centred(vectors, np.arange(len(vectors)))
    halves = (np.square(points, dtype=np.float64).sum(axis=1) / 2).astype(np.float32)
    monkeypatch.setattr(nominations, "_centred", lambda *_: (points, halves, exponent))
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


@pytest.mark.parametrize("blocks", [1, 2, 5, 8])
def test_each_two_blocks_meet_once_and_never_share_a_round_with_another_pair(blocks: int) -> None:
    """Two threads must not write the buffer of one word."""
    met = []
    for pairs in rounds(blocks):
        busy = [block for left, right in pairs for block in {left, right}]
        assert len(busy) == len(set(busy))
        met += [tuple(sorted(pair)) for pair in pairs]
    assert sorted(met) == list(combinations_with_replacement(range(blocks), 2))
