"""Text that a model says has the model's own probabilities; that of another model is noticed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from corpusveil_evaluate.readers.model_text import sampled_text
from corpusveil_evaluate.readers.ngrams.fixed import ONE
from corpusveil_evaluate.readers.ngrams.model import LanguageModel
from corpusveil_evaluate.statistics.perplexity import KneserNey
from evaluate.tests.readers.random_texts import corpus, log_probabilities

LENGTH = 5
COUNT = 200_000


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return KneserNey.of_texts(corpus(300, 1, 12), min_count=2).model


@pytest.fixture(scope="module")
def text(model: LanguageModel) -> np.ndarray:
    return sampled_text(model, np.random.default_rng(3).random(COUNT), LENGTH).reshape(-1, LENGTH)


def worst(seen: Counter[tuple[int, ...]], law: np.ndarray, context: tuple[int, ...]) -> float:
    """Return the largest deviation of counts from a law, in standard errors."""
    counts = np.array([seen[*context, word] for word in range(law.size)], dtype=float)
    whole = counts.sum()
    return float((np.abs(counts - whole * law) / np.sqrt(np.maximum(whole * law * (1 - law), 1))).max())


@pytest.mark.parametrize("other", [False, True])
def test_every_context_has_the_law_of_the_model(model: LanguageModel, text: np.ndarray, other: bool) -> None:
    """First words, words after one, and words after two: the frequent contexts, word by word."""
    said = KneserNey.of_texts(corpus(300, 2, 12)[::2], min_count=2).model if other else model
    every = np.arange(min(len(model), len(said)))
    starts = np.exp(said.arrays.start[: every.size] / ONE)
    found = [worst(Counter((word,) for word in text[:, 0].tolist()), starts, ())]
    for n in (2, 3):
        rows = [tuple(row) for row in text[:, :n].tolist()]
        seen, contexts = Counter(rows), Counter(row[:-1] for row in rows)
        for context, times in contexts.most_common(12):
            if times > 500 and max(context) < every.size:
                padded = np.array([[-1] * (3 - n) + list(context)])
                law = np.exp(log_probabilities(said, padded, every)[0])
                found.append(worst(seen, law, context))
    assert len(found) > 15
    assert (max(found) < 6) == (not other)


def test_it_is_runs_of_words_of_the_model(model: LanguageModel, text: np.ndarray) -> None:
    assert text.min() >= 0
    assert text.max() <= model.unknown
    edges = sampled_text(model, np.array([0.0, 0.0, 1 - 2**-53, 1 - 2**-53]), 2)
    assert ((edges >= 0) & (edges <= model.unknown)).all()
