"""Where compiled code finds n-grams: bigrams in one hash table for each first word, trigrams by binary search.

A slot of a bigram's table holds its second word, its entry and roughly its logarithm, so that one look at memory says
whether a pair was counted, and about how likely it is; and asking for many second words after one first word reads
little of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import compiled

ROUGH_BITS = 11
ROUGH = 1 << ROUGH_BITS
"""Values of a rough logarithm: a 32nd of a nat each, 64 nats in all."""
_TO_ROUGH = 2048
"""Units of 2^-16 nats in a 32nd of a nat."""
_ENTRY_BITS = 32
_WORD_SHIFT = np.uint64(ROUGH_BITS + _ENTRY_BITS)
_ENTRY_SHIFT = np.uint64(ROUGH_BITS)
_ENTRY_MASK = np.uint64((1 << _ENTRY_BITS) - 1)
_ROUGH_MASK = np.uint64(ROUGH - 1)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_NONE = np.uint64(0)


def regions_of(bigrams: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Return where the table of each first word begins, uint32 [V + 1], by how many bigrams it has, int64 [V].

    A third of the slots stays empty, and one at least.
    """
    sizes = np.where(bigrams > 0, bigrams + bigrams // 2 + 1, 0)
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32)


@compiled
def _place(second: Any, size: Any) -> Any:
    return np.int64((((np.uint64(second + 1) * _MIX) >> _HALF) * np.uint64(size)) >> _HALF)


@compiled
def enter(first: Any, second: Any, logs: Any, entry: int, regions: Any, slots: Any) -> None:
    """Enter bigrams, whose entries are counted from ``entry`` on."""
    for t in range(first.size):
        low = np.int64(regions[first[t]])
        size = np.int64(regions[first[t] + 1]) - low
        at = _place(second[t], size)
        while slots[low + at] != _NONE:
            at += 1
            if at == size:
                at = 0
        rough = np.uint64((np.int64(_TO_ROUGH // 2) - np.int64(logs[t])) // _TO_ROUGH)
        slots[low + at] = (
            (np.uint64(second[t] + 1) << _WORD_SHIFT) | (np.uint64(entry + t) << _ENTRY_SHIFT) | rough
        )  # fmt: skip


@compiled
def slot_of(first: Any, second: Any, regions: Any, slots: Any) -> Any:
    """Return the slot of a bigram, uint64, 0 where there is none, or where ``first`` is -1."""
    if first < 0:
        return _NONE
    low = np.int64(regions[first])
    size = np.int64(regions[first + 1]) - low
    if size == 0:
        return _NONE
    at = _place(second, size)
    wanted = np.uint64(second + 1)
    while True:
        slot = slots[low + at]
        if slot == _NONE or slot >> _WORD_SHIFT == wanted:
            return slot
        at += 1
        if at == size:
            at = 0


@compiled
def entry_in(slot: Any) -> Any:
    """Return the entry that a slot holds."""
    return np.int64((slot >> _ENTRY_SHIFT) & _ENTRY_MASK)


@compiled
def second_in(slot: Any) -> Any:
    """Return the second word of the bigram that a slot holds."""
    return np.int64(slot >> _WORD_SHIFT) - 1


@compiled
def rough_in(slot: Any) -> Any:
    """Return the rough logarithm that a slot holds, in 32nds of a nat below 0."""
    return np.int64(slot & _ROUGH_MASK)


@compiled
def pair(first: Any, second: Any, regions: Any, slots: Any) -> Any:
    """Return the entry of a bigram, -1 where there is none, or where ``first`` is -1."""
    slot = slot_of(first, second, regions, slots)
    return entry_in(slot) if slot != _NONE else np.int64(-1)


@compiled
def third(start: Any, end: Any, words: Any, word: Any) -> Any:
    """Return where a word stands among ``words[start:end]``, in order, or -1."""
    low = np.int64(start)
    high = np.int64(end)
    while low < high:
        middle = (low + high) >> 1
        if words[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low if low < end and words[low] == word else -1
