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
from corpusveil.language.channel import ALL, Candidates
from corpusveil.language.denoise import CUT, LEAST, THOROUGH, Denoiser, Reader, reader_of
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
from corpusveil.mechanisms.content import content_weights, stop_words_of
from corpusveil.mechanisms.risk import Prior, prior_of, word_risk
from corpusveil.sampling.draws import RESAMPLE, TERM, DrawKey, Draws
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil.spaces.vocabulary import parts
from corpusveil.text.policy import DEFAULT, TextPolicy


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
class ContextShares:
    """Shares of the ``words`` that each reader guesses.

    ``by_search`` is for a reader of the whole sentence, ``by_law`` for a reader of single words who knows the law and
    word frequencies, and ``unchanged`` for a reader who takes the released word for the original. ``alone`` is the
    share of single words over the whole vocabulary, by ``word_risk``. ``error`` is the standard error of the search's
    share, as if words were independent.
    """

    by_search: float
    by_law: float
    unchanged: float
    alone: float
    words: int
    error: float

    @property
    def share(self) -> float:
        """The share that the best of these readers guesses; never less than that of a simpler reader."""
        return max(self.by_search, self.by_law, self.unchanged, self.alone)


@dataclass(frozen=True, slots=True)
class ContextRisk(ContextShares):
    """What readers guess of all words, and of ``content`` words who care for these alone."""

    content: ContextShares


@dataclass(frozen=True, slots=True, eq=False)
class PublicText:
    """Words that a model generates, int32 [T]: its ids, the space's, -1 for other words, and words drawn for these."""

    said: npt.NDArray[np.int32]
    truth: npt.NDArray[np.int32]
    drawn: npt.NDArray[np.int32]
    key: DrawKey
    reader: Reader
    law: Candidates
    prior: Prior


def context_risk(
    mechanism: Mechanism, epsilon: float, model: LanguageModel, *, policy: TextPolicy = DEFAULT,
    content: npt.NDArray[np.float64] | None = None,
) -> ContextRisk:  # fmt: skip
    """Return how often readers guess the words of text that a model generates. Public, and the same on every machine.

    ``policy`` says what readers see of stop words: with ``keep`` a stop word in the release is one in the clear, or a
    replacement of another word. ``content`` float64 [V] is how much each word counts; ``content_weights`` by default.
    Raises UserError if hardly any word of the text is in the space.
    """
    space = mechanism.space
    weights = content_weights(space, language=policy.language) if content is None else content
    text = public_text(mechanism, model, policy.language, keep=policy.stop_words == "keep")
    reader, law = text.reader, text.law
    known = np.flatnonzero(text.truth >= 0)
    released = text.drawn.copy()
    draws = Draws.of_tokens(text.key, known.size)
    released[known] = mechanism.privatize(text.truth[known], epsilon, draws)
    stops = np.append(stop_words_of(space, policy.language) & policy.parts_stop_words(), False)[text.truth]
    shown, offsets = _shown(stops, policy)
    released = np.where(stops, text.truth if policy.stop_words == "keep" else text.drawn, released)[shown]
    guesses = np.empty((4, released.size), np.int32)  # from context and alone, of all words and by weight
    with reader.lock:
        rows = law.rows(epsilon, released)
        memory = 0.0  # a model of three words repeats no subject, so other runs tell nothing of a word
        search_runs(
            released, rows, offsets, np.array([0, offsets.size - 1]), law.words, law.emissions, reader.unknown,
            reader.rho, LEAST, ALL, reader.shares, memory, reader.said, model.arrays, reader.room, guesses[0],
            weights, guesses[2],
        )  # fmt: skip
        guesses[1], guesses[3] = law.guesses(rows, np.ones(len(space))), law.guesses(rows, weights)
    guesses[2] = np.where(guesses[2] < 0, guesses[3], guesses[2])
    place = np.full(text.truth.size, -1)
    place[shown] = np.arange(shown.size)
    single = word_risk(mechanism, epsilon, text.prior, policy=policy, content=weights)
    figures = []
    for counts, read_by, simple in ((np.ones(len(space)), guesses[:2], single), (weights, guesses[2:], single.content)):
        weight = counts[text.truth[known]]
        right = (np.stack([*read_by, released])[:, place[known]] == text.truth[known]) & (place[known] >= 0)
        whole = float(weight.sum()) or 1.0
        by_search, by_law, unchanged = (float((hits * weight).sum()) / whole for hits in right)
        error = math.sqrt(float((weight**2 * (right[0] - by_search) ** 2).sum())) / whole
        figures.append(ContextShares(by_search, by_law, unchanged, simple.share, int((weight > 0).sum()), error))
    every, some = figures
    return ContextRisk(every.by_search, every.by_law, every.unchanged, every.alone, every.words, every.error, some)


def _shown(stops: npt.NDArray[np.bool_], policy: TextPolicy) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the places that a release shows as words, int64 [P], and where their runs begin and end in these.

    A mask ends a run; what stands before and after a dropped word are neighbors.
    """
    run = np.arange(stops.size) // WORDS + (np.cumsum(stops) if policy.stop_words == "mask" else 0)
    shown = np.flatnonzero(~stops) if policy.stop_words in ("mask", "drop") else np.arange(stops.size)
    begins = np.flatnonzero(np.diff(run[shown], prepend=-1))
    return shown, np.append(begins, shown.size)


@functools.lru_cache(maxsize=1)
def public_text(
    mechanism: Mechanism, model: LanguageModel, language: str | None = None, *, keep: bool = False
) -> PublicText:
    """Sample a text, and prepare its reader, to whom stop words may be in the clear; the same for all epsilons."""
    space, count = mechanism.space, RUNS * WORDS
    key = DrawKey.derive(Key(hashlib.sha256(_PUBLIC).digest()), model.digest)
    draws = Draws.of_tokens(key, count, document="text")
    uniform = uniform_of(draws, TERM)
    said = sampled_text(model, uniform, WORDS)
    truth = ids_in(space, model)[said]
    if (known := int((truth >= 0).sum())) < FEWEST:
        raise DataError(
            f"risk_of context: the text of the language model has {count:,} words of which the space has {known:,}; "
            "give a model of text in the words of the space."
        )
    reader = reader_of(Denoiser(mechanism, Budget(1.0), DEFAULT, model, THOROUGH))
    sums = np.cumsum(reader.unknown)
    drawn = np.searchsorted(sums, uniform_of(draws, RESAMPLE) * sums[-1], side="right")
    drawn = np.minimum(drawn, len(space) - 1).astype(np.int32)
    counted = space.counts is not None
    prior = prior_of(space) if counted else Prior(np.arange(len(space)), reader.shares, 1.0)
    law = reader.candidates
    if keep:
        law = Candidates(mechanism, reader.shares, law.count, CUT, stop_words_of(space, language))
    return PublicText(said, truth, drawn, key, reader, law, prior)


def uniform_of(draws: Draws, purpose: int) -> npt.NDArray[np.float64]:
    """Return a number from 0 to below 1 for each token, float64 [T]."""
    return (draws.uint64(purpose) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def ids_in(space: Space, model: LanguageModel) -> npt.NDArray[np.int32]:
    """Return the space's id of each word of a model, int32 [V + 1], -1 for words that it lacks."""
    out = np.full(len(model) + 1, -1, np.int32)
    ids = model.ids(space.vocabulary.words)
    looked_up = np.array([len(parts(word)) == 1 and word == word.lower() for word in space.vocabulary.words])
    some = np.flatnonzero(looked_up & (ids < len(model)))
    out[ids[some]] = some
    return out
