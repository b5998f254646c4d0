"""The spending of documents: the readings of one release, and their composition over several.

The log-ratio of two documents of one skeleton is at most ``Σ ε_i d(w_i, w'_i)`` (``mechanisms.md`` §12): ``largest``,
the greatest ε_i, times the sum of distances; ``total``, their sum, times the greatest distance; ``largest`` times the
distance where one word differs. Releases with independent noise compose by adding each reading, in one metric only: a
sum over two metrics has no meaning. ``ldp`` bounds the ratio for any two documents with the same number of replaced
tokens, and adds up across metrics.

Readings are whole numbers of 1e-9, rounded up: sums are exact, in any order and on any engine, and an epsilon that is
written with at most nine decimals stays what was written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from corpusveil.arrays import Float64, Int32, Int64
from corpusveil.budget.budget import Budget


def upward(value: Fraction) -> float:
    """Return the smallest float64 that is not below an exact value."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def added_times(values: Iterable[tuple[float, int]]) -> float:
    """Return the exact sum of float64 values, each with its multiplicity, rounded up; infinite if a value is."""
    values = list(values)
    if any(value == math.inf for value, _ in values):
        return math.inf
    return upward(sum((Fraction(value) * times for value, times in values), Fraction(0)))


SCALE = 10**9
"""Readings count parts of 1e-9."""
INFINITE = 2**63 - 1
"""The reading that no number bounds; readings beyond it (9e9) count as infinite."""


def fixed(values: npt.ArrayLike) -> Int64:
    """Return nonnegative float64 values as readings, rounded up; int64 of the same shape."""
    scaled = np.ceil(np.asarray(values, dtype=np.float64) * SCALE)
    out = np.full(scaled.shape, INFINITE, dtype=np.int64)
    fits = scaled < 2.0**63
    out[fits] = scaled[fits].astype(np.int64)
    return out


def as_float(reading: int) -> float:
    """Return a reading, or a sum of readings, as the smallest float64 that is not below it."""
    return math.inf if reading >= INFINITE else upward(Fraction(reading, SCALE))


@dataclass(frozen=True, slots=True)
class Readings:
    """The spending of D documents in one release; int64 [D] each, never too low.

    ``tokens`` counts privatized tokens. The others are in parts of 1e-9, and ``INFINITE`` where nothing bounds them;
    ``ldp``, in nats, covers privatized tokens and tokens drawn from public counts.
    """

    tokens: Int64
    total: Int64
    largest: Int64
    ldp: Int64


def readings(
    budget: Budget, documents: Int32, epsilons: Float64, bounds: Float64, resampled: Float64, size: int
) -> Readings:
    """Return the readings of ``size`` documents.

    ``documents`` int32 [K] is the document of each privatized token, ``epsilons`` float64 [K] its epsilon, ``bounds``
    float64 [K] its plain-LDP bound; ``resampled`` float64 [D] the bound of all tokens that public draws replace.
    """
    tokens = np.bincount(documents, minlength=size).astype(np.int64)
    largest = np.zeros(size)
    np.maximum.at(largest, documents, epsilons)
    each = math.ceil(Decimal(repr(budget.epsilon)) * SCALE)  # as it was written
    if budget.per == "token":
        total = np.where(tokens > INFINITE // each, INFINITE, tokens * each)
    else:
        # rounding adds at most a 2^-52th a token, and shares never exceed the budget
        summed = np.bincount(documents, weights=epsilons, minlength=size) * (1 + (tokens + 1) * 2.0**-52)
        total = np.minimum(fixed(summed), min(each, INFINITE))
    ldp = np.bincount(documents, weights=bounds, minlength=size) + resampled
    return Readings(tokens, total, fixed(largest), fixed(ldp * (1 + (tokens + 2) * 2.0**-52)))


def with_length(readings: Readings, epsilon: float) -> Readings:
    """Return readings of documents whose length is disclosed, too, at this epsilon for each word of difference."""
    if not epsilon:
        return readings
    more = int(fixed(epsilon))
    total, ldp = (
        np.where(values > INFINITE - more, INFINITE, values + more) for values in (readings.total, readings.ldp)
    )
    return Readings(readings.tokens, total, readings.largest, ldp)


def unbounded(readings: Readings) -> Readings:
    """Return readings of a mechanism without a guarantee: no epsilon bounds its privacy loss."""
    total, largest, ldp = (
        np.where(readings.tokens > 0, INFINITE, values) for values in (readings.total, readings.largest, readings.ldp)
    )
    return Readings(readings.tokens, total, largest, ldp)


def joined(parts: Sequence[Readings]) -> Readings:
    """Concatenate the readings of several runs of documents."""
    columns = zip(*((part.tokens, part.total, part.largest, part.ldp) for part in parts), strict=True)
    return Readings(*map(np.concatenate, columns)) if parts else Readings(*[np.zeros(0, dtype=np.int64)] * 4)
