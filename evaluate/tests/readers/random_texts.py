"""Texts of small words, which tests count and make language models of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil_evaluate.readers.ngrams.fixed import ONE
from corpusveil_evaluate.readers.ngrams.model import LanguageModel

LETTERS = "abcdefghijkl"
WORDS = [f"{one}{two}" for one in LETTERS for two in LETTERS]


def zipf(words: int) -> list[int]:
    """Return counts of words by Zipf's law."""
    return [1000 // rank for rank in range(1, words + 1)]


def corpus(texts: int, seed: int, words: int = 30) -> list[str]:
    """Return texts of small words with Zipf's law and some order, full stops, numbers and commas among them."""
    rng = np.random.default_rng(seed)
    law = 1 / np.arange(1, words + 1)
    made = []
    for _ in range(texts):
        text, word = [], 0
        for _ in range(rng.integers(1, 15)):
            word = (word + 1) % words if rng.random() < 0.4 else int(rng.choice(words, p=law / law.sum()))
            text.append(WORDS[word])
            text += [[], [], [], [], [","], ["12"], [".\n"]][rng.integers(0, 7)]
        made.append(" ".join(text))
    return made


def log_probabilities(model: LanguageModel, contexts: Any, words: Any) -> npt.NDArray[np.float64]:
    """Return ln P(word | context) of ids, int [N, 2] and [K] -> [N, K]; -1, or ``unknown``, for no word before."""
    pairs, columns = np.asarray(contexts), np.asarray(words, np.int32)
    rows = np.repeat(np.where(pairs == model.unknown, -1, pairs).astype(np.int32), columns.size, axis=0)
    return model.score(rows[:, 0], rows[:, 1], np.tile(columns, len(pairs))).reshape(len(pairs), -1) / ONE


def log_probability(model: LanguageModel, context: Sequence[str], word: str) -> float:
    """Return ln P(word | context), by the last two words of the context."""
    last = model.ids(context)[-2:]
    return float(log_probabilities(model, [[*[-1] * (2 - last.size), *last]], model.ids([word]))[0, 0])
