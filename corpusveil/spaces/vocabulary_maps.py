"""Several embeddings over different words: public total maps from the vocabulary to the places of each list.

A list over the words of one embedding contains only a part of the vocabulary. A missing word takes the place of a near
word: the nearest, by Euclidean distance in the first embedding that has the word, among the words that this embedding
and the list share; ties go to the lower id. The maps are computed from public vectors, so the list can be chosen
independently of the word, and the mixture is private for the largest of the lists' distances between the mapped places
(``mechanisms.md`` §4). Choosing among the lists that hold the word is not private.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corpusveil.arrays import Int32, Int64
from corpusveil.errors import MismatchError
from corpusveil.spaces.nearest_words import Search
from corpusveil.spaces.vectors import Vectors


def united_words(embeddings: Sequence[Vectors]) -> list[str]:
    """Return every word of any embedding: those of the first in its order, then new words of the second, and so on."""
    return list(dict.fromkeys(word for embedding in embeddings for word in embedding.words))


def rows_of(words: Sequence[str], embedding: Vectors) -> Int64:
    """Return the row of each word in an embedding, -1 where it has none: int64 [V]."""
    index = {word: row for row, word in enumerate(embedding.words)}
    return np.array([index.get(word, -1) for word in words], dtype=np.int64)


def stand_ins(embeddings: Sequence[Vectors], rows: Sequence[Int64], number: int) -> Int64:
    """Return, for embedding ``number``, the id of the word whose place each word takes: itself if the embedding has it.

    ``rows`` int64 [V] for each embedding. int64 [V]. Raises UserError if an embedding shares no word with another
    embedding that has to define near words.
    """
    own = rows[number]
    chosen = np.where(own >= 0, np.arange(len(own)), -1)
    for other, embedding in enumerate(embeddings):
        missing = np.flatnonzero((chosen < 0) & (rows[other] >= 0))
        if other == number or not missing.size:
            continue
        shared = np.flatnonzero((own >= 0) & (rows[other] >= 0))
        if not shared.size:
            raise MismatchError(
                f"{embedding.source} and {embeddings[number].source} share no word, so their words cannot be "
                "compared; use embeddings that share words, or build a space of each."
            )
        search = Search.of(np.ascontiguousarray(embedding.vectors[rows[other][shared]]))
        points = embedding.vectors[rows[other][missing]].astype(np.float64)
        chosen[missing] = shared[search.nearest(points)]
    return chosen


def padded(lists: Sequence[Int32], size: int) -> Int32:
    """Return lists of different lengths as int32 [L, V], padded by -1."""
    table = np.full((len(lists), size), -1, np.int32)
    for row, words in zip(table, lists, strict=True):
        row[: len(words)] = words
    return table


def places(lists: Int32, standing: Sequence[Int64]) -> Int32:
    """Return the place of each word on each list: int32 [L, V].

    ``standing`` int64 [V] is the word whose place it takes.
    """
    table = np.empty(lists.shape, np.int32)
    for row, words, for_ in zip(table, lists, standing, strict=True):
        inverse = np.full(lists.shape[1], -1, np.int32)
        whole = words[words >= 0]
        inverse[whole] = np.arange(len(whole), dtype=np.int32)
        row[:] = inverse[for_]
    return table
