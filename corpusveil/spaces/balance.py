"""Balance: public frequency as one more coordinate, so that near words are also about as frequent.

A reader who knows public text guesses a word from its replacement by meaning and by frequency. On an embedding's own
list frequent words stand alone among rare ones, which gives them away. Of an embedding phi and public counts c,

    phi'(w) = (phi(w), B s (ln(c_w + 1/2) - mean)),   s = median nearest-neighbor distance / deviation of ln(c + 1/2)

is a public change of the metric: every guarantee holds as it did, in the distance of phi'. B has no unit; about 1 makes
frequency weigh as much as meaning (``mechanisms.md`` §16).
"""

from __future__ import annotations

import dataclasses
import math
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from corpusveil.errors import BadValueError, DataError, UnsetError
from corpusveil.sampling.weights import ln
from corpusveil.spaces.nominations import centre, squared_distance
from corpusveil.spaces.vectors import Vectors

LARGEST = 1024.0
LOOKED_AT = 1024
"""Words whose nearest neighbor is searched for; evenly spaced ids where there are more."""
NOMINEES = 32
TILE = 256


def check_balance(balance: float) -> None:
    """Raise UserError unless a balance is a number from 0 to ``LARGEST``."""
    if isinstance(balance, bool) or not isinstance(balance, (int, float)) or not 0 <= balance <= LARGEST:
        raise BadValueError(f"balance = {balance}: balance is a number from 0 (none) to {LARGEST:g}; 1 is usual.")


def balanced(vectors: Vectors, counts: npt.NDArray[np.int64] | None, balance: float) -> tuple[Vectors, float]:
    """Return phi' of V words, float32 [V, d + 1], and its s; ``counts`` int64 [V] are public.

    Raises UserError where there are no counts, where all words are equally frequent, and where the median distance is 0
    because most words share their vector.
    """
    check_balance(balance)
    if counts is None or not counts.any():
        raise UnsetError(
            f"{vectors.source}: balance {balance:g} needs public counts of the words; give counts, such as what "
            "'corpusveil count' wrote."
        )
    logarithms = _logarithms(counts)
    mean = math.fsum(logarithms) / logarithms.size
    deviation = math.sqrt(math.fsum((logarithms - mean) ** 2) / logarithms.size)
    spacing = median_spacing(vectors.vectors)
    if not deviation or not spacing:
        why = "all words have the same public count" if not deviation else "most words share their vector with another"
        raise DataError(f"{vectors.source}: balance {balance:g} has nothing to weigh, since {why}; leave it out.")
    scale = spacing / deviation
    frequency = (balance * scale * (logarithms - mean)).astype(np.float32)
    longer = np.concatenate([vectors.vectors, frequency[:, None]], axis=1)
    return dataclasses.replace(vectors, vectors=longer), scale


def _logarithms(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return ln(c + 1/2), correctly rounded: logarithms of two C libraries may differ, and spaces must not."""
    distinct, which = np.unique(counts, return_inverse=True)
    values = np.array([float(ln(Decimal(count) + Decimal("0.5"))) for count in distinct.tolist()])
    return np.asarray(values[which])


def median_spacing(vectors: npt.NDArray[np.float32]) -> float:
    """Return the median Euclidean distance of words from their nearest other word, of ``LOOKED_AT`` words.

    A product in float32 nominates; the distances are summed in float64, dimension by dimension.
    """
    centred = centre(np.ascontiguousarray(vectors, np.float32))
    size = len(vectors)
    rows = np.unique(np.linspace(0, size - 1, min(size, LOOKED_AT)).astype(np.int64))
    nominees = min(NOMINEES, size)
    nearest = []
    for first in range(0, rows.size, TILE):
        some = rows[first : first + TILE]
        bounds = centred.weights - 2 * (centred.points[some] @ centred.points.T)
        found = np.argpartition(bounds, nominees - 1, axis=1)[:, :nominees]
        for row, others in zip(some.tolist(), found.tolist(), strict=True):
            nearest.append(min(squared_distance(vectors, row, other) for other in others if other != row))
    return float(np.median(np.sqrt(nearest)))
