"""Audits of documents: the stated bound holds and is near the need of a pair, and an uncounted token is found."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.audits.document_audit import audit_documents
from corpusveil.budget import Budget
from corpusveil.budget.accounting import Readings
from corpusveil.budget.composition import epsilon_at
from corpusveil.errors import NoGuaranteeError
from corpusveil.kernel.kernel import Kernel
from corpusveil.mechanisms import make
from corpusveil.spaces import Space
from tests.calls import command, refused, succeeds
from tests.contracts.spaces import small_space
from tests.engines.corpora import make_space


@pytest.fixture(scope="module")
def space() -> Space:
    return small_space(60)


@pytest.mark.parametrize("name", ["ring-geometric", "santext", "cmp"])
def test_what_holds_is_not_refuted(name: str, space: Space) -> None:
    found = audit_documents(make(name, space), [Budget(2.0), Budget(10, "document")], [2, 40], 1e-4, 2.0)
    assert not found.refuted
    assert "not refuted" in repr(found)
    for check in found.checks:
        assert check.needed is None or check.needed <= check.stated.epsilon
        assert check.stated.epsilon <= check.stated.pure
        if name == "ring-geometric" and check.stated.epsilon < 3:  # a pair needs nearly all that is stated
            assert check.needed == pytest.approx(check.stated.epsilon, rel=0.05)


def test_a_token_that_the_ledger_does_not_count_is_caught_by_samples(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel draws two tokens of a document and tells the ledger of one."""
    account = Kernel.account

    def forgetting(*given: Any) -> tuple[Any, Readings]:
        known, told = account(*given)
        fewer = np.maximum(told.tokens - 1, 0)
        return known, dataclasses.replace(told, tokens=fewer, total=told.largest * fewer)

    monkeypatch.setattr(Kernel, "account", forgetting)
    found = audit_documents(make("ring-geometric", space), [Budget(2.0)], [2], 1e-4)
    assert found.refuted
    assert "samples show" in repr(found)


def test_a_token_that_the_statement_does_not_count_is_caught_by_laws(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "corpusveil.transforms.release.statement.epsilon_at",
        lambda parts, delta: epsilon_at([(loss, count - 1) for loss, count in parts], delta),
    )
    found = audit_documents(make("ring-geometric", space), [Budget(1.0)], [6], 1e-4)
    assert "is needed at delta" in repr(found)


def test_nothing_is_checked_where_nothing_is_promised(space: Space) -> None:
    with pytest.raises(NoGuaranteeError):
        audit_documents(make("truncated-gumbel", space), [Budget(1.0)], [2], 1e-6)


def test_the_published_table_comes_from_the_command_line(tmp_path: Path) -> None:
    """mechanisms.md §18: every word one step apart, a token's share of the budget, δ = 1e-6 by default."""
    make_space(tmp_path / "space")
    for whole, words, stated in ((5, 52, 3.09), (10, 200, 3.28), (30, 1000, 4.59)):
        told = ["audit", "--space", str(tmp_path / "space"), "--mechanism", "ring-geometric"]
        told += ["--epsilon", repr(whole / words), "--document", str(words), "--output", str(tmp_path / "found.json")]
        assert "not refuted" in succeeds(*told).out
        (found,) = json.loads((tmp_path / "found.json").read_text())["documents"]
        assert found["epsilon"] == pytest.approx(stated, rel=0.01)
        assert found["pure"] == pytest.approx(whole, rel=1e-5)


def test_calls_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    make_space(tmp_path / "space")
    told = ["audit", "--space", str(tmp_path / "space"), "--mechanism", "ring-geometric", "--epsilon", "1"]
    for wrong in (["--per", "word"], ["--document", "0"]):
        assert command(*told, "--document", "5", *wrong).status == 2, wrong


class TestTheRelease:
    """An article of 500 words under --per document --epsilon 10: pure, beside it (ε, 1e-6)."""

    @pytest.fixture
    def release(self, space: Space) -> cv.Release:
        mechanism = cv.mechanism("ring-geometric", space)
        return cv.Release(mechanism, cv.Budget(10, "document"), key=cv.Key.generate())

    def test_says_both_in_its_guarantee_if_asked(self, release: cv.Release) -> None:
        assert "delta" not in str(release.guarantee().notes)
        (told,) = [note for note in release.guarantee(delta=1e-6).notes if "(epsilon, delta)" in note]
        assert "500 words: 1.84 (pure 9.3)" in told
        assert "each known word differs by a distance of at most 1" in told
        (figure,) = release.document_figures(1e-6, words=[500])
        assert figure.epsilon < 1.84 < figure.pure
        for name, wrong in (("delta", {"delta": 2}), ("distance", {"delta": 1e-6, "distance": 0})):
            with refused("wrong-value", name):
                release.guarantee(**wrong)
