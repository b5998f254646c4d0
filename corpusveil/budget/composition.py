"""(ε, δ) of a document: the privacy losses of its tokens, composed.

Three bounds hold at once, and the smallest is stated. *Pure*: the sum of the tokens' largest losses, at any δ.
*Composed*: bounds on hockey-stick divergences (``privacy_loss.py``), connected on a grid of losses, which can only
increase them, and convolved by Google's dp-accounting. *Concentrated*: the sum of ρ, turned into ε by the optimal order
(Canonne, Kamath, Steinke 2020); it costs nothing, however many tokens there are.

Convolution is in float64, and cuts tails of mass 1e-15, which count as infinite loss. So ``ROUNDING`` is subtracted
from δ, and added to ε, before a figure is stated.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from corpusveil.arrays import Float64
from corpusveil.budget.accounting import added_times
from corpusveil.budget.privacy_loss import PrivacyLoss
from corpusveil.errors import BadValueError

SMALLEST_DELTA = 1e-10
ROUNDING = 1e-12
MOST_CELLS = 1 << 22
"""The most points of a grid of losses; larger problems are bounded in the other two ways."""
FINEST = 1e-7
"""The smallest step of a grid: with smaller steps, differences of divergences would be lost in rounding."""
MOST_KINDS = 32
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
