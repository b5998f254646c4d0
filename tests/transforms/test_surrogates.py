"""Surrogates: of the number's shape, drawn by the law that is stated, independent of the number, at each place anew."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corpusveil as cv
from corpusveil.sampling.draws import SURROGATE, DrawKey, Draws
from corpusveil.spaces.number_counts import Numbers
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage.rows import Columns
from corpusveil.text.number_shapes import shape_of
from corpusveil.text.policy import NUMBER_SHAPES
from corpusveil.transforms.kernel import surrogates as module
from corpusveil.transforms.release.manifest import draft
from tests.contracts.statistics import LEVEL, fit_p_value

KEY = cv.Key(bytes(range(32)))
ROWS = [
    ("00", "12", 30), ("00", "47", 10), ("00", "", 9), ("0-00", "1-31", 12), ("0-00", "2-28", 6), ("0-00", "", 21),
    ("0km", "5km", 4), ("0km", "", 0), ("0", "7", 8), ("0", "", 1),
]  # fmt: skip
PUBLIC = Numbers.of(ROWS)
DRAWN = 60_000


def space_with(numbers: Numbers | None = PUBLIC) -> cv.Space:
    vectors = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    return cv.build_space(Vectors([f"a{c}" for c in "abcdefghijkl"], vectors), numbers=numbers)


def release_of(public: Numbers = PUBLIC, key: cv.Key = KEY, budget: Any = None, **policy: Any) -> cv.Release:
    chosen = cv.TextPolicy(**{"numbers": "surrogate", **policy})
    return cv.Release(cv.mechanism("ring-geometric", space_with(public)), budget or cv.Budget(1.0), chosen, key)


def written(texts: list[str], release: cv.Release | None = None, name: str = "d") -> list[str]:
    ids = [f"{name}{number}" for number in range(len(texts))]
    return list(cv.privatize(texts, release or release_of(), ids=ids))


# The law, worked out by hand from the rows


def alone(shape: str) -> dict[str, float]:
    """Return the law of a number by itself, of a shape without hidden letters: every string of the shape."""
    digits = shape.count("0")
    rows = {number: count for s, number, count in ROWS if s == shape and number}
    whole = sum(count for s, _, count in ROWS if s == shape) + 1
    law = {}
    for drawn in itertools.product("0123456789", repeat=digits):
        it = iter(drawn)
        law["".join(next(it) if sign == "0" else sign for sign in shape)] = 10.0**-digits
    rest = (whole - sum(rows.values())) / whole
    return {u: rest * p + rows.get(u, 0) / whole for u, p in law.items()}


def joined() -> dict[str, float]:
    """Return the law of the shape ``0-00``."""
    kept, whole = {("1", "31"): 12, ("2", "28"): 6}, 40
    rest = (whole - 18) / whole
    law = {}
    for one, two in itertools.product(alone("0"), alone("00")):
        parts = 1.0
        for at, part, shape in ((0, one, "0"), (1, two, "00")):
            parts *= sum(c for k, c in kept.items() if k[at] == part) / whole + rest * alone(shape)[part]
        law[f"{one}-{two}"] = kept.get((one, two), 0) / whole + rest * parts
    return law


LAWS = {
    "38": alone("00"), "9": alone("0"), "4km": alone("0km"), "4-44": joined(),
    "1,3": {f"{a},{b}": 0.01 for a in range(10) for b in range(10)},
    "6q": {f"{a}{chr(97 + b)}": 1 / 260 for a in range(10) for b in range(26)},
}  # fmt: skip
"""A number and the law of what becomes of it: of a public shape, of a date, of shapes that public text lacks."""


def fit(number: str, drawn: list[str]) -> float:
    law = LAWS[number]
    index = {u: k for k, u in enumerate(law)}
    return fit_p_value(np.array([index[u] for u in drawn]), np.array(list(law.values())))


@pytest.mark.parametrize("number", LAWS)
def test_the_law_is_that_of_the_public_counts(number: str) -> None:
    """By brute force over all strings of the shape; the laws themselves are whole, and none is zero."""
    assert math.fsum(LAWS[number].values()) == pytest.approx(1)
    assert min(LAWS[number].values()) > 0
    assert fit(number, written([f"{number} " * DRAWN])[0].split()) > LEVEL


@pytest.mark.parametrize("broken", ["counts", "uniform", "the number itself"])
def test_another_law_is_noticed(broken: str) -> None:
    """The test could fail: counts that are off by a tenth, no counts, and a number that comes back in one of 50."""
    if broken == "counts":
        other = [(s, n, c + 4 if n == "12" else c) for s, n, c in ROWS]
        drawn = written(["38 " * DRAWN], release_of(Numbers.of(other)))[0].split()
    elif broken == "uniform":
        drawn = written(["38 " * DRAWN], release_of(Numbers.of([])))[0].split()
    else:
        drawn = written(["38 " * DRAWN])[0].split()
        drawn[::50] = ["38"] * len(drawn[::50])
    assert fit("38", drawn) < LEVEL


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
            out, _ = kernel.privatize(column, [b""] * len(texts), "text")
        return json.dumps(out.to_pylist()).encode()

    for one, other in (("12", "47"), ("1-31", "8-88"), ("5km", "7km"), ("6q", "9z"), ("192.168.1.1", "555.000.0.9")):
        text = "aa {} ab, {}"
        assert drawn([text.format(one, other)]) == drawn([text.format(other, one)])
        assert drawn([text.format(one, one)]) == drawn([text.format(other, other)])
    assert drawn(["aa 12"]) != drawn(["aa 123"])


def test_one_number_becomes_another_at_each_place() -> None:
    first, second = written(["4444 " * 400] * 2)
    assert len(set(first.split())) > 350
    assert first != second
    assert written(["4444 " * 400], release_of(key=cv.Key(bytes(range(100, 132))))) != [first]
    (long,) = written(["9" * 5000])
    assert len({long[k : k + 8] for k in range(0, 4000, 8)}) > 495, "digits do not repeat"


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
        assert (offsets[t + 1] - offsets[t] - 2 * module.CHOICES) * module.CHARACTERS >= sizes[t]


# Shapes


def hidden(number: str, numbers: Numbers = PUBLIC) -> str:
    """Return the shape of a number by itself as a release discloses it."""
    shape = shape_of(number)
    return shape if shape in numbers.shapes else re.sub("[a-zA-Z]", "A", shape)


NUMBER = st.from_regex(r"\A[0-9\u0661\u00bd][0-9a-zA-Z\u00e9\u0661]{0,4}([.,][0-9][0-9a-z]{0,3})?\Z")


@given(st.lists(st.one_of(NUMBER, st.sampled_from(["5km", "1-31", "12", "9/9", "12:30:59", "7" * 50])), max_size=8))
@settings(max_examples=150, deadline=None)
def test_the_shape_is_always_the_same(numbers: list[str]) -> None:
    """Every number token becomes one of its shape; letters stay only where public numbers of the shape have them."""
    (out,) = written([" ".join(numbers)])
    found = out.split(" ") if out else []
    assert len(found) == len(numbers)
    for one, other in zip(numbers, found, strict=True):
        parts, others = (re.split("[-/:]", text) for text in (one, other))
        assert other.isascii()
        assert [re.sub("[0-9]", "0", re.sub("[a-z]", "A", p)) for p in others] == [
            re.sub("[a-z]", "A", hidden(p)) for p in parts
        ]


@pytest.mark.parametrize(
    ("case", "number", "form"),
    [
        ("lower", "5KM", "[0-9]km"), ("restore", "5KM", "[0-9]KM"), ("restore", "5Km", "[0-9]Km"),
        ("restore", "5km", "[0-9]km"), ("restore", "4Q", "[0-9][A-Z]"), ("restore", "4QQ", "[0-9][A-Z][A-Z]"),
        ("lower", "7\u00e9", "[0-9][a-z]"), ("restore", "\u0664\u0662", "[0-9][0-9]"),
        ("lower", "1\ufe0f\u20e3", "[0-9]"),
    ],
)  # fmt: skip
def test_capitals_and_other_scripts(case: Any, number: str, form: str) -> None:
    for line in written([number] * 30, release_of(case=case)):
        assert re.fullmatch(form, line)


def test_dates_are_one_number_only_where_marks_are_kept() -> None:
    """Otherwise that two numbers were one would show in them."""
    kept = Counter(written(["4-44 " * 4000])[0].split())
    assert kept["1-31"] / 4000 == pytest.approx(joined()["1-31"], abs=0.03)
    apart = Counter(written(["4-44, " * 4000], release_of(punctuation="drop"))[0].replace(" ", "-").split("-"))
    law = alone("00")["31"] + alone("0").get("31", 0)
    assert apart["31"] / 4000 == pytest.approx(law, abs=0.01)


@pytest.mark.parametrize("layout", ["normalize", "keep"])
def test_as_many_numbers_come_out_as_go_in(layout: Any) -> None:
    for text in ("aa12\U0001f60034", "12\U0001f60034", "(12),34;5-6", "1-2-3 4", "12\n13"):
        before = re.findall("[0-9]+", text.removeprefix("aa12"))
        (line,) = written([text], release_of(layout=layout))
        assert [*map(len, re.findall(r"\b[0-9]+\b", line))] == [*map(len, before)], text


# What is said, and what is not changed


def test_what_holds_and_what_is_disclosed_is_said() -> None:
    guarantee = release_of().guarantee()
    assert "Two numbers of equal shape cannot be distinguished (0 nats, at any epsilon)" in " ".join(guarantee.notes)
    assert "each number counts separately" in " ".join(release_of(punctuation="drop").guarantee().notes)
    assert "numbers" not in next(line for line in guarantee.notes if "'resample'" in line)
    assert NUMBER_SHAPES not in release_of(numbers="resample").guarantee().disclosed
    manifest = draft(release_of(), Columns())
    assert manifest["configuration"]["numbers"] == PUBLIC.digest
    assert NUMBER_SHAPES in manifest["guarantee"]["disclosed"]


def test_surrogates_take_no_part_of_a_budget() -> None:
    """A document's budget is shared by what the mechanism and public draws replace; numbers are not among it."""
    texts = pa.array(["aa ab 12 13 14", "aa ab"], pa.large_string())
    for budget in (cv.Budget(8.0, "document"), cv.Budget(2.0)):
        kernel = release_of(budget=budget).kernel()
        _, readings = kernel.account(texts, ["a", "b"], "text", bytes(32))
        assert len(set(readings.total.tolist())) == len(set(readings.ldp.tolist())) == 1
