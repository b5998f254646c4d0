"""1-Diffractor, exponential (1-D_T; Meisenbacher, Chevli, Matthes 2024): TEM (Carvalho et al. 2023) on list positions.

    P[i, j] is proportional to exp(-(epsilon/2) min(|i - j|, gamma))

``epsilon min(|i - j|, gamma)``-private, plain LDP at most ``epsilon gamma``. Away from the ends the normalizer is
constant, so only epsilon / 2 is realized there: the geometric is twice as sharp at an equal guarantee. The rule of TEM,
``gamma = (2/epsilon) ln((1 - beta)(n - 1)/beta)``, is the default; a gamma much below it makes the law nearly uniform
(the published package's 5 at epsilon 1 keeps a word of 1,000 in 1.2 % of draws), and the guarantee's notes say so. If
no word is beyond gamma, there is no "outside" to choose.

Sampled from integers: words at distance d have weight ``w_d``, the same in every row, of total ``T_i`` in row i; a
64-bit draw u picks the cell of ``floor(u T_i / 2^64)``.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from corpusveil.arrays import Float64, Integers, UInt64
from corpusveil.compiled import called, compiled
from corpusveil.mechanisms.on_lists import Truncated, default_gamma
from corpusveil.mechanisms.registry import register
from corpusveil.sampling import weights

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@dataclass(frozen=True, slots=True)
class PathTable:
    """Integer weights by distance.

    ``centre`` is the weight of the word itself, ``far`` that of each word at gamma and beyond, and ``inner`` uint64
    [gamma] the summed weight of distances 1 .. k, k = 0 .. gamma - 1.
    """

    n: int
    gamma: int
    centre: int
    far: int
    inner: UInt64


@functools.lru_cache(maxsize=512)
def path_table(n: int, epsilon: float, gamma: int) -> PathTable:
    """Build the weights for a path of n words, 1 <= gamma <= n - 1."""
    unit = 1 << weights.PRECISION_BITS
    b = weights.exp_fixed(-epsilon / 2)
    powers = [unit]
    for _ in range(gamma):
        powers.append(powers[-1] * b >> weights.PRECISION_BITS)
    # The middle row has the largest total, so it decides the scale.
    middle = n // 2
    sides = sum(powers[min(abs(middle - j), gamma)] for j in range(n) if j != middle)
    scale = weights.TOTAL - 1 - n * weights.FLOOR  # no row may total 2^64, which does not fit into 64 bits
    cells = [scale * power // (unit + sides) + weights.FLOOR for power in powers]
    inner = np.zeros(gamma, dtype=np.uint64)
    np.cumsum(np.array(cells[1:gamma], dtype=np.uint64), out=inner[1:])
    return PathTable(n, gamma, cells[0], cells[gamma], inner)


@called
def _high(x: Any, y: Any) -> Any:
    """Return the upper 64 bits of the product of two uint64."""
    x0, x1 = x & _LOW, x >> _HALF
    y0, y1 = y & _LOW, y >> _HALF
    middle = x1 * y0 + ((x0 * y0) >> _HALF)
    return x1 * y1 + (middle >> _HALF) + (((middle & _LOW) + x0 * y1) >> _HALF)


@compiled
def _within(inner: Any, most: int, value: Any) -> int:
    """Return the distance whose cell holds ``value``, which is below ``inner[most]``."""
    low = 1
    high = most
    while low < high:
        middle = (low + high) // 2
        if inner[middle] > value:
            high = middle
        else:
            low = middle + 1
    return low


@called
def _target(position: int, n: int, gamma: int, centre: Any, far: Any, inner: Any, draw: Any) -> Any:
    left = min(position, gamma - 1)
    right = min(n - 1 - position, gamma - 1)
    outside = n - 1 - left - right
    total = centre + inner[left] + inner[right] + np.uint64(outside) * far
    value = _high(draw, total)
    if value < centre:
        return position
    value -= centre
    if value < inner[right]:
        return position + _within(inner, right, value)
    value -= inner[right]
    if value < inner[left]:
        return position - _within(inner, left, value)
    at = np.int64((value - inner[left]) // far)
    return at if at < position - left else at + left + right + 1


@compiled
def _move(
    ids: Any, positions: Any, lists: Any, chosen: Any, draws: Any,
    gamma: int, centre: Any, far: Any, inner: Any, out: Any,
) -> None:  # fmt: skip
    n = lists.shape[1]
    row = 0
    for t in range(ids.size):
        if chosen.size > 0:
            row = chosen[t]
        at = _target(np.int64(positions[row, ids[t]]), n, gamma, centre, far, inner, draws[t])
        out[t] = lists[row, at]


@register
@dataclass(frozen=True, slots=True)
class DiffractorExponential(Truncated):
    """The published exponential 1-Diffractor on the lists of a space (Meisenbacher, Chevli, Matthes 2024, 1-D_T).

    ``gamma`` is a distance on a list; None: by the rule from ``beta``. Raises UserError for values out of range.

    >>> cv.DiffractorExponential(space).guarantee(epsilon=1.0).holds
    True
    """

    name: ClassVar[str] = "diffractor-exponential"
    paper: ClassVar[str] = "1-Diffractor, 1-D_T (Meisenbacher, Chevli, Matthes 2024); TEM (Carvalho et al. 2023)"
    summary: ClassVar[str] = "TEM on list positions: epsilon, of which half is realized away from the ends"
    loop: ClassVar[Callable[..., None]] = staticmethod(_move)
    claim: ClassVar[str] = "epsilon times the truncated distance: true, but loose"

    def table(self, epsilon: float) -> PathTable:
        epsilon, n = weights.check_epsilon(epsilon), len(self.space)
        return path_table(n, epsilon, self.gamma or default_gamma(n, epsilon / 2, self.beta, n - 1))

    def arguments(self, table: PathTable) -> tuple[Any, ...]:
        return table.gamma, np.uint64(table.centre), np.uint64(table.far), table.inner

    def position_weights(self, position: int, epsilon: float) -> UInt64:
        table = self.table(epsilon)
        n, gamma = table.n, table.gamma
        left, right = min(position, gamma - 1), min(n - 1 - position, gamma - 1)
        far = np.full(n - 1 - left - right, table.far, dtype=np.uint64).tolist()
        steps = np.diff(table.inner).tolist()
        order = [position, *range(position + 1, position + right + 1), *range(position - 1, position - left - 1, -1)]
        order += [*range(position - left), *range(position + right + 1, n)]
        cells = [table.centre, *steps[:right], *steps[:left], *far]
        total = sum(cells)
        edges, reached = [0], 0
        for cell in cells:
            reached += cell
            edges.append(-(-(reached << 64) // total))
        law = np.zeros(n, dtype=np.uint64)
        law[order] = np.array([high - low for low, high in itertools.pairwise(edges)], dtype=np.uint64)
        return law

    def cells(self, inputs: Integers, outputs: Integers, epsilon: float) -> Float64:
        """Return the law to a relative 2^-20: a cell of the draw is rounded to an integer."""
        table = self.table(epsilon)
        steps = np.array([table.centre, *np.diff(table.inner).tolist(), table.far], dtype=np.float64)
        gaps = np.abs(np.subtract(inputs, outputs, dtype=np.int64))
        return np.asarray(steps[np.minimum(gaps, table.gamma)] / self._totals(table)[inputs])

    def apart(self, gaps: Float64, epsilon: float) -> Float64:
        return np.minimum(gaps, self.table(epsilon).gamma)

    def _totals(self, table: PathTable) -> Float64:
        """Return the total weight of each row; float64 [n]."""
        reach = np.minimum(np.arange(table.n), table.gamma - 1)
        sides = table.inner.astype(np.float64)
        outside = table.n - 1 - reach - reach[::-1]
        return table.centre + sides[reach] + sides[reach[::-1]] + outside * float(table.far)

    def retention(self, epsilon: float) -> float:
        table = self.table(epsilon)
        return float(np.mean(table.centre / self._totals(table)))

    def extremes(self, epsilon: float) -> tuple[float, float]:
        table = self.table(epsilon)
        totals = self._totals(table)
        return float(table.far / totals.max()), float(table.centre / totals.min())

    def _nearly_uniform(self, table: PathTable, epsilon: float) -> list[str]:
        """Warn of a gamma that leaves most of the mass beyond it."""
        outside = max(table.n - 1 - 2 * (table.gamma - 1), 0) * float(table.far)
        inside = float(table.centre) + 2 * float(table.inner[-1])
        if outside <= inside:
            return []
        rule = default_gamma(table.n, epsilon / 2, self.beta, table.n - 1)
        share = outside / (inside + outside)
        return [f"Nearly uniform: {share:.0%} of draws are beyond gamma = {table.gamma}; the rule gives {rule}."]

    def plain_ldp(self, epsilon: float) -> float:
        return min(epsilon * self.table(epsilon).gamma, 44 * math.log(2))

    def notes(self, epsilon: float) -> tuple[str, ...]:
        warnings = self._nearly_uniform(self.table(epsilon), epsilon)
        return ("Away from the ends of the list, only half of epsilon is realized.", *warnings)
