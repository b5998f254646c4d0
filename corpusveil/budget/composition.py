"""(ε, δ) of a document: the privacy losses of its tokens, composed.

Three bounds hold at once, and the smallest is stated. *Pure*: the sum of the tokens' largest losses, at any δ.
*Composed*: bounds on hockey-stick divergences (``privacy_loss.py``), connected on a grid of losses, which can only
increase them, and convolved by Google's dp-accounting. *Concentrated*: the sum of ρ, turned into ε by the optimal order
(Canonne, Kamath, Steinke 2020); it costs nothing, however many tokens there are.

Convolution is in float64, and cuts tails of mass 1e-15, which count as infinite loss. So ``ROUNDING`` is subtracted
from δ, and added to ε, before a figure is stated.

If words form units of unknown sizes, a bound holds for every division of the words into units. Under ``per-word`` a
unit of k words spends k shares, so fewer and longer units average out less. Units of K words, the longest, are usually
the worst, but not always: shares are rounded down to a grid, K may not divide n, and the losses of two units cancel
where those of three cannot. Hence no division is singled out. Let L_k be the loss of a unit of k words, and

    V_0(x) = max(0, 1 - e^x),    V_n(x) = max over k <= min(K, n) of E[V_(n-k)(x - L_k)].

*No division of at most n words has a larger divergence at x than V_n(x).* By induction over its units: losses are
independent, so the divergence of the whole is E[D(x - L_k)], where k is the size of a unit and D the divergence of all
other units, which V_(n-k) bounds. (V_n may choose a unit by the losses of those before it, so it can be larger than
each division needs.)

The mean is over losses on a grid, connected as above, which can only increase it. ρ and the pure bound add up over
units, so their largest sums over divisions are computed exactly.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from corpusveil.arrays import Float64
from corpusveil.budget.accounting import added_times, upward
from corpusveil.budget.privacy_loss import PrivacyLoss
from corpusveil.errors import BadValueError

SMALLEST_DELTA = 1e-10
ROUNDING = 1e-12
MOST_CELLS = 1 << 22
"""The most points of a grid of losses; larger problems are bounded in the other two ways."""
FINEST = 1e-7
"""The smallest step of a grid: with smaller steps, differences of divergences would be lost in rounding."""
MOST_KINDS = 32
MOST_WORDS = 1 << 12
"""Longer documents are bounded in the other two ways, since V takes time in proportion to the square of words."""
MOST_STEPS = 1 << 12
"""The most steps of the grid up to the largest loss of a document."""
TRANSFORM_ROUNDING = 2.0**-50
"""The rounding of V by the Fourier transforms of one word; it is subtracted from δ."""

_Value = TypeVar("_Value", int, Fraction)

Parts = tuple[tuple[PrivacyLoss, int], ...]


def check_delta(delta: float, name: str = "delta") -> float:
    """Return delta. Raises UserError unless it is from ``SMALLEST_DELTA`` to below 1."""
    good = isinstance(delta, (int, float)) and not isinstance(delta, bool) and SMALLEST_DELTA <= delta < 1
    if not good:
        raise BadValueError(
            f"{name} = {delta}: delta is a probability; give a number from {SMALLEST_DELTA:g} to below 1, such as 1e-6."
        )
    return float(delta)


def pure_sum(parts: Parts) -> float:
    """Return the sum of the largest losses of all tokens, rounded up; infinite if a loss is."""
    return added_times((loss.largest, count) for loss, count in parts)


def epsilon_at(parts: Iterable[tuple[PrivacyLoss, int]], delta: float) -> float:
    """Return an ε such that (ε, δ) holds for these losses, each with its multiplicity; never above the pure sum.

    Raises UserError for a δ out of range.
    """
    return _epsilon_at(tuple((loss, count) for loss, count in parts if count > 0), check_delta(delta))


@functools.lru_cache(maxsize=1 << 14)
def _epsilon_at(parts: Parts, delta: float) -> float:
    pure = pure_sum(parts)
    if pure == 0 or math.isinf(pure):
        return pure
    best = min(pure, concentrated(sum(loss.rho * count for loss, count in parts), delta))
    grid = _grid(parts)
    return best if grid is None else min(best, _composed(parts, delta, grid))


def concentrated(rho: float, delta: float) -> float:
    """Return the ε at δ of ρ-zero-concentrated privacy, the least over orders; infinite for an infinite ρ."""
    orders = 1 + np.logspace(-4, 7, 2048)
    terms = orders * np.log1p(-1 / orders) - np.log(orders - 1) - math.log(delta - ROUNDING)
    least = float((rho * orders + terms / (orders - 1)).min())
    return max(0.0, least) * (1 + 2.0**-40)


def _grid(parts: Parts) -> float | None:
    """Return the step of the losses' grid; None if no grid is both fine enough and small enough."""
    losses = {loss for loss, _ in parts if loss.largest > 0}
    if len(losses) > MOST_KINDS:
        return None
    step = min(loss.largest / loss.points for loss in losses)
    if len(losses) > 1:  # losses of several kinds have no common grid
        step /= 4
    span = 2 * sum(loss.largest * count for loss, count in parts)
    step = max(step, span / MOST_CELLS, FINEST)
    return step if step <= min(loss.largest for loss in losses) else None


def _composed(parts: Parts, delta: float, step: float) -> float:
    from dp_accounting.pld import pld_pmf

    step *= 1 + 2.0**-40  # a largest loss of whole steps stays on the grid
    whole: Any = None
    for loss, count in parts:
        if loss.largest == 0:
            continue
        top = math.ceil(loss.largest / step)
        x = np.arange(-top, top + 1, dtype=np.float64) * step
        deltas = _falling(loss, x)
        deltas[-1] = 0.0  # no loss is larger
        each = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, -top, top, deltas).to_dense_pmf()
        some = each.self_compose(count) if count > 1 else each
        whole = some if whole is None else whole.compose(some, 1e-15)
    epsilon = whole.get_epsilon_for_delta(delta - ROUNDING)
    return float(epsilon) * (1 + 2.0**-40) + ROUNDING


def _falling(loss: PrivacyLoss, x: Float64) -> Float64:
    """Return the bound of a loss at each x, ascending, as probabilities that never rise."""
    return np.asarray(np.minimum.accumulate(np.clip(loss.deltas(x), 0.0, 1.0)))


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
    return best if words > MOST_WORDS else min(best, _worst_composed(units, words, delta, pure))


def _most(values: Sequence[_Value], words: int) -> _Value:
    """Return the largest sum over units that have ``words`` words together; ``values[k - 1]`` is of k words."""
    most = [0 * values[0]]
    for n in range(1, words + 1):
        most.append(max(most[n - k] + value for k, value in enumerate(values[:n], 1)))
    return most[-1]


def _worst_composed(units: Sequence[PrivacyLoss], words: int, delta: float, pure: float) -> float:
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
    deltas = _falling(loss, x)
    deltas[-2:] = 0.0  # no loss is larger
    gaps = np.diff(deltas)
    law = np.maximum(gaps[1:] - math.exp(step) * gaps[:-1], 0.0) / math.expm1(step)
    return np.pad(law, reach - top)
