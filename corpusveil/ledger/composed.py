"""What a unit has spent in (ε, δ): everything of its documents, composed over tokens, releases and metrics.

It holds between corpora in which each known word of the unit's documents differs by a distance of at most 1, in every
metric that spent. Within a metric all tokens compose (``budget/composition.py``); of K metrics each gets δ/K, and their
ε's add up. A row says how many tokens a document has, their largest epsilon and the sum: every token is assumed to have
the largest, unless the sum gives a better bound. Noise of a length composes as one more part.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from corpusveil.budget.accounting import added_times, as_float
from corpusveil.budget.composition import SMALLEST_DELTA, concentrated, epsilon_at
from corpusveil.budget.privacy_loss import BoundedRange, PrivacyLoss, Pure

RANGED = 4.0
"""The factor by which a token of bounded range costs less, zero-concentrated (η²/8 for ε²/2)."""


class Spent(NamedTuple):
    """``times`` different noises that spent the same: their metric, what bounds their tokens, and readings."""

    metric: str
    ranged: bool
    length_epsilon: float
    tokens: int
    total: int
    largest: int
    times: int


def composed_epsilon(spent: Sequence[Spent], delta: float) -> float:
    """Return the ε at δ of everything that one unit spent."""
    by_metric: dict[str, list[Spent]] = defaultdict(list)
    for noise in spent:
        if noise.total:
            by_metric[noise.metric].append(noise)
    return added_times((_in_metric(noises, delta / len(by_metric)), 1) for noises in by_metric.values())


def _in_metric(noises: Sequence[Spent], delta: float) -> float:
    pure = added_times((as_float(noise.total), noise.times) for noise in noises)
    if math.isinf(pure) or delta < SMALLEST_DELTA:  # a share of delta may be too small for composition
        return pure
    counts: dict[PrivacyLoss, int] = defaultdict(int)
    rho = 0.0
    for noise in noises:
        largest, of_length = as_float(noise.largest), noise.length_epsilon
        counts[BoundedRange(largest) if noise.ranged else Pure(largest)] += noise.tokens * noise.times
        if of_length:
            counts[Pure(of_length)] += noise.times
        words = (as_float(noise.total) - of_length) * largest / (RANGED if noise.ranged else 1.0)
        rho += noise.times * (words + of_length**2) / 2
    return min(pure, epsilon_at(sorted(counts.items(), key=repr), delta), concentrated(rho, delta))
