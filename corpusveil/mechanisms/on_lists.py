"""The common part of the mechanisms on lists: tables by epsilon, the choice of a list, and the law by position.

If a vocabulary has several lists, one is chosen for each token, uniformly and independently of the word; this equals
running all and releasing one at random. The mixture is private for the largest of the lists' distances
(``docs/mathematics.md``).
"""

from __future__ import annotations

import abc
import decimal
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from corpusveil.arrays import Float64, Int32, Integers, UInt64
from corpusveil.errors import DataError, check_whole
from corpusveil.mechanisms.base import Mechanism, by_epsilon, check_fraction
from corpusveil.sampling import weights
from corpusveil.sampling.draws import MECHANISM, Draws

_HALF = np.uint64(32)


@dataclass(frozen=True, slots=True)
class OnLists(Mechanism):
    """A mechanism whose law depends on list positions only. Raises UserError for a space without a list."""

    loop: ClassVar[Callable[..., None]]
    shape: ClassVar[str] = "path"
    """The shape on which distance is measured: a path, or a ring."""

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        if len(self.space.lists) < 1:
            raise DataError(f"{self.name} needs a space with a list; build it with lists = 1 or more.")

    @property
    def distance(self) -> str:
        return self.on_lists()

    @abc.abstractmethod
    def table(self, epsilon: float) -> Any:
        """Return the sampling table at one epsilon; cached."""

    def _weights(self, inputs: Integers | int, outputs: Integers, epsilon: float) -> UInt64:
        """Return the integer weight of output positions for input positions, if it has a formula; broadcast."""
        raise NotImplementedError

    def position_weights(self, position: int, epsilon: float) -> UInt64:
        """Return the integer weight of each output position for an input position; uint64 [V], total 2^64."""
        return self._weights(position, np.arange(len(self.space)), epsilon)

    @abc.abstractmethod
    def reach(self, epsilon: float) -> int:
        """Return the number of steps beyond which all inputs of an output are equally likely."""

    def cells(self, inputs: Integers, outputs: Integers, epsilon: float) -> Float64:
        """Return the probability of output positions for input positions; broadcast."""
        return self._weights(inputs, outputs, epsilon).astype(np.float64) / weights.TOTAL

    @abc.abstractmethod
    def extremes(self, epsilon: float) -> tuple[float, float]:
        """Return a lower and an upper bound of the probabilities."""

    @abc.abstractmethod
    def arguments(self, table: Any) -> tuple[Any, ...]:
        """Return the arguments of ``loop`` from a table."""

    def privatize(self, ids: Int32, epsilon: float | Float64, draws: Draws) -> Int32:
        self.check_tokens(ids, draws)
        count = len(self.space.lists)
        if count == 1:
            lanes, chosen = draws.uint64(MECHANISM), np.empty(0, dtype=np.uint16)
        else:
            lanes, others = draws.pair(MECHANISM)
            chosen = ((others >> _HALF) * np.uint64(count) >> _HALF).astype(np.uint16)  # uniform
        out = np.empty(ids.size, dtype=np.int32)
        for value, at in by_epsilon(epsilon, ids.size):
            arguments, moved = self.arguments(self.table(value)), np.empty(ids[at].size, dtype=np.int32)
            lists = chosen[at] if count > 1 else chosen
            self.loop(ids[at], self.space.positions, self.space.lists, lists, lanes[at], *arguments, moved)
            out[at] = moved
        return out

    def distribution(self, word: int, epsilon: float) -> Float64:
        word = self.check_id(word)
        out = np.zeros(len(self.space))
        for order, position in zip(self.space.lists, self.space.positions, strict=True):
            law = self.position_weights(int(position[word]), epsilon)
            out[order] += law.astype(np.float64) / weights.TOTAL / len(self.space.lists)
        return out

    def apart(self, gaps: Float64, epsilon: float) -> Float64:  # noqa: ARG002 - where it is truncated
        """Return the distance of positions that are ``gaps`` apart. Here: on a path."""
        return gaps

    def distances(self, word: int, epsilon: float) -> Float64:
        """Return the largest over the lists of the distance of positions; float64 [V]."""
        word = self.check_id(word)
        out = np.zeros(len(self.space))
        for position in self.space.positions:
            gaps = np.abs(position.astype(np.float64) - float(position[word]))
            np.maximum(out, self.apart(gaps, epsilon), out=out)
        return out

    def unknown_bound(self, epsilon: float, public: Float64) -> float:
        low, high = self.extremes(epsilon)
        return float(np.log(max((public / low).max(), (high / public).max())))

    def on_lists(self, gamma: int | None = None) -> str:
        """Describe the metric: steps on a list of this many words, truncated at gamma, over all lists."""
        count, steps = len(self.space.lists), f"steps on the {self.shape} of {len(self.space):,} words"
        most = "" if count == 1 else f", the largest over {count} lists"
        return f"{steps if gamma is None else f'min({steps}, {gamma})'}{most}"


@dataclass(frozen=True, slots=True)
class Truncated(OnLists):
    """A mechanism whose distance does not grow beyond ``gamma``. Raises UserError for values out of range."""

    gamma: int | None = None
    beta: float = 0.001

    def __post_init__(self) -> None:
        OnLists.__post_init__(self)
        check_fraction("beta", self.beta)
        if self.gamma is not None:
            n = len(self.space)
            check_whole("gamma", self.gamma, 1, n // 2 if self.shape == "ring" else n - 1)

    def reach(self, epsilon: float) -> int:
        return int(self.table(epsilon).gamma) - 1

    def distance_at(self, epsilon: float) -> str:
        return self.on_lists(self.table(epsilon).gamma)


@functools.lru_cache(maxsize=512)
def default_gamma(n: int, epsilon: float, beta: float, most: int) -> int:
    """Return gamma by the rule, at most ``most``; in decimals, since logarithms of two machines may differ."""
    b = decimal.Decimal(beta)
    outside = weights.divide((1 - b) * (n - 1), b)
    if outside <= 1:
        return 1
    gamma = weights.divide(weights.ln(outside), decimal.Decimal(epsilon))
    return most if gamma >= most else max(1, math.ceil(gamma))
