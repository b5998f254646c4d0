"""Sentence vectors: vectors of words that are taught to add up to what a sentence encoder says of a piece of text.

The encoder, the *teacher*, reads public pieces once, when a space is made; afterwards the vector of a piece is the sum
of the vectors of its words, in integers (``encoder.py``). Two steps (``docs/mathematics.md``, Passages):

1. Ridge regression of the teacher's vectors, reduced to their first principal axes, on the words of a piece, each
   counted ``1 / sqrt(words)``; it starts from the weighted word vectors of the space, mapped linearly.
2. Passes over random batches of pieces, in which the softmax of the similarities of the sum of a piece and of the
   teacher's vectors of the others, on axes that are learned with the words, is to become that of the teacher
   (Kullback-Leibler divergence, Adam). Part of a batch are pieces that the teacher finds near to others of it, so that
   near pieces are told apart, too.

Floats and BLAS decide the last bits: a space is made once, and its digest covers what was made.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from corpusveil.arrays import Float32, Int8
from corpusveil.errors import DataError, PackageError
from corpusveil.passages.encoder import ENCODERS, mean_vectors
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
PASSES, BATCH, TEMPERATURE = 5, 2048, 0.1
ANCHORS, AMONG = 32, 50_000
"""Half of a batch are near to this many of its other pieces; a pass looks for them in a sample of the second size."""
RATES, MOMENTA = (0.03, 0.003), (0.9, 0.999)
"""The rates of Adam of words and axes, in standard deviations of their numbers, which fall to 0; and its means."""


def said_by(name: str, pieces: list[str]) -> Float32:
    """Return what a sentence encoder, an entry point of ``corpusveil.encoders``, says of pieces, float32 [P, n].

    It is an object, or its class, with ``encode(text)``, which returns numbers of one length. Raises PackageError,
    which quotes no text, if no package has it, or if it fails.
    """
    encoder = ENCODERS.find(name)
    try:
        encoder = encoder() if isinstance(encoder, type) else encoder
        said = np.array([encoder.encode(piece) for piece in pieces], np.float32)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a package of others, whose message may quote the text
        raise PackageError(f"{name}: this encoder does not work here ({type(error).__name__}).") from None
    if said.ndim != 2 or not said.size or not np.isfinite(said).all():
        raise PackageError(f"{name}: an encoder returns finite numbers, as many for each text.")
    return said


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
    words = _matched(*_ridge(start / np.abs(start).max(), counts, unit), counts, unit)
    made: Int8 = np.rint(words * (127 / np.abs(words).max())).astype(np.int8)
    return made


def _ridge(start: Float32, counts: sp.csr_matrix, teacher: Float32) -> tuple[Float32, Float32]:
    """Return the vectors of the first step, float32 [V, d], from those ``start``, float32 [V, any]; and the axes."""
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
    return vectors.astype(np.float32), axes


def _matched(words: Float32, axes: Float32, counts: sp.csr_matrix, teacher: Float32) -> Float32:
    """Return the vectors of the second step, float32 [V, d]; ``axes`` float32 [n, d]."""
    random, center = np.random.default_rng(0), teacher.mean(axis=0)
    learned: list[Float32] = [words / words.std(), axes / axes.std()]
    means, squares = ([np.zeros_like(each) for each in learned] for _ in range(2))
    batches = max(1, len(teacher) // BATCH)
    for number in range(steps := PASSES * batches):
        reached("matching the similarities of the teacher", number / steps)
        if number % batches == 0:
            order, among = random.permutation(len(teacher)), random.permutation(len(teacher))[:AMONG]
            near = teacher[among].T
        rows = order[number % batches * BATCH :][:BATCH]
        some = min(BATCH // 2 // ANCHORS, len(among))
        nearest = among[np.argpartition(-(teacher[rows[:ANCHORS]] @ near), some - 1, axis=1)[:, :some]]
        rows = random.permutation(np.union1d(nearest, rows))[: len(rows)]
        first, second = (1 - momentum ** (number + 1) for momentum in MOMENTA)
        for at, change in enumerate(
            _changes(learned[0], learned[1], counts[rows], teacher[rows] - center, teacher[rows])
        ):
            means[at] += (1 - MOMENTA[0]) * (change - means[at])
            squares[at] += (1 - MOMENTA[1]) * (change * change - squares[at])
            rate = RATES[at] * (1 - number / steps)
            learned[at] -= rate * (means[at] / first) / (np.sqrt(squares[at] / second) + 1e-8)
    return learned[0]


def _changes(
    words: Float32, axes: Float32, counts: sp.csr_matrix, centered: Float32, teacher: Float32
) -> tuple[Float32, Float32]:
    """Return the gradients of the divergence of a batch by words and axes, float32 [V, d] and [n, d]."""
    (sums, long), (aims, far) = _units(counts @ words), _units(centered @ axes)
    surplus = (_softmax(sums @ aims.T) - _softmax(teacher @ teacher.T)) / (len(teacher) * TEMPERATURE)
    of_sums, of_aims = surplus @ aims, surplus.T @ sums
    of_sums = (of_sums - sums * (sums * of_sums).sum(axis=1, keepdims=True)) / long
    of_aims = (of_aims - aims * (aims * of_aims).sum(axis=1, keepdims=True)) / far
    return np.asarray(counts.T @ of_sums), centered.T @ of_aims


def _units(vectors: Float32) -> tuple[Float32, Float32]:
    """Return vectors of length one, float32 [B, d], and the lengths, float32 [B, 1]."""
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    return vectors / lengths, lengths


def _softmax(similar: Float32) -> Float32:
    """Return for each of B pieces how much each other one is like it, float32 [B, B]."""
    similar = similar / TEMPERATURE
    np.fill_diagonal(similar, -np.inf)
    similar = np.exp(similar - similar.max(axis=1, keepdims=True))  # noqa: TID251 - a space is made once
    return np.asarray(similar / similar.sum(axis=1, keepdims=True))
