"""Audits of length policies: what holds is not refuted, and each planted error is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.audits import document_audit
from corpusveil.kernel import kernel as kernel_module
from corpusveil.sampling.weights import WeightTable, integer_weights
from tests.contracts.spaces import small_space, words_of

SPACE = small_space(words=words_of(40), counts=[4000 // (k + 1) for k in range(40)])
GRID, NOISE = cv.LengthGrid(12), cv.LengthNoise(0.5)


@pytest.fixture(autouse=True)
def fewer_samples_of_what_other_tests_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_audit, "TOKENS", 1 << 11)


def audited(length: Any, budget: cv.Budget | None = None) -> cv.DocumentAudit:
    mechanism = cv.mechanism("ring-geometric", SPACE)
    return cv.audit_documents(mechanism, [budget or cv.Budget(3.0)], [9], 1e-3, key=cv.Key.for_tests(), length=length)


def reasons(length: Any, budget: cv.Budget | None = None) -> str:
    """Return why a policy is refuted."""
    return "; ".join(reason for check in audited(length, budget).checks for reason in check.reasons)


@pytest.mark.parametrize(
    ("length", "budget"),
    [(GRID, cv.Budget(3.0)), (NOISE, cv.Budget(20.0, "document")), (cv.LengthGrid(3), cv.Budget(3.0))],
)
def test_what_holds_is_not_refuted(length: Any, budget: cv.Budget) -> None:
    assert not audited(length, budget).refuted


def test_fillers_that_are_not_of_the_public_counts_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    flat = WeightTable(integer_weights(np.ones(40, dtype=np.int64)))
    monkeypatch.setattr(kernel_module, "fillers_of", lambda *_: flat)
    assert "not words drawn from the public counts" in reasons(GRID)


def test_fillers_that_repeat_the_text_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = kernel_module.at_released_length

    def repeating(chunk: Any, *given: Any) -> Any:
        made = honest(chunk, *given)
        if chunk.tokens.ids.size:
            made.tokens.ids[made.tokens.starts == made.tokens.ends] = chunk.tokens.ids[0]
        return made

    monkeypatch.setattr(kernel_module, "at_released_length", repeating)
    assert "depend on the words of the text" in reasons(NOISE)


def test_a_length_that_comes_out_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long documents get a word too many."""
    honest = cv.LengthGrid.released

    def leaking(grid: Any, words: Any, draws: Any = None) -> Any:
        return honest(grid, words) + (0 if draws is None else (words > 6))

    monkeypatch.setattr(cv.LengthGrid, "released", leaking)
    assert "where the grid has" in reasons(GRID)


def test_too_little_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from corpusveil.budget import length as length_module

    honest = length_module.two_sided
    monkeypatch.setattr(length_module, "two_sided", lambda epsilon, draws: honest(2 * epsilon, draws))
    assert "0.5 is stated" in reasons(NOISE)


def test_shares_of_the_text_s_own_words_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget of a document that its own words divide makes the noise tell how many these are."""
    honest = cv.Budget.shares
    monkeypatch.setattr(kernel_module.Kernel, "_shares", lambda kernel, _, known, *__: honest(
        kernel.budget, np.full(known.ids.size, 3)))  # fmt: skip
    assert "replaced at the stated epsilon" in reasons(GRID, cv.Budget(20.0, "document"))
