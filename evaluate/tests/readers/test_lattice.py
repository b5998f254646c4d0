"""The search is the posterior of all sentences, enumerated; pruning and order of words are noticed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.spaces import Space
from corpusveil_evaluate.readers.ngrams.channel import ALL, RARE, Candidates, changes_of, public_shares, spoken_of
from corpusveil_evaluate.readers.ngrams.fixed import ONE
from corpusveil_evaluate.readers.ngrams.lattice import Runs, search_runs
from corpusveil_evaluate.readers.ngrams.lattice_bigrams import Channel
from corpusveil_evaluate.readers.ngrams.lattice_room import room
from corpusveil_evaluate.readers.ngrams.model import LanguageModel
from corpusveil_evaluate.statistics.perplexity import KneserNey
from evaluate.tests.readers.random_texts import WORDS, corpus, log_probability
from tests.contracts.spaces import small_space

SIZE = 6


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return KneserNey.of_texts(corpus(300, 1, SIZE - 1)).model


def space_of(*more: str) -> Space:
    """Return a space of words of which the model lacks ``zz``, and further ones."""
    return small_space(words=[*WORDS[: SIZE - 1], "zz", *more])


def enumerated(space: Space, model: LanguageModel, released: list[int], epsilon: float, rho: float = 0.0) -> np.ndarray:
    """Return the shares of words at each place, [n, V], whose rest is that of an unknown word."""
    mechanism = cv.mechanism("ring-geometric", space)
    law = mechanism.distributions(np.arange(len(space)), epsilon)
    shares, _ = public_shares(space, model)
    start = np.exp(model.arrays.start / ONE)
    said = [word.split("_") for word in space.vocabulary.words]
    marginals, whole = np.zeros((len(released), len(space))), 0.0
    choices = range(-1 if rho else 0, len(space))
    for words in itertools.product(choices, repeat=len(released)):
        p, context = 1.0, []
        for word, seen in zip(words, released, strict=True):
            if word < 0:
                p *= rho * shares[seen]
                context = []
                continue
            p *= (1 - rho) * law[word, seen]
            for place, part in enumerate(said[word]):
                if part not in model.vocabulary:
                    p *= shares[word]
                    context = []
                    continue
                before = said[word][:place] if place else context  # further parts are said by the word alone
                before = [] if any(one not in model.vocabulary for one in before[-1:]) else before
                p *= np.exp(log_probability(model, before[-2:], part)) if before else start[model.vocabulary.id(part)]
                context = [*before, part][-2:]
        whole += p
        for place, word in enumerate(words):
            if word >= 0:
                marginals[place, word] += p
    return marginals / whole


def searched(
    space: Space, model: LanguageModel, released: list[int], epsilon: float, rho: float = 0.0, **options: Any
) -> list[int]:
    mechanism = cv.mechanism("ring-geometric", space)
    shares, _ = public_shares(space, model)
    count, changes = len(space), options.get("changes", ALL)
    found = Candidates(mechanism, shares, count)
    given = np.array(released, np.int32)
    rows = found.candidate_rows(epsilon, given)
    rows[options.get("clear", [])] = -1
    out, weights = np.empty_like(given), options.get("weights", ALL)
    weighed = np.empty_like(given)
    search_runs(
        given, rows,
        Runs(np.array(options.get("offsets", [0, given.size])), np.array(options.get("documents", [0, 1]))),
        Channel(found.words, found.emissions, shares, rho), 0.0, changes,
        shares, options.get("memory", 0.0), spoken_of(space, model, shares), model.arrays,
        room(count, count + 1 + (changes.size > 0), count), out, weights, weighed,
    )  # fmt: skip
    return (weighed if weights.size else out).tolist()


@pytest.mark.parametrize(("rho", "more"), [(0.0, ("aa_ab",)), (0.2, ()), (0.0, ("ab_zq_ac",))])
def test_the_search_is_the_posterior_of_all_sentences(model: LanguageModel, rho: float, more: tuple[str, ...]) -> None:
    """Words that the model lacks, of several parts, and drawn for unknown ones."""
    space, rng = space_of(*more), np.random.default_rng(7)
    differs = 0
    for _ in range(3):
        released = rng.integers(0, len(space), 4).tolist()
        marginals = enumerated(space, model, released, 0.5, rho)
        found = searched(space, model, released, 0.5, rho)
        shares = marginals[np.arange(4), found]
        assert shares == pytest.approx(marginals.max(axis=1), rel=1e-3)
        differs += found != released
    assert differs, "the search changes something"


def test_the_places_of_a_document_support_each_other(model: LanguageModel) -> None:
    """Enumerated: a word's share times 1 + (its shares at all other places of the document) / (memory times p)."""
    space, rng, memory, rho = space_of(), np.random.default_rng(12), 3.0, 0.2
    shares, _ = public_shares(space, model)
    offsets, documents = [0, 3, 3, 6, 9], [0, 3, 3, 4]
    differs = 0
    for _ in range(4):
        released = rng.integers(0, len(space), 9).tolist()
        plain = [enumerated(space, model, released[first : first + 3], 0.3, rho) for first in (0, 3, 6)]
        found = searched(space, model, released, 0.3, rho, memory=memory, offsets=offsets, documents=documents)
        for some, of in ((np.concatenate(plain[:2]), slice(6)), (plain[2], slice(6, 9))):
            supported = some * (1 + (some.sum(axis=0) - some) / (memory * shares))
            assert supported[np.arange(len(some)), found[of]] == pytest.approx(supported.max(axis=1), rel=1e-3)
        apart = {"offsets": offsets, "documents": documents}
        differs += found != searched(space, model, released, 0.3, rho, **apart)
    assert differs > 1


