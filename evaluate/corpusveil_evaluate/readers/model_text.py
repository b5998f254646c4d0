"""Text that a language model says: for such text, and for no other, a bound holds for every reader (``ladder.py``)."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import called, compiled
from corpusveil.errors import DataError
from corpusveil.sampling.draws import TERM, DrawKey, Draws
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil.spaces.vocabulary import parts
from corpusveil_evaluate.readers.ngrams.context_risk import uniform_of
from corpusveil_evaluate.readers.ngrams.fixed import linear, tables
from corpusveil_evaluate.readers.ngrams.lookup import (
    begin_of,
    entry_in,
    left_of,
    log_in,
    log_of,
    pair,
    second_in,
    size_of,
    third_in,
)
from corpusveil_evaluate.readers.ngrams.model import LanguageModel

RUNS = 2000
WORDS = 20
"""The number of runs of words, and the words in each."""
FEWEST = 1000
"""The least number of words of the space in the text."""
_PUBLIC = b"corpusveil: text that a language model says, to measure what its readers guess"


@called
def _of_trigrams(at: float, context: Any, last: Any, arrays: Any, low: Any, high: Any) -> Any:
    """Return the word of a draw among the trigrams after a context, and the rest of the draw; -1 for none."""
    left = linear(left_of(arrays.bigrams, context), low, high)
    begin = begin_of(arrays.bigrams, context)
    for place in range(begin, begin + size_of(arrays.bigrams, context)):
        slot = arrays.slots3[place]
        if slot == np.uint64(0):
            continue
        word = third_in(slot)
        entry = pair(last, word, arrays.regions, arrays.slots)
        shorter = linear(log_of(arrays.bigrams, entry), low, high) if entry >= 0 else 0.0
        at -= max(0.0, linear(log_in(slot), low, high) - left * shorter)
        if at < 0.0:
            return word, 0.0
    return np.int64(-1), min(at / left, 1.0) if left > 0.0 else 0.0


@called
def _of_bigrams(at: float, last: Any, arrays: Any, low: Any, high: Any) -> Any:
    """Return the word of a draw among the bigrams after a word, and the rest of the draw; -1 for none."""
    left = linear(np.int64(arrays.left2[last]), low, high)
    for place in range(np.int64(arrays.regions[last]), np.int64(arrays.regions[last + 1])):
        slot = arrays.slots[place]
        if slot == np.uint64(0):
            continue
        word = second_in(slot)
        counted = linear(log_of(arrays.bigrams, entry_in(slot)), low, high)
        at -= max(0.0, counted - left * linear(np.int64(arrays.first[word]), low, high))
        if at < 0.0:
            return word, 0.0
    return np.int64(-1), min(at / left, 1.0) if left > 0.0 else 0.0


@compiled
def _say(uniform: Any, length: int, starts: Any, firsts: Any, arrays: Any, low: Any, high: Any, out: Any) -> None:
    unknown = arrays.left2.size
    for t in range(out.size):
        place = t % length
        last = np.int64(out[t - 1]) if place >= 1 else np.int64(-1)
        last = np.int64(-1) if last == unknown else last
        before = np.int64(out[t - 2]) if place >= 2 and last >= 0 else np.int64(-1)
        before = np.int64(-1) if before == unknown else before
        at = uniform[t]
        word = np.int64(-1)
        if last < 0:
            word = np.searchsorted(starts, at, side="right")
        else:
            context = pair(before, last, arrays.regions, arrays.slots)
            if context >= 0:
                word, at = _of_trigrams(at, context, last, arrays, low, high)
            if word < 0:
                word, at = _of_bigrams(at, last, arrays, low, high)
            if word < 0:
                word = np.searchsorted(firsts, at, side="right")
        out[t] = min(word, unknown)


def sampled_text(model: LanguageModel, uniform: npt.NDArray[np.float64], length: int) -> npt.NDArray[np.int32]:
    """Return runs of ``length`` words each, a draw from 0 to below 1 a word; float64 [T] -> the model's ids, int32 [T].

    They may include ``<unk>``, which is no context for the next word.
    """
    low, high = tables()
    sums = [np.cumsum([linear(value, low, high) for value in logs.tolist()]) for logs in
            (model.arrays.start, model.arrays.first)]  # fmt: skip
    starts, firsts = (sum / sum[-1] for sum in sums)
    out = np.empty(uniform.size, np.int32)
    _say(uniform, length, starts, firsts, model.arrays, low, high, out)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class ModelText:
    """Words that a model says, int32 [T]: its ids, and the space's, -1 for others; ``key`` is for further draws."""

    said: npt.NDArray[np.int32]
    truth: npt.NDArray[np.int32]
    key: DrawKey


@functools.lru_cache(maxsize=1)
def model_text(space: Space, model: LanguageModel) -> ModelText:
    """Sample a text under a published key; the same for all mechanisms and epsilons.

    Raises DataError if hardly any word of the text is in the space.
    """
    count = RUNS * WORDS
    key = DrawKey.derive(Key(hashlib.sha256(_PUBLIC).digest()), model.digest)
    said = sampled_text(model, uniform_of(Draws.of_tokens(key, count, document="text"), TERM), WORDS)
    truth = ids_in(space, model)[said]
    if (known := int((truth >= 0).sum())) < FEWEST:
        raise DataError(
            f"The text of the language model has {count:,} words of which the space has {known:,}; give a model of "
            "text in the words of the space."
        )
    return ModelText(said, truth, key)


def ids_in(space: Space, model: LanguageModel) -> npt.NDArray[np.int32]:
    """Return the space's id of each word of a model, int32 [V + 1], -1 for words that it lacks."""
    out = np.full(len(model) + 1, -1, np.int32)
    ids = model.ids(space.vocabulary.words)
    looked_up = np.array([len(parts(word)) == 1 and word == word.lower() for word in space.vocabulary.words])
    some = np.flatnonzero(looked_up & (ids < len(model)))
    out[ids[some]] = some
    return out
