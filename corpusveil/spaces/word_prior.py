"""The public prior of words before anything is released: their frequencies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corpusveil.arrays import Float64, Int64
from corpusveil.errors import BadValueError
from corpusveil.spaces.space import Space

SMOOTHING = 0.5
"""Added to every count (Krichevsky, Trofimov 1981), since a word that public text lacks may still be an input."""


@dataclass(frozen=True, slots=True)
class Prior:
    """The possible inputs, int64 [N], their public probabilities, float64 [N], and their coverage.

    ``covered`` is the share of the public counts that these words have.
    """

    words: Int64
    shares: Float64
    covered: float

    @property
    def guess(self) -> float:
        """The risk without looking at the output: the share of the most frequent word."""
        return float(self.shares.max())


def prior_of(space: Space, inputs: int | None = None) -> Prior:
    """Return the public prior of a space's words, uniform without counts; see ``smoothed``."""
    counts = np.zeros(len(space)) if space.counts is None else space.counts.astype(np.float64)
    return smoothed(counts, inputs=inputs)


def smoothed(counts: Float64, total: float | None = None, inputs: int | None = None) -> Prior:
    """Return the prior by the counts of a space's words, float64 [V], each with ``SMOOTHING`` added.

    Every word is an input, unless ``inputs`` restricts inputs to the most frequent words, which the attacker then
    knows. ``total`` is the number of all words in the text, including words that the space lacks.
    """
    if inputs is not None and inputs < 2:
        raise BadValueError(f"inputs = {inputs}: give 2 or more.")
    words = np.sort(np.argsort(-counts, kind="stable")[:inputs])
    weights = counts[words] + SMOOTHING
    whole = counts.sum() if total is None else total
    return Prior(words, weights / weights.sum(), float(counts[words].sum() / whole) if whole else 1.0)
