"""Products of integers nominate; the words that are found are those of float32, whatever multiplies."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from corpusveil.errors import InstallationError
from corpusveil.spaces import integer_products, nearest_words
from corpusveil.spaces.integer_products import Int8, Int32, Quantized, by_processor, by_torch, fastest
from corpusveil.spaces.nearest_words import Search

from .test_nearest_words import CASES, brute_force_order

WRONG_AT = (3, 5)


def by_numpy(words: Int8) -> integer_products.Multiply:
    def multiply(left: Int8, first: int, out: Int32) -> None:
        out[:] = left.astype(np.int32) @ words[first : first + out.shape[1]].T.astype(np.int32)

    return multiply


def slightly_wrong(words: Int8) -> integer_products.Multiply:
    """A product with one wrong number, wrong by one."""
    right = by_numpy(words)

    def multiply(left: Int8, first: int, out: Int32) -> None:
        right(left, first, out)
        out[WRONG_AT] += 1

    return multiply


@pytest.fixture
def by_integers(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(nearest_words, "WORTH", 0)
    monkeypatch.setattr(nearest_words, "FEW", 1)
    monkeypatch.setattr(nearest_words, "fastest", lambda: by_numpy)
    return monkeypatch


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("largest", [127, 7])
@pytest.mark.parametrize("room", [512, 2])
@pytest.mark.parametrize("make", [by_numpy, by_processor])
def test_the_same_words_are_found(
    name: str, largest: int, room: int, make: integer_products.Maker, by_integers: pytest.MonkeyPatch
) -> None:
    """Also with integers of four bits, whose error is sixteen times as large, and where float32 has to help out."""
    by_integers.setattr(nearest_words, "fastest", lambda: make)
    by_integers.setattr(integer_products, "LARGEST", largest)
    by_integers.setattr(nearest_words, "INTEGER_NOMINEES", room)
    by_integers.setattr(nearest_words, "TILE_COLUMNS", 129)
    vectors, points = CASES[name]
    points = points.astype(np.float64)
    search = Search.of(vectors)
    assert search.integers is not None
    for k in (1, min(3, len(vectors))):
        assert np.array_equal(search.several(points, k), brute_force_order(vectors, points)[:, :k])


@pytest.mark.parametrize("make", [by_numpy, by_processor])
def test_integers_without_their_bound_would_be_wrong(
    make: integer_products.Maker, by_integers: pytest.MonkeyPatch
) -> None:
    """Control: without the length of the rounding errors, other words are found."""
    by_integers.setattr(nearest_words, "fastest", lambda: make)

    def forgetful(vectors: npt.NDArray[np.float64], offset: npt.NDArray[np.float64]) -> Quantized:
        exact = Quantized.of(vectors, offset)
        return Quantized(exact.values, exact.scales, exact.lost * 0)

    vectors, points = CASES["far away"]
    expected = brute_force_order(vectors, points)[:, 0]
    assert np.array_equal(Search.of(vectors).nearest(points), expected)

    class Forgetful:
        of = staticmethod(forgetful)

    by_integers.setattr(nearest_words, "Quantized", Forgetful)
    assert (Search.of(vectors).nearest(points) != expected).mean() > 0.01


def test_what_is_lost_is_not_understated() -> None:
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((50, 70)) * 10.0 ** rng.integers(-12, 12, (50, 1))
    vectors[7] = 0
    offset = rng.standard_normal(70)
    found = Quantized.of(vectors, offset)
    again = found.scales[:, None].astype(np.longdouble) * found.values[:, :70]
    lost = np.sqrt(np.square(vectors - offset.astype(np.longdouble) - again).sum(axis=1))
    assert found.values.shape == (50, 96)
    assert (lost <= found.lost).all()
    assert (found.lost <= lost * (1 + 1e-9) + 1e-300).all()


def test_a_product_that_is_wrong_is_caught(by_integers: pytest.MonkeyPatch) -> None:
    """One number that is wrong by one, which would not even change what is found."""
    by_integers.setattr(nearest_words, "fastest", lambda: slightly_wrong)
    vectors, points = CASES["far away"]
    with pytest.raises(InstallationError) as caught:
        Search.of(vectors).nearest(points)
    assert caught.value.code == "broken-installation"


def test_a_gpu_without_room_is_no_error(by_integers: pytest.MonkeyPatch) -> None:
    """Float32 finds the same words."""

    def full(_words: Int8) -> integer_products.Multiply:
        raise RuntimeError("CUDA out of memory")

    by_integers.setattr(nearest_words, "fastest", lambda: full)
    vectors, points = CASES["far away"]
    search = Search.of(vectors)
    assert search.integers is None
    assert np.array_equal(search.nearest(points), brute_force_order(vectors, points)[:, 0])


def test_neither_pytorch_nor_the_instruction_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Float32 does the work; without PyTorch alone, so does our own product."""
    monkeypatch.setattr(integer_products.importlib.util, "find_spec", lambda _name: None)
    fastest.cache_clear()
    assert fastest() in (None, by_processor)
    monkeypatch.setattr(integer_products.byte_products, "FAST", False)
    fastest.cache_clear()
    assert fastest() is None
    fastest.cache_clear()


@pytest.mark.parametrize("make", [by_processor, by_torch])
def test_a_product_is_that_of_numpy(make: integer_products.Maker) -> None:
    """Whatever rows and columns, also fewer than a GPU or a tile wants, and at the ends of the range."""
    if make is by_torch:
        pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    words = rng.integers(-127, 128, (301, 96), dtype=np.int8)
    words[5], words[6] = 127, -127
    for rows, first, columns in ((40, 0, 301), (33, 100, 201), (1, 300, 1)):
        left = rng.integers(-127, 128, (rows, 96), dtype=np.int8)
        left[0] = 127
        found, expected = np.empty((rows, columns), np.int32), np.empty((rows, columns), np.int32)
        make(words)(left, first, found)
        by_numpy(words)(left, first, expected)
        assert np.array_equal(found, expected)
