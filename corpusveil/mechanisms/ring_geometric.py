"""The geometric on a closed, truncated list: exactly epsilon, bounded plain LDP.

A list of n words is closed into a ring, ``d(i, j) = min(|i - j|, n - |i - j|)``, and

    P[i, j] = a^min(d(i, j), gamma) / Z,   a = exp(-epsilon)

``Z`` is the same for every word, so the full epsilon stands in the exponent: ``epsilon * min(d, gamma)``-private, hence
``epsilon * gamma``-LDP (``docs/mathematics.md``, the ring variant of 1-Diffractor, Meisenbacher et al. 2024, who clamp
an unbounded geometric at the ends of a path). ``gamma = ceil(ln((1 - beta)(n - 1)/beta) / epsilon)`` leaves about
``beta`` of the mass beyond gamma; never more than ``n // 2``.

Of several lists one is chosen for each token, independently of the word: epsilon times the largest distance over lists.
"""

from __future__ import annotations

import decimal
import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numba
import numpy as np
import numpy.typing as npt

from corpusveil.errors import UserError
from corpusveil.mechanisms.base import COMPUTATIONAL, Guarantee, Mechanism, levels
from corpusveil.mechanisms.registry import register
from corpusveil.sampling import weights
from corpusveil.sampling.draws import LIST, MECHANISM, Draws

_GUIDE_BITS = 10


@dataclass(frozen=True, slots=True)
class RingTable:
    """Displacements on a ring of n words as integer weights.

    ``near`` holds the weights of displacement 0 and of +k and -k each, k = 1 .. gamma - 1; ``far`` is that of each of
    the ``n - 2 gamma + 1`` positions at distance gamma and beyond. ``bounds`` uint64 [gamma + 1] is where the cells of
    k begin (the last entry: where the far ones do) and ``guide`` narrows the search for a draw's top bits.
    """

    n: int
    gamma: int
    near: tuple[int, ...]
    far: int
    bounds: npt.NDArray[np.uint64]
    guide: npt.NDArray[np.int64]


def default_gamma(n: int, epsilon: float, beta: float) -> int:
    """Return gamma by the rule; in decimal arithmetic, since logarithms of two machines may differ."""
    b = decimal.Decimal(beta)
    outside = weights.divide((1 - b) * (n - 1), b)
    if outside <= 1:
        return 1
    gamma = weights.divide(weights.ln(outside), decimal.Decimal(epsilon))
    return n // 2 if gamma >= n // 2 else max(1, math.ceil(gamma))


