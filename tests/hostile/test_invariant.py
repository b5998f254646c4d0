"""What the fuzzer calls a finding: each way in which a promise can break, and none in which it holds."""

from __future__ import annotations

import pytest

from corpusveil.errors import UserError, WorkError
from fuzz.containers import changed, one, packed, pieces
from fuzz.invariant import CANARY, Finding, refused


def fails_with(error: BaseException) -> object:
    def call() -> None:
        raise error

    return refused(call, "x.csv")


def test_a_message_that_breaks_or_keeps_it() -> None:
    """A failure of work is a sentence, too."""
    texts = ["no file", "x.csv: a\nb", "x.csv: a\u2028b", "x.csv: \x07", f"x.csv: {CANARY}", f"x.csv: {'a' * 700}", ""]
    for error in (*map(UserError, texts), WorkError("somewhere")):
        with pytest.raises(Finding):
            fails_with(error)
    assert fails_with(UserError("x.csv, row 2: not valid UTF-8; repair or remove the row.")) is None
    assert refused(lambda: [1], "x.csv") == [1]
    for other in (ValueError(), OSError(), RecursionError(), MemoryError()):
        with pytest.raises(type(other)):
            fails_with(other)


def test_containers_hold_what_is_put_in() -> None:
    assert pieces(one(b"a", b"", b"bc"), 3) == [b"a", b"", b"bc"]
    assert changed(b"abc", b"\x01\x00\x01") == b"acc"
    assert packed(b"ab", ".gz", raw=True) == b"ab" != packed(b"ab", ".gz", raw=False)
