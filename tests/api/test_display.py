"""Values print as what they are, in a terminal and in a notebook; no key, no text, no count of the input leaves so."""

from __future__ import annotations

import html.parser
from pathlib import Path
from typing import Any

import pytest

import corpusveil as cv
from corpusveil.display import Card, Shown, Table


class Checker(html.parser.HTMLParser):
    """Reads HTML, and notes its text and what was opened and not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.said = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data


def read(value: Any) -> Checker:
    checker = Checker()
    checker.feed(value._repr_html_())
    assert checker.open == []
    return checker


@pytest.fixture
def values(release: cv.Release, corpus: Path, tmp_path: Path) -> dict[str, Any]:
    """What a notebook has as the last line of a cell, one of each kind."""
    ledger = cv.Ledger(str(tmp_path / "ledger"))
    outcome = cv.privatize_corpus(corpus, tmp_path / "out", release, corpus="reviews", ledger=ledger, unit="url")
    return {
        "release": release,
        "guarantee": release.guarantee(),
        "of a word": release.mechanism.guarantee(1.0),
        "outcome": outcome,
        "plan": cv.plan(corpus, release),
        "audit": cv.audit(release.mechanism, 1.0, draws=2000),
        "spent": ledger.spent(),
        "history": ledger.spent_on("u0"),
        "check": ledger.verify(outcome.records),
        "verification": cv.verify(tmp_path / "out"),
        "findings": cv.evaluate_release(corpus, tmp_path / "out", release, seeds=2),
    }


def test_none_shows_a_key_or_a_text(values: dict[str, Any], release: cv.Release, corpus: Path) -> None:
    secret = release.key.secret
    texts = [line.split('"text": "')[1].split('"')[0] for file in corpus.glob("*") for line in file.open()]
    for value in values.values():
        for shown in (repr(value), value._repr_html_(), read(value).said):
            assert not any(one in shown for one in (secret.hex(), repr(secret)[2:12], *texts))


def test_an_outcome_shows_no_count_of_the_input(values: dict[str, Any]) -> None:
    """How many words stayed is private, however interesting: a notebook is published with what it shows."""
    outcome: cv.Outcome = values["outcome"]
    object.__setattr__(outcome, "counts", type(outcome.counts)(10, 77, 60, 12345, 0, 54321))
    for shown in (repr(outcome), outcome._repr_html_()):
        assert "77 tokens" in shown
        assert not any(private in shown for private in ("12,345", "12345", "54,321", "54321"))
        assert "some rows could not be read" in shown


def test_what_is_not_private_is_said_first(space: cv.Space) -> None:
    assert repr(cv.CusTextPerWord(space).guarantee(1.0)).startswith("No guarantee: custext-per-word")  # type: ignore[attr-defined]
    release = cv.Release(cv.RingGeometric(space), cv.Budget(1.0), key=cv.Key.for_tests())
    assert "NOT PRIVATE" in repr(release).splitlines()[0]


def test_html_is_escaped() -> None:
    """A corpus may be called anything, and a word may be markup."""
    evil = "<script>alert(1)</script>"

    class Evil(Shown):
        def card(self) -> Card:
            return Card(evil, [(evil, evil), (evil, [evil])], [Table([evil], [[evil]])])

    page = read(Evil())
    assert page.tags == {"pre"}
    assert page.said.count(evil) == 7
