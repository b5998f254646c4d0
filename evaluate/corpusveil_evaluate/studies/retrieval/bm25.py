r"""BM25 by the maintained library bm25s, over the words of corpusveil's own tokenizer.

The variant is the library's ``lucene`` (Kamphuis et al. 2020, "accurate"), for term frequency and for idf:

    score(q, d) = sum over words t of q, as often as they occur, of
                  ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 (1 - b + b |d| / mean |d|))

with lengths and frequencies in words, lower case; numbers and punctuation are not words, and are not indexed. There are
no stop words and no stemming. k1 = 0.9, b = 0.4 are Anserini's defaults, a common baseline on MS MARCO; the study has
no BM25. Scores are the library's, float32.
"""

from __future__ import annotations

import itertools
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import bm25s
import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from corpusveil.collocations.word_counts import counted, summed
from corpusveil.errors import AddressError, DataError, MissingError, VersionError
from corpusveil.spaces.vocabulary import Vocabulary
from corpusveil.text.tokens import Tokenizer
from corpusveil_evaluate.studies.retrieval.ranking import DEPTH, Ranking, best, ranked
from corpusveil_evaluate.terms import Terms, batches, check_texts, terms_of, tokenizer_of

K1, B = 0.9, 0.4
METHOD = "lucene"

Texts = Callable[[], Iterable[Sequence[str]]]
"""Yields documents in batches, from the first document at each call."""


@dataclass(frozen=True, slots=True, eq=False)
class Bm25:
    """An index of N documents, made by ``of_texts`` or ``of_batches``, or read by ``load``.

    A document without a word of the query is never a result.
    """

    _index: Any = field(repr=False)
    _tokenizer: Tokenizer = field(repr=False)

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> Self:
        """Index a list of texts. Raises as ``of_batches``."""
        check_texts(texts, "documents")
        return cls.of_batches(lambda: [texts])

    @classmethod
    def of_batches(cls, texts: Texts) -> Self:
        """Index documents that are read twice, in batches: for their different words, then for their contents.

        Of the texts only a batch is held at a time. While the library sorts, memory is some 45 bytes for each different
        word of each document (measured on 200,000 passages; for the 8.8 million of MS MARCO that would be 18 GB), and
        8 bytes afterwards, which ``save`` and ``load`` leave on the disk. Raises UserError for documents without words.
        """
        vocabulary = _words(texts())
        if not len(vocabulary):
            raise DataError("The documents have no words, so nothing can be searched; give texts with words.")
        tokenizer = tokenizer_of(vocabulary)
        parts = [terms_of(batch, tokenizer).words() for batch in texts()]
        index = bm25s.BM25(k1=K1, b=B, method=METHOD)
        documents = _Documents(_joined(parts), {word: id for id, word in enumerate(vocabulary.words)})
        del parts
        index.index(documents, create_empty_token=False, show_progress=False)
        return cls(index, tokenizer)

    @classmethod
    def load(cls, folder: str) -> Self:
        """Read what ``save`` wrote; scores stay on the disk and are mapped into memory as queries need them."""
        try:
            index = bm25s.BM25.load(folder, mmap=True, allow_pickle=False)
            words = sorted(index.vocab_dict, key=index.vocab_dict.__getitem__)
            sound = [index.vocab_dict[word] for word in words] == list(range(len(index.scores["indptr"]) - 1))
            engine = cls(index, tokenizer_of(Vocabulary.from_words(words)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise MissingError(
                f"{folder}: no index could be read here ({type(error).__name__}); make one with save."
            ) from None
        if not sound or index.method != METHOD or index.idf_method != METHOD:
            raise VersionError(f"{folder}: this index is of another variant of BM25; make another with save.")
        return engine

    def save(self, folder: str) -> None:
        """Write the index to a local folder, in the library's own form: 8 bytes for each word of each document.

        It holds every word of the documents, and appears completely or not at all. Raises UserError if the folder
        exists.
        """
        if os.path.exists(folder):
            raise AddressError(f"{folder}: this folder already exists; choose another name.")
        unfinished = f"{folder.rstrip('/')}.{uuid.uuid4().hex}.part"
        try:
            self._index.save(unfinished, show_progress=False)
            os.rename(unfinished, folder)
        except OSError as error:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise AddressError(f"{folder}: the index could not be written ({error.strerror}).") from None

    def __len__(self) -> int:
        return int(self._index.scores["num_docs"])

    def search(self, queries: Sequence[str], depth: int = DEPTH) -> Ranking:
        """Return the best documents of each query; only documents with a word of it, equal scores by number."""
        rows = []
        for words in self._queries(queries):
            scores = self._all(words)
            touched = np.flatnonzero(scores)
            rows.append(touched[best(scores[touched], depth)])
        return ranked(rows, depth)

    def scores(self, query: str, documents: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the scores of some documents; 0 for one without a word of the query."""
        (words,) = self._queries([query])
        return self._all(words)[documents].astype(np.float64)

    def _queries(self, queries: Sequence[str]) -> Iterator[list[int]]:
        terms = terms_of(check_texts(queries, "queries"), self._tokenizer)
        for start, stop in itertools.pairwise(terms.offsets.tolist()):
            ids = terms.ids[start:stop]
            yield np.sort(ids[ids >= 0]).tolist()  # sorted, since the sum of floats depends on the order of words

    def _all(self, words: list[int]) -> npt.NDArray[np.float32]:
        scores: npt.NDArray[np.float32] = self._index.get_scores_from_ids(words)
        return scores


class _Documents:
    """Documents as the library takes them: ``ids``, which it reads three times, and ``vocab``."""

    def __init__(self, terms: Terms, vocab: dict[str, int]) -> None:
        self.ids = _Rows(terms)
        self.vocab = vocab


class _Rows:
    """Lists of ids, made one at a time: all of them at once would take ten times the memory."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms

    def __len__(self) -> int:
        return len(self._terms)

    def __iter__(self) -> Iterator[list[int]]:
        ids, offsets = self._terms.ids, self._terms.offsets
        for start, stop in itertools.pairwise(offsets.tolist()):
            yield ids[start:stop].tolist()


def _joined(parts: Sequence[Terms]) -> Terms:
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return Terms(np.concatenate([part.ids for part in parts]), offsets)


def _words(texts: Iterable[Sequence[str]]) -> Vocabulary:
    """Return the different words, in the order of the alphabet (code points)."""
    plain = Tokenizer.of_words([])
    words = summed(counted(tokens) for some in texts for tokens in batches(check_texts(some, "documents"), plain))[
        "word"
    ]
    return Vocabulary.from_words(words.take(pc.sort_indices(words)).to_pylist())
