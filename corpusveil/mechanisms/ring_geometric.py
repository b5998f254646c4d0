"""The geometric on a closed, truncated list: exactly epsilon, bounded plain LDP.

A list of n words is closed into a ring, ``d(i, j) = min(|i - j|, n - |i - j|)``, and

    P[i, j] = a^min(d(i, j), gamma) / Z,   a = exp(-epsilon)

``Z`` is the same for every word, so the full epsilon is in the exponent: ``epsilon * min(d, gamma)``-private, hence
``epsilon * gamma``-LDP (``docs/mathematics.md``, the ring variant of 1-Diffractor, Meisenbacher et al. 2024, who clamp
an unbounded geometric at the ends of a path). ``gamma = ceil(ln((1 - beta)(n - 1)/beta) / epsilon)`` leaves about
``beta`` of the mass beyond gamma; never more than ``n // 2``.

With several lists, one is chosen for each token, independently of the word: epsilon times the largest distance over
lists.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from corpusveil.arrays import Float64, Integers, UInt64
from corpusveil.compiled import compiled, u
from corpusveil.mechanisms.on_lists import Truncated, default_gamma
from corpusveil.mechanisms.registry import register
from corpusveil.sampling import weights
from corpusveil.sampling.weights import WeightTable, cell_of

_FEWEST_BITS, _MOST_BITS = 10, 14
"""Bits of a draw for the guide: enough that few buckets have two cells, few enough for a cache."""


@dataclass(frozen=True, slots=True)
class RingTable:
    """Displacements on a ring of n words as integer weights.

    ``near`` holds the weights of displacement 0 and of +k and -k each, k = 1 .. gamma - 1; ``far`` is that of each of
    the ``n - 2 gamma + 1`` positions at distance gamma and beyond. A cell of ``by_distance`` is that of k, the last one
    that of the far ones.
    """

    n: int
    gamma: int
    near: UInt64
    far: int
    by_distance: WeightTable


@functools.lru_cache(maxsize=512)
def ring_table(n: int, epsilon: float, gamma: int) -> RingTable:
    """Build the table of a ring of n >= 2 words, 1 <= gamma <= n // 2."""
    unit = 1 << weights.PRECISION_BITS
    a = weights.exp_fixed(-epsilon)
    powers = [unit]
    for _ in range(gamma):
        powers.append(powers[-1] * a >> weights.PRECISION_BITS)
    outside = n - 2 * gamma + 1
    total = powers[0] + 2 * sum(powers[1:gamma]) + outside * powers[gamma]
    scale = weights.TOTAL - n * weights.FLOOR
    cells = [scale * power // total + weights.FLOOR for power in powers]
    near, far = cells[:gamma], cells[gamma]
    # The word itself takes what rounding down leaves, so that the weights total 2^64.
    near[0] += weights.TOTAL - (near[0] + 2 * sum(near[1:]) + outside * far)
    by_distance = np.array([near[0], *(2 * weight for weight in near[1:]), outside * far], dtype=np.uint64)
    bits = min(max(_FEWEST_BITS, gamma.bit_length() + 4), _MOST_BITS)
    return RingTable(n, gamma, np.array(near, dtype=np.uint64), far, WeightTable(by_distance, bits))


@compiled
def _displacement(draw: Any, gamma: int, far: Any, bounds: Any, guide: Any, shift: Any) -> Any:
    low = cell_of(draw, bounds, guide, shift)
    rest = draw - bounds[u(low)]
    if low == gamma:
        # All displacements from gamma to n - gamma have one weight, so a division finds theirs.
        return gamma + np.int64(rest // far)
    # The cell of k holds +k and -k, at equal weight.
    half = (bounds[u(low + 1)] - bounds[u(low)]) >> np.uint64(1)
    return low if rest < half else -low


@compiled
def _displace(
    ids: Any, positions: Any, lists: Any, chosen: Any, draws: Any, gamma: int, far: Any, bounds: Any, guide: Any,
    shift: Any, out: Any,
) -> None:  # fmt: skip
    n = lists.shape[1]
    row = np.int64(0)
    for t in range(ids.size):
        if chosen.size > 0:
            row = np.int64(chosen[u(t)])
        at = np.int64(positions[u(row), u(ids[u(t)])]) + _displacement(draws[u(t)], gamma, far, bounds, guide, shift)
        if at >= n:
            at -= n
        elif at < 0:
            at += n
        out[u(t)] = lists[u(row), u(at)]


@register
@dataclass(frozen=True, slots=True)
class RingGeometric(Truncated):
    """The truncated geometric on rings, exactly epsilon; after 1-Diffractor (Meisenbacher, Chevli, Matthes 2024).

    ``gamma`` is the distance on a list beyond which all words are equally likely; None: computed from
    ``beta``, about the probability beyond it. Raises UserError for values out of range.

    >>> cv.RingGeometric(space).guarantee(epsilon=1.0).holds
    True
    """

    name: ClassVar[str] = "ring-geometric"
    paper: ClassVar[str] = "ours; after 1-Diffractor (Meisenbacher, Chevli, Matthes 2024)"
    summary: ClassVar[str] = "geometric on a closed, truncated list: exactly epsilon, bounded plain LDP"
    claim: ClassVar[str] = "exactly epsilon times the distance; epsilon times gamma for any two words"
    shape: ClassVar[str] = "ring"
    loop: ClassVar[Callable[..., None]] = staticmethod(_displace)

    def table(self, epsilon: float) -> RingTable:
        epsilon, n = weights.check_epsilon(epsilon), len(self.space)
        return ring_table(n, epsilon, self.gamma or default_gamma(n, epsilon, self.beta, n // 2))

    def arguments(self, table: RingTable) -> tuple[Any, ...]:
        cells = table.by_distance
        return table.gamma, np.uint64(table.far), cells.lower_bounds, cells.guide, cells.shift

    def _weights(self, inputs: Integers | int, outputs: Integers, epsilon: float) -> UInt64:
        table = self.table(epsilon)
        gaps = np.abs(np.subtract(inputs, outputs, dtype=np.int64))
        law = np.append(table.near, np.uint64(table.far))
        return np.asarray(law[np.minimum(np.minimum(gaps, table.n - gaps), table.gamma)])

    def apart(self, gaps: Float64, epsilon: float) -> Float64:
        return np.minimum(np.minimum(gaps, len(self.space) - gaps), self.table(epsilon).gamma)

    def retention(self, epsilon: float) -> float:
        return int(self.table(epsilon).near[0]) / weights.TOTAL

    def extremes(self, epsilon: float) -> tuple[float, float]:
        table = self.table(epsilon)
        return table.far / weights.TOTAL, int(table.near[0]) / weights.TOTAL

    def plain_ldp(self, epsilon: float) -> float:
        table = self.table(epsilon)
        return math.log(int(table.near[0])) - math.log(table.far)
