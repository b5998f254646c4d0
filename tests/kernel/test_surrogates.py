"""Surrogates: random digits in the shape of the number, independent of the number, anew in each place."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corpusveil as cv
from corpusveil.kernel import surrogates as module
from corpusveil.sampling.draws import SURROGATE, DrawKey, Draws
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage.documents import Documents
from corpusveil.storage.rows import Columns
from corpusveil.text.policy import NUMBER_SHAPES
from corpusveil.transforms.release.manifest import draft
from tests.contracts.statistics import LEVEL, fit_p_value

KEY = cv.Key(bytes(range(32)))
DRAWN = 60_000


def release_of(key: cv.Key = KEY, budget: Any = None, **policy: Any) -> cv.Release:
    vectors = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    space = cv.build_space(Vectors([f"a{c}" for c in "abcdefghijkl"], vectors))
    chosen = cv.TextPolicy(**{"numbers": "surrogate", **policy})
    return cv.Release(cv.mechanism("ring-geometric", space), budget or cv.Budget(1.0), chosen, key=key)


def written(texts: list[str], release: cv.Release | None = None, name: str = "d") -> list[str]:
    ids = [f"{name}{number}" for number in range(len(texts))]
    return list(cv.privatize(texts, release or release_of(), ids=ids))


def strings(shape: str) -> list[str]:
    """Return every string of a shape, each as likely as any other."""
    signs = {"0": "0123456789", "A": "abcdefghijklmnopqrstuvwxyz"}
    return ["".join(drawn) for drawn in itertools.product(*(signs.get(sign, sign) for sign in shape))]


LAWS = {"38": strings("00"), "4-4": strings("0-0"), "1,3": strings("0,0"), "6q": strings("0A")}
"""A number, and what it becomes with equal probability."""


def fit(number: str, drawn: list[str]) -> float:
    index = {u: k for k, u in enumerate(LAWS[number])}
    return fit_p_value(np.array([index[u] for u in drawn]), np.full(len(index), 1 / len(index)))


@pytest.mark.parametrize("number", LAWS)
def test_each_string_of_the_shape_is_as_likely_as_any_other(number: str) -> None:
    drawn = written([f"{number} " * DRAWN])[0].split()
    assert fit(number, drawn) > LEVEL
    drawn[::50] = [number] * len(drawn[::50])
    assert fit(number, drawn) < LEVEL, "a number that comes back in one of 50 is noticed"


# Independence


def test_numbers_of_equal_shape_become_the_same_number() -> None:
    """Under equal draws, that is: the tag of a document covers its text, so here it is held still."""
    release = release_of()

    def drawn(texts: list[str]) -> bytes:
        kernel = release.kernel()
        column = pa.array(texts, pa.large_string())
        tags = np.arange(2 * len(texts), dtype=np.uint64).reshape(-1, 2)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(kernel), "noise_tags", lambda *_: tags)
            out, _ = kernel.privatize(Documents(column, [b""] * len(texts)))
        return json.dumps(out.to_pylist()).encode()

    for one, other in (("12", "47"), ("1-31", "8-88"), ("5km", "7km"), ("6q", "9z"), ("192.168.1.1", "555.000.0.9")):
        text = "aa {} ab, {}"
        assert drawn([text.format(one, other)]) == drawn([text.format(other, one)])
        assert drawn([text.format(one, one)]) == drawn([text.format(other, other)])
    assert drawn(["aa 12"]) != drawn(["aa 123"])


def test_draws_are_those_of_the_place_alone() -> None:
    """A number in front of others, of any length, leaves theirs as they are: other draws, never the same ones twice."""
    draws = Draws.of_tokens(DrawKey.derive(KEY, "00" * 32), 40)
    sizes = np.random.default_rng(0).choice([1, 4, 16, 17, 33, 400], 40)
    lanes, offsets = module._lanes(draws, sizes)
    assert len(set(lanes.tolist())) == lanes.size
    for t in (0, 7, 39):
        one = Draws(draws.key, draws.tags, draws.documents[t : t + 1], draws.positions[t : t + 1])
        np.testing.assert_array_equal(lanes[offsets[t] : offsets[t + 1]], one.lanes(SURROGATE, 64)[0][: len(lanes)][
            : offsets[t + 1] - offsets[t]
        ])  # fmt: skip
        assert (offsets[t + 1] - offsets[t]) * module.CHARACTERS >= sizes[t]


# Shapes


def shape_of(number: str) -> str:
    digits = re.sub(r"[0-9\u0661\u00bd]", "0", number)
    return re.sub("[a-zA-Z\u00e9]", "A", digits)


NUMBER = st.from_regex(r"\A[0-9\u0661\u00bd][0-9a-zA-Z\u00e9\u0661]{0,4}([.,][0-9][0-9a-z]{0,3})?\Z")


@given(st.lists(st.one_of(NUMBER, st.sampled_from(["5km", "1-31", "12", "9/9", "12:30:59", "7" * 50])), max_size=8))
@settings(max_examples=150, deadline=None)
@pytest.mark.nightly
def test_the_shape_is_always_the_same(numbers: list[str]) -> None:
    """Every number token becomes one of its shape."""
    (out,) = written([" ".join(numbers)])
    found = out.split(" ") if out else []
    assert len(found) == len(numbers)
    for one, other in zip(numbers, found, strict=True):
        assert other.isascii()
        assert shape_of(other) == shape_of(one)


@pytest.mark.parametrize(
    ("case", "number", "form"),
    [
        ("lower", "5KM", "[0-9][a-z][a-z]"),
        ("restore", "5KM", "[0-9][A-Z][A-Z]"), ("restore", "5Km", "[0-9][A-Z][a-z]"),
        ("restore", "4Q", "[0-9][A-Z]"), ("restore", "4QQ", "[0-9][A-Z][A-Z]"),
        ("lower", "7\u00e9", "[0-9][a-z]"), ("restore", "\u0664\u0662", "[0-9][0-9]"),
        ("lower", "1\ufe0f\u20e3", "[0-9]"),
    ],
)  # fmt: skip
def test_capitals_and_other_scripts(case: Any, number: str, form: str) -> None:
    for line in written([number] * 30, release_of(case=case)):
        assert re.fullmatch(form, line)


# What is said, and what is not changed


def test_what_holds_and_what_is_disclosed_is_said() -> None:
    guarantee = release_of().guarantee()
    assert "Two numbers of equal shape cannot be distinguished (0 nats, at any epsilon)" in " ".join(guarantee.notes)
    assert "numbers" not in next(line for line in guarantee.notes if "'resample'" in line)
    assert NUMBER_SHAPES not in release_of(numbers="resample").guarantee().disclosed
    manifest = draft(release_of(), Columns())
    assert NUMBER_SHAPES in manifest["guarantee"]["disclosed"]


def test_surrogates_take_no_part_of_a_budget() -> None:
    """A document's budget is shared by what the mechanism and public draws replace; numbers are not among it."""
    texts = pa.array(["aa ab 12 13 14", "aa ab"], pa.large_string())
    for budget in (cv.Budget(8.0, "document"), cv.Budget(2.0)):
        kernel = release_of(budget=budget).kernel()
        _, readings = kernel.account(Documents(texts, ["a", "b"]), bytes(32))
        assert len(set(readings.nats.tolist())) == 1
