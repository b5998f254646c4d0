"""Budgets: what each token gets, and the three readings of what a document is promised."""

from __future__ import annotations

from typing import Any

import pytest

from corpusveil.budget import Budget
from corpusveil.errors import UserError

BAD: list[dict[str, Any]] = [
    {"epsilon": 0.0}, {"epsilon": -1.0}, {"epsilon": float("nan")}, {"epsilon": float("inf")},
    {"per": "sentence"}, {"per": ""}, {"allocation": "word-share", "per": "token"},
    *({"allocation": name} for name in ("idf", "pos", "attention", "TF-IDF")),
]  # fmt: skip


@pytest.mark.parametrize("arguments", BAD, ids=str)
def test_what_is_no_budget_is_refused(arguments: dict[str, Any]) -> None:
    """Allocations that look at the words are unsound."""
    with pytest.raises(UserError, match=r"epsilon|per|allocation"):
        Budget(**{"epsilon": 1.0, "per": "document", **arguments})


def test_promises_say_all_three_readings() -> None:
    """A coefficient for the sum of distances, one for the largest, one for a single word: by token and by document."""
    token, document = " ".join(Budget(2.0).promises()), " ".join(Budget(2.0, "document").promises())
    assert "at most 2 times the sum" in token
    assert "at most 2 m times the largest" in token
    assert "at most 2 / m times the sum" in document
    assert "at most 2 times the largest" in document
