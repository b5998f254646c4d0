"""Grammar: how words are used as coordinates of the metric, so that a noun is replaced by a noun.

A reader who knows the context knows almost for certain whether a noun, a plural or a past tense was there. A draw that
changes the class hides nothing from that reader, and spoils the text. From *public* pairs of adjacent words,
``usage`` makes a vector sigma(w) of the neighbors of a word, and the lists are ordered by

    phi''(w) = (phi(w) / |phi(w)|, G sigma(w))

and by frequency as before (``balance.py``): a public change of the metric, so every guarantee holds as before, in
places of the list (``mechanisms.md`` §20). Vectors are unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from corpusveil.arrays import Float32, Float64, Int32, Int64
from corpusveil.errors import SettingError

OF_LISTS = 1.0
"""The default G of the lists where there are pairs."""
LARGEST = 1024.0
"""The most that grammar, or frequency (``balance.py``), counts against meaning."""
COLUMNS = 2000
"""The most frequent words, each of which is a column twice: as the left and as the right neighbor."""
DIMENSIONS = 50
SMOOTHING = 0.75
"""The exponent of the counts of neighbors: without it, rare neighbors have too large a PMI (Levy et al. 2015)."""
ENOUGH, RIDGE, SHRINK = 200, 3.0, 50.0
"""Pairs from which the usage of a word is learned; the ridge; pairs at which own and predicted usage weigh the same."""
LEAST = 100
"""The least number of words with ``ENOUGH`` pairs: usage that fewer predict says nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Neighbors:
    """Counts of the neighbors of V words: at ``rows[i]`` and ``columns[i]``, ``counts[i]``.

    Attributes:
        words: V.
        width: the number of column words, at most ``COLUMNS``; column ``width + j`` is word j as the right neighbor.
        rows, columns: int32 [n]. Memory: 16 bytes a pair of a word and a column word.
        counts: int64 [n].
    """

    words: int
    width: int
    rows: Int32
    columns: Int32
    counts: Int64

    def __post_init__(self) -> None:
        order = np.lexsort((self.columns, self.rows))  # whatever the order of the files
        for name in ("rows", "columns", "counts"):
            object.__setattr__(self, name, getattr(self, name)[order])

    def neighbors_among(self, words: Sequence[str], chosen: Sequence[str]) -> Neighbors:
        """Return the neighbors of the ``chosen`` of these words, in their order; the columns are unchanged."""
        index = {word: id for id, word in enumerate(chosen)}
        ids = np.array([index.get(word, -1) for word in words], np.int32)[self.rows]
        kept = ids >= 0
        return Neighbors(len(chosen), self.width, ids[kept], self.columns[kept], self.counts[kept])

    @property
    def pairs(self) -> Int64:
        """The number of pairs of each word, int64 [V]."""
        return np.bincount(self.rows, self.counts, self.words).astype(np.int64)

    @property
    def obstacle(self) -> str | None:
        """Why these say nothing about grammar; None if they do."""
        if int((self.pairs >= ENOUGH).sum()) < max(LEAST, 2 * DIMENSIONS):
            return f"fewer than {LEAST} words occur in {ENOUGH} pairs of the public text"
        return None


def checked(name: str, weight: float) -> float:
    """Return the weight of that name. Raises UserError unless it is from 0 to ``LARGEST``."""
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight <= LARGEST:
        raise SettingError(f"{name} = {weight}: give a number from 0 (none) to {LARGEST:g}; 1 is usual.")
    return float(weight)


def with_grammar(vectors: Float32, neighbors: Neighbors, weight: float) -> Float32:
    """Return phi'' of V words without frequency, float32 [V, d + 50]; ``vectors`` float32 [V, d]."""
    meaning = _unit(vectors.astype(np.float64))
    return np.concatenate([meaning, weight * usage(meaning, neighbors)], axis=1).astype(np.float32)


def usage(meaning: Float64, neighbors: Neighbors) -> Float64:
    """Return sigma(w), float64 [V, 50], each of length 1: PMI of neighbors, reduced, shrunk toward the predicted.

    ``meaning`` float64 [V, d] of length 1. The last bits depend on the machine's BLAS.
    """
    learned = _unit(_reduced(_positive_pmi(neighbors)))
    pairs = neighbors.pairs.astype(np.float64)
    rich = pairs >= ENOUGH
    known = meaning[rich]
    ridge = known.T @ known + RIDGE * np.eye(known.shape[1])
    predicted = _unit(meaning @ np.linalg.solve(ridge, known.T @ learned[rich]))
    own = (pairs / (pairs + SHRINK))[:, None]
    return _unit(own * learned + (1 - own) * predicted)


def _positive_pmi(neighbors: Neighbors) -> sp.csr_array:
    """Return ln(n(w, c) N / (n(w) n(c)^3/4 N^1/4)) where it is positive, float64 [V, 2 C]."""
    counts = neighbors.counts.astype(np.float64)
    of_words = np.bincount(neighbors.rows, counts, neighbors.words) + 1
    of_columns = np.bincount(neighbors.columns, counts, 2 * neighbors.width) + 1
    total = math.fsum(counts)
    expected = of_words[neighbors.rows] * of_columns[neighbors.columns] ** SMOOTHING * total ** (1 - SMOOTHING)
    pmi = np.maximum(np.log(counts * total / expected), 0)
    return sp.csr_array((pmi, (neighbors.rows, neighbors.columns)), shape=(neighbors.words, 2 * neighbors.width))


def _reduced(pmi: sp.csr_array) -> Float64:
    """Return U sqrt(S) of the truncated SVD, from a fixed start and with fixed signs: float64 [V, 50]."""
    start = np.ones(min(pmi.shape))
    left, sizes, _ = svds(pmi, k=DIMENSIONS, v0=start)
    signs = np.sign(left[np.abs(left).argmax(axis=0), np.arange(DIMENSIONS)])
    return np.asarray(left * signs * np.sqrt(sizes))


def _unit(rows: Float64) -> Float64:
    return np.asarray(rows / (np.linalg.norm(rows, axis=1, keepdims=True) + 1e-9))