@functools.lru_cache(maxsize=512)
def ring_table(n: int, epsilon: float, gamma: int) -> RingTable:
    """Build the table of a ring of n >= 2 words, 1 <= gamma <= n // 2."""
    one = 1 << weights.PRECISION_BITS
    a = weights.exp_fixed(-epsilon)
    powers = [one]
    for _ in range(gamma):
        powers.append(powers[-1] * a >> weights.PRECISION_BITS)
    outside = n - 2 * gamma + 1
    total = powers[0] + 2 * sum(powers[1:gamma]) + outside * powers[gamma]
    scale = weights.TOTAL - n * weights.FLOOR
    cells = [scale * power // total + weights.FLOOR for power in powers]
    near, far = cells[:gamma], cells[gamma]
    near[0] += weights.TOTAL - (near[0] + 2 * sum(near[1:]) + outside * far)
    starts = [0, near[0]]
    for weight in near[1:]:
        starts.append(starts[-1] + 2 * weight)
    bounds = np.array(starts, dtype=np.uint64)
    edges = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << np.uint64(64 - _GUIDE_BITS)
    guide = np.append(np.searchsorted(bounds, edges, side="right") - 1, gamma).astype(np.int64)
    return RingTable(n, gamma, tuple(near), far, bounds, guide)


@numba.njit(cache=True)
def _displacement(draw: Any, gamma: int, far: Any, bounds: Any, guide: Any) -> Any:
    if draw < bounds[1]:
        return 0
    bucket = np.int64(draw >> np.uint64(64 - _GUIDE_BITS))
    low = guide[bucket]
    high = guide[bucket + 1]
    while low < high:
        middle = (low + high + 1) // 2
        if bounds[middle] <= draw:
            low = middle
        else:
            high = middle - 1
    rest = draw - bounds[low]
    if low == gamma:
        return gamma + np.int64(rest // far)
    half = (bounds[low + 1] - bounds[low]) >> np.uint64(1)
    return low if rest < half else -low


@numba.njit(cache=True)
def _displace(
    ids: Any, positions: Any, order: Any, draws: Any, gamma: int, far: Any, bounds: Any, guide: Any, out: Any
) -> None:
    n = order.size
    for t in range(ids.size):
        at = np.int64(positions[ids[t]]) + _displacement(draws[t], gamma, far, bounds, guide)
        if at >= n:
            at -= n
        elif at < 0:
            at += n
        out[t] = order[at]


@register
@dataclass(frozen=True, slots=True)
class RingGeometric(Mechanism):
    """The truncated geometric on rings; ``gamma`` None: by the rule from ``beta``. Raises UserError for bad values."""

    name: ClassVar[str] = "ring-geometric"
    paper: ClassVar[str] = "ours; after 1-Diffractor (Meisenbacher, Chevli, Matthes 2024)"
    summary: ClassVar[str] = "geometric on a closed, truncated list: exactly epsilon, bounded plain LDP"

    gamma: int | None = None
    beta: float = 0.001

    def __post_init__(self) -> None:
        if self.space.lists.shape[0] < 1:
            raise UserError("ring-geometric needs a space with a list; build it with 'corpusveil space --lists 1'.")
        if not 0 < self.beta < 1:
            raise UserError(f"beta = {self.beta}: beta lies between 0 and 1.")
        if self.gamma is not None and not 1 <= self.gamma <= len(self.space) // 2:
            raise UserError(f"gamma = {self.gamma}: gamma is between 1 and half the list, {len(self.space) // 2}.")

    def table(self, epsilon: float) -> RingTable:
        """Return the displacement table at one epsilon."""
        epsilon = weights.check_epsilon(epsilon)
        n = len(self.space)
        return ring_table(n, epsilon, self.gamma or default_gamma(n, epsilon, self.beta))

    def privatize(
        self, ids: npt.NDArray[np.int32], epsilon: float | npt.NDArray[np.float64], draws: Draws
    ) -> npt.NDArray[np.int32]:
        self.check_tokens(ids, draws)
        distinct, which = levels(epsilon, ids.size)
        lists, positions = self.space.lists, self.space.positions
        lanes = draws.uint64(MECHANISM)
        out = np.empty(ids.size, dtype=np.int32)
        chosen = _choose(draws.uint64(LIST), len(lists)) if len(lists) > 1 else None
        for level, value in enumerate(distinct):
            table = self.table(value)
            for row in range(len(lists)):
                mask = _both(None if which is None else which == level, None if chosen is None else chosen == row)
                part = out if mask is None else np.empty(int(mask.sum()), dtype=np.int32)
                _displace(
                    ids if mask is None else ids[mask], positions[row], lists[row],
                    lanes if mask is None else lanes[mask],
                    table.gamma, np.uint64(table.far), table.bounds, table.guide, part,
                )  # fmt: skip
                if mask is not None:
                    out[mask] = part
        return out

    def ring_weights(self, epsilon: float) -> npt.NDArray[np.uint64]:
        """Return the integer weight of each displacement 0 .. n - 1; uint64 [n], total 2^64."""
        table = self.table(epsilon)
        law = np.full(table.n, table.far, dtype=np.uint64)
        near = np.array(table.near, dtype=np.uint64)
        law[: table.gamma] = near
        if table.gamma > 1:
            law[-(table.gamma - 1) :] = near[:0:-1]
        return law

    def distribution(self, word: int, epsilon: float) -> npt.NDArray[np.float64]:
        word = self.check_id(word)
        law = self.ring_weights(epsilon).astype(np.float64) / weights.TOTAL
        out = np.zeros(len(self.space))
        for order, position in zip(self.space.lists, self.space.positions, strict=True):
            out[order] += np.roll(law, int(position[word])) / len(self.space.lists)
        return out

    @property
    def distance(self) -> str:
        count = len(self.space.lists)
        return f"steps on the ring of {len(self.space):,} words{'' if count == 1 else f', the most of {count} lists'}"

    def retention(self, epsilon: float) -> float:
        return self.table(epsilon).near[0] / weights.TOTAL

    def unknown_bound(self, epsilon: float, public: npt.NDArray[np.float64]) -> float:
        table = self.table(epsilon)
        least, most = table.far / weights.TOTAL, table.near[0] / weights.TOTAL
        return float(max(np.log(public.max() / least), np.log(most / public.min())))

    def guarantee(self, epsilon: float) -> Guarantee:
        table = self.table(epsilon)
        count = len(self.space.lists)
        over = "" if count == 1 else f", the largest of {count} lists"
        return Guarantee(
            mechanism=self.name,
            metric=f"min(steps on the ring of {table.n:,} words, {table.gamma}){over}",
            epsilon=float(epsilon),
            plain_ldp=math.log(table.near[0]) - math.log(table.far),
            neighbors="any two words of the vocabulary",
            disclosed=(),
            assumptions=(
                COMPUTATIONAL,
                "Weights are integers out of 2^64, which can add 2^-19 to a log-ratio; no figure includes it.",
            ),
            claim="exactly epsilon times the distance; epsilon times gamma for any two words",
            holds=True,
        )


def _choose(draws: npt.NDArray[np.uint64], lists: int) -> npt.NDArray[np.uint64]:
    """Return a uniform list number a token."""
    return (draws >> np.uint64(32)) * np.uint64(lists) >> np.uint64(32)


def _both(first: npt.NDArray[np.bool_] | None, second: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_] | None:
    if first is None or second is None:
        return second if first is None else first
    return first & second
