"""Balance: public frequency as one more coordinate, so that near words are also about as frequent.

A reader who knows public text guesses a word from its replacement by meaning and by frequency. On an embedding's own
list, frequent words are surrounded by rare words, which gives them away. For an embedding phi and public counts c,

    phi'(w) = (phi(w), B s (ln(c_w + 1/2) - mean)),   s = median nearest-neighbor distance / deviation of ln(c + 1/2)

is a public change of the metric: every guarantee holds as before, in the distance of phi'. B has no unit; with about 1,
frequency weighs as much as meaning (``mechanisms.md`` §16).

Without a given B, phi' with B = 1 orders the lists, and vectors are unchanged: in measurements, balance helped the
mechanisms on lists, and harmed those on vectors (``docs/evaluation-figures.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from corpusveil.arrays import Float32, Float64, Int64
from corpusveil.errors import DataError, SettingError
from corpusveil.sampling.weights import ln
from corpusveil.search.neighbors import nearest
from corpusveil.spaces.grammar import checked

OF_LISTS = 1.0
"""The default B of the lists."""
LOOKED_AT = 1024
"""The most words whose nearest neighbor is searched; of more words, evenly spaced ids."""


@dataclass(frozen=True, slots=True)
class Balance:
    """The resolved balance and order of a space, and the reason: B, for the lists ``alone`` or also for the vectors."""

    weight: float
    alone: bool
    order: str
    why: str

    def sentence(self) -> str:
        """Return it as one sentence."""
        if not self.weight:
            return f"Balance 0 ({self.order} order): {self.why}."
        where = "in the order of the lists alone" if self.alone else "in vectors and lists"
        return f"Balance {self.weight:g} {where} ({self.order} order): {self.why}."


def resolved(balance: float | None, order: str | None, obstacle: str | None, origin: str = "") -> Balance:
    """Resolve a balance and an order; None for a value that is not given.

    ``obstacle`` says why this space cannot have balanced lists, None if it can; ``origin`` says whose counts it has.
    Balanced lists are improved by default, others greedy. Raises UserError unless a balance is from 0 to ``LARGEST``.
    """
    if balance is not None:
        return Balance(checked("balance", balance), False, order or ("improved" if balance else "greedy"), "as asked")
    if obstacle is not None:
        return Balance(0.0, False, order or "greedy", obstacle)
    return Balance(OF_LISTS, True, order or "improved", f"the default where there are public counts{origin}")


def balanced(vectors: Float32, source: str, counts: Int64 | None, balance: float) -> tuple[Float32, float]:
    """Return phi' of V words, float32 [V, d] -> [V, d + 1], and its s; ``counts`` int64 [V] are public.

    Raises UserError if there are no counts, if all words are equally frequent, or if the median distance is 0 because
    most words share their vector.
    """
    if counts is None or not counts.any():
        raise SettingError(
            f"{source}: balance {balance:g} needs public counts of the words; give counts, such as the "
            "output of 'corpusveil count'."
        )
    logarithms = _logarithms(counts)
    mean = math.fsum(logarithms) / logarithms.size
    deviation = math.sqrt(math.fsum((logarithms - mean) ** 2) / logarithms.size)
    spacing = median_spacing(vectors)
    if not deviation or not spacing:
        why = "most words share their vector with another word" if deviation else "all words have the same public count"
        raise DataError(f"{source}: balance {balance:g} has no effect, since {why}; leave it out.")
    scale = spacing / deviation
    frequency = (balance * scale * (logarithms - mean)).astype(np.float32)
    return np.concatenate([vectors, frequency[:, None]], axis=1), scale


def _logarithms(counts: Int64) -> Float64:
    """Return ln(c + 1/2), correctly rounded: logarithms of two C libraries may differ, and spaces must not."""
    distinct, which = np.unique(counts, return_inverse=True)
    values = np.array([float(ln(Decimal(count) + Decimal("0.5"))) for count in distinct.tolist()])
    return np.asarray(values[which])


def median_spacing(vectors: Float32) -> float:
    """Return the median Euclidean distance of words from their nearest other word, of ``LOOKED_AT`` words."""
    vectors = np.ascontiguousarray(vectors, np.float32)
    rows = np.unique(np.linspace(0, len(vectors) - 1, min(len(vectors), LOOKED_AT)).astype(np.int64))
    squares = [nearest(vectors, row, 1)[1][0] for row in rows.tolist()]
    return float(np.median(np.sqrt(squares)))
