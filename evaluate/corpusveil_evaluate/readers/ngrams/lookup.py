"""Look-up of n-grams by compiled code: hash tables, one for each first word, and one for each bigram.

Memory access limits its speed. Therefore the data of a bigram are stored together, a bigram with few following words
says so without access to its table, and loops prefetch many slots before they read the first.

A slot of a bigram's table holds its second word, its entry and a rough logarithm, so that one memory access shows
whether a pair was counted, and about how likely it is; looking up many second words after one first word reads little
memory. A slot of a trigram's holds its last word and its logarithm. Half of all slots are empty: most n-grams that are
looked up were not counted, and an empty slot shows this.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import called, compiled
from corpusveil_evaluate.readers.ngrams.fixed import LEAST

ROUGH_BITS = 11
ROUGH = 1 << ROUGH_BITS
"""Values of a rough logarithm: a 32nd of a nat each, 64 nats in all."""
_TO_ROUGH = 2048
"""Units of 2^-16 nats in a 32nd of a nat."""
_ENTRY_BITS = 32
BY_SECOND = np.uint64(ROUGH_BITS + _ENTRY_BITS)
_ENTRY_SHIFT = np.uint64(ROUGH_BITS)
_ENTRY_MASK = np.uint64((1 << _ENTRY_BITS) - 1)
_ROUGH_MASK = np.uint64(ROUGH - 1)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = BY_LAST = np.uint64(32)
_LOG_MASK = np.uint64((1 << 32) - 1)
_NONE, _ONE = np.uint64(0), np.uint64(1)
_MOST, _MOST_ROUGH = np.uint64(-LEAST), np.uint64(-LEAST // _TO_ROUGH)
"""The largest numbers that stand for a logarithm, in its own units and as a rough one: those of ``LEAST``."""
_BIT_SHIFT = np.uint64(26)
"""The shift that leaves six bits of a 32-bit hash: one bit of 64."""


def regions_of(bigrams: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Return where the table of each first word begins, uint32 [V + 1], by how many bigrams it has, int64 [V]."""
    return np.concatenate([[0], np.cumsum(2 * bigrams)]).astype(np.uint32)


@compiled
def mixed(word: Any) -> Any:
    """Return the hash of a word, uint64 below 2^32; also of -1, which is in no slot."""
    return (np.uint64(word + 1) * _MIX) >> _HALF


@called
def spot(hashed: Any, size: Any) -> Any:
    """Return the first slot to check for a hash, in a table of ``size`` slots."""
    return np.int64((hashed * np.uint64(size)) >> _HALF)


