"""Distributions as integer weights that total exactly 2^64, so that one 64-bit draw picks a cell.

*Integer weights* of ``docs/mathematics.md``: of n cells, cell u gets ``floor((2^64 - n 2^20) p_u) + 2^20``, and the
largest cell takes the remainder. The additive floor is a uniform mixture: every cell can be drawn at any epsilon, and
a log-ratio grows by at most 2^-19. All arithmetic is on integers or correctly rounded decimals, so that tables are
equal on every machine.
"""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np

from corpusveil.arrays import Int32, Int64, UInt64
from corpusveil.compiled import compiled, inlined, u
from corpusveil.errors import SettingError

TOTAL = 1 << 64
FLOOR = 1 << 20
SMALLEST_EPSILON = 1e-100
EXTRA_LOG_RATIO = 2.0**-19
"""The most that integer weights can add to a log-ratio."""

PRECISION_BITS = 192
_CONTEXT = decimal.Context(prec=90, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


def check_epsilon(epsilon: float) -> float:
    """Return epsilon as a float; raises UserError unless it is a finite number above 0."""
    try:
        value = math.nan if isinstance(epsilon, (bool, str)) else float(epsilon)
    except (TypeError, ValueError):
        raise SettingError("epsilon: give a single number.") from None
    if not (0 < value < float("inf")):
        raise SettingError(f"epsilon = {epsilon!r}: give a finite number above 0.")
    if value < SMALLEST_EPSILON:
        raise SettingError(f"epsilon = {epsilon}: the smallest epsilon is {SMALLEST_EPSILON}; give a larger one.")
    return value


def exp_fixed(exponent: float) -> int:
    """Return ``exp(exponent)``, exponent <= 0, as an integer over 2^192, rounded down; equal on every machine."""
    power = _CONTEXT.exp(decimal.Decimal(exponent))
    return int(_CONTEXT.multiply(power, decimal.Decimal(1 << PRECISION_BITS)))


def ln(value: decimal.Decimal) -> decimal.Decimal:
    """Return the natural logarithm, correctly rounded to 90 digits."""
    return _CONTEXT.ln(value)


def divide(numerator: decimal.Decimal, denominator: decimal.Decimal) -> decimal.Decimal:
    """Return the quotient, correctly rounded to 90 digits."""
    return _CONTEXT.divide(numerator, denominator)


def integer_weights(counts: Int64) -> UInt64:
    """Return weights proportional to counts, by the rule above; uint64 [n], total 2^64. All counts 0: uniform."""
    cells = [int(count) for count in counts]
    total = sum(cells)
    if total == 0:
        cells, total = [1] * len(cells), len(cells)
    scale = TOTAL - len(cells) * FLOOR
    weights = [scale * cell // total + FLOOR for cell in cells]
    weights[cells.index(max(cells))] += TOTAL - sum(weights)
    return np.array(weights, dtype=np.uint64)


@inlined
def cell_of(draw: Any, lower_bounds: Any, guide: Any, shift: Any) -> Any:
    """Return the cell of a draw in a `WeightTable`, whose arrays these are."""
    bucket = draw >> shift
    low = guide[bucket]
    high = guide[bucket + np.uint64(1)]
    while low < high:
        middle = (low + high + 1) >> 1
        if lower_bounds[u(middle)] <= draw:
            low = middle
        else:
            high = middle - 1
    return low


@compiled
def _search(lower_bounds: Any, guide: Any, shift: Any, draws: Any, out: Any) -> None:
    for t in range(draws.size):
        out[u(t)] = cell_of(draws[u(t)], lower_bounds, guide, shift)


class WeightTable:
    """Cells by integer weight: draw d selects the last cell whose lower bound is at most d.

    A guide by the first ``bits`` of a draw, ``draw >> shift``, narrows the search.
    """

    __slots__ = ("guide", "lower_bounds", "shift")

    def __init__(self, weights: UInt64, bits: int = 12) -> None:
        bounds = np.zeros(weights.size, dtype=np.uint64)
        np.cumsum(weights[:-1], out=bounds[1:])
        self.lower_bounds, self.shift = bounds, np.uint64(64 - bits)
        edges = np.arange(1 << bits, dtype=np.uint64) << self.shift
        self.guide = np.append(np.searchsorted(bounds, edges, side="right") - 1, weights.size - 1).astype(np.int64)

    def cells(self, draws: UInt64) -> Int32:
        """Return the cell of each draw; uint64 [T] -> int32 [T]."""
        out = np.empty(draws.size, dtype=np.int32)
        _search(self.lower_bounds, self.guide, self.shift, draws, out)
        return out
