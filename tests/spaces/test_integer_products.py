"""Products of integers nominate; the words that are found are those of float32, whatever multiplies."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from corpusveil.spaces import nearest_words
from corpusveil.spaces.nearest_words import NearestSearch, Quantized

from .test_nearest_words import CASES, brute_force_order


@pytest.fixture
def by_integers(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let integers nominate, on processors without the instruction too."""
    monkeypatch.setattr(nearest_words, "WORTH", 0)
    monkeypatch.setattr(nearest_words, "FEW", 1)
    monkeypatch.setattr(nearest_words.byte_products, "FAST", True)
    return monkeypatch


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("largest", "room"), [(127, 2), (7, 512)])
def test_the_same_words_are_found(name: str, largest: int, room: int, by_integers: pytest.MonkeyPatch) -> None:
    """Also with integers of four bits, whose error is sixteen times as large, and where float32 has to help out."""
    by_integers.setattr(nearest_words, "LARGEST", largest)
    by_integers.setattr(nearest_words, "INTEGER_NOMINEES", room)
    vectors, points = CASES[name]
    points = points.astype(np.float64)
    search = NearestSearch.of(vectors)
    assert search.integers is not None
    for k in (1, min(3, len(vectors))):
        assert np.array_equal(search.several(points, k), brute_force_order(vectors, points)[:, :k])


def test_integers_without_their_bound_would_be_wrong(by_integers: pytest.MonkeyPatch) -> None:
    """Control: without the length of the rounding errors, other words are found."""

    def forgetful(vectors: npt.NDArray[np.float64], offset: npt.NDArray[np.float64]) -> Quantized:
        exact = Quantized.of(vectors, offset)
        return Quantized(exact.values, exact.scales, exact.lost * 0)

    vectors, points = CASES["far away"]
    expected = brute_force_order(vectors, points)[:, 0]
    assert np.array_equal(NearestSearch.of(vectors).nearest(points), expected)

    class Forgetful:
        of = staticmethod(forgetful)

    by_integers.setattr(nearest_words, "Quantized", Forgetful)
    assert (NearestSearch.of(vectors).nearest(points) != expected).mean() > 0.01
