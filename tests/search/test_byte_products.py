"""Products of bytes nominate as those in float32 do: their bound is below every distance."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt
import pytest
from numba import njit

from corpusveil.search import byte_products, nominations, slices
from corpusveil.search.byte_products import COLUMNS, ROWS, TOGETHER, multiply
from corpusveil.search.nominations import bounds, nominate, nominate_by_bytes, nominate_by_floats, points_of, rounds
from corpusveil.spaces.list_orders import greedy_orders
from tests.spaces.test_list_orders import brute_force, cases


@njit
def one_tile(
    left: npt.NDArray[np.int8], top: int, bottom: int, panel: npt.NDArray[np.uint8], out: npt.NDArray[np.int32]
) -> None:
    multiply(left, top, bottom, panel, out)


@pytest.mark.parametrize("dimensions", [4, 300])
def test_a_tile_is_the_product_of_integers(dimensions: int) -> None:
    """Whatever instruction computes it, at the ends of the range too, and without a row that is not there."""
    rng = np.random.default_rng(0)
    left = rng.integers(-127, 128, (20, dimensions), dtype=np.int8)
    panel = rng.integers(1, 256, (dimensions // TOGETHER, COLUMNS, TOGETHER), dtype=np.uint8)
    left[0], left[1], panel[:, 5], panel[:, 6] = 127, -127, 255, 1
    right = panel.astype(np.int64).transpose(0, 2, 1).reshape(dimensions, COLUMNS)
    for top in (0, 12, 17):
        out = np.zeros((ROWS, COLUMNS), np.int32)
        one_tile(left, top, len(left), panel, out)
        rows = min(ROWS, len(left) - top)
        assert np.array_equal(out[:rows], (left.astype(np.int64) @ right)[top : top + rows])


@pytest.mark.parametrize("nominated", [nominate_by_bytes, nominate_by_floats])
@pytest.mark.parametrize("name", cases())
def test_no_word_that_is_left_out_is_nearer_than_the_floor(name: str, nominated: type) -> None:
    """By either kind of product, on what is hard for it; and each word is nominated once."""
    vectors = cases()[name].astype(np.float32)
    prepared = points_of(vectors)
    found = nominated(prepared, 8)
    points = vectors.astype(np.float64)
    assert (np.diff(np.sort(found.rows, axis=1)) > 0).all()
    for i in range(0, len(points), 7):
        squared = ((points - points[i]) ** 2).sum(axis=1) * prepared.scale
        assert (bounds(prepared, prepared, i) <= squared * (1 + 1e-13)).all()
        squared[found.rows[i]] = np.inf
        assert squared.min() * (1 + 1e-13) >= found.floors[i]


def test_bounds_without_what_rounding_takes_away_would_be_wrong() -> None:
    """Control: the floors then exceed distances of words that were left out."""
    vectors = cases()["gaussian"].astype(np.float32)
    prepared = points_of(vectors)
    values, scales, weights, _ = prepared.rounded
    weights[:] = np.square(values.astype(np.float64)).sum(axis=1) * np.float64(scales) ** 2
    object.__setattr__(prepared, "share", 1.0)
    squared = ((vectors[:, None] - vectors[None].astype(np.float64)) ** 2).sum(axis=2) * prepared.scale
    above = [(bounds(prepared, prepared, i) > squared[i] * (1 + 1e-6)).mean() for i in range(0, len(vectors), 50)]
    assert np.mean(above) > 0.1


@pytest.mark.parametrize("name", cases())
@pytest.mark.parametrize("by_bytes", [True, False])
def test_either_product_gives_the_tour(name: str, by_bytes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and threads change nothing, nor does a machine without the instruction."""
    vectors = cases()[name].astype(np.float32)
    monkeypatch.setattr(nominations, "BYTES", by_bytes)
    monkeypatch.setattr(nominations, "PAIRED", 130)
    monkeypatch.setattr(slices, "_threads", lambda: 3)
    assert np.array_equal(greedy_orders(vectors, [3])[0], brute_force(vectors, 3))


@pytest.mark.parametrize("blocks", [1, 2, 5, 8])
def test_each_two_blocks_meet_once_and_never_share_a_round_with_another_pair(blocks: int) -> None:
    """Two threads must not write the buffer of one word."""
    met = []
    for pairs in rounds(blocks):
        busy = [block for left, right in pairs for block in {left, right}]
        assert len(busy) == len(set(busy))
        met += [tuple(sorted(pair)) for pair in pairs]
    assert sorted(met) == list(combinations_with_replacement(range(blocks), 2))


def test_wide_vectors_do_not_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of more dimensions than 32 bits hold are left to float32."""
    monkeypatch.setattr(nominations, "BYTES", True)
    monkeypatch.setattr(nominations, "unsure", lambda *_: 0)
    monkeypatch.setattr(byte_products, "WIDEST", 56)
    prepared = points_of(cases()["gaussian"].astype(np.float32))
    assert np.array_equal(nominate(prepared, 8).floors, nominate_by_floats(prepared, 8).floors)
