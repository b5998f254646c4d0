"""What the fuzzer calls a finding: each way in which a promise can break, and none in which it holds."""

from __future__ import annotations

import pytest

from corpusveil.errors import UserError, WorkError
from fuzz.containers import changed, one, packed, pieces
from fuzz.invariant import CANARY, Finding, refused


def said(text: str) -> object:
    def call() -> None:
        raise UserError(text)

    return refused(call, "x.csv")


@pytest.mark.parametrize(
    "text",
    ["no file", "x.csv: a\nb", "x.csv: a\u2028b", "x.csv: \x07", f"x.csv: {CANARY}", f"x.csv: {'a' * 700}", ""],
)
def test_a_message_that_breaks_it(text: str) -> None:
    with pytest.raises(Finding):
        said(text)


def test_a_message_that_keeps_it() -> None:
    assert said("x.csv, row 2: not valid UTF-8; repair or remove the row.") is None
    assert refused(lambda: [1], "x.csv") == [1]


@pytest.mark.parametrize("error", [ValueError, OSError, RecursionError, MemoryError, KeyError])
def test_any_other_exception_goes_on(error: type[Exception]) -> None:
    def call() -> None:
        raise error

    with pytest.raises(error):
        refused(call, "x.csv")


def test_a_failure_of_work_is_a_sentence_too() -> None:
    def call() -> None:
        raise WorkError("somewhere")

    with pytest.raises(Finding):
        refused(call, "x.csv")


def test_containers_hold_what_is_put_in() -> None:
    assert pieces(one(b"a", b"", b"bc"), 3) == [b"a", b"", b"bc"]
    assert changed(b"abc", b"\x01\x00\x01") == b"acc"
    assert changed(b"", b"abc") == b""
    assert packed(b"ab", ".gz", raw=True) == b"ab"
    assert packed(b"ab", ".gz", raw=False) != b"ab"
