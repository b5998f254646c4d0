"""The geometric on a closed, truncated list: exactly epsilon, bounded plain LDP.

A list of n words is closed into a ring, ``d(i, j) = min(|i - j|, n - |i - j|)``, and

    P[i, j] = a^min(d(i, j), gamma) / Z,   a = exp(-epsilon)

``Z`` is the same for every word, so the full epsilon is in the exponent: ``epsilon * min(d, gamma)``-private, hence
``epsilon * gamma``-LDP (``docs/mathematics.md``, the ring variant of 1-Diffractor, Meisenbacher et al. 2024, who clamp
an unbounded geometric at the ends of a path). ``gamma = ceil(ln((1 - beta)(n - 1)/beta) / epsilon)`` leaves about
``beta`` of the mass beyond gamma; never more than ``n // 2``.

With several lists, one is chosen for each token, independently of the word: epsilon times the largest distance over
lists.

On a space with arcs (``spaces/arcs.py``) the ring has R cells, of which word w owns s_w. Noise with epsilon n / R a
cell moves the middle cell of a word, and the word that owns the resulting cell comes out. Owners are public, so this is
post-processing: the same guarantee, in a distance whose unit is the mean arc of R / n cells,

    P[w, u] = sum over cells j of u of P[middle of w, j],   d(w, u) = min(cells between the middles, gamma R / n) n / R

A ring whose arcs have one cell each is the plain ring.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from corpusveil.arrays import Bool, Float64, Int32, Int64, Integers, UInt64
from corpusveil.budget.privacy_loss import OfLaws, PrivacyLoss
from corpusveil.compiled import compiled, u
from corpusveil.mechanisms.on_lists import OnLists, Truncated, default_gamma
from corpusveil.mechanisms.registry import register
from corpusveil.sampling import weights

MOST_CELLS = 1 << 21
"""The most cells of the pairs of laws from which a bound on the privacy loss is computed."""
_FEWEST_BITS, _MOST_BITS = 10, 14
"""Of a draw, for the guide: so many that hardly a bucket has two cells, and few enough to stay in a cache."""


@dataclass(frozen=True, slots=True)
class RingTable:
    """Displacements on a ring of n words as integer weights.

    ``near`` holds the weights of displacement 0 and of +k and -k each, k = 1 .. gamma - 1; ``far`` is that of each of
    the ``n - 2 gamma + 1`` positions at distance gamma and beyond. ``bounds`` uint64 [gamma + 1] is where the cells of
    k begin (the last entry: where the far ones do) and ``guide`` narrows the search for ``draw >> shift``. ``sums``
    uint64 [gamma + 1] are the weights of displacements 0 to k - 1, k = 0 .. gamma. On a ring with arcs, n and gamma are
    cells.
    """

    n: int
    gamma: int
    near: UInt64
    far: int
    bounds: UInt64
    guide: Int64
    shift: int
    sums: UInt64

    def below(self, steps: Int64) -> UInt64:
        """Return the weight of displacements 0 to ``steps`` - 1, modulo 2^64, for steps from 0 to n."""
        right = self.sums[np.minimum(steps, self.gamma)]
        right += np.maximum(steps - self.gamma, 0).astype(np.uint64) * np.uint64(self.far)
        left = self.sums[1] - self.sums[np.minimum(self.n + 1 - steps, self.gamma)]
        return np.where(steps > self.n - self.gamma, left, right)


@functools.lru_cache(maxsize=512)
def ring_table(n: int, epsilon: float, gamma: int) -> RingTable:
    """Build the table of a ring of n >= 2 words or cells, 1 <= gamma <= n // 2; epsilon is that of a step."""
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
    starts = [0, near[0]]
    for weight in near[1:]:
        starts.append(starts[-1] + 2 * weight)
    bounds = np.array(starts, dtype=np.uint64)
    shift = 64 - min(max(_FEWEST_BITS, gamma.bit_length() + 4), _MOST_BITS)
    edges = np.arange(1 << 64 - shift, dtype=np.uint64) << np.uint64(shift)
    guide = np.append(np.searchsorted(bounds, edges, side="right") - 1, gamma).astype(np.int64)
    sums = np.append(np.uint64(0), bounds[1] + (bounds[1:] - bounds[1] >> np.uint64(1)))
    return RingTable(n, gamma, np.array(near, dtype=np.uint64), far, bounds, guide, shift, sums)


