"""1-Diffractor, geometric (Meisenbacher, Chevli, Matthes 2024): a two-sided geometric step, clamped to the list's ends.

A word at position i of a list of n words comes out at ``clamp(i + X, 0, n - 1)`` with

    Pr[X = k] = (1 - a)/(1 + a) a^|k|,   a = exp(-epsilon)

so ``P[i, 0] = a^i / (1 + a)`` and likewise at the other end. It is ``epsilon |i - j|``-private, tightly; its plain LDP,
``epsilon (n - 1)``, is vacuous, and the end words come out too often. Deviations from the paper: positions run to n -
1, not n; and the step is clamped, never renormalized, since renormalizing realizes more than epsilon.

Sampled from integers: ``n 2^20`` of the 2^64 draws give a uniform word, so that every word is possible at any epsilon.
The others give a step, with tails ``Pr[X >= k]`` rounded down, so that sums at the ends are rounded once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from corpusveil.arrays import Integers, UInt64
from corpusveil.compiled import compiled
from corpusveil.mechanisms.on_lists import OnLists
from corpusveil.mechanisms.registry import register
from corpusveil.sampling import weights

_FLOOR_BITS = weights.FLOOR.bit_length() - 1


@dataclass(frozen=True, slots=True)
class StepTable:
    """``tails`` uint64 [K], descending: the weight of ``X >= k`` for k = 1 .. K, out of ``2^64 - n 2^20``."""

    n: int
    tails: UInt64


@functools.lru_cache(maxsize=512)
def step_table(n: int, epsilon: float) -> StepTable:
    unit = 1 << weights.PRECISION_BITS
    a = weights.exp_fixed(-epsilon)
    scale = weights.TOTAL - n * weights.FLOOR
    tails: list[int] = []
    power = a
    while len(tails) < n - 1 and (tail := scale * power // (unit + a)) > 0:
        tails.append(tail)
        power = power * a >> weights.PRECISION_BITS
    return StepTable(n, np.array(tails or [0], dtype=np.uint64))


@compiled
def _step(draw: Any, tails: Any) -> Any:
    """Return the number of tails above ``draw``: the step to one side."""
    low = 0
    high = tails.size
    while low < high:
        middle = (low + high) // 2
        if tails[middle] > draw:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _move(ids: Any, positions: Any, lists: Any, chosen: Any, draws: Any, tails: Any, floor_bits: Any, out: Any) -> None:
    n = lists.shape[1]
    floor = np.uint64(n) << floor_bits
    row = 0
    for t in range(ids.size):
        if chosen.size > 0:
            row = chosen[t]
        draw = draws[t]
        if draw < floor:
            at = np.int64(draw >> floor_bits)
        else:
            draw -= floor
            at = np.int64(positions[row, ids[t]])
            if draw < tails[0]:
                at = min(at + _step(draw, tails), n - 1)
            elif draw - tails[0] < tails[0]:
                at = max(at - _step(draw - tails[0], tails), np.int64(0))
        out[t] = lists[row, at]


@register
@dataclass(frozen=True, slots=True)
class DiffractorGeometric(OnLists):
    """The published geometric 1-Diffractor on the lists of a space (Meisenbacher, Chevli, Matthes 2024, 1-D_G).

    >>> cv.DiffractorGeometric(space).guarantee(epsilon=1.0).holds
    True
    """

    name: ClassVar[str] = "diffractor-geometric"
    paper: ClassVar[str] = "1-Diffractor, 1-D_G (Meisenbacher, Chevli, Matthes 2024)"
    summary: ClassVar[str] = "geometric on a list, clamped to its ends: exactly epsilon, plain LDP vacuous as published"
    claim: ClassVar[str] = "epsilon times the distance: true and tight"
    loop: ClassVar[Callable[..., None]] = staticmethod(_move)

    def table(self, epsilon: float) -> StepTable:
        return step_table(len(self.space), weights.check_epsilon(epsilon))

    def arguments(self, table: StepTable) -> tuple[Any, ...]:
        return table.tails, np.uint64(_FLOOR_BITS)

    def reach(self, epsilon: float) -> int:
        return self.table(epsilon).tails.size

    def _weights(self, inputs: Integers | int, outputs: Integers, epsilon: float) -> UInt64:
        table = self.table(epsilon)
        tails = np.array([0, *table.tails.tolist(), 0, 0], dtype=np.uint64)  # of X >= k at k; the last stand for all
        steps = tails[:-1] - np.append(tails[1:-1], np.uint64(0))
        steps[0] = weights.TOTAL - table.n * weights.FLOOR - 2 * int(tails[1])
        gaps = np.minimum(np.abs(np.subtract(inputs, outputs, dtype=np.int64)), steps.size - 1)
        clamped = np.where(np.equal(outputs, 0) | np.equal(outputs, table.n - 1), tails[gaps + 1], np.uint64(0))
        return np.asarray(steps[gaps] + clamped + np.uint64(weights.FLOOR))

    def retention(self, epsilon: float) -> float:
        table = self.table(epsilon)
        inner = weights.TOTAL - table.n * weights.FLOOR - 2 * int(table.tails[0]) + weights.FLOOR
        return (inner + 2 * int(table.tails[0]) / table.n) / weights.TOTAL

    def extremes(self, epsilon: float) -> tuple[float, float]:
        ends = self.position_weights(0, epsilon).astype(np.float64) / weights.TOTAL
        return float(ends.min()), float(ends.max())

    def plain_ldp(self, epsilon: float) -> float:
        law = self.position_weights(0, epsilon)
        return min(epsilon * (law.size - 1), math.log(int(law[0])) - math.log(int(law[-1])))

    def notes(self, epsilon: float) -> tuple[str, ...]:  # noqa: ARG002 - the same at any
        return ("For any two words, the bound grows with the list; ring-geometric keeps it at epsilon times gamma.",)
