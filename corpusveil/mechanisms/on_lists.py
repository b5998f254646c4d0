"""What the mechanisms on one-dimensional lists share: tables by epsilon, the choice of a list, and the law by position.

Of several lists over one vocabulary one is chosen for each token, uniformly and independently of the word; that equals
running all and releasing one at random. The mixture is private for the largest of the lists' distances
(``docs/mathematics.md``).
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numba
import numpy as np
import numpy.typing as npt

from corpusveil.errors import UserError
from corpusveil.mechanisms.base import Mechanism, levels
from corpusveil.sampling import weights
from corpusveil.sampling.draws import MECHANISM, Draws


@numba.njit(cache=True)
def choose(draws: Any, lists: int) -> Any:
    """Return a uniform list number for each 64-bit draw; uint16 [T]."""
    out = np.empty(draws.size, dtype=np.uint16)
    for t in range(draws.size):
        out[t] = ((draws[t] >> np.uint64(32)) * np.uint64(lists)) >> np.uint64(32)
    return out


@dataclass(frozen=True, slots=True)
class OnLists(Mechanism):
    """A mechanism whose law depends on list positions only. Raises UserError for a space without a list.

    ``loop`` is the compiled loop: ``loop(ids, positions, lists, chosen, draws, *arguments, out)``.
    """

    loop: ClassVar[Callable[..., None]]

    def __post_init__(self) -> None:
        if len(self.space.lists) < 1:
            raise UserError(f"{self.name} needs a space with a list; build it with 'corpusveil space --lists 1'.")

    @abc.abstractmethod
    def table(self, epsilon: float) -> Any:
        """Return what sampling needs at one epsilon; cached."""

    @abc.abstractmethod
    def position_weights(self, position: int, epsilon: float) -> npt.NDArray[np.uint64]:
        """Return the integer weight of each output position for an input position; uint64 [n], total 2^64."""

    @abc.abstractmethod
    def arguments(self, table: Any) -> tuple[Any, ...]:
        """Return what ``loop`` takes of a table."""

    def _move(self, epsilon: float, ids: Any, chosen: Any, draws: Any) -> npt.NDArray[np.int32]:
        """Replace ids at one epsilon; ``chosen`` uint16 [T] is each token's list, empty when there is one list."""
        out = np.empty(ids.size, dtype=np.int32)
        space = self.space
        self.loop(ids, space.positions, space.lists, chosen, draws, *self.arguments(self.table(epsilon)), out)
        return out

    def privatize(
        self, ids: npt.NDArray[np.int32], epsilon: float | npt.NDArray[np.float64], draws: Draws
    ) -> npt.NDArray[np.int32]:
        self.check_tokens(ids, draws)
        distinct, which = levels(epsilon, ids.size)
        lanes, others = draws.pair(MECHANISM)
        count = len(self.space.lists)
        chosen = choose(others, count) if count > 1 else np.empty(0, dtype=np.uint16)
        if which is None:
            return self._move(distinct[0], ids, chosen, lanes)
        out = np.empty(ids.size, dtype=np.int32)
        for level, value in enumerate(distinct):
            at = np.flatnonzero(which == level)
            out[at] = self._move(value, ids[at], chosen[at] if count > 1 else chosen, lanes[at])
        return out

    def distribution(self, word: int, epsilon: float) -> npt.NDArray[np.float64]:
        word = self.check_id(word)
        out = np.zeros(len(self.space))
        for order, position in zip(self.space.lists, self.space.positions, strict=True):
            law = self.position_weights(int(position[word]), epsilon)
            out[order] += law.astype(np.float64) / weights.TOTAL / len(self.space.lists)
        return out

    def over_lists(self) -> str:
        """Say over how many lists the metric is the largest; nothing for one."""
        count = len(self.space.lists)
        return "" if count == 1 else f", the largest over {count} lists"