@compiled
def _displacement(draw: Any, gamma: int, far: Any, bounds: Any, guide: Any, shift: Any) -> Any:
    bucket = draw >> shift
    low = guide[bucket]
    high = guide[bucket + np.uint64(1)]
    while low < high:
        middle = (low + high + 1) >> 1
        if bounds[u(middle)] <= draw:
            low = middle
        else:
            high = middle - 1
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
    """The truncated geometric on rings; ``gamma`` None: by the rule from ``beta``. Raises UserError for bad values."""

    name: ClassVar[str] = "ring-geometric"
    paper: ClassVar[str] = "ours; after 1-Diffractor (Meisenbacher, Chevli, Matthes 2024)"
    summary: ClassVar[str] = "geometric on a closed, truncated list: exactly epsilon, bounded plain LDP"
    claim: ClassVar[str] = "exactly epsilon times the distance; epsilon times gamma for any two words"
    shape: ClassVar[str] = "ring"
    loop: ClassVar[Callable[..., None]] = staticmethod(_displace)

    def largest_gamma(self, n: int) -> int:
        return n // 2

    def gammas(self, epsilon: float) -> dict[int, int]:
        return {n: self.gamma or default_gamma(n, epsilon, self.beta, n // 2) for n in self.sizes}

    def table(self, epsilon: float, n: int | None = None) -> RingTable:
        epsilon = weights.check_epsilon(epsilon)
        n = n or self.sizes[0]
        gamma = self.gammas(epsilon)[n]
        if self.space.arcs is None:
            return ring_table(n, epsilon, gamma)
        cells = int(self.space.arcs.sum())
        return ring_table(cells, epsilon * (n / cells), gamma * cells // n)

    def arguments(self, table: RingTable) -> tuple[Any, ...]:
        return table.gamma, np.uint64(table.far), table.bounds, table.guide, np.uint64(table.shift)

    def ring_weights(self, epsilon: float, n: int | None = None) -> UInt64:
        """Return the integer weight of each displacement 0 .. n - 1; uint64 [n], total 2^64."""
        table = self.table(epsilon, n)
        law = np.full(table.n, table.far, dtype=np.uint64)
        law[: table.gamma] = table.near
        if table.gamma > 1:
            law[-(table.gamma - 1) :] = table.near[:0:-1]
        return law

    def position_weights(self, position: int, epsilon: float, n: int | None = None) -> UInt64:
        return np.roll(self.ring_weights(epsilon, n), position)

    def cells(self, inputs: Integers, outputs: Integers, epsilon: float) -> Float64:
        table = self.table(epsilon)
        gaps = np.abs(np.subtract(inputs, outputs, dtype=np.int64))
        law = np.append(table.near, np.uint64(table.far)).astype(np.float64) / weights.TOTAL
        return np.asarray(law[np.minimum(np.minimum(gaps, table.n - gaps), table.gamma)])

    @property
    def rings(self) -> tuple[Int32, Int32]:
        return self.space.rings

    @property
    def _arcs(self) -> Int64:
        return np.ones(len(self.space), np.int64) if self.space.arcs is None else self.space.arcs

    @property
    def widths(self) -> Float64:
        return self._arcs.astype(np.float64)

    def _ahead(self, number: int, inputs: Integers, outputs: Integers) -> tuple[Int64, Int64]:
        """Return how many cells the arcs of outputs begin after the middle of inputs on a list, and their widths."""
        arcs, middle = self._arcs, self.rings[0][number]
        wide = arcs[outputs]
        return (middle[outputs] - wide // 2 - middle[inputs]) % arcs.sum(), wide

    def _on_arcs(self, number: int, inputs: Integers, outputs: Integers, epsilon: float) -> Float64:
        """Return the probability of outputs for inputs on a list with arcs; broadcast."""
        table = self.table(epsilon)
        ahead, wide = self._ahead(number, inputs, outputs)
        mass = table.below((ahead + wide) % table.n) - table.below(ahead)
        return np.asarray(mass.astype(np.float64) / weights.TOTAL)

    def distribution(self, word: int, epsilon: float) -> Float64:
        if self.space.arcs is None:
            return OnLists.distribution(self, word, epsilon)
        return self.chances(np.array([self.check_id(word)]), np.arange(len(self.space)), epsilon)

    def chances(self, inputs: Integers, outputs: Integers, epsilon: float) -> Float64:
        if self.space.arcs is None:
            return OnLists.chances(self, inputs, outputs, epsilon)
        lists = range(len(self.space.lists))
        return np.asarray(sum(self._on_arcs(number, inputs, outputs, epsilon) for number in lists) / len(lists))

    def outside(self, epsilon: float) -> Float64:
        if self.space.arcs is None:
            return OnLists.outside(self, epsilon)
        return np.full(len(self.space), self.table(epsilon).far / weights.TOTAL)

    def reaches(self, number: int, inputs: Integers, outputs: Integers, epsilon: float) -> Bool:
        if self.space.arcs is None:
            return OnLists.reaches(self, number, inputs, outputs, epsilon)
        table = self.table(epsilon)
        ahead, wide = self._ahead(number, inputs, outputs)
        return np.asarray((ahead < table.gamma) | (ahead + wide - 1 > table.n - table.gamma))

    def _neighbors(self, number: int, outputs: Integers, epsilon: float) -> tuple[Int64, Int64]:
        """Return the positions of the first word within reach of outputs on a list, and how many there are.

        Positions count from 0 to 3 V - 1, three times around the list.
        """
        table, size = self.table(epsilon), len(self.space)
        middle = self.rings[0][number]
        around = (np.arange(-1, 2)[:, None] * table.n + middle[self.space.lists[number]]).ravel()
        begin = middle[outputs].astype(np.int64) - self._arcs[outputs] // 2
        first = np.searchsorted(around, begin - table.gamma + 1)
        past = np.searchsorted(around, begin + self._arcs[outputs] + table.gamma - 1)
        return first, np.minimum(past - first, size)

    def reach(self, epsilon: float) -> int:
        if self.space.arcs is None:
            return Truncated.reach(self, epsilon)
        every, most = np.arange(len(self.space)), 0
        for number, place in enumerate(self.space.positions):
            first, count = self._neighbors(number, every, epsilon)
            before = place + len(self.space) - first
            most = max(most, before.max(), (count - 1 - before).max())
        return int(most)

    def near(self, outputs: Integers, epsilon: float) -> Int64:
        if self.space.arcs is None:
            return OnLists.near(self, outputs, epsilon)
        neighbors: list[Int64] = []
        for number, order in enumerate(self.space.lists):
            first, count = self._neighbors(number, outputs, epsilon)
            steps = np.arange(count.max(initial=0))
            words = order[(first[:, None] + steps) % order.size].astype(np.int64)
            seen = self.in_reach(words, outputs[:, None], epsilon, number)
            neighbors.append(np.where(seen | (steps >= count[:, None]), -1, words))
        return np.concatenate(neighbors, axis=1)

    def apart(self, gaps: Float64, epsilon: float, n: int) -> Float64:
        table = self.table(epsilon, n)
        return np.minimum(np.minimum(gaps, table.n - gaps), table.gamma) * (n / table.n)

    def steps_on(self, n: int) -> str:
        if self.space.arcs is None:
            return OnLists.steps_on(self, n)
        cells = int(self._arcs.sum())
        return f"mean arcs (of {cells / n:.6g} cells) between the middles of two words on the ring of {cells:,} cells"

    def notes(self, epsilon: float) -> tuple[str, ...]:
        if self.space.arcs is None:
            return OnLists.notes(self, epsilon)
        widths = f"Words have arcs of {self._arcs.min():,} to {self._arcs.max():,} cells, chosen from public data: "
        return (widths + "words with wide arcs are farther from others and stay unchanged more often.",)

    def privacy_loss(self, epsilon: float, distance: float | None) -> PrivacyLoss | None:
        """Return the loss of all pairs within the distance, from the integer weights that are sampled.

        A rotated or mirrored ring has the same law, so all pairs of cells s steps apart have the same loss, and there
        is one pair for each s; beyond 2 gamma steps the pairs are equal. Losses of different s are not ordered on a
        truncated ring, so the largest divergence counts. With several lists, the worst list bounds the mixture, since
        the divergence is convex. If there are too many pairs, only epsilon times the distance is used.
        """
        pairs: list[tuple[Float64, Float64]] = []
        top = 0
        for size, steps in self.gammas(epsilon).items():
            table = self.table(epsilon, size)
            n, gamma = table.n, table.gamma
            near = n // 2 if distance is None or distance >= steps else math.floor(Fraction(distance) * n / size)
            most = min(near, n // 2, 2 * gamma)
            if most * (most + 2 * gamma) > MOST_CELLS:
                return OnLists.privacy_loss(self, epsilon, distance)
            top = max(top, min(gamma, near))
            law = self.ring_weights(epsilon, size).astype(np.float64) / weights.TOTAL
            width = most + 2 * gamma - 1
            around = np.arange(n) if width >= n else np.arange(1 - gamma, most + gamma)
            rest = (n - around.size) * law[n // 2]  # farther ones are as probable for both
            for apart in range(1, most + 1):
                first, second = law[around % n], law[(around - apart) % n]
                pairs.append((np.append(first, rest), np.append(second, rest)) if rest else (first, second))
        return OfLaws(pairs, top) if pairs else OnLists.privacy_loss(self, epsilon, 0.0)

    def retention_on(self, epsilon: float, n: int) -> float:
        if self.space.arcs is None:
            return int(self.table(epsilon, n).near[0]) / weights.TOTAL
        return float(self._own(epsilon).mean())

    def _own(self, epsilon: float) -> Float64:
        every = np.arange(len(self.space))
        return self._on_arcs(0, every, every, epsilon)

    def extremes(self, epsilon: float, n: int) -> tuple[float, float] | tuple[Float64, Float64]:
        """Return the bounds of each output: it is likeliest for itself, since its cells are then the nearest."""
        table = self.table(epsilon, n)
        if self.space.arcs is None:
            return table.far / weights.TOTAL, int(table.near[0]) / weights.TOTAL
        return self.widths * (table.far / weights.TOTAL), self._own(epsilon)

    def plain_ldp(self, epsilon: float) -> float:
        tables = [self.table(epsilon, n) for n in self.sizes]
        return max(math.log(int(table.near[0])) - math.log(table.far) for table in tables)
