"""Perplexity of texts, before and after, by a Kneser-Ney model.

The interpolated Kneser-Ney model of order 3 is made of texts or of ``corpusveil count``. Its events are the words,
lower-cased, of the vocabulary, and ``<unk>`` for all others; numbers, marks and ends of sentences are not events, and
break the context as in counts. A word at the beginning of such a run is predicted without context. Only perplexities by
the same model are comparable: another vocabulary is another set of events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from corpusveil.collocations import artifact
from corpusveil.collocations.collocation_table import most_words
from corpusveil.collocations.ngrams import counted, keys_of, unpacked
from corpusveil.errors import DataError, check_whole
from corpusveil.spaces.vocabulary import Vocabulary
from corpusveil.storage.artifacts import described
from corpusveil.text.classes import WORD
from corpusveil.text.sentences import consecutive
from corpusveil.text.tokens import Tokenizer
from corpusveil_evaluate.readers.ngrams.fixed import ONE
from corpusveil_evaluate.readers.ngrams.model import LanguageModel
from corpusveil_evaluate.readers.ngrams.modelling import load_model, model_of, model_of_counts, range_of
from corpusveil_evaluate.statistics.statistic import Evidence, Reading, register
from corpusveil_evaluate.terms import batches, check_texts, count_words, tokenizer_of

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
        check_whole("min_count", min_count)
        vocabulary, tokens = count_words(check_texts(texts), min_count=min_count)
        if len(vocabulary) > (most := most_words(ORDER)):
            raise DataError(f"{len(vocabulary):,} words occur often enough, and {most:,} is the most; raise min_count.")
        tokenizer = tokenizer_of(vocabulary)
        keys, counts = counted([keys_of(*consecutive(some), ORDER) for some in batches(texts, tokenizer)])
        lengths, ids = unpacked(keys[counts >= min_count], ORDER)
        counts = counts[counts >= min_count]
        two, three = ((ids[lengths == n, :n], counts[lengths == n]) for n in (2, 3))
        if not len(vocabulary):
            raise DataError(f"No word occurs {min_count} times, so there is nothing to predict; give more text.")
        return cls(
            model_of(vocabulary, range_of(*two, *three), min_count, tokens, artifact.ReadingOptions()),
            tokenizer,
        )

    @classmethod
    def of_counts(cls, url: str) -> Self:
        """Open the output of ``evaluate model``, or smooth that of ``corpusveil count``.

        Raises UserError if there are no counts, or no counts of trigrams.
        """
        description = described(url)
        saved = description is not None and description.kind == "model"
        model = load_model(url) if saved else model_of_counts(url)
        return cls(model, tokenizer_of(model.vocabulary))

    @property
    def vocabulary(self) -> Vocabulary:
        return self.model.vocabulary

    def perplexity(self, texts: Sequence[str]) -> Perplexity:
        """Return the perplexity of all texts together, a word. Raises UserError where they have no words."""
        sums, words, unknown = self._scores(texts)
        if not words:
            raise DataError("The texts have no words, so they have no perplexity; give texts with words.")
        return Perplexity(float(np.exp(-sums.sum() / words)), words, unknown)

    def _scores(self, texts: Sequence[str]) -> tuple[npt.NDArray[np.float64], int, int]:
        """Return the log-probability of each text, float64 [D], nats, and the number of words and of unknown ones."""
        sums: list[npt.NDArray[np.float64]] = [np.empty(0)]
        words = unknown = 0
        for some in batches(check_texts(texts), self._tokenizer):
            tokens, ends = consecutive(some)
            is_word = tokens.classes == WORD
            follows = np.zeros(len(tokens), np.bool_)
            follows[1:] = ~ends[:-1]
            ids = np.where(is_word, tokens.ids, -1)
            last = np.where(follows, np.roll(ids, 1), -1)
            before = np.where(last >= 0, np.roll(last, 1), -1)
            wanted = np.where(ids[is_word] < 0, self.model.unknown, ids[is_word]).astype(np.int32)
            logs = np.zeros(len(tokens))
            logs[is_word] = self.model.score(before[is_word], last[is_word], wanted) / ONE
            text = np.repeat(np.arange(tokens.offsets.size - 1), np.diff(tokens.offsets))
            sums.append(np.bincount(text, logs, tokens.offsets.size - 1).astype(np.float64))
            words += wanted.size
            unknown += int((wanted == self.model.unknown).sum())
        return np.concatenate(sums), words, unknown


def _read(texts: Sequence[str], evidence: Evidence) -> Iterator[Reading]:
    held_out = texts[evidence.held_out]
    if evidence.perplexity is not None and count_words(held_out)[1]:
        yield Reading(evidence.perplexity(held_out), "Kneser-Ney, 3 words")


register("perplexity, original", group="language", unit="number",
    compute=lambda evidence: _read(evidence.originals, evidence))  # fmt: skip
register("perplexity, private", group="language", key="perplexity", unit="number",
    compute=lambda evidence: _read(evidence.privates, evidence))  # fmt: skip
