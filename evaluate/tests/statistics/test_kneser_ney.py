"""Kneser-Ney against a dictionary implementation, as a distribution, and on held-out prose."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.errors import DataError, MissingError, SettingError
from corpusveil.jobs.local import Local
from corpusveil_evaluate.statistics.perplexity import KneserNey
from evaluate.tests.readers.random_texts import corpus, log_probabilities, log_probability

STEP = 2.0**-15
"""Logarithms are whole multiples of 2^-16: up to three of them are rounded."""


def runs_of(texts: list[str]) -> Iterator[list[str]]:
    """Yield the unbroken runs of words."""
    for text in texts:
        for part in text.replace(",", "|").replace("12", "|").replace(".\n", "|").split("|"):
            if part.split():
                yield part.split()


class Plain:
    """Kneser-Ney by dictionaries, from runs of words; n-grams below a least count are dropped."""

    def __init__(self, runs: list[list[str]], least: int = 1) -> None:
        counts: dict[int, Counter[tuple[str, ...]]] = {n: Counter() for n in (1, 2, 3)}
        left: dict[int, defaultdict[tuple[str, ...], set[str]]] = {n: defaultdict(set) for n in (1, 2)}
        for run in runs:
            for n in (1, 2, 3):
                for k in range(len(run) - n + 1):
                    gram = tuple(run[k : k + n])
                    counts[n][gram] += 1
                    if n < 3:
                        left[n][gram].add(run[k - 1] if k else "<begin>")
        total = sum(counts[1].values())
        kept = {n: {g: c for g, c in counts[n].items() if c >= least} for n in (1, 2, 3)}
        self.words = [g[0] for g in kept[1]]
        self.unknown = 1 - sum(kept[1].values()) / total
        if least == 1:  # the different words before, and the beginning
            before = {n: {g: len(left[n][g]) for g in kept[n]} for n in (1, 2)}
        else:
            before = {
                n: {
                    g: sum(h[1:] == g for h in kept[n + 1])
                    + (sum(c for h, c in kept[n + 1].items() if h[1:] == g) < kept[n][g])
                    for g in kept[n]
                }
                for n in (1, 2)
            }
        self.counts = {1: before[1], 2: before[2], 3: kept[3]}
        self.totals = {n: defaultdict(int) for n in (1, 2, 3)}
        for n in (1, 2, 3):
            for gram, count in self.counts[n].items():
                self.totals[n][gram[:-1]] += count
        if least > 1:
            self.totals[3] = defaultdict(int, {g: max(c, self.totals[3].get(g, 0)) for g, c in kept[2].items()})
        self.discounts = {n: self.discount(list(self.counts[n].values())) for n in (1, 2, 3)}

    @staticmethod
    def discount(values: list[int]) -> float:
        once, twice = values.count(1), values.count(2)
        return once / (once + 2 * twice) if once and twice else 0.75

    def probability(self, context: tuple[str, ...], word: str) -> float:
        n = len(context) + 1
        shorter = 1 / (len(self.words) + 1) if n == 1 else self.probability(context[1:], word)
        total = self.totals[n].get(context, 0)
        if total == 0:
            return shorter
        followers = {g: c for g, c in self.counts[n].items() if g[:-1] == context}
        own = followers.get((*context, word), 0)
        left = 1 - sum(c - self.discounts[n] for c in followers.values()) / total
        p = max(own - self.discounts[n], 0) / total + left * shorter
        return p if n > 1 else (1 - self.unknown) * p + (self.unknown if word == "<unk>" else 0)


@pytest.mark.parametrize(("texts", "least", "seed"), [(200, 1, 1), (300, 5, 3), (1, 1, 5)])
def test_probabilities_are_those_of_a_dictionary_implementation(texts: int, least: int, seed: int) -> None:
    made = corpus(texts, seed)
    model, plain = KneserNey.of_texts(made, least), Plain(list(runs_of(made)), least)
    assert sorted(model.vocabulary.words) == sorted(plain.words)
    rng = np.random.default_rng(seed)
    names = [*model.vocabulary.words, "<unk>"]
    contexts = rng.integers(0, len(names), (60, 2))
    found = np.exp(log_probabilities(model.model, contexts, np.arange(len(names))))
    for row, (one, two) in enumerate(contexts.tolist()):
        context = (names[one], names[two])
        assert found[row] == pytest.approx([plain.probability(context, word) for word in names], rel=STEP)
        assert math.exp(log_probability(model.model, context, names[one])) == pytest.approx(found[row][one], rel=1e-12)
    assert math.exp(log_probability(model.model, [], names[0])) == pytest.approx(
        plain.probability((), names[0]), rel=STEP
    )
    short = log_probability(model.model, [names[0]], names[-2])
    assert math.exp(short) == pytest.approx(plain.probability((names[0],), names[-2]), rel=STEP)


def test_scores_of_texts_are_sums_over_their_runs() -> None:
    """Marks, numbers, ends of sentences and masks break the context; unknown words are <unk> and break it too."""
    made = corpus(150, 9)
    model = KneserNey.of_texts(made)
    held = [*corpus(40, 10, 40), "", "12", "aa zz [word] ab"]
    found = model._scores(held)[0]
    assert found.shape == (len(held),)
    assert (found[-3], found[-2]) == (0.0, 0.0)
    words = unknown = 0
    for text, score in zip(held, found, strict=True):
        expected = 0.0
        for run in runs_of([text.replace("[word]", "|")]):
            for k, word in enumerate(run):
                expected += log_probability(model.model, run[max(0, k - 2) : k], word)
                words += 1
                unknown += word not in model.vocabulary
        assert score == pytest.approx(expected, rel=1e-10)
    total = model.perplexity(held)
    assert (total.words, total.unknown) == (words, unknown)
    assert unknown > 0
    assert total.value == pytest.approx(math.exp(-found.sum() / words))


def test_what_has_no_words_or_no_trigrams_is_refused(tmp_path: Path) -> None:
    for call in (lambda: KneserNey.of_texts(["12"]), lambda: KneserNey.of_texts(["a b c"], 2),
                 lambda: KneserNey.of_texts(["a b"]).perplexity(["", "1"])):  # fmt: skip
        with pytest.raises(DataError):
            call()
    with pytest.raises(SettingError):
        KneserNey.of_texts(["a b"], 0)
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "a b c"}) + "\n")
    count_corpus([str(tmp_path / "a.jsonl")], str(tmp_path / "counts"), Local(), CountOptions(2, 1))
    for error, name in ((SettingError, "counts"), (MissingError, "nowhere")):
        with pytest.raises(error):
            KneserNey.of_counts(str(tmp_path / name))
