"""The public grid of epsilons, 2^(j/8): epsilons that vary by token are rounded down to it.

So tables are few, and a budget discloses no more than its grid value.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np

from corpusveil.arrays import Float64, Int64

_EIGHTHS = tuple(math.ldexp(root, -62) for root in (
    4611686018427387904, 5029079263719319552, 5484249825272419328, 5980616842327661568,
    6521908912666390528, 7112192101001161728, 7755900482342532096, 8457869449776733184,
))  # fmt: skip
"""2^(k/8) for k = 0..7 as float64, rounded down: literals, since a math library may differ in the last bit."""

LOWEST, HIGHEST = -8 * 1000, 8 * 64
"""The grid runs from 2^-1000, below the smallest epsilon shared by 2^62 tokens, to 2^64."""


def grid_value(index: int) -> float:
    """Return 2^(index/8)."""
    return math.ldexp(_EIGHTHS[index % 8], index // 8)


@functools.cache
def grid() -> Float64:
    """Return all grid values in ascending order; float64."""
    values = np.array([grid_value(index) for index in range(LOWEST, HIGHEST + 1)])
    values.flags.writeable = False
    return values


def round_down(epsilon: Float64) -> Float64:
    """Return the largest grid value at most each epsilon; float64 [T] above 2^-1000."""
    index = np.searchsorted(grid(), epsilon, side="right") - 1
    return grid()[np.maximum(index, 0)]


@functools.lru_cache(maxsize=64)
def _largest_counts(budget: float) -> Float64:
    """Return, for grid values in descending order, how many times each fits into the budget, exactly."""
    counts = [Fraction(budget) // Fraction(value) for value in grid()[::-1].tolist()]
    return np.array([min(count, 1 << 62) for count in counts], dtype=np.int64)


def share(budget: float, whole: Int64) -> Float64:
    """Return the largest grid value at most ``budget / whole``, in exact arithmetic; ``whole`` int64 [T] at least 1."""
    index = np.searchsorted(_largest_counts(budget), whole, side="left")
    return grid()[::-1][np.minimum(index, grid().size - 1)]
