"""Budgets: what each token gets, and the three readings of what a document is promised."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusveil.budget import Budget
from corpusveil.budget.budget import parse_weights
from corpusveil.errors import UserError
from tests.calls import refused

BAD: list[dict[str, Any]] = [
    {"epsilon": 0.0}, {"epsilon": -1.0}, {"epsilon": float("nan")}, {"epsilon": float("inf")},
    {"per": "sentence"}, {"per": ""}, {"allocation": "per-word", "per": "token"},
    *({"allocation": name} for name in ("idf", "pos", "attention", "TF-IDF")),
    {"allocation": "position"}, {"weights": (1,)},
    *({"allocation": "position", "weights": weights} for weights in ((0,), (1.5,), tuple(range(1, 70)))),
]  # fmt: skip


@pytest.mark.parametrize("arguments", BAD, ids=str)
def test_what_is_no_budget_is_refused(arguments: dict[str, Any]) -> None:
    """Allocations that look at the words are unsound."""
    with pytest.raises(UserError, match=r"epsilon|per|allocation|weights"):
        Budget(**{"epsilon": 1.0, "per": "document", **arguments})


def test_promises_say_all_three_readings() -> None:
    """A coefficient for the sum of distances, one for the largest, one for a single word: by token and by document."""
    token, document = " ".join(Budget(2.0).promises()), " ".join(Budget(2.0, "document").promises())
    assert "at most 2 times the sum" in token
    assert "at most 2 m times the largest" in token
    assert "at most 2 / m times the sum" in document
    assert "at most 2 times the largest" in document


@given(st.floats(1e-3, 1e3), st.lists(st.integers(1, 5), min_size=1, max_size=40))
def test_shares_of_a_whole_never_exceed_it(epsilon: float, words: list[int]) -> None:
    """k of n shares each, added up exactly, are at most E, and each at least its part of E / 2^(1/8)."""
    parts = np.array(words, dtype=np.int64)
    whole = np.full(parts.size, parts.sum())
    shares = Budget(epsilon, "document", "per-word").shares(whole, parts)
    assert sum(map(Fraction, shares.tolist())) <= Fraction(epsilon)
    assert (shares >= epsilon * parts / whole / 2**0.125 * (1 - 1e-12)).all()


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 30))
def test_weights_by_position(weights: list[int], tokens: int) -> None:
    """The last weight is that of all further tokens, and the sums are those of the weights."""
    budget = Budget(4.0, "document", "position", tuple(weights))
    each = budget.weight(np.arange(tokens))
    assert each.tolist() == (weights + [weights[-1]] * tokens)[:tokens]
    assert budget.weight_before(np.array([tokens])).tolist() == [each.sum()]


def test_weights_as_they_are_written() -> None:
    for text, weights in (("3", (3,)), ("2:3,1", (3, 3, 1)), (" 1 : 5 , 2:4,1", (5, 4, 4, 1)), ("0:9,2", (2,))):
        assert parse_weights(text) == weights
    for text in ("", "a", "1:", ":1", "1:2:3", "-1", "1.5", "99999:1,1"):
        with refused("wrong-value", "weights"):
            parse_weights(text)
