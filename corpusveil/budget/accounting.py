"""The spending of documents: the readings of one release, and their composition over several.

The log-ratio of two documents of one skeleton is at most ``Σ ε_i d(w_i, w'_i)`` (``mechanisms.md`` §12): ``largest``,
the greatest ε_i, times the sum of distances; ``total``, their sum, times the greatest distance; ``largest`` times the
distance where one word differs. Releases with independent noise compose by adding each reading, in one metric only: a
sum over two metrics has no meaning. ``ldp`` bounds the ratio for any two documents with the same number of replaced
tokens, and adds up across metrics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from corpusveil.budget.budget import Budget

Floats = npt.NDArray[np.float64]


def upward(value: Fraction) -> float:
    """Return the smallest float64 that is not below an exact value."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def added(values: Iterable[float]) -> float:
    """Return the exact sum of float64 values, rounded up; infinite if a value is."""
    return added_times((value, 1) for value in values)


def added_times(values: Iterable[tuple[float, int]]) -> float:
    """Return the exact sum of float64 values, each with its multiplicity, rounded up; infinite if a value is."""
    values = list(values)
    if any(value == math.inf for value, _ in values):
        return math.inf
    return upward(sum((Fraction(value) * times for value, times in values), Fraction(0)))


@dataclass(frozen=True, slots=True)
class Readings:
    """The spending of D documents in one release: ``tokens`` int64 [D], the others float64 [D], never too low.

    ``tokens`` counts privatized tokens; ``ldp``, in nats, covers these and tokens drawn from public counts.
    """

    tokens: npt.NDArray[np.int64]
    total: Floats
    largest: Floats
    ldp: Floats


def readings(
    budget: Budget, documents: npt.NDArray[np.int32], epsilons: Floats, bounds: Floats, resampled: Floats, size: int
) -> Readings:
    """Return the readings of ``size`` documents.

    ``documents`` int32 [K] is the document of each privatized token, ``epsilons`` float64 [K] its epsilon, ``bounds``
    float64 [K] its plain-LDP bound; ``resampled`` float64 [D] the bound of all tokens that public draws replace.
    """
    tokens = np.bincount(documents, minlength=size)
    largest = np.zeros(size)
    np.maximum.at(largest, documents, epsilons)
    if budget.per == "token":
        different, at = np.unique(tokens, return_inverse=True)
        exact = [upward(Fraction(budget.epsilon) * count) for count in different.tolist()]
        total = np.array(exact)[at]
    else:
        # rounding adds at most a 2^-52th a token, and shares never exceed the budget
        summed = np.bincount(documents, weights=epsilons, minlength=size) * (1 + (tokens + 1) * 2.0**-52)
        total = np.minimum(summed, budget.epsilon)
    ldp = np.bincount(documents, weights=bounds, minlength=size) + resampled
    return Readings(tokens.astype(np.int64), total, largest, ldp * (1 + (tokens + 2) * 2.0**-52))


def with_length(readings: Readings, epsilon: float) -> Readings:
    """Return readings of documents whose length is disclosed, too, at this epsilon for each word of difference."""
    if not epsilon:
        return readings
    total, ldp = (np.nextafter(one + epsilon, np.inf) for one in (readings.total, readings.ldp))
    return Readings(readings.tokens, total, readings.largest, ldp)


def unbounded(readings: Readings) -> Readings:
    """Return readings of a mechanism without a guarantee: no epsilon bounds its privacy loss."""
    total, largest, ldp = (
        np.where(readings.tokens > 0, np.inf, one) for one in (readings.total, readings.largest, readings.ldp)
    )
    return Readings(readings.tokens, total, largest, ldp)


def joined(parts: Sequence[Readings]) -> Readings:
    """Concatenate the readings of several runs of documents."""
    if not parts:
        return Readings(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0), np.zeros(0))
    columns = zip(*((part.tokens, part.total, part.largest, part.ldp) for part in parts), strict=True)
    tokens, total, largest, ldp = (np.concatenate(column) for column in columns)
    return Readings(tokens, total, largest, ldp)
