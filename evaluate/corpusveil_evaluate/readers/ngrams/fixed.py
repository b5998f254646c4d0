"""Log-probabilities as whole numbers: int32, in units of 2^-16 nats, so that sums are the same on every machine.

Sums and comparisons of them are exact. To add up probabilities, ``linear`` converts them to float64 by products of two
table entries. The tables are correctly rounded, and IEEE products and sums in a fixed order are the same everywhere,
unlike an exponential of a C library.
"""

from __future__ import annotations

import decimal
import functools
from itertools import accumulate, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import compiled

ONE = 1 << 16
"""Units a nat."""
LEAST = -(60 * ONE)
"""The value for 0: a log-probability of -60 nats. Nothing is below it."""
_LOW_BITS = 11
_LOW = 1 << _LOW_BITS
_HIGH = (-LEAST >> _LOW_BITS) + 1


def to_fixed(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """Return logarithms of probabilities in units of 2^-16 nats; int32, from ``LEAST`` to 0."""
    with np.errstate(divide="ignore"):
        logs = np.log(probabilities) * ONE
    return np.asarray(np.rint(np.clip(logs, LEAST, 0)), dtype=np.int32)


@functools.lru_cache(maxsize=1)
def tables() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return exp(-k 2^-16) for k < 2^11, and exp(-k 2^-5); what ``linear`` multiplies."""
    return _powers(1, _LOW), _powers(_LOW, _HIGH)


def _powers(step: int, count: int) -> npt.NDArray[np.float64]:
    """Return exp(-k step 2^-16) for k < count, correctly rounded: products of 90 digits, faster than exponentials."""
    context, start = decimal.Context(prec=90), decimal.Decimal(1)
    ratio = context.exp(decimal.Decimal(-step) / ONE)
    return np.array([float(power) for power in accumulate(repeat(ratio, count - 1), context.multiply, initial=start)])


@compiled
def linear(value: Any, low: Any, high: Any) -> Any:
    """Return the probability of a logarithm from ``LEAST`` to 0, by ``tables()``."""
    units = -value
    return low[units & (_LOW - 1)] * high[units >> _LOW_BITS]
