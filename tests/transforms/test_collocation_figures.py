"""What a release with collocations states of documents, against the epsilons that its kernel really gives to units."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import corpusveil as cv
from corpusveil.collocations.collocation_table import Collocations
from tests.budget.test_composition import least_epsilon
from tests.engines.corpora import TEST_KEY
from tests.kernel.test_kernel import Spy
from tests.transforms.test_strategies import space_of, table_of

UNITS = {1: "river", 2: "new york", 3: "on the bank", 4: "as far as possible", 5: "at the end of days"}
WORDS = sorted({word for unit in UNITS.values() for word in unit.split()} | {"lake", "loan"})
SPACE = space_of([*WORDS, *(unit.replace(" ", "_") for size, unit in UNITS.items() if size > 1)])
MECHANISM = cv.mechanism("ring-geometric", SPACE)
TABLE = Collocations.of(table_of({unit: 9.0 for size, unit in UNITS.items() if size > 1}))
DELTA = 0.05
Pair = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
WEIGHTS = 2.0**-19
"""Of integer weights, for each word; no figure includes it."""


def divisions(words: int, longest: int) -> Iterator[tuple[int, ...]]:
    """Return the sizes of units of every division of words, longer units first."""
    if words == 0:
        yield ()
    for size in range(min(words, longest), 0, -1):
        yield from ((size, *rest) for rest in divisions(words - size, size))


@functools.cache
def together(pairs: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]) -> Pair:
    """Return the laws of all units; outputs of one log-ratio count as one, which loses nothing."""
    if not pairs:
        return np.ones(1), np.ones(1)
    *rest, last = pairs
    both = [np.outer(law, more).ravel() for law, more in zip(together(tuple(rest)), last, strict=True)]
    _, same = np.unique(np.round(np.log(both[0] / both[1]), 10), return_inverse=True)
    first, second = (np.bincount(same, law) for law in both)
    return first, second


def needed(units: Sequence[Pair], delta: float) -> float:
    """Return the ε at δ that two documents need, given the laws of each unit in both."""
    first, second = together(tuple((tuple(first.tolist()), tuple(second.tolist())) for first, second in units))
    return least_epsilon(first, second, delta)


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
    [("word-share", ""), ("uniform", ""), ("word-share", ", qwertz qwertz")],
)
def test_no_document_needs_more_than_is_stated(monkeypatch: pytest.MonkeyPatch, allocation: str, unknown: str) -> None:
    """By what the sentence says it counts: replaced units, or all words; unknown words are replaced."""
    release, more = release_of(allocation), len(unknown.split())
    closest = 0.0
    for words, units, need in needs(monkeypatch, release, unknown):
        stated = release.document_figure((units if allocation == "uniform" else words) + more).epsilon
        assert need <= stated + WEIGHTS * units
        closest = max(closest, need / stated)
    assert closest > 0.99 or unknown


def test_as_many_units_of_one_word_would_be_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: uniform shares by words instead of units."""
    plain = release_of("uniform", None)
    cases = list(needs(monkeypatch, release_of("uniform")))
    assert any(need > 1.2 * plain.document_figure(words).epsilon for words, _, need in cases)
