"""What is public about words before anything is released: how frequent each is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corpusveil.errors import BadValueError
from corpusveil.spaces.space import Space

SMOOTHING = 0.5
"""Added to every count (Krichevsky, Trofimov 1981): a word that public text lacks may be an input all the same."""


@dataclass(frozen=True, slots=True)
class Prior:
    """The words that may be inputs, int64 [N], their public probabilities, float64 [N], and how much they cover.

    ``covered`` is the share of the public counts that these words have.
    """

    words: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float64]
    covered: float

    @property
    def guess(self) -> float:
        """The risk without looking at the output: the share of the most frequent word."""
        return float(self.shares.max())


def prior_of(space: Space, inputs: int | None = None) -> Prior:
    """Return the public prior of a space's words, all alike where it has no counts; see ``smoothed``."""
    counts = np.zeros(len(space)) if space.counts is None else space.counts.astype(np.float64)
    return smoothed(counts, inputs=inputs)


def smoothed(counts: npt.NDArray[np.float64], total: float | None = None, inputs: int | None = None) -> Prior:
    """Return the prior by the counts of a space's words, float64 [V], each with ``SMOOTHING`` added.

    Every word is an input, unless ``inputs`` says how many of the most frequent ones are: an attacker who is told that
    no other occurs. ``total`` is what the text has in all, with words that the space lacks.
    """
    if inputs is not None and inputs < 2:
        raise BadValueError(f"inputs = {inputs}: give 2 or more.")
    words = np.sort(np.argsort(-counts, kind="stable")[:inputs])
    weights = counts[words] + SMOOTHING
    whole = counts.sum() if total is None else total
    return Prior(words, weights / weights.sum(), float(counts[words].sum() / whole) if whole else 1.0)
