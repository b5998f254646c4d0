"""Vocabulary look-up by bytes: an open-addressing hash table over lower-cased UTF-8."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import compiled
from corpusveil.text.utf8 import ASCII_LOWER, KINDS, LOWER, lower_into

SEED = np.uint64(0x243F6A8885A308D3)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)


@compiled
def hash_step(state: Any, byte: Any) -> Any:
    """Add one byte to a running hash."""
    return (state ^ np.uint64(byte)) * _MULTIPLIER


@compiled
def _spread(state: Any) -> Any:
    return (state ^ (state >> _SHIFT)) * _MULTIPLIER


@compiled
def _equal(data: Any, start: int, end: int, words: Any, offsets: Any, word: int, ascii_lower: Any) -> bool:
    first = offsets[word]
    if offsets[word + 1] - first != end - start:
        return False
    for k in range(end - start):
        if ascii_lower[data[start + k]] != words[first + k]:
            return False
    return True


@compiled
def find(state: Any, data: Any, start: int, end: int, slots: Any, words: Any, offsets: Any, ascii_lower: Any) -> Any:
    """Return the id of the word ``data[start:end]``, or -1.

    ``state`` is the running hash of its lower-cased bytes; capitals of ASCII are lowered here, others must be already.
    """
    mixed = _spread(state)
    tag = mixed & _LOW
    mask = slots.size - 1
    at = np.int64(mixed >> _SHIFT) & mask
    while True:
        slot = slots[at]
        if slot == _EMPTY:
            return -1
        if slot >> _SHIFT == tag:
            word = np.int64(slot & _LOW)
            if _equal(data, start, end, words, offsets, word, ascii_lower):
                return word
        at = (at + 1) & mask


@compiled
def _fill(keys: Any, key_offsets: Any, exact: Any, slots: Any, ascii_lower: Any, only_exact: bool) -> None:
    """Enter the words of one round: those equal to their own lower-case form first, then the others where free."""
    mask = slots.size - 1
    for word in range(key_offsets.size - 1):
        if exact[word] != only_exact:
            continue
        start, end = key_offsets[word], key_offsets[word + 1]
        state = SEED
        for k in range(start, end):
            state = hash_step(state, keys[k])
        if find(state, keys, start, end, slots, keys, key_offsets, ascii_lower) >= 0:
            continue
        mixed = _spread(state)
        at = np.int64(mixed >> _SHIFT) & mask
        while slots[at] != _EMPTY:
            at = (at + 1) & mask
        slots[at] = ((mixed & _LOW) << _SHIFT) | np.uint64(word)


@compiled
def _lower_all(words: Any, offsets: Any, lower: Any, kinds: Any, out: Any, out_offsets: Any, exact: Any) -> int:
    at = 0
    for word in range(offsets.size - 1):
        start, end = offsets[word], offsets[word + 1]
        out_offsets[word] = at
        at = lower_into(words, start, end, out, at, lower, kinds)
        same = at - out_offsets[word] == end - start
        if same:
            for k in range(end - start):
                if out[out_offsets[word] + k] != words[start + k]:
                    same = False
                    break
        exact[word] = same
    out_offsets[offsets.size - 1] = at
    return at


@dataclass(frozen=True, slots=True)
class WordTable:
    """Ids by lower-cased bytes.

    ``keys`` uint8 and ``offsets`` int64 [V + 1] hold the lower-cased words; ``slots`` uint64 is the table: a hash tag
    above the id. Of several words with one lower-case form the one that *is* that form is found, else the first.
    """

    slots: npt.NDArray[np.uint64]
    keys: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]

    @classmethod
    def build(cls, words: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> WordTable:
        """Build the table of V words given as concatenated UTF-8 and int64 [V + 1] offsets."""
        count = offsets.size - 1
        keys = np.empty(int(words.size) * 3 // 2 + 8, dtype=np.uint8)
        key_offsets = np.empty(count + 1, dtype=np.int64)
        exact = np.empty(count, dtype=np.bool_)
        used = _lower_all(words, offsets.astype(np.int64), LOWER, KINDS, keys, key_offsets, exact)
        keys = keys[:used].copy()
        capacity = 1 << max(4, (2 * count).bit_length())
        slots = np.full(capacity, _EMPTY, dtype=np.uint64)
        for only_exact in (True, False):
            _fill(keys, key_offsets, exact, slots, ASCII_LOWER, only_exact)
        return cls(slots, keys, key_offsets)
