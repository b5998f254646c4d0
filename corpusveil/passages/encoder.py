"""Vectors of pieces of text: the sum of word vectors, in integers, so that all processors agree on them.

Where a space has sentence vectors, which are taught to add up (``teaching.py``), these are summed as they are. Where it
has none, a word of public share p weighs ``10^-3 / (10^-3 + p)`` (Arora, Liang, Ma 2017), and word vectors have length
one and are centered by their mean, weighted by p: fixed point, vectors rounded to ``2^-14`` and weights to ``2^-15``.
A last coordinate says whether a piece denies, which a sum hardly shows: 0.3 of the length of the others, below 0
without a word of ``DENIALS`` (docs/choosing-the-unit.md). The sum of a piece is scaled so that the whole has
length 127, and rounded to the nearest int8, halves away from zero. A piece without a known word has the vector 0.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from corpusveil.arrays import Bool, Int8, Int32, Int64
from corpusveil.compiled import compiled
from corpusveil.errors import DataError, SettingError
from corpusveil.passages.pieces import Pieces
from corpusveil.spaces import Space
from corpusveil.text.tokens import Tokenizer
from corpusveil.text.word_table import WordTable

VERSION = 3
"""Goes up whenever the same space would give the same piece another vector."""
LENGTH = 127
"""The length of a vector, but for rounding."""
DENIALS = """
not no never none nobody nothing nor neither nowhere without hardly cannot unable deny denies denied dont cant isnt
can't n't ain't aren't couldn't didn't doesn't don't hadn't hasn't haven't isn't mustn't needn't shouldn't wan't wasn't
weren't won't wouldn't
"""
"""English words that deny; a space of another language has none, and its last coordinate tells nothing."""
_DOUBLE_TOPIC, _DENIES = 243, 36
"""Twice the length of the other coordinates, 127 / sqrt(1.09), and the size of the last."""
_POINT, _WEIGHTS, _SENTENCE_POINT = 14, 15, 7
"""Binary digits after the point of vectors and weights, and of sentence vectors, so that short sums are exact."""
_FULL = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class MeanVectors:
    """What makes vectors of pieces by the words of a space.

    Attributes:
        tokenizer: of the vocabulary of the space.
        words: int32 [V, d - 1], the vector of a word, times its weight.
        denies: bool [V], whether a word denies.
        dimensions: d.
        name: what the encoder is, with version and space, as a store records it.
    """

    tokenizer: Tokenizer
    words: Int32
    denies: Bool
    name: str

    @property
    def dimensions(self) -> int:
        return int(self.words.shape[1]) + 1

    def encode(self, texts: pa.Array) -> Int8:
        """Return the vectors of pieces, large_string [P] without nulls -> int8 [P, d]."""
        tokens = self.tokenizer.tokenize(texts)
        return self.of_ids(tokens.ids, tokens.offsets)

    def of_pieces(self, pieces: Pieces) -> Int8:
        """Return the vectors of P pieces of texts, int8 [P, d]."""
        return self.of_ids(pieces.tokens.ids, pieces.bounds)

    def of_ids(self, ids: Int32, offsets: Int64) -> Int8:
        """Return the vectors of P runs of word ids, int32 [T] with bounds int64 [P + 1]; ids below 0 are no words."""
        out = np.zeros((offsets.size - 1, self.dimensions), np.int8)
        _sum(ids, offsets, self.words, self.denies, np.empty(self.dimensions - 1, np.int64), out)
        return out


@functools.lru_cache(maxsize=4)
def mean_vectors(space: Space) -> MeanVectors:
    """Return the encoder over a space with sentence vectors or public counts; made once a process.

    Raises UserError for a space without either.
    """
    words = _weighted(space) if space.sentences is None else space.sentences.astype(np.int32) << _SENTENCE_POINT
    table = WordTable.build(space.vocabulary.text, space.vocabulary.offsets.astype(np.int64))
    hyphens = space.hyphens or "split"
    denials = set(DENIALS.split())
    denies = np.array([word in denials for word in space.vocabulary.words])
    name = f"mean/{VERSION}/{space.digest}"
    return MeanVectors(Tokenizer(table, hyphens), words, denies, name)


def _weighted(space: Space) -> Int32:
    """Return word vectors times their weights, int32 [V, d]. Raises UserError for a space without counts."""
    if space.counts is None:
        raise SettingError(f"{space.url or 'the space'}: pieces weigh words by frequency, and this has no counts.")
    counts = space.counts.astype(np.int64)
    vectors = np.empty(space.vectors.shape, np.int64)
    scale = _FULL / float(np.abs(space.vectors).max())
    np.rint(space.vectors.astype(np.float64) * scale, out=vectors, casting="unsafe")
    lengths = np.maximum(_root((vectors * vectors).sum(axis=1)), 1)
    units = (vectors << _POINT) // lengths[:, None]
    total = int(counts.sum())
    if total >> 48:
        raise DataError(f"{space.url or 'the space'}: its counts add up to {total:,}; divide them by a common number.")
    center = counts @ units // total
    weights = (total << _WEIGHTS) // (total + 1000 * counts)
    words: Int32 = (((units - center) * weights[:, None]) >> _WEIGHTS).astype(np.int32)
    return words


def _root(squares: Int64) -> Int64:
    """Return the integer square root of each number below 2^62."""
    root = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    root -= root * root > squares
    return root + ((root + 1) * (root + 1) <= squares)


@compiled
def _sum(ids: Any, offsets: Any, words: Any, denies: Any, total: Any, out: Any) -> None:
    for piece in range(offsets.size - 1):
        total[:] = 0
        denied = False
        for t in range(offsets[piece], offsets[piece + 1]):
            if ids[t] >= 0:
                denied |= denies[ids[t]]
                for axis in range(total.size):
                    total[axis] += words[ids[t], axis]
        largest = np.int64(0)
        for axis in range(total.size):
            largest = max(largest, abs(total[axis]))
        if largest == 0:
            continue
        shift = np.int64(0)
        while largest >> shift > 1 << 26:  # so that squares of some hundred dimensions have room
            shift += 1
        square = np.int64(0)
        for axis in range(total.size):
            total[axis] >>= shift
            square += total[axis] * total[axis]
        length = np.int64(np.sqrt(np.float64(square)))
        while length * length > square:
            length -= 1
        while (length + 1) * (length + 1) <= square:
            length += 1
        if length == 0:
            continue
        for axis in range(total.size):
            size = (_DOUBLE_TOPIC * abs(total[axis]) + length) // (2 * length)
            out[piece, axis] = size if total[axis] > 0 else -size
        out[piece, total.size] = _DENIES if denied else -_DENIES
