"""What a unit has spent is never counted too low, whatever happens to documents, files, types and processes."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corpusveil as cv
from corpusveil.ledger.entries import EntryStore
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from tests.engines.corpora import WORDS
from tests.ledger.histories import STEPS, cost, play

HISTORIES = st.lists(STEPS, min_size=3, max_size=9)
CHAIN = [
    step
    for number, edit in enumerate((None, ("edit", 0, 1), ("retype", 1, 0), ("edit", 0, 2), ("retype", 0, 0)))
    for step in ([] if edit is None else [edit]) + [("run", number % 3, 0)]
]
"""One document whose text and the type of whose id change in turn."""


@pytest.fixture(scope="module")
def small() -> Space:
    vectors = np.random.default_rng(1).standard_normal((len(WORDS), 2)).astype(np.float32)
    return cv.build_space(Vectors(list(WORDS), vectors))


def never_too_low(small: Space, history: list[Any]) -> None:
    """Compare with the count by hand; exactly, if nothing was stopped."""
    with tempfile.TemporaryDirectory() as folder:
        held, visible = play(small, f"{folder}/history", history)
    stopped = any(step[0] in ("run", "frame") and step[2] for step in history)
    for author, spent in held.items():
        owed = cost(small) * len(visible[author])
        assert spent >= owed - 1e-9
        assert stopped or spent == pytest.approx(owed, abs=1e-6)


@pytest.mark.nightly
@settings(max_examples=300, deadline=None)
@given(history=HISTORIES)
def test_a_night_of_histories(small: Space, history: list[Any]) -> None:
    never_too_low(small, history)


def test_a_ledger_that_forgets_would_be_noticed(small: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control for the histories above: without entries the same comparison fails."""
    never_too_low(small, CHAIN)
    monkeypatch.setattr(EntryStore, "enter", lambda *_: None)
    with pytest.raises(AssertionError):
        never_too_low(small, CHAIN)


@pytest.mark.parametrize("first", [1, *(pytest.param(each, marks=pytest.mark.nightly) for each in range(2, 7))])
def test_the_worst_author_is_at_least_what_is_owed_with_crashes_at_every_write(small: Space, first: int) -> None:
    """A run is stopped before or after each of its writes, and repeated; every day at each sixth moment."""
    for stop in range(first, 24, 6):
        never_too_low(small, [("run", 0, stop), ("run", 0, 0), ("run", 1, stop)])
