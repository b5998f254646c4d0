"""A reader of context is no weaker than simpler ones.

Content risk is that of brute force; whose words count is public; kept stop words are known to every reader.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corpusveil as cv
from corpusveil.spaces import Space
from corpusveil.spaces.risk_table import RiskTable
from corpusveil.spaces.vectors import Vectors
from corpusveil.text.languages import STOP_WORDS
from corpusveil.text.policy import DEFAULT
from corpusveil_evaluate.readers import risk_table
from corpusveil_evaluate.readers.content_words import FREQUENT, content_weights, stop_words_of
from corpusveil_evaluate.readers.ngrams.context_risk import (
    MOST_ERROR,
    TextShares,
    hits_of,
    precise,
    reader_of_texts,
    share_of,
)
from corpusveil_evaluate.readers.ngrams.model import LanguageModel
from corpusveil_evaluate.readers.ngrams.word_risk import TRIGRAMS, prior_of, word_risk
from corpusveil_evaluate.statistics.perplexity import KneserNey
from evaluate.tests.readers.random_texts import WORDS as SAID
from evaluate.tests.readers.random_texts import corpus, zipf
from tests.calls import fails, refused, succeeds
from tests.contracts.spaces import small_space
from tests.engines.corpora import write_shard
from tests.mechanisms.spaces import normal

KEY = cv.Key(bytes(range(32)))
TEXTS = corpus(4000, 2, 40)
"""What no count has read, of the kind that was counted."""


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return KneserNey.of_texts(corpus(800, 1, 40)).model


@pytest.fixture(scope="module")
def space() -> Space:
    return small_space(words=SAID[:40], counts=zipf(40))


def context_risk(
    mechanism: Any, epsilon: float, model: LanguageModel, policy: cv.TextPolicy = DEFAULT, **more: Any
) -> TextShares:
    """Return what a reader from context recovers of texts."""
    return precise(reader_of_texts(mechanism, model, more.pop("texts"), policy, **more).read(epsilon))


class TestFromContext:
    @pytest.mark.parametrize(("name", "epsilon"), [("ring-geometric", 0.5), ("ring-geometric", 3.0), ("cmp", 3.0)])
    def test_no_simpler_reader_recovers_more(
        self, space: Space, model: LanguageModel, name: str, epsilon: float
    ) -> None:
        """Neither who knows the law and the frequencies of words, nor who takes words for what they are."""
        mechanism = cv.mechanism(name, space)
        found, alone = context_risk(mechanism, epsilon, model, texts=TEXTS), word_risk(mechanism, epsilon)
        for read, simple in ((found, alone), (found.content, alone.content)):
            assert read.share > max(simple.share, simple.unchanged) - 4 * read.error

    def test_the_reader_is_not_chosen_by_the_figure(self) -> None:
        """Of two readers who are right by chance, one time in two, the better one is not said to be better."""
        rng, part = np.random.default_rng(0), np.arange(300) // 3
        right = rng.random((2000, 2, 300)) < 0.5
        shares = [share_of(hits_of(each, np.ones(300), part), np.ones(300), part).share for each in right]
        assert np.mean(shares) == pytest.approx(0.5, abs=0.003)
        assert right.mean(axis=2).max(axis=1).mean() > 0.51, "the better of two figures of one text would be noticed"

    def test_texts_that_are_too_few_are_refused(self, space: Space, model: LanguageModel) -> None:
        """Whoever asks for a share learns how many more are needed."""
        ring = cv.RingGeometric(space)
        with refused("unsuitable-data", f"{100 * MOST_ERROR:g}", "times as much"):
            context_risk(ring, 0.7, model, texts=TEXTS[:150])
        for texts in (TEXTS[:5], []):
            with refused("unsuitable-data"):
                context_risk(ring, 0.7, model, texts=texts)

    def test_a_model_of_other_words_is_refused(self, model: LanguageModel) -> None:
        with refused("unsuitable-data"):
            context_risk(cv.RingGeometric(small_space(6, counts=zipf(6))), 1.0, model, texts=TEXTS)


def test_the_command_writes_a_table_that_privatize_reads(
    space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From public text to ``--risk``: mechanism, epsilons, shares, errors, reader and text; what the law denies is not
    read, though its digest is right.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(risk_table, "EPSILONS", (0.25, 2.0, 16.0))
    for name, texts in (("counted", corpus(800, 1, 40)), ("read", TEXTS)):
        write_shard(Path(f"{name}.jsonl"), [{"text": text} for text in texts])
    space.save("bare")
    succeeds("count", "counted.jsonl", "--output", "counts", "--min-count", "1")
    succeeds("evaluate", "model", "--counts", "counts", "--output", "model")
    asked = ["evaluate", "risk", "--space", "bare", "--model", "model"]
    ladder = succeeds("evaluate", "readers", *asked[2:], "--epsilon", "16", "--text", "read.jsonl").out
    assert "measured on texts that no count has read" in ladder
    assert "sha256" in succeeds(*asked, "--text", "read.jsonl", "--output", "made").out
    made = cv.load_space("made")
    (table,) = RiskTable.read(made.risk).recovered  # type: ignore[union-attr]
    law = cv.RingGeometric(made)
    assert (table.mechanism, table.parameters, table.stop_words) == (law.name, law.parameters(), "privatize")
    assert (table.reader, table.text[:35]) == (TRIGRAMS, "public text that was given (sha256 ")
    assert [epsilon for epsilon, *_ in table.points] == [0.25, 2.0, 16.0]
    for (epsilon, share, error), more in zip(table.points, (*table.points[1:], (99, 1.0, 0.0)), strict=True):
        assert law.retention(epsilon) <= share <= more[1]
        assert 0 <= error <= MOST_ERROR
    call = ["privatize", "read.jsonl", "--mechanism", law.name, "--risk", "0.9", "--test-key"]
    succeeds(*call, "--space", "made", "--output", "out")
    (of,) = json.loads(Path("out/manifest.json").read_text())["risk"]["recovered"]
    assert of[2:] == [table.reader, table.text]
    forged = table.model_copy(update={"points": [*table.points[:2], (16.0, law.retention(16.0) - 0.01, 0.0)]})
    made.with_risk(RiskTable(recovered=[forged])).save("forged")
    fails([*call, "--space", "forged", "--output", "none"], "damaged-artifact", "16", "unchanged")


SIZE = 5
KEPT = cv.TextPolicy(stop_words="keep")
WEIGHTS = np.array([0.0, 2.5, 0.0, 1.0, 0.25])
EXACT = ("ring-geometric", "diffractor-geometric", "diffractor-exponential", "tight-exponential", "santext", "tem",
         "custext", "syntf")  # fmt: skip


@pytest.fixture(scope="module")
def five() -> Space:
    """Return two stop words and three other words."""
    return small_space(words=["the", "river", "of", "doctor", "ran"], counts=[81, 13, 64, 30, 7], lists=2)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("policy", [cv.TextPolicy(), KEPT], ids=["privatized", "kept"])
def test_both_shares_are_those_of_the_best_of_all_guessing_rules(five: Space, name: str, policy: cv.TextPolicy) -> None:
    """All 5^5 rules, enumerated; a kept word is itself with certainty, and a replacement may look like one."""
    mechanism, shares, epsilon = cv.mechanism(name, five), prior_of(five).shares, 3.0 if name == "santext" else 0.7
    law = mechanism.distributions(np.arange(SIZE), epsilon)
    if policy is KEPT:
        stops = stop_words_of(five)
        law[stops] = np.eye(SIZE)[stops]
    found = word_risk(mechanism, epsilon, policy=policy, content=WEIGHTS)
    for shown, weights in ((found, np.ones(SIZE)), (found.content, WEIGHTS)):
        counted = shares * weights
        joint = counted[:, None] * law
        rules = itertools.product(range(SIZE), repeat=SIZE)
        best = max(sum(joint[guess, u] for u, guess in enumerate(rule)) for rule in rules)
        assert shown.share == pytest.approx(best / counted.sum(), rel=1e-12)
        assert shown.unchanged == pytest.approx(np.trace(joint) / counted.sum(), rel=1e-12)
        assert shown.blind == pytest.approx(counted.max() / counted.sum(), rel=1e-12)
    assert found.exact


def test_masked_stop_words_are_guessed_alike_and_dropped_ones_not(five: Space) -> None:
    mechanism, shares, stops = cv.RingGeometric(five), prior_of(five).shares, stop_words_of(five)
    joint = (shares * ~stops)[:, None] * mechanism.distributions(np.arange(SIZE), 1.0)
    for policy, more in (("drop", 0.0), ("mask", (shares * stops).max())):
        found = word_risk(mechanism, 1.0, policy=cv.TextPolicy(stop_words=policy))  # type: ignore[arg-type]
        assert found.share == pytest.approx(max(joint.max(axis=0).sum() + more, shares.max()), rel=1e-12)


class TestWhoseWordsCount:
    def test_by_default_those_that_are_no_english_function_words(self) -> None:
        """Of the demo: nor collocations of these alone."""
        words = [*sorted(STOP_WORDS), "river", "of_the", "of_rivers"]
        space = small_space(words=words, counts=zipf(len(words)))
        content = {word for word, weight in zip(space.vocabulary.words, content_weights(space), strict=True) if weight}
        assert content == {"river", "of_rivers"}

    @pytest.mark.parametrize(("size", "functions"), [(400, FREQUENT), (100, 50)])
    def test_in_another_language_those_that_are_not_most_frequent(self, size: int, functions: int) -> None:
        """At most half of all words are function words."""
        space = small_space(size, counts=np.random.default_rng(0).permutation(size).tolist())
        weights = content_weights(space)
        assert (weights == 0).sum() == functions
        assert space.counts is not None
        assert space.counts[weights == 0].min() > space.counts[weights == 1].max()


def test_kept_stop_words_are_known_and_tell_about_the_others() -> None:
    counted_texts, texts = (
        [text.replace("aa", "the").replace("ab", "of") for text in corpus(documents, seed, 40)]
        for documents, seed in ((800, 1), (3000, 2))
    )
    model = KneserNey.of_texts(counted_texts).model
    words = list(model.vocabulary.words)
    mechanism = cv.RingGeometric(
        cv.build_space(Vectors(words, normal(len(words), 3, 2)), counts=model.vocabulary.counts)
    )
    others = 1.0 - stop_words_of(mechanism.space)
    plain, kept, *hidden = (
        context_risk(mechanism, 0.5, model, texts=texts, content=others, policy=cv.TextPolicy(stop_words=policy))  # type: ignore[arg-type]
        for policy in ("privatize", "keep", "mask", "drop")
    )
    assert kept.content.share > plain.content.share + 2 * plain.content.error
    assert kept.share > plain.share + 0.1
    for read in hidden:
        assert read.share < plain.share
        assert read.words == plain.words
