"""Whole documents, enumerated: what a budget's allocation promises is what its exact output distribution keeps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest

import corpusveil as cv
from corpusveil.budget import Budget
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.mechanisms import Mechanism
from corpusveil.spaces import Space
from corpusveil.spaces.vectors import Vectors
from tests.engines.corpora import TEST_KEY
from tests.kernel.test_kernel import Spy
from tests.transforms.test_strategies import table_of

WORDS = ("river", "lake", "bank", "loan", "new_york")
PAIRS = {"new york": 9.0}
SLACK = 1e-4
"""Integer weights: 2^-19 a token, and rounding."""

Epsilons = Callable[[Sequence[int]], list[float]]
Reading = Callable[[list[float], list[float]], float]


@pytest.fixture(scope="module")
def space() -> Space:
    vectors = np.random.default_rng(5).standard_normal((len(WORDS), 3)).astype(np.float32)
    return cv.build_space(Vectors(list(WORDS), vectors))


@pytest.fixture(scope="module")
def mechanism(space: Space) -> Mechanism:
    return cv.mechanism("ring-geometric", space)


def asked(monkeypatch: pytest.MonkeyPatch, mechanism: Mechanism, budget: Budget) -> Epsilons:
    """Return what gives the epsilons of a document's tokens, as the kernel really hands them out."""
    spy = Spy(monkeypatch, mechanism)
    table = Collocations.of(table_of(PAIRS))
    release = cv.Release(mechanism, budget, cv.TextPolicy(tokenizer="gst"), cv.Key(TEST_KEY), table)

    def epsilons(document: Sequence[int]) -> list[float]:
        spy.epsilons.clear()
        cv.privatize([", ".join(WORDS[word].replace("_", " ") for word in document)], release, ["a"])
        return list(spy.epsilons)

    return epsilons


def law(mechanism: Mechanism, document: Sequence[int], epsilons: Sequence[float]) -> npt.NDArray[np.float64]:
    """Return the logarithm of the probability of every output document."""
    out = np.zeros(())
    for word, epsilon in zip(document, epsilons, strict=True):
        out = np.add.outer(out, np.log(mechanism.distribution(word, epsilon)))
    return out


def excesses(mechanism: Mechanism, epsilons: Epsilons, readings: Sequence[Reading]) -> list[float]:
    """Return by how much the worst log-ratio of two documents of one skeleton exceeds readings of the bound."""
    worst = [-np.inf] * len(readings)
    documents = list(itertools.product(range(len(WORDS)), repeat=3))
    shares = {document: epsilons(document) for document in documents}
    laws = {document: law(mechanism, document, shares[document]) for document in documents}
    for first, second in itertools.product(documents, repeat=2):
        lengths = [[WORDS[word].count("_") for word in document] for document in (first, second)]
        if first == second or lengths[0] != lengths[1]:
            continue
        steps = [ring(mechanism, a, b) for a, b in zip(first, second, strict=True)]
        ratio = float((laws[first] - laws[second]).max())
        worst = [max(most, ratio - read(shares[first], steps)) for most, read in zip(worst, readings, strict=True)]
    return worst


def ring(mechanism: Mechanism, first: int, second: int) -> float:
    """Return the steps between two words on the closed list; gamma only shortens them."""
    at = {word: place for place, word in enumerate(mechanism.space.lists[0].tolist())}
    steps = abs(at[first] - at[second])
    return float(min(steps, len(WORDS) - steps))


READINGS: list[Reading] = [
    lambda shares, steps: float(np.dot(shares, steps)),  # each times its own distance
    lambda shares, steps: max(shares) * sum(steps),
    lambda shares, steps: sum(shares) * max(steps),
]
SOUND = {
    "per token": Budget(0.9),
    "uniform": Budget(3.0, "document"),
    "word-share": Budget(3.0, "document", "word-share"),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_allocation_keeps_every_reading_and_no_smaller_one_would_do(
    monkeypatch: pytest.MonkeyPatch, mechanism: Mechanism, name: str
) -> None:
    """All 125 documents of three units against all others of one skeleton, over all 125 outputs."""
    epsilons = asked(monkeypatch, mechanism, SOUND[name])
    *kept, smaller = excesses(
        mechanism, epsilons, [*READINGS, lambda shares, steps: 0.9 * float(np.dot(shares, steps))]
    )
    assert max(kept) <= SLACK
    assert smaller > 0.1


def by_rarity(document: Sequence[int]) -> list[float]:
    """Share E = 3 by how rare a word is: inverse document frequency, as many papers do."""
    rarity = np.array([1.0, 1.5, 2.5, 4.0, 6.0])[list(document)]
    return list(3 * rarity / rarity.sum())


def by_kind(document: Sequence[int]) -> list[float]:
    """Give words of one kind (part of speech, names) more."""
    return [0.4 if word < 3 else 1.2 for word in document]


@pytest.mark.parametrize("allocation", [by_rarity, by_kind])
def test_an_allocation_that_looks_at_the_words_breaks_them_all(mechanism: Mechanism, allocation: Epsilons) -> None:
    """Which is why such names are refused: two documents get budgets that tell them apart."""
    assert min(excesses(mechanism, allocation, READINGS)) > 0.1
