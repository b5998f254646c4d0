"""Text as collocations: GST and MST, on token positions, sentence by sentence.

GST and MST are those of Meisenbacher, Chevli, Matthes (2024) without the errors of their printed pseudocode
(``papers.md`` §3): GST goes from left to right and takes the longest collocation at each position; MST takes all
occurrences by falling score (then longer, then earlier) unless a position is taken. Collocations consist of
consecutive word tokens of a sentence; every token is in exactly one unit, in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from corpusveil.collocations.collocation_table import Collocations, find_entry
from corpusveil.compiled import called, compiled, njit
from corpusveil.spaces import Space
from corpusveil.text.classes import UNKNOWN
from corpusveil.text.sentences import ends_and_crossed
from corpusveil.text.tokens import Tokens

Method = Literal["gst", "mst"]
METHODS: tuple[Method, ...] = ("gst", "mst")
_NONE = -1


@dataclass(frozen=True, slots=True)
class Segments:
    """Units of tokens: ``lengths`` int8 [T], 0 inside a unit, and ``entries`` int32 [T], -1 without a collocation."""

    lengths: npt.NDArray[np.int8]
    entries: npt.NDArray[np.int32]


class _Table(NamedTuple):
    """Collocations as loops take them: ``most`` words of one, ``bits`` of a word's id in ``keys`` uint64, scores."""

    most: int
    bits: int
    keys: Any
    slots: Any
    scores: Any


class _Room(NamedTuple):
    """Where matches of one run of words are ranked."""

    starts: Any
    matches: Any
    order: Any
    sizes: Any
    values: Any


@compiled
def _entry(ids: Any, first: int, length: int, bits: int, keys: Any, slots: Any) -> int:
    """Return the collocation of ``length`` tokens from ``first`` on, which must be words of one sentence."""
    key = np.uint64(0)
    for k in range(first, first + length):
        key = (key << np.uint64(bits)) | np.uint64(ids[k] + 1)
    return int(find_entry(key, keys, slots))


@called
def _gst(ids: Any, first: int, last: int, table: _Table, lengths: Any, entries: Any) -> None:
    most, bits, keys, slots, _ = table
    t = first
    while t < last:
        taken = 1
        for length in range(min(most, last - t), 1, -1):
            entry = _entry(ids, t, length, bits, keys, slots)
            if entry >= 0:
                entries[t] = entry
                taken = length
                break
        lengths[t] = taken
        t += taken


@njit()
def _rank(values: Any, order: Any, n: int) -> None:
    """Write the numbers 0 .. n - 1 into ``order`` by rising value; the sort is stable."""
    if n > 64:
        order[:n] = np.argsort(values[:n], kind="mergesort")
        return
    for k in range(n):
        at = k
        while at > 0 and values[order[at - 1]] > values[k]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = k


@njit()
def _mst(ids: Any, first: int, last: int, table: _Table, room: _Room, lengths: Any, entries: Any) -> None:
    most, bits, keys, slots, scores = table
    starts, matches, order, sizes, values = room
    n = 0
    for length in range(min(most, last - first), 1, -1):  # longer first, then from left to right: the order of ties
        for t in range(first, last - length + 1):
            entry = _entry(ids, t, length, bits, keys, slots)
            if entry >= 0:
                starts[n], matches[n], sizes[n], values[n] = t, entry, length, -scores[entry]
                n += 1
    lengths[first:last] = 1
    _rank(values, order, n)
    for at in range(n):
        k = order[at]
        start, length = starts[k], sizes[k]
        free = True
        for t in range(start, start + length):
            if lengths[t] != 1 or entries[t] >= 0:
                free = False
        if free:
            entries[start] = matches[k]
            lengths[start] = length
            lengths[start + 1 : start + length] = 0


@njit()
def _room(size: int) -> _Room:
    return _Room(
        np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int64), np.empty(size, np.int8),
        np.empty(size, np.float64),
    )  # fmt: skip


