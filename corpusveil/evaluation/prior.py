"""What is public about words before anything is released: how frequent each is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corpusveil.errors import UserError
from corpusveil.evaluation.defaults import INPUTS
from corpusveil.spaces import Space


@dataclass(frozen=True, slots=True)
class Prior:
    """The words that may be inputs, int64 [N], their public probabilities, float64 [N], and how much they cover."""

    words: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float64]
    covered: float

    @property
    def guess(self) -> float:
        """The risk without looking at the output: the share of the most frequent word."""
        return float(self.shares.max())


def prior_of(space: Space, inputs: int = INPUTS) -> Prior:
    """Return the public prior of a space's most frequent words; all alike where it has no counts (of the first ids)."""
    if inputs < 2:
        raise UserError(f"inputs = {inputs}: it is 2 or more.")
    counts = space.counts
    values = np.ones(len(space)) if counts is None else counts.astype(np.float64)
    if not values.sum() > 0:
        values = np.ones(len(space))
    words = np.sort(np.argsort(-values, kind="stable")[:inputs])
    chosen = values[words]
    return Prior(words, chosen / chosen.sum(), float(chosen.sum() / values.sum()))
