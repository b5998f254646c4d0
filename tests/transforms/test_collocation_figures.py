"""What a release with collocations states of documents, against the epsilons that its kernel really gives to units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.budget.composition import epsilon_at
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.storage.rows import Columns
from corpusveil.transforms.release.manifest import draft
from tests.budget.test_worst_units import WEIGHTS, divisions, needed
from tests.engines.corpora import TEST_KEY
from tests.kernel.test_kernel import Spy
from tests.transforms.test_strategies import space_of, table_of

UNITS = {1: "river", 2: "new york", 3: "on the bank", 4: "as far as possible", 5: "at the end of days"}
WORDS = sorted({word for unit in UNITS.values() for word in unit.split()} | {"lake", "loan"})
SPACE = space_of([*WORDS, *(unit.replace(" ", "_") for size, unit in UNITS.items() if size > 1)])
MECHANISM = cv.mechanism("ring-geometric", SPACE)
TABLE = Collocations.of(table_of({unit: 9.0 for size, unit in UNITS.items() if size > 1}))
DELTA = 0.05


def release_of(allocation: Any, table: Collocations | None = TABLE, space: cv.Space = SPACE) -> cv.Release:
    policy = cv.TextPolicy(tokenizer="word" if table is None else "gst")
    budget = cv.Budget(3.0, "document", allocation)
    return cv.Release(cv.mechanism("ring-geometric", space), budget, policy, cv.Key(TEST_KEY), table, delta=DELTA)


def needs(monkeypatch: pytest.MonkeyPatch, release: cv.Release, unknown: str = "") -> Iterator[tuple[int, int, float]]:
    """Return words, units, and the ε that a pair of documents needs by the laws that the kernel asks for.

    Of all documents of up to eight words in units of up to five, each unit one step apart on the ring.
    """
    spy = Spy(monkeypatch, release.mechanism)
    one, other = release.mechanism.space.lists[0][:2].tolist()
    for words in (1, 2, 3, 5, 8):
        for sizes in divisions(words, 5):
            spy.epsilons.clear()
            cv.privatize([", ".join(UNITS[size] for size in sizes) + unknown], release, ["a"])
            assert len(spy.epsilons) == len(sizes)
            laws = [[release.mechanism.distribution(word, each) for word in (one, other)] for each in spy.epsilons]
            yield words, len(sizes), needed([(law[0], law[1]) for law in laws], DELTA)


@pytest.mark.parametrize(
    ("allocation", "unknown"),
    [("per-word", ""), ("word-share", ""), ("uniform", ""), ("word-share", ", qwertz qwertz")],
)
def test_no_document_needs_more_than_is_stated(monkeypatch: pytest.MonkeyPatch, allocation: str, unknown: str) -> None:
    """By what the sentence says it counts: replaced units, all words, or replaced words; unknown words are replaced."""
    release, more = release_of(allocation), len(unknown.split())
    closest = 0.0
    for words, units, need in needs(monkeypatch, release, unknown):
        stated = release.document_figure((units if allocation == "uniform" else words) + more).epsilon
        assert need <= stated + WEIGHTS * units
        closest = max(closest, need / stated)
    assert closest > 0.99 or unknown


def test_as_many_units_of_one_word_would_be_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controls: shares per word as they were stated before, and uniform shares by words instead of units."""
    plain = release_of("uniform", None)
    for allocation in ("per-word", "uniform"):
        cases = list(needs(monkeypatch, release_of(allocation)))
        assert any(need > 1.2 * plain.document_figure(words).epsilon for words, _, need in cases)


def test_16_units_of_three_words_and_two_of_one_spend_no_more_than_is_stated_of_50_words() -> None:
    """E = 10, δ = 1e-6: 6.56 was printed, and such a document needs 9.88."""
    table = Collocations.of(table_of({"on the bank": 9.0, "new york": 5.0}))
    budget, policy = cv.Budget(10, "document", "per-word"), cv.TextPolicy(tokenizer="gst")
    manifest = draft(cv.Release(MECHANISM, budget, policy, cv.Key(TEST_KEY), table, delta=1e-6), Columns())
    figure = manifest["documents_in_epsilon_delta"][0]
    assert (figure["words"], figure["longest_unit"]) == (50, 3)
    losses = [MECHANISM.privacy_loss(share, 1.0) for share in budget.shares(np.array([50, 50]), np.array([3, 1]))]
    assert losses[0] is not None
    assert losses[1] is not None
    assert 9.88 < epsilon_at([(losses[0], 16), (losses[1], 2)], 1e-6) <= figure["epsilon"] <= figure["pure"] <= 10