def test_a_reader_of_some_words_guesses_the_likeliest_of_these(model: LanguageModel) -> None:
    """Enumerated: the word whose share times weight is largest, and never one that does not count."""
    space, rng, rho = space_of("aa_ab"), np.random.default_rng(8), 0.2
    differs, ratios = 0, []
    for _ in range(6):
        released = rng.integers(0, len(space), 4).tolist()
        weights = np.append([0.0, 0.0], rng.uniform(0.5, 3, len(space) - 2))
        marginals = enumerated(space, model, released, 0.5, rho)
        found = searched(space, model, released, 0.5, rho, weights=weights)
        shares = (marginals * weights)[np.arange(4), found]
        ratios += (shares / (marginals * weights).max(axis=1)).tolist()
        differs += found != searched(space, model, released, 0.5, rho)
    assert min(ratios) > 0.8, "faint histories are cut, so that a word may be chosen that is hardly less likely"
    assert np.mean(ratios) > 0.99
    assert differs > 1, "it is another reader"


def test_a_margin_is_odds_of_words(model: LanguageModel) -> None:
    """Enumerated: a word yields to odds beyond the margin."""
    space, rng = space_of("aa_ab"), np.random.default_rng(9)
    changes = np.exp(-rng.uniform(0.2, 1.5, len(space)))
    differs = 0
    for _ in range(4):
        released = rng.integers(0, len(space), 4)
        marginals = enumerated(space, model, released.tolist(), 0.5)
        odds = marginals[np.arange(4), released] / marginals.max(axis=1)
        expected = np.where(odds > changes[released], released, marginals.argmax(axis=1))
        assert searched(space, model, released.tolist(), 0.5, changes=changes) == expected.tolist()
        differs += expected.tolist() != searched(space, model, released.tolist(), 0.5)
    assert differs, "the margin keeps something"


def test_the_margin_is_whole_for_rare_words_and_smaller_for_others() -> None:
    assert changes_of(np.array([0.5, 0.5]), 0.0) is ALL
    found = -np.log(changes_of(np.array([RARE / 100, RARE, 4 * RARE, 0.5]), 2.0))
    assert found == pytest.approx([2.0, 2.0, 0.5, 2.0 * RARE / 0.5], abs=2e-5)


def test_candidates_hold_the_released_word_and_the_likeliest_of_all(model: LanguageModel) -> None:
    space = space_of()
    mechanism = cv.mechanism("ring-geometric", space)
    shares, _ = public_shares(space, model)
    law = mechanism.distributions(np.arange(len(space)), 0.1)
    for cut in (0.0, 0.9):
        found = Candidates(mechanism, shares, 3, cut)
        rows = found.candidate_rows(0.1, np.arange(len(space), dtype=np.int32))
        for word, row in enumerate(rows.tolist()):
            here = found.words[row][found.words[row] >= 0]
            assert word in here
            assert here[0] == (shares * law[:, word]).argmax()
            assert found.emissions[row, : here.size] == pytest.approx(law[here, word])
    again = found.candidate_rows(0.1, np.array([3], np.int32))
    assert again[0] == rows[3]


def test_words_in_the_clear_are_context_and_stay(model: LanguageModel) -> None:
    space, changed = space_of(), 0
    for beside, seen in itertools.product(range(SIZE), repeat=2):
        clear, drawn = (searched(space, model, [beside, seen], 0.5, clear=places) for places in ([0], []))
        assert clear[0] == beside
        changed += clear[1] != drawn[1]
    assert changed, "what stands beside a word counts"
