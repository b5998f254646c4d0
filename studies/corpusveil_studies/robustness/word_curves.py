"""N_w and S_w of a mechanism over epsilon, and S_w at equal N_w of two (Xu, Feyisetan, Aggarwal, Xu, Teissier 2021).

N_w is the share of replacements of a word that are the word itself, S_w the number of different words among them; both
over 1,000 runs a word, mean and deviation over the vocabulary. CMP is drawn over epsilon, truncated Gumbel over its
logarithm. At equal N_w the mechanism with the larger S_w hides a word among more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.errors import BadValueError
from corpusveil.evaluation.statistics.word_statistics import WordStatistics, word_statistics
from corpusveil.mechanisms import Mechanism
from corpusveil.sampling.keys import Key

CMP_EPSILONS = (1.0, 5.0, 9.0, 20.0, 40.0, 60.0, 80.0, 100.0, 150.0, 200.0)
GUMBEL_LOG_EPSILONS = (4.67, 10.0, 14.0, 17.0, 23.0, 38.0, 50.0, 62.0, 74.0, 86.0)
"""The study's, for IMDb; for SNLI the first is 4.52. A space with closer words has a higher floor."""
RUNS = 1000


@dataclass(frozen=True, slots=True)
class WordCurve:
    """Statistics over epsilon, in ascending order of it. ``logarithmic`` says that it is drawn over ln epsilon."""

    mechanism: str
    epsilons: tuple[float, ...]
    points: tuple[WordStatistics, ...]
    logarithmic: bool = False

    @property
    def places(self) -> tuple[float, ...]:
        """The axis of the points: epsilon, or its natural logarithm."""
        return tuple(math.log(epsilon) if self.logarithmic else epsilon for epsilon in self.epsilons)

    def distinct_at(self, retention: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return S_w where N_w is ``retention`` (shares, 0 to 1): linear between points; nan outside of them."""
        order = sorted((point.retention, point.distinct) for point in self.points)
        shares, numbers = np.array(order).T
        return np.asarray(np.interp(np.asarray(retention), shares, numbers, left=np.nan, right=np.nan))


def word_curve(
    mechanism: Mechanism,
    epsilons: Sequence[float],
    words: npt.NDArray[np.integer[Any]],
    runs: int = RUNS,
    key: Key | None = None,
    *,
    logarithmic: bool = False,
) -> WordCurve:
    """Return the curve over the given words, ids int [N]; from samples, whether the mechanism has a law or not."""
    if not len(epsilons):
        raise BadValueError("epsilons: give at least one for a curve.")
    chosen = tuple(sorted(float(epsilon) for epsilon in epsilons))
    points = tuple(word_statistics(mechanism, at, words, runs, key, exact=False) for at in chosen)
    return WordCurve(mechanism.name, chosen, points, logarithmic)


def equal_retention(left: WordCurve, right: WordCurve, steps: int = 9) -> list[tuple[float, float, float]]:
    """Return N_w and both curves' S_w there, at ``steps`` even places of the N_w that both reach.

    Empty where they share no N_w. Deviations are not interpolated.
    """
    ends = [sorted(point.retention for point in word_curve.points) for word_curve in (left, right)]
    low, high = max(end[0] for end in ends), min(end[-1] for end in ends)
    if low > high or steps < 1:
        return []
    places = np.linspace(low, high, steps)
    values = zip(places, left.distinct_at(places), right.distinct_at(places), strict=True)
    return [(float(place), float(first), float(second)) for place, first, second in values]