@njit()
def _segment(ids: Any, ends: Any, method: int, table: _Table, lengths: Any, entries: Any) -> None:
    """Segment each run of known words within a sentence; every other token is a separate unit."""
    t = 0
    room = _room(0)
    while t < ids.size:
        if ids[t] < 0:
            lengths[t] = 1
            t += 1
            continue
        last = t + 1
        while last < ids.size and not ends[last - 1] and ids[last] >= 0:
            last += 1
        if table.most * (last - t) + 1 > room.starts.size:
            room = _room(2 * table.most * (last - t) + 1)
        if last - t == 1:
            lengths[t] = 1
        elif method == 0:
            _gst(ids, t, last, table, lengths, entries)
        else:
            _mst(ids, t, last, table, room, lengths, entries)
        t = last


def units(
    tokens: Tokens, ids: npt.NDArray[np.int32], collocations: Collocations, method: Method
) -> tuple[Segments, npt.NDArray[np.bool_]]:
    """Split the tokens of texts into units, with the marks inside them, and say which tokens end a sentence."""
    ends, crossed = ends_and_crossed(tokens)
    if not crossed.any():
        return segment(ids, ends, collocations, method), ends
    kept = np.flatnonzero(~crossed)
    segments = segment(ids[kept], ends[kept], collocations, method)
    first = np.flatnonzero(segments.lengths)
    lengths, entries = np.ones(len(tokens), dtype=np.int8), np.full(len(tokens), _NONE, dtype=np.int32)
    begin, end = kept[first], kept[first + segments.lengths[first] - 1] + 1
    lengths[begin] = end - begin
    entries[begin] = segments.entries[first]
    inside = np.zeros(len(tokens) + 1, dtype=np.int64)
    np.add.at(inside, begin + 1, 1)
    np.add.at(inside, end, -1)
    lengths[np.cumsum(inside)[:-1] > 0] = 0
    return Segments(lengths, entries), ends


def segment(
    ids: npt.NDArray[np.int32], ends: npt.NDArray[np.bool_], collocations: Collocations, method: Method
) -> Segments:
    """Split tokens into units by word ids, int32 [T], -1 for all others, and sentence ends, bool [T]."""
    lengths = np.zeros(ids.size, dtype=np.int8)
    entries = np.full(ids.size, _NONE, dtype=np.int32)
    held = collocations
    table = _Table(held.max_n, held.bits, held.keys, held.slots, held.scores)
    _segment(ids, ends, METHODS.index(method), table, lengths, entries)
    return Segments(lengths, entries)


@dataclass(frozen=True, slots=True)
class Joiner:
    """Joins tokens to the collocations that a space has.

    ``of_word`` int32 maps ids of the tokenizer to word ids of the table, -1 where it has none; ``of_entry`` int32 its
    collocations to ids of the space; ``known`` is the number of tokenizer ids that exist without the table.
    """

    collocations: Collocations
    method: Method
    of_word: npt.NDArray[np.int32]
    of_entry: npt.NDArray[np.int32]
    known: int

    @classmethod
    def for_space(
        cls, collocations: Collocations, method: Method, space: Space, ids: npt.NDArray[np.int32], known: int, size: int
    ) -> Joiner:
        """Prepare for a tokenizer of ``size`` words; ``ids`` int32 [W] are its ids of the table's words."""
        of_word = np.full(size, UNKNOWN, dtype=np.int32)
        of_word[ids] = np.arange(ids.size)
        of_entry = np.array([space.id(token) for token in collocations.tokens], dtype=np.int32)
        return cls(collocations, method, of_word, of_entry, known)

    def __call__(self, tokens: Tokens) -> Tokens:
        words = np.where(tokens.ids >= 0, self.of_word[tokens.ids], UNKNOWN).astype(np.int32)
        joined, _ = units(tokens, words, self.collocations, self.method)
        whole = tokens.only(joined.lengths > 0)
        whole.ids[whole.ids >= self.known] = UNKNOWN
        begins = np.flatnonzero(joined.entries >= 0)
        at = np.cumsum(joined.lengths > 0)[begins] - 1
        whole.ends[at] = tokens.ends[begins + joined.lengths[begins] - 1]
        whole.ids[at] = self.of_entry[joined.entries[begins]]
        return whole
