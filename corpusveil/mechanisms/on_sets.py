"""Exponential laws over small sets of candidates, a set for each word: CusText.

Word w has candidates C_w, itself first. Their scores are ``s = -(d - d_min)/(d_max - d_min)``, d the distance of
vectors and its bounds over C_w (all 0 where they are equal), and ``P[w, u]`` is proportional to ``exp(epsilon s / 2)``
on C_w. In addition, each word of the vocabulary can have a weight, the same for all inputs. As integers: every word has
``added`` of 2^64; a candidate other than w has ``floor(room exp(epsilon s / 2) / Z) + 1`` of the ``room = 2^64
- n added`` that remains; w has the rest. A draw below ``n added`` selects the uniform word; any other selects from the
  row.
"""

from __future__ import annotations

import abc
import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from corpusveil.arrays import Float64, Int32, Int64, UInt64
from corpusveil.compiled import njit
from corpusveil.errors import check_whole
from corpusveil.mechanisms.base import by_epsilon
from corpusveil.mechanisms.distances import OverVectors
from corpusveil.mechanisms.vector_blocks import exponential
from corpusveil.sampling import weights
from corpusveil.sampling.draws import MECHANISM, Draws
from corpusveil.sampling.weights import check_epsilon
from corpusveil.search.neighbors import nearest, squared_distance
from corpusveil.search.slices import in_slices
from corpusveil.spaces import Space

MOST = 256
"""The most candidates of a word."""


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """Candidates: ``members`` int32 [V, M], the word itself first, then others, then -1; ``sizes`` int64 [V]."""

    members: Int32
    sizes: Int64


@dataclass(frozen=True, slots=True, eq=False)
class SetTable:
    """Bounds uint64 [V, M] of the cells of a row: where each ends, less ``n added``; the last is ``room``, or 0."""

    bounds: UInt64
    added: int


@functools.lru_cache(maxsize=8)
def partition(space: Space, size: int) -> Int32:
    """Return the group of each word, int32 [V], by the public vectors only."""
    groups, group = np.full(len(space), -1, dtype=np.int32), 0
    left = np.arange(len(space))
    while left.size >= 2 * size:
        groups[left[0]] = groups[nearest(space.vectors, int(left[0]), size - 1, left)[0]] = group
        left, group = left[groups[left] < 0], group + 1
    groups[left] = group
    return groups


@functools.lru_cache(maxsize=8)
def group_sets(space: Space, size: int) -> Sets:
    """Return each word with the others of its group, by id."""
    groups = partition(space, size)
    # Stable, so that a group's words stay in the order of their ids.
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(int(groups.max()) + 2))
    sizes = np.diff(starts)[groups]
    members = np.full((groups.size, int(sizes.max())), -1, dtype=np.int32)
    for group in range(starts.size - 1):
        words = order[starts[group] : starts[group + 1]].astype(np.int32)
        for word in words:
            members[word, 0] = word
            members[word, 1 : words.size] = words[words != word]
    return Sets(members, sizes.astype(np.int64))


@njit()
def _weigh(vectors: Any, members: Any, sizes: Any, half: float, added: Any, bounds: Any, low: int, high: int) -> None:
    room = np.uint64(0) - added * np.uint64(vectors.shape[0])  # mod 2^64: 0 is 2^64, nothing being added
    whole = 2.0**64 - np.float64(added) * vectors.shape[0]
    values = np.empty(members.shape[1])
    for word in range(low, high):
        size = sizes[word]
        least = np.inf
        most = 0.0
        for i in range(size):
            values[i] = math.sqrt(squared_distance(vectors, word, members[word, i]))
            least = min(least, values[i])
            most = max(most, values[i])
        z = 0.0
        for i in range(size):
            score = (values[i] - least) / (most - least) if most > least else 0.0
            values[i] = exponential(max(-half * score, -46.0))
            z += values[i]
        others = np.uint64(0)
        for i in range(1, size):
            # The 1 keeps each candidate possible.
            others += np.uint64(np.int64(whole / z * values[i])) + np.uint64(1)
        running = room - others
        bounds[word, 0] = running
        for i in range(1, size):
            running += np.uint64(np.int64(whole / z * values[i])) + np.uint64(1)
            bounds[word, i] = running


@njit()
def _choose(ids: Any, draws: Any, members: Any, sizes: Any, bounds: Any, added: Any, out: Any) -> None:
    uniform = added * np.uint64(members.shape[0])
    for t in range(ids.size):
        word = ids[t]
        draw = draws[t]
        if draw < uniform:
            out[t] = draw // added
            continue
        draw -= uniform
        at = 0
        while at < sizes[word] - 1 and draw >= bounds[word, at]:
            at += 1
        out[t] = members[word, at]


@functools.lru_cache(maxsize=64)
def set_table(kind: Any, space: Space, size: int, epsilon: float, added: int) -> SetTable:
    """Build the rows at one epsilon; ``kind`` is the function that gives the sets."""
    sets = kind(space, size)
    bounds = np.zeros(sets.members.shape, dtype=np.uint64)
    in_slices(len(space), _weigh, space.vectors, sets.members, sets.sizes, epsilon / 2, np.uint64(added), bounds)
    return SetTable(bounds, added)


@dataclass(frozen=True, slots=True)
class OnSets(OverVectors):
    """A mechanism over sets of ``K`` candidates. Raises UserError for a bad K."""

    K: int = 10

    def __post_init__(self) -> None:
        OverVectors.__post_init__(self)
        check_whole("K", self.K, 2, MOST)

    @property
    @abc.abstractmethod
    def sets(self) -> Sets:
        """The candidates; cached."""

    @abc.abstractmethod
    def table(self, epsilon: float) -> SetTable:
        """Return the rows at one epsilon; cached."""

    def privatize(self, ids: Int32, epsilon: float | Float64, draws: Draws) -> Int32:
        self.check_tokens(ids, draws)
        lanes = draws.uint64(MECHANISM)
        out = np.empty(ids.size, dtype=np.int32)
        for value, at in by_epsilon(epsilon, ids.size):
            table, some = self.table(value), np.empty(ids[at].size, dtype=np.int32)
            _choose(ids[at], lanes[at], self.sets.members, self.sets.sizes, table.bounds, np.uint64(table.added), some)
            out[at] = some
        return out

    def added_to(self, word: int, epsilon: float) -> list[int]:
        """Return the integer weights of a word's candidates beyond the common weight; total 2^64 - n added."""
        table = self.table(check_epsilon(epsilon))
        size = int(self.sets.sizes[word])
        ends = [*map(int, table.bounds[word, : size - 1]), weights.TOTAL - table.added * len(self.space)]
        return [end - before for before, end in itertools.pairwise([0, *ends])]

    def distribution(self, word: int, epsilon: float) -> Float64:
        word, added = self.check_id(word), self.table(check_epsilon(epsilon)).added
        cells = self.added_to(word, epsilon)
        out = np.full(len(self.space), added / weights.TOTAL)
        out[self.sets.members[word, : len(cells)]] = [(cell + added) / weights.TOTAL for cell in cells]
        return out

    def own(self, epsilon: float) -> Float64:
        """Return the probability that each word stays unchanged, which is its largest; float64 [V]."""
        table = self.table(check_epsilon(epsilon))
        return (table.bounds[:, 0].astype(np.float64) + table.added) / weights.TOTAL

    def retention(self, epsilon: float) -> float:
        return float(self.own(epsilon).mean())
