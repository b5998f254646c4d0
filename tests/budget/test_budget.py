"""Budgets: what each token gets, and the three readings of what a document is promised."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from corpusveil.budget import Budget
from corpusveil.errors import UserError

BAD: list[dict[str, Any]] = [
    {"epsilon": 0.0}, {"epsilon": -1.0}, {"epsilon": float("nan")}, {"epsilon": float("inf")}, {"epsilon": "10"},
    {"epsilon": True}, {"per": "sentence"}, {"per": ""}, {"allocation": "word-share", "per": "token"},
    *({"allocation": name} for name in ("idf", "pos", "attention", "TF-IDF")),
]  # fmt: skip


@pytest.mark.parametrize("arguments", BAD, ids=str)
def test_what_is_no_budget_is_refused(arguments: dict[str, Any]) -> None:
    """Allocations that look at the words are unsound."""
    with pytest.raises(UserError, match=r"epsilon|per|allocation"):
        Budget(**{"epsilon": 1.0, "per": "document", **arguments})


def test_the_bound_of_a_document_has_a_factor_of_the_sum_and_of_the_largest_distance() -> None:
    for given, factors in (
        ((2.0,), ("2 times ", "2 m times ")),
        ((1.0,), ("", "m times ")),
        ((2.0, "document"), ("2 / m times ", "2 times ")),
        ((2.0, "document", "word-share"), ("2 / n times ", "2 m / n (never more than 2) times ")),
    ):
        assert Budget(*given).factors == factors, given  # type: ignore[arg-type]


@pytest.mark.parametrize("words", [1, 4, 50])
def test_a_document_of_words_has_the_shares_that_are_drawn_with(words: int) -> None:
    (share,) = set(Budget(10, "document").shares(np.repeat(words, words)).tolist())
    assert 10 / words / 2**0.125 < share <= 10 / words
    assert set(Budget(2.0).shares(np.repeat(words, words)).tolist()) == {2.0}
