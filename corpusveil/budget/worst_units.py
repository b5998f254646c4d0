"""(ε, δ) of a document whose words form units of unknown sizes: a bound for every division of the words into units.

Under ``per-word`` a unit of k words spends k shares, so fewer and longer units average out less. Units of K words, the
longest, are usually the worst, but not always: shares are rounded down to a grid, K may not divide n, and the losses of
two units cancel where those of three cannot. Hence no division is singled out. Let L_k be the loss of a unit of k
words, and

    V_0(x) = max(0, 1 - e^x),    V_n(x) = max over k <= min(K, n) of E[V_(n-k)(x - L_k)].

*No division of at most n words has a larger divergence at x than V_n(x).* By induction over its units: losses are
independent, so the divergence of the whole is E[D(x - L_k)], where k is the size of a unit and D the divergence of all
other units, which V_(n-k) bounds. (V_n may choose a unit by the losses of those before it, so it can be larger than
each division needs.)

The mean is over losses on a grid, connected as in ``composition.py``, which can only increase it. ρ and the pure bound
add up over units, so their largest sums over divisions are computed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np

from corpusveil.arrays import Float64
from corpusveil.budget.accounting import upward
from corpusveil.budget.composition import FINEST, ROUNDING, check_delta, concentrated
from corpusveil.budget.privacy_loss import PrivacyLoss

MOST_WORDS = 1 << 12
"""Longer documents are bounded in the other two ways, since V takes time in proportion to the square of words."""
MOST_STEPS = 1 << 12
"""The most steps of the grid up to the largest loss of a document."""
TRANSFORM_ROUNDING = 2.0**-50
"""The rounding of V by the Fourier transforms of one word; it is subtracted from δ."""

_Value = TypeVar("_Value", int, Fraction)


def worst_pure(units: Sequence[PrivacyLoss], words: int) -> float:
    """Return the largest sum of the largest losses of units that have ``words`` words together, rounded up.

    ``units`` are the losses of a unit of one word, of two words, and so on.
    """
    units = units[:words]
    if any(math.isinf(loss.largest) for loss in units):
        return math.inf
    return upward(_most([Fraction(loss.largest) for loss in units], words))


def worst_epsilon(units: Sequence[PrivacyLoss], words: int, delta: float) -> float:
    """Return an ε such that (ε, δ) holds for every division of ``words`` words; never above ``worst_pure``.

    ``units`` are the losses of a unit of one word, of two words, and so on. Raises UserError for a δ out of range.
    """
    units, delta = units[:words], check_delta(delta)
    pure = worst_pure(units, words)
    if pure == 0 or math.isinf(pure):
        return pure
    rho = upward(_most([Fraction(loss.rho) for loss in units], words))
    best = min(pure, concentrated(rho, delta))
    return best if words > MOST_WORDS else min(best, _composed(units, words, delta, pure))


def _most(values: Sequence[_Value], words: int) -> _Value:
    """Return the largest sum over units that have ``words`` words together; ``values[k - 1]`` is of k words."""
    most = [0 * values[0]]
    for n in range(1, words + 1):
        most.append(max(most[n - k] + value for k, value in enumerate(values[:n], 1)))
    return most[-1]


def _composed(units: Sequence[PrivacyLoss], words: int, delta: float, pure: float) -> float:
    step = max(loss.largest / max(loss.points, 4 * k) for k, loss in enumerate(units, 1))  # losses have no common grid
    step = max(step, pure / MOST_STEPS, FINEST) * (1 + 2.0**-40)
    tops = [math.ceil(loss.largest / step) for loss in units]
    span, reach = _most(tops, words), max(tops)
    x = np.arange(-span - reach, span + reach + 1) * step
    size = 1 << x.size.bit_length()
    laws = [np.fft.rfft(_law(loss, step, top, reach), size) for loss, top in zip(units, tops, strict=True)]
    curve = -np.expm1(np.minimum(x, 0.0))  # V_0, and V_n outside of what n words can lose
    inside = curve[reach:-reach]
    before = [np.fft.rfft(curve, size)]
    for _ in range(words):
        for law, rest in zip(laws, before, strict=False):
            np.maximum(inside, np.fft.irfft(law * rest, size)[2 * reach : x.size], out=inside)
        before = [np.fft.rfft(curve, size), *before[: len(units) - 1]]
    left = delta - ROUNDING - words * TRANSFORM_ROUNDING
    curve = curve[x.size // 2 :]  # from x = 0 on
    at = int(np.argmax(curve <= left))
    if at == 0:
        return 0.0
    above = (curve[at - 1] - left) / (curve[at - 1] - curve[at])  # a divergence is convex in e^x
    return float((at - 1) * step + math.log1p(above * math.expm1(step))) * (1 + 2.0**-40) + ROUNDING


def _law(loss: PrivacyLoss, step: float, top: int, reach: int) -> Float64:
    """Return the probabilities of losses of -reach to reach steps whose divergence connects the points of the loss."""
    x = np.arange(-top - 1, top + 2, dtype=np.float64) * step
    deltas = np.minimum.accumulate(np.clip(loss.deltas(x), 0.0, 1.0))
    deltas[-2:] = 0.0  # no loss is larger
    gaps = np.diff(deltas)
    law = np.maximum(gaps[1:] - math.exp(step) * gaps[:-1], 0.0) / math.expm1(step)
    return np.pad(law, reach - top)
