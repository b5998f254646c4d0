"""Perplexity by an interpolated Kneser-Ney model of order 3 (``smoothing.py``) of texts or of ``corpusveil count``.

Its events are the words, lower-cased, of the vocabulary, and ``<unk>`` for all others; numbers, marks and ends of
sentences are none, and break the context as they do in counts. A word at the beginning of such a run is predicted
without context. Perplexities are comparable by one model only: another vocabulary is another set of events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.collocations.artifact import read_artifact
from corpusveil.collocations.ngrams import NgramCounter, merge_all, unpacked
from corpusveil.errors import UserError
from corpusveil.evaluation.smoothing import Counted, Ids, Smoothed
from corpusveil.evaluation.terms import batches, check_texts, count_words, tokenizer_of
from corpusveil.spaces.vocabulary import Vocabulary
from corpusveil.storage import files
from corpusveil.storage.parquet import read_table
from corpusveil.text.classes import WORD
from corpusveil.text.sentences import running
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
    """A model over V words, ids 0 to V - 1 with the most frequent first, and ``<unk>``, id V. It is saved nowhere.

    ``least``: n-grams (and words) that occurred less often were left out of the counts it is made of.
    """

    vocabulary: Vocabulary
    least: int
    smoothed: Smoothed
    _tokenizer: Tokenizer

    @classmethod
    def of_texts(cls, texts: Sequence[str], min_count: int = 1) -> Self:
        """Count texts, as ``corpusveil count`` does, and smooth. Raises UserError where no word occurs often enough."""
        if min_count < 1:
            raise UserError(f"min_count = {min_count}: it is at least 1.")
        vocabulary, tokens = count_words(check_texts(texts), min_count=min_count)
        counter, tokenizer = NgramCounter(len(vocabulary), ORDER), tokenizer_of(vocabulary)
        runs = [run for some in batches(texts, tokenizer) for run in counter.add(*running(some))]
        keys, counts = merge_all([*runs, counter.finish()])
        lengths, ids = unpacked(keys[counts >= min_count], ORDER)
        counts = counts[counts >= min_count]
        two, three = ((ids[lengths == n, :n], counts[lengths == n]) for n in (2, 3))
        return cls._of(vocabulary, two, three, min_count, tokens)

    @classmethod
    def of_counts(cls, url: str) -> Self:
        """Smooth what ``corpusveil count`` wrote, whose least count says how much it left out (``smoothing.py``).

        Raises UserError where there are no counts, or none of trigrams.
        """
        told = read_artifact(url, "counts")
        options = told["options"]
        if options["max_n"] < ORDER:
            raise UserError(f"{url}: counted with --max-n {options['max_n']}, and {ORDER} are needed; count again.")
        table = _read(url)
        words = table.filter(pc.equal(table["n"], 1)).sort_by([("count", "descending"), ("ngram", "ascending")])
        names = words["ngram"].combine_chunks()
        vocabulary = Vocabulary.from_words(names.to_pylist(), words["count"].to_numpy())
        two, three = (_ids(url, table.filter(pc.equal(table["n"], n)), names, n) for n in (2, 3))
        return cls._of(vocabulary, two, three, options["min_count"], told["words"])

    @classmethod
    def _of(cls, vocabulary: Vocabulary, two: Any, three: Any, least: int, tokens: int) -> Self:
        if not len(vocabulary) or vocabulary.counts is None:
            raise UserError(f"No word occurs {least} times, so there is nothing to predict; give more text.")
        counted = Counted(vocabulary.counts, two, three, least, tokens)
        return cls(vocabulary, least, Smoothed.build(counted), tokenizer_of(vocabulary))

    @property
    def unknown(self) -> int:
        """The id of ``<unk>``, V."""
        return len(self.vocabulary)

    def ids(self, words: Sequence[str]) -> Ids:
        """Return the ids of words, int32 [k]; that of ``<unk>`` for a word that the vocabulary lacks."""
        lower = [word.lower() for word in words]
        found = (self.vocabulary.id(word) if word in self.vocabulary else self.unknown for word in lower)
        return np.fromiter(found, np.int32, len(lower))

    def log_probability(self, context: Sequence[str], word: str) -> float:
        """Return ``ln P(word | context)``, of which the last two words count; the nearest one stands last."""
        last = self.ids(context)[-2:]
        pair = np.concatenate([np.full(2 - last.size, -1, np.int32), last])
        return float(self.log_probabilities(pair[None], self.ids([word]))[0, 0])

    def log_probabilities(
        self, contexts: npt.NDArray[np.integer[Any]], candidates: npt.NDArray[np.integer[Any]]
    ) -> npt.NDArray[np.float64]:
        """Return ``ln P(candidate | context)`` of ids, int [N, 2] and [K] -> float64 [N, K], nats.

        A context is the word before the last and the last word, -1 where there is none; ``unknown`` is as good as none.
        A candidate -1 is ``<unk>``. Raises UserError for an id that is no word, and for other shapes.
        """
        pairs, wanted = np.asarray(contexts), np.asarray(candidates)
        if pairs.ndim != 2 or pairs.shape[1] != ORDER - 1 or wanted.ndim != 1:
            raise UserError(f"contexts {pairs.shape}, candidates {wanted.shape}: their shapes are [n, 2] and [k].")
        for ids in (pairs, wanted):
            if ids.size and not -1 <= ids.min() <= ids.max() <= self.unknown:
                raise UserError(f"The ids of this model's words are 0 to {self.unknown}, and -1 for none or unknown.")
        rows = np.where(pairs == self.unknown, -1, pairs).astype(np.int32)
        columns = np.where(wanted == -1, self.unknown, wanted).astype(np.int32)
        table = self.smoothed.table(rows, columns)
        return np.log(table, out=table)

    def sentence_log_probabilities(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return the log-probability of each text, the sum over its words, float64 [D], nats; 0 for one without."""
        return self._scores(texts)[0]

    def perplexity(self, texts: Sequence[str]) -> Perplexity:
        """Return the perplexity of all texts together, a word. Raises UserError where they have no words."""
        sums, words, unknown = self._scores(texts)
        if not words:
            raise UserError("The texts have no words, so they have no perplexity.")
        return Perplexity(float(np.exp(-sums.sum() / words)), words, unknown)

    def _scores(self, texts: Sequence[str]) -> tuple[npt.NDArray[np.float64], int, int]:
        sums: list[npt.NDArray[np.float64]] = [np.empty(0)]
        words = unknown = 0
        for some in batches(check_texts(texts), self._tokenizer):
            tokens, ends = running(some)
            is_word = tokens.classes == WORD
            follows = np.zeros(len(tokens), np.bool_)
            follows[1:] = ~ends[:-1]
            ids = np.where(is_word, tokens.ids, -1)
            last = np.where(follows, np.roll(ids, 1), -1)
            before = np.where(last >= 0, np.roll(last, 1), -1)
            wanted = np.where(ids[is_word] < 0, self.unknown, ids[is_word]).astype(np.int32)
            logs = np.zeros(len(tokens))
            logs[is_word] = np.log(self.smoothed.probabilities(before[is_word], last[is_word], wanted))
            text = np.repeat(np.arange(tokens.offsets.size - 1), np.diff(tokens.offsets))
            sums.append(np.bincount(text, logs, tokens.offsets.size - 1).astype(np.float64))
            words += wanted.size
            unknown += int((wanted == self.unknown).sum())
        return np.concatenate(sums), words, unknown


def _read(url: str) -> pa.Table:
    folder = files.join(url, "ngrams")
    tables = []
    for name in sorted(files.listing(folder)):
        with files.open_read(files.join(folder, name)) as file:
            try:
                tables.append(read_table(file, ["ngram", "n", "count"]))
            except (pa.ArrowException, KeyError, OSError):
                raise UserError(f"{folder}/{name}: these counts can't be read; count again.") from None
    if not tables:
        raise UserError(f"{url}: this artefact has no n-grams; count again.")
    return pa.concat_tables(tables)


def _ids(url: str, table: pa.Table, names: pa.Array, n: int) -> tuple[Ids, npt.NDArray[np.int64]]:
    lists = pc.split_pattern(table["ngram"].combine_chunks(), " ")
    found = pc.index_in(lists.flatten(), value_set=names)
    if found.null_count or len(found) != n * table.num_rows:
        raise UserError(f"{url}: an n-gram has a word that is not counted; these counts are damaged: count again.")
    return found.to_numpy().astype(np.int32).reshape(-1, n), table["count"].to_numpy().astype(np.int64)
