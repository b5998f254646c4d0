"""How often a reader who knows a language model guesses a word: measured on public text that this model generates.

Nothing private is read. The text is sampled from the model under a published key, released under another key, and
attacked by the search of ``denoise`` (``lattice.py``). The same model makes and attacks the text, so no reader who uses
trigrams can be better informed. Words that the space lacks are resampled, as in a release by default, and guesses of
them do not count.
"""

from __future__ import annotations

import functools
import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.budget import Budget
from corpusveil.compiled import called, compiled
from corpusveil.errors import DataError
from corpusveil.language.channel import ALL
from corpusveil.language.denoise import LEAST, Denoiser, Reader, reader_of
from corpusveil.language.fixed import linear, tables
from corpusveil.language.lattice import search_runs
from corpusveil.language.lookup import (
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
from corpusveil.language.model import LanguageModel, load_model
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.risk import Prior, prior_of, word_risk
from corpusveil.sampling.draws import RESAMPLE, TERM, DrawKey, Draws
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil.spaces.vocabulary import parts
from corpusveil.text.policy import TextPolicy


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


RUNS = 2000
WORDS = 20
"""The number of attacked runs of words, and the words in each: a standard error of about a third of a point."""
__all__ = ["ContextRisk", "LanguageModel", "context_risk", "load_model"]
FEWEST = 1000
"""The least number of words of the space in the text."""
_PUBLIC = b"corpusveil: text that a language model says, to measure what its readers guess"


@dataclass(frozen=True, slots=True)
class ContextRisk:
    """Shares of the ``words`` that each reader guesses.

    ``by_search`` is for a reader of the whole sentence, ``by_law`` for a reader of single words who knows the law and
    word frequencies, and ``unchanged`` for a reader who takes the released word for the original. ``alone`` is the
    share of single words over the whole vocabulary, by ``word_risk``.
    """

    by_search: float
    by_law: float
    unchanged: float
    alone: float
    words: int

    @property
    def share(self) -> float:
        """The share that the best of these readers guesses; never less than that of a simpler reader."""
        return max(self.by_search, self.by_law, self.unchanged, self.alone)

    @property
    def error(self) -> float:
        """The standard error of the search's share, as if words were independent."""
        return math.sqrt(self.by_search * (1.0 - self.by_search) / self.words)


@dataclass(frozen=True, slots=True, eq=False)
class _PublicText:
    """Words that a model generates: ids of the space, int32 [T], -1 for other words, and replacements of those."""

    truth: npt.NDArray[np.int32]
    drawn: npt.NDArray[np.int32]
    key: DrawKey
    reader: Reader
    prior: Prior


def context_risk(mechanism: Mechanism, epsilon: float, model: LanguageModel) -> ContextRisk:
    """Return how often readers guess the words of text that a model generates. Public, and the same on every machine.

    Raises UserError if hardly any word of the text is in the space.
    """
    text = _public_text(mechanism, model)
    known = np.flatnonzero(text.truth >= 0)
    released = text.drawn.copy()
    draws = Draws.of_tokens(text.key, known.size)
    released[known] = mechanism.privatize(text.truth[known], epsilon, draws)
    guesses = np.empty_like(released)
    reader = text.reader
    with reader.lock:
        rows = reader.candidates.rows(epsilon, released)
        offsets = np.arange(0, released.size + 1, WORDS)
        search_runs(
            released, rows, offsets, reader.candidates.words, reader.candidates.emissions, reader.unknown, reader.rho,
            LEAST, False, ALL, reader.said, model.arrays, reader.room, guesses,
        )  # fmt: skip
        alone = reader.candidates.words[rows, 0]
    truth = text.truth[known]
    by_search, by_law, unchanged = (float((guess[known] == truth).mean()) for guess in (guesses, alone, released))
    single = word_risk(mechanism, epsilon, text.prior).share
    return ContextRisk(by_search, by_law, unchanged, single, known.size)


@functools.lru_cache(maxsize=1)
def _public_text(mechanism: Mechanism, model: LanguageModel) -> _PublicText:
    """Sample a text, and prepare its reader; the same for all epsilons."""
    space, count = mechanism.space, RUNS * WORDS
    key = DrawKey.derive(Key(hashlib.sha256(_PUBLIC).digest()), model.digest)
    draws = Draws.of_tokens(key, count, document="text")
    uniform = _uniform(draws, TERM)
    truth = _ids_in(space, model)[sampled_text(model, uniform, WORDS)]
    if (known := int((truth >= 0).sum())) < FEWEST:
        raise DataError(
            f"risk_of context: the text of the language model has {count:,} words of which the space has {known:,}; "
            "give a model of text in the words of the space."
        )
    reader = reader_of(Denoiser(mechanism, Budget(1.0), TextPolicy(), model))
    law = np.cumsum(reader.unknown)
    drawn = np.searchsorted(law, _uniform(draws, RESAMPLE) * law[-1], side="right")
    drawn = np.minimum(drawn, len(space) - 1).astype(np.int32)
    counted = space.counts is not None
    prior = prior_of(space) if counted else Prior(np.arange(len(space)), reader.shares, 1.0)
    return _PublicText(truth, drawn, key, reader, prior)


def _uniform(draws: Draws, purpose: int) -> npt.NDArray[np.float64]:
    """Return a number from 0 to below 1 for each token, float64 [T]."""
    return (draws.uint64(purpose) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _ids_in(space: Space, model: LanguageModel) -> npt.NDArray[np.int32]:
    """Return the space's id of each word of a model, int32 [V + 1], -1 for words that it lacks."""
    out = np.full(len(model) + 1, -1, np.int32)
    ids = model.ids(space.vocabulary.words)
    looked_up = np.array([len(parts(word)) == 1 and word == word.lower() for word in space.vocabulary.words])
    some = np.flatnonzero(looked_up & (ids < len(model)))
    out[ids[some]] = some
    return out
