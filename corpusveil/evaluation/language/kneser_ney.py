"""Perplexity by an interpolated Kneser-Ney model of order 3 of texts or of ``corpusveil count``.

Its events are the words, lower-cased, of the vocabulary, and ``<unk>`` for all others; numbers, marks and ends of
sentences are not events, and break the context as in counts. A word at the beginning of such a run is predicted without
context. Only perplexities by the same model are comparable: another vocabulary is another set of events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from corpusveil.collocations.artifact import Reading
from corpusveil.collocations.ngrams import NgramCounter, consecutive, merge_all, unpacked
from corpusveil.errors import DataError, below_least
from corpusveil.evaluation.terms import batches, check_texts, count_words, tokenizer_of
from corpusveil.language.fixed import ONE
from corpusveil.language.model import LanguageModel, load_model
from corpusveil.language.modelling import model_of, model_of_counts, range_of
from corpusveil.spaces.vocabulary import Vocabulary
from corpusveil.storage.artifacts import described
from corpusveil.text.classes import WORD
from corpusveil.text.tokens import Tokenizer

ORDER = 3
UNKNOWN_WORD = "<unk>"


@dataclass(frozen=True, slots=True)
class Perplexity:
    """``value`` is ``exp`` of the mean of -ln P over ``words`` words, ``unknown`` of which are ``<unk>``."""

    value: float
    words: int
    unknown: int


@dataclass(frozen=True, slots=True)
class KneserNey:
    """A model (``language/model.py``) with a reader of texts."""

    model: LanguageModel
    _tokenizer: Tokenizer

    @classmethod
    def of_texts(cls, texts: Sequence[str], min_count: int = 1) -> Self:
        """Count texts, as ``corpusveil count`` does, and smooth. Raises UserError where no word occurs often enough."""
        if min_count < 1:
            raise below_least("min_count", min_count, 1)
        vocabulary, tokens = count_words(check_texts(texts), min_count=min_count)
        counter, tokenizer = NgramCounter(len(vocabulary), ORDER), tokenizer_of(vocabulary)
        runs = [run for some in batches(texts, tokenizer) for run in counter.add(*consecutive(some, over_hyphens=True))]
        keys, counts = merge_all([*runs, counter.finish()])
        lengths, ids = unpacked(keys[counts >= min_count], ORDER)
        counts = counts[counts >= min_count]
        two, three = ((ids[lengths == n, :n], counts[lengths == n]) for n in (2, 3))
        if not len(vocabulary):
            raise DataError(f"No word occurs {min_count} times, so there is nothing to predict; give more text.")
        return cls(model_of(vocabulary, range_of(*two, *three), min_count, tokens, Reading.by("split")), tokenizer)

    @classmethod
    def of_counts(cls, url: str) -> Self:
        """Open the output of ``corpusveil model``, or smooth that of ``corpusveil count``.

        Raises UserError if there are no counts, or no counts of trigrams.
        """
        told = described(url)
        saved = told is not None and told.kind == "model"
        model = load_model(url) if saved else model_of_counts(url)
        return cls(model, tokenizer_of(model.vocabulary))

    @property
    def vocabulary(self) -> Vocabulary:
        return self.model.vocabulary

    @property
    def least(self) -> int:
        """The least count of an n-gram in the model."""
        return self.model.least

    @property
    def unknown(self) -> int:
        """The id of ``<unk>``, V."""
        return self.model.unknown

    def ids(self, words: Sequence[str]) -> npt.NDArray[np.int32]:
        return self.model.ids(words)

    def log_probability(self, context: Sequence[str], word: str) -> float:
        return self.model.log_probability(context, word)

    def log_probabilities(
        self, contexts: npt.NDArray[np.integer[Any]], candidates: npt.NDArray[np.integer[Any]]
    ) -> npt.NDArray[np.float64]:
        return self.model.log_probabilities(contexts, candidates)

    def sentence_log_probabilities(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return the log-probability of each text, the sum over its words, float64 [D], nats; 0 for one without."""
        return self._scores(texts)[0]

    def perplexity(self, texts: Sequence[str]) -> Perplexity:
        """Return the perplexity of all texts together, a word. Raises UserError where they have no words."""
        sums, words, unknown = self._scores(texts)
        if not words:
            raise DataError("The texts have no words, so they have no perplexity; give texts with words.")
        return Perplexity(float(np.exp(-sums.sum() / words)), words, unknown)

    def _scores(self, texts: Sequence[str]) -> tuple[npt.NDArray[np.float64], int, int]:
        sums: list[npt.NDArray[np.float64]] = [np.empty(0)]
        words = unknown = 0
        for some in batches(check_texts(texts), self._tokenizer):
            tokens, ends = consecutive(some, over_hyphens=self.model.reading.over_hyphens)
            is_word = tokens.classes == WORD
            follows = np.zeros(len(tokens), np.bool_)
            follows[1:] = ~ends[:-1]
            ids = np.where(is_word, tokens.ids, -1)
            last = np.where(follows, np.roll(ids, 1), -1)
            before = np.where(last >= 0, np.roll(last, 1), -1)
            wanted = np.where(ids[is_word] < 0, self.unknown, ids[is_word]).astype(np.int32)
            logs = np.zeros(len(tokens))
            logs[is_word] = self.model.score(before[is_word], last[is_word], wanted) / ONE
            text = np.repeat(np.arange(tokens.offsets.size - 1), np.diff(tokens.offsets))
            sums.append(np.bincount(text, logs, tokens.offsets.size - 1).astype(np.float64))
            words += wanted.size
            unknown += int((wanted == self.unknown).sum())
        return np.concatenate(sums), words, unknown