@compiled
def enter(first: Any, second: Any, logs: Any, entry: int, regions: Any, slots: Any) -> None:
    """Enter bigrams, whose entries are counted from ``entry`` on."""
    for t in range(first.size):
        low = np.int64(regions[first[t]])
        size = np.int64(regions[first[t] + 1]) - low
        at = spot(mixed(second[t]), size)
        while slots[low + at] != _NONE:
            at += 1
            if at == size:
                at = 0
        rough = np.uint64((np.int64(_TO_ROUGH // 2) - np.int64(logs[t])) // _TO_ROUGH)
        slots[low + at] = (
            (np.uint64(second[t] + 1) << BY_SECOND) | (np.uint64(entry + t) << _ENTRY_SHIFT) | rough
        )  # fmt: skip


@called
def slot_of(first: Any, second: Any, regions: Any, slots: Any) -> Any:
    """Return the slot of a bigram, uint64; 0 if there is none, or if ``first`` is -1."""
    if first < 0:
        return _NONE
    low = np.int64(regions[first])
    size = np.int64(regions[first + 1]) - low
    if size == 0:
        return _NONE
    at = low + spot(mixed(second), size)
    return found_from(slots[at], at, second, low, size, BY_SECOND, slots)


@called
def found_from(slot: Any, at: Any, word: Any, low: Any, size: Any, shift: Any, slots: Any) -> Any:
    """Return a word's slot in the table of ``size`` slots from ``low`` on, or 0; ``slot``, at ``at``, is the first.

    ``shift`` is the place of the word in a slot: ``BY_SECOND`` in tables of pairs, ``BY_LAST`` in those of triples.
    """
    wanted = np.uint64(word + 1)
    while slot != _NONE and slot >> shift != wanted:
        at += 1
        if at == low + size:
            at = low
        slot = slots[at]
    return slot


@called
def entry_in(slot: Any) -> Any:
    """Return the entry that a slot holds."""
    return np.int64((slot >> _ENTRY_SHIFT) & _ENTRY_MASK)


@called
def second_in(slot: Any) -> Any:
    """Return the second word of the bigram that a slot holds."""
    return np.int64(slot >> BY_SECOND) - 1


@called
def rough_in(slot: Any) -> Any:
    """Return the rough logarithm that a slot holds, in 32nds of a nat below 0."""
    return np.int64(slot & _ROUGH_MASK)


@compiled
def pair(first: Any, second: Any, regions: Any, slots: Any) -> Any:
    """Return the entry of a bigram; -1 if there is none, or if ``first`` is -1."""
    slot = slot_of(first, second, regions, slots)
    return entry_in(slot) if slot != _NONE else np.int64(-1)


@compiled
def enter_thirds(context: Any, words: Any, logs: Any, first: Any, bigrams: Any, slots: Any) -> None:
    """Enter the last words of trigrams and their logarithms into ``slots``, which begin with those of entry ``first``.

    ``context`` is the entry of the bigram before each.
    """
    begin = begin_of(bigrams, first)
    for t in range(words.size):
        low = begin_of(bigrams, context[t]) - begin
        size = size_of(bigrams, context[t])
        at = spot(mixed(words[t]), size)
        while slots[low + at] != _NONE:
            at += 1
            if at == size:
                at = 0
        slots[low + at] = (np.uint64(words[t] + 1) << _HALF) | np.uint64(-np.int64(logs[t]))


@compiled
def fill(logs: Any, lefts: Any, starts: Any, words: Any, entry: Any, before: Any, bigrams: Any) -> None:
    """Write the records of bigrams, three numbers each, from ``entry`` on.

    ``logs`` and ``lefts`` int32 [K]; ``words[starts[k]:starts[k + 1]]`` are the words after each, and ``before`` is how
    many trigrams came before.
    """
    for k in range(logs.size):
        at = 3 * (entry + k)
        bigrams[at] = (np.uint64(-np.int64(lefts[k])) << _HALF) | np.uint64(-np.int64(logs[k]))
        bigrams[at + 1] = (np.uint64(before + starts[k]) << _HALF) | np.uint64(starts[k + 1] - starts[k])
        members = _NONE
        for n in range(starts[k], starts[k + 1]):
            members |= member(mixed(words[n]))
        bigrams[at + 2] = members


@called
def log_of(bigrams: Any, entry: Any) -> Any:
    """Return the logarithm of a bigram's second word after its first."""
    return -np.int64(bigrams[3 * entry] & _LOG_MASK)


def logs_of(entries: npt.NDArray[np.int64], bigrams: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the logarithms of bigrams, int64 [K]; that of the last bigram if an entry is -1."""
    return -(bigrams[3 * entries] & _LOG_MASK).astype(np.int64)


@called
def left_of(bigrams: Any, entry: Any) -> Any:
    """Return the logarithm of the factor of the shorter context after a bigram."""
    return -np.int64(bigrams[3 * entry] >> _HALF)


@compiled
def begin_of(bigrams: Any, entry: Any) -> Any:
    """Return where the table of the words after a bigram begins."""
    return np.int64(bigrams[3 * entry + 1] >> _HALF) * 2


@compiled
def size_of(bigrams: Any, entry: Any) -> Any:
    """Return the number of slots in that table."""
    return np.int64(bigrams[3 * entry + 1] & _LOG_MASK) * 2


@compiled
def member(hashed: Any) -> Any:
    """Return the bit of a hash among 64.

    A bigram's record has the bits of its following words; an unset bit is certain.
    """
    return _ONE << (hashed >> _BIT_SHIFT)


@called
def third_in(slot: Any) -> Any:
    """Return the last word of the trigram that a slot holds."""
    return np.int64(slot >> _HALF) - 1


@called
def log_in(slot: Any) -> Any:
    """Return the logarithm that the slot of a trigram holds."""
    return -np.int64(slot & _LOG_MASK)


@compiled
def third(context: Any, word: Any, bigrams: Any, slots: Any) -> Any:
    """Return the slot of a word after the bigram ``context``, or 0."""
    hashed = mixed(word)
    if bigrams[3 * context + 2] & member(hashed) == _NONE:
        return _NONE
    low, size = begin_of(bigrams, context), size_of(bigrams, context)
    at = low + spot(hashed, size)
    return found_from(slots[at], at, word, low, size, BY_LAST, slots)


@compiled
def is_sound(words: int, regions: Any, slots: Any, bigrams: Any, slots3: Any) -> bool:
    """Say whether look-ups in these tables end, and stay inside.

    Each table lies inside the slots and has an empty one, what a slot names exists, and no logarithm is below ``LEAST``
    or above 0: others lead out of the tables of ``fixed.linear`` and of sums.
    """
    entries, end = bigrams.size // 3, np.int64(0)
    for word in range(words):
        low, high = np.int64(regions[word]), np.int64(regions[word + 1])
        if not low <= high <= slots.size:
            return False
        full = 0
        for at in range(low, high):
            if slots[at] != _NONE:
                full += 1
                if not (0 <= second_in(slots[at]) < words and entry_in(slots[at]) < entries):
                    return False
                if slots[at] & _ROUGH_MASK > _MOST_ROUGH:
                    return False
        if full == high - low and full > 0:
            return False
    for entry in range(entries):
        if bigrams[3 * entry] & _LOG_MASK > _MOST or bigrams[3 * entry] >> _HALF > _MOST:
            return False
        low, size = begin_of(bigrams, entry), size_of(bigrams, entry)
        end += size
        if low != end - size or end > slots3.size or (size == 0 and bigrams[3 * entry + 2] != _NONE):
            return False
        full = 0
        for at in range(low, end):
            if slots3[at] != _NONE:
                full += 1
                if not (0 <= third_in(slots3[at]) < words and slots3[at] & _LOG_MASK <= _MOST):
                    return False
        if full == size and size > 0:
            return False
    return True
