"""Vectors of pieces of text: the sum of word vectors, in integers, so that all processors agree on them.

Where a space has sentence vectors, which are taught to add up (``teaching.py``), these are summed as they are. Where it
has none, a word of public share p weighs ``10^-3 / (10^-3 + p)`` (Arora, Liang, Ma 2017), and word vectors have length
one and are centered by their mean, weighted by p: fixed point, vectors rounded to ``2^-14`` and weights to ``2^-15``.
A last coordinate says whether a piece denies, which a sum hardly shows: 0.3 of the length of the others, below 0
without a word of ``DENIALS`` (docs/choosing-the-unit.md). The sum of a piece is scaled so that the whole has
length 127, and rounded to the nearest int8, halves away from zero. A piece without a known word has the vector 0.

A store can have vectors of another kind: of an encoder that a package names among the entry points
``corpusveil.encoders``, and that it must have when it is opened. That is an object, or its class, with a ``version``
and ``encode(text)``, which returns numbers of one length, at most 1,040, the same for the same text, and **sends
nothing anywhere**. It is given one text at a time, so no row depends on another, and its vectors are rounded to int8
likewise. Equal bytes on all processors are promised for the built-in encoder alone.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from corpusveil.arrays import Bool, Float64, Int8, Int32, Int64
from corpusveil.compiled import compiled
from corpusveil.errors import DataError, PackageError, SettingError
from corpusveil.passages.pieces import Pieces
from corpusveil.registry import Registry
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
MOST = 1040
"""The numbers of a vector."""
_POINT, _WEIGHTS, _SENTENCE_POINT = 14, 15, 7
"""Binary digits after the point of vectors and weights, and of sentence vectors, so that short sums are exact."""
_FULL = 1 << 20
BUILT_IN = "mean"
ENCODERS: Registry[Any] = Registry("encoder")


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
    """Return the built-in encoder over a space with sentence vectors or public counts; made once a process.

    Raises UserError for a space without either.
    """
    words = _weighted(space) if space.sentences is None else space.sentences.astype(np.int32) << _SENTENCE_POINT
    table = WordTable.build(space.vocabulary.text, space.vocabulary.offsets.astype(np.int64))
    hyphens = space.hyphens or "split"
    denials = set(DENIALS.split())
    denies = np.array([word in denials for word in space.vocabulary.words])
    name = f"{BUILT_IN}/{VERSION}/{space.digest}"
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


@dataclass(frozen=True, slots=True, eq=False)
class OtherVectors:
    """Vectors of an encoder of another package, rounded to int8; those of blanks are 0."""

    name: str
    dimensions: int
    encoder: Any

    @classmethod
    def named(cls, name: str) -> OtherVectors:
        """Return the encoder of an entry point. Raises UserError if no package has it, or if it fails."""
        encoder = ENCODERS.find(name)
        try:
            encoder = encoder() if isinstance(encoder, type) else encoder
            made = cls(f"{name}/{encoder.version}", np.asarray(encoder.encode("a text")).size, encoder)
        except Exception as error:  # noqa: BLE001 - a package of others, which raises anything
            raise PackageError(f"{name}: this encoder does not work here ({type(error).__name__}).") from None
        if not (0 < made.dimensions <= MOST and made.name.isprintable()):
            raise PackageError(f"{name}: an encoder makes at most {MOST:,} numbers, and has a version of one line.")
        if not np.array_equal(made.vector("a text"), made.vector("a text")):
            raise PackageError(f"{name}: this encoder makes other numbers of the same text at each call.")
        return made

    def vector(self, text: str) -> Float64:
        """Return the numbers of a text, float64 [d], the largest of size 1. Raises DataError, which quotes no text."""
        try:
            vector = np.asarray(self.encoder.encode(text))
            sound = vector.shape == (self.dimensions,) and vector.dtype.kind in "fiub" and np.isfinite(vector).all()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whose message may quote the text
            raise DataError(f"{self.name}: this encoder failed on a text ({type(error).__name__}).") from None
        if not sound:
            raise DataError(f"{self.name}: this encoder made no {self.dimensions:,} finite numbers of a text.")
        vector = vector.astype(np.float64)
        return vector / (np.abs(vector).max() or 1.0)

    def encode(self, texts: pa.Array) -> Int8:
        out = np.zeros((len(texts), self.dimensions), np.int8)
        for row, text in enumerate(texts.to_pylist()):
            if not text.strip():
                continue
            vector = self.vector(text)
            length = float(np.sqrt((vector * vector).sum())) or 1.0
            out[row] = np.trunc(vector / length * LENGTH + np.copysign(0.5, vector))
        return out

    def of_pieces(self, pieces: Pieces) -> Int8:
        return self.encode(pa.array([pieces.text(piece) for piece in range(len(pieces))], pa.large_string()))


@functools.lru_cache(maxsize=4)
def encoder_of(space: Space, name: str | None) -> MeanVectors | OtherVectors:
    """Return the encoder of a name, with or without its version; None: the built-in one."""
    plain = BUILT_IN if name is None else name.partition("/")[0]
    return mean_vectors(space) if plain == BUILT_IN else OtherVectors.named(plain)


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
