"""The spending of documents: nats of plain LDP, which add up over words, passages, spaces and releases.

A document of n replaced tokens spends at most n times the plain-LDP bound of one token, known to the space or not
(``mechanisms.md`` §12): the bound covers any two documents with the same number of replaced tokens. Releases with
independent noise compose by adding.

Nats are whole numbers of 1e-9, rounded up: sums are exact, in any order and on any engine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from corpusveil.arrays import Float64, Int64


def upward(value: Fraction) -> float:
    """Return the smallest float64 that is not below an exact value."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


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
    """The spending of D documents, int64 [D]: ``tokens`` replaced, and ``nats`` in parts of 1e-9, rounded up."""

    tokens: Int64
    nats: Int64


def readings(tokens: Int64, bounds: Float64) -> Readings:
    """Return the readings of D documents: int64 [D] tokens, each bounded by the nats float64 [D] of its document."""
    each = fixed(bounds)
    with np.errstate(over="ignore"):
        nats = np.where(tokens > INFINITE // np.maximum(each, 1), INFINITE, tokens * each)
    return Readings(tokens, nats)


def unbounded(readings: Readings) -> Readings:
    """Return readings of a mechanism without a guarantee: nothing bounds what its tokens disclose."""
    return Readings(readings.tokens, np.where(readings.tokens > 0, INFINITE, readings.nats))


def joined(parts: Sequence[Readings]) -> Readings:
    if not parts:
        return Readings(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return Readings(np.concatenate([part.tokens for part in parts]), np.concatenate([part.nats for part in parts]))
