"""Sentence vectors: vectors of words that are taught to add up to what a sentence encoder says of a piece of text.

The encoder, the *teacher*, reads public pieces once, when a space is made; afterwards the vector of a piece is the sum
of the vectors of its words, in integers (``encoder.py``). Two steps (``docs/mathematics.md``, Passages):

1. Ridge regression of the teacher's vectors, reduced to their first principal axes, on the words of a piece, each
   counted ``1 / sqrt(words)``; it starts from the weighted word vectors of the space, mapped linearly.
2. Passes over random batches of pieces, in which the softmax of the similarities of a piece and the others of its batch
   is to become that of the teacher (Kullback-Leibler divergence, Adam). Part of a batch are pieces that the teacher
   finds near to others of it, so that near pieces are told apart, too.

Floats and BLAS decide the last bits: a space is made once, and its digest covers what was made.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from corpusveil.arrays import Float32, Int8, Int64
from corpusveil.errors import DataError
from corpusveil.passages.encoder import mean_vectors
from corpusveil.passages.pieces import pieces_of
from corpusveil.spaces import Space
from corpusveil.text.tokens import string_buffers
from corpusveil.waiting import reached

DIMENSIONS = 128
PIECES, LEAST_PIECES = 100_000, 1_000
"""The most pieces that are taught, a random sample, and the fewest."""
SENTENCES, WORDS = 4, (4, 90)
"""The most sentences of a piece, and its least and most words."""
RIDGE, STEPS = 3.0, 40
"""The penalty, and the steps of conjugate gradients."""
PASSES, BATCH, ANCHORS, TEMPERATURE = 6, 768, 16, 0.1
"""Of a batch, half are near to this many of its other pieces."""
RATE, MOMENTA = 0.02, (0.9, 0.999)
"""The rate of Adam, in standard deviations of the numbers of a word, which falls to 0; and its means."""


def public_pieces(texts: Iterable[pa.Array], space: Space) -> list[str]:
    """Return at most ``PIECES`` runs of one to four sentences of public texts, a random sample."""
    tokenizer, random = mean_vectors(space).tokenizer, np.random.default_rng(0)  # of public text: no secret
    pieces: dict[str, None] = {}
    for batch in texts:
        cut = pieces_of(tokenizer, *string_buffers(batch.drop_null().cast(pa.large_string())), "sentence")
        sizes = random.integers(1, SENTENCES + 1, len(cut))
        at = 0
        while at < len(cut):
            last = min(at + int(sizes[at]), int(cut.offsets[cut.documents[at] + 1]))
            start, end = cut.tokens.starts[cut.bounds[at]], cut.tokens.ends[cut.bounds[last] - 1]
            text = cut.tokens.data[start:end].tobytes().decode("utf-8", "replace")
            if WORDS[0] <= text.count(" ") + 1 <= WORDS[1]:
                pieces[text] = None
            at = last
    every = list(pieces)
    return [every[row] for row in np.sort(random.permutation(len(every))[:PIECES])]


def taught(space: Space, pieces: list[str], teacher: Float32) -> Int8:
    """Return sentence vectors of the words of a space, int8 [V, d]; ``teacher`` float32 [P, n] are the pieces' vectors.

    Raises UserError for a space without counts, and for fewer than ``LEAST_PIECES`` pieces.
    """
    if len(pieces) < LEAST_PIECES:
        raise DataError(f"{len(pieces):,} public pieces teach nothing; give text of at least {LEAST_PIECES:,}.")
    encoder = mean_vectors(space.with_sentences(None))
    tokens = encoder.tokenizer.tokenize(pa.array(pieces, pa.large_string()))
    known = tokens.ids >= 0
    piece = np.repeat(np.arange(len(pieces)), np.diff(tokens.offsets))[known]
    counts = sp.csr_matrix((np.ones(piece.size, np.float32), (piece, tokens.ids[known])), (len(pieces), len(space)))
    start = encoder.words.astype(np.float32)
    unit = teacher / np.maximum(np.linalg.norm(teacher, axis=1, keepdims=True), 1e-9)
    words = _matched(_ridge(start / np.abs(start).max(), counts, unit), counts, unit)
    made: Int8 = np.rint(words * (127 / np.abs(words).max())).astype(np.int8)
    return made


def _ridge(start: Float32, counts: sp.csr_matrix, teacher: Float32) -> Float32:
    """Return the vectors of the first step, float32 [V, d], from those ``start``, float32 [V, any]."""
    centred = teacher - teacher.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :DIMENSIONS]
    aims = centred @ axes
    words = np.asarray(counts.sum(axis=1)).reshape(-1)
    scaled = sp.diags((1 / np.sqrt(np.maximum(words, 1))).astype(np.float32)) @ counts
    across = scaled.T.tocsr()
    vectors = start @ np.linalg.lstsq(scaled @ start, aims, rcond=None)[0]
    left = across @ (aims - scaled @ vectors)
    step, size = left.copy(), (left * left).sum(axis=0)
    for number in range(STEPS):
        reached("learning words by ridge regression", number / STEPS)
        turned = across @ (scaled @ step) + RIDGE * step
        far = size / np.maximum((step * turned).sum(axis=0), 1e-12)
        vectors += far * step
        left -= far * turned
        before, size = size, (left * left).sum(axis=0)
        step = left + size / np.maximum(before, 1e-12) * step
    learned: Float32 = vectors.astype(np.float32)
    return learned


def _matched(vectors: Float32, counts: sp.csr_matrix, teacher: Float32) -> Float32:
    """Return the vectors of the second step, float32 [V, d]."""
    random, vectors = np.random.default_rng(0), vectors / vectors.std()
    means, squares = np.zeros_like(vectors), np.zeros_like(vectors)
    batches = max(1, len(teacher) // BATCH)
    for number in range(steps := PASSES * batches):
        reached("matching the similarities of the teacher", number / steps)
        if number % batches == 0:
            order = random.permutation(len(teacher))
        rows = _with_near(order[number % batches * BATCH :][:BATCH], teacher, random)
        change = _change(vectors, counts[rows], teacher[rows])
        means += (1 - MOMENTA[0]) * (change - means)
        squares += (1 - MOMENTA[1]) * (change * change - squares)
        first, second = (1 - momentum ** (number + 1) for momentum in MOMENTA)
        vectors -= RATE * (1 - number / steps) * (means / first) / (np.sqrt(squares / second) + 1e-8)
    return vectors


def _with_near(rows: Int64, teacher: Float32, random: np.random.Generator) -> Int64:
    """Return as many pieces, at random of these ``rows`` and of those nearest to the first ones, int64 [B]."""
    near = min(BATCH // 2 // ANCHORS, len(teacher))
    nearest = np.argpartition(-(teacher[rows[:ANCHORS]] @ teacher.T), near - 1, axis=1)[:, :near]
    return random.permutation(np.union1d(nearest, rows))[: len(rows)]


def _change(vectors: Float32, counts: sp.csr_matrix, teacher: Float32) -> Float32:
    """Return the gradient of the divergence of a batch by the vectors, float32 [V, d]."""
    sums = counts @ vectors
    lengths = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6)
    units = sums / lengths
    surplus = (_softmax(units) - _softmax(teacher)) / (len(teacher) * TEMPERATURE)
    of_units = (surplus + surplus.T) @ units
    of_sums = (of_units - units * (units * of_units).sum(axis=1, keepdims=True)) / lengths
    return np.asarray(counts.T @ of_sums)


def _softmax(units: Float32) -> Float32:
    """Return for each of B vectors of length one how much each other one is like it, float32 [B, B]."""
    similar = units @ units.T / TEMPERATURE
    np.fill_diagonal(similar, -np.inf)
    similar = np.exp(similar - similar.max(axis=1, keepdims=True))  # noqa: TID251 - a space is made once
    return np.asarray(similar / similar.sum(axis=1, keepdims=True))
