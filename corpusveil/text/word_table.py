"""Vocabulary look-up by bytes: an open-addressing hash table over lower-cased UTF-8."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import called, compiled, for_loops, inlined, u
from corpusveil.text.output_words import concatenate
from corpusveil.text.utf8 import KINDS, LOWER, lower_into
from corpusveil.wide import WIDTH, fetch, lower_sixteen

SEED = np.uint64(0x243F6A8885A308D3)
_MULTIPLIER, _OTHER_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_SHIFT = np.uint64(32)
_EMPTY = np.uint32(0xFFFFFFFF)


@called
def _head_at_the_end(data: Any, at: int, size: int) -> Any:
    first, second = np.uint64(0), np.uint64(0)
    for k in range(min(size, WIDTH)):
        byte = np.uint64(data[at + k])
        if 0x41 <= byte <= 0x5A:
            byte |= np.uint64(0x20)
        if k < 8:
            first |= byte << np.uint64(8 * k)
        else:
            second |= byte << np.uint64(8 * k - 64)
    return first, second


@inlined
def head(data: Any, at: int, size: int) -> Any:
    """Return the first sixteen bytes of ``data[at:at + size]`` as two uint64, ASCII in lower case, then zeros."""
    if at + WIDTH <= data.size:
        return lower_sixteen(data, at, size)
    return _head_at_the_end(data, at, size)


@inlined
def _mixed(state: Any, first: Any, second: Any) -> Any:
    state = ((state ^ first) * _MULTIPLIER) ^ ((second + _OTHER_MULTIPLIER) * _OTHER_MULTIPLIER)
    return state ^ (state >> _SHIFT)


@called
def _mixed_rest(state: Any, data: Any, start: int, end: int) -> Any:
    for at in range(start, end, WIDTH):
        first, second = head(data, at, end - at)
        state = _mixed(state, first, second)
    return state


@inlined
def hashed(first: Any, second: Any, data: Any, start: int, end: int) -> Any:
    """Return the hash of ``data[start:end]``, uint32, whose ``head`` is these two."""
    state = _mixed(SEED, first, second)
    if end - start > WIDTH:
        state = _mixed_rest(state, data, start + WIDTH, end)
    return np.uint32(state * _MULTIPLIER >> _SHIFT)


@inlined
def hash_slot(code: Any, slots: Any) -> Any:
    """Return the first slot to look at for a hash."""
    return np.int64(code) & (slots.size - 1)


@inlined
def fetch_head(code: Any, slots: Any, heads: Any) -> None:
    """Have what ``found`` compares first brought into the cache; the slot should be there by now."""
    fetch(heads, np.int64(slots[u(hash_slot(code, slots))] & np.uint32((slots.size - 1) >> 1)) * 2)


@inlined
def found(code: Any, data: Any, start: int, end: int, slots: Any, heads: Any, words: Any, offsets: Any) -> Any:
    """Return the id of the word ``data[start:end]``, whose hash is ``code``, or -1.

    Capitals of ASCII are lowered here; others have to be already.
    """
    first, second = head(data, start, end - start)
    id_bits = np.uint32((slots.size - 1) >> 1)
    at = hash_slot(code, slots)
    while slots[u(at)] != _EMPTY:
        slot = slots[u(at)]
        if (slot ^ code) <= id_bits:  # equal above the bits of the id
            word = np.int64(slot & id_bits)
            same = heads[u(word), u(0)] == first and heads[u(word), u(1)] == second
            if same and (end - start < WIDTH or _same_rest(data, start, end, words, offsets, word)):
                return word
        at = (at + 1) & (slots.size - 1)
    return np.int64(-1)


@compiled
def find(data: Any, start: int, end: int, slots: Any, heads: Any, words: Any, offsets: Any) -> Any:
    """Return the id of the word ``data[start:end]``, or -1; of capitals only those of ASCII are lowered here."""
    first, second = head(data, start, end - start)
    return found(hashed(first, second, data, start, end), data, start, end, slots, heads, words, offsets)


@called
def _same_rest(data: Any, start: int, end: int, words: Any, offsets: Any, word: int) -> bool:
    """Say whether a word of sixteen bytes or more is ``data[start:end]`` also after these."""
    first, last = offsets[word], offsets[word + 1]
    if last - first != end - start:
        return False
    for at in range(WIDTH, end - start, WIDTH):
        if head(data, start + at, end - start - at) != head(words, first + at, last - first - at):
            return False
    return True


@compiled
def _fill_heads(keys: Any, key_offsets: Any, heads: Any) -> None:
    for word in range(key_offsets.size - 1):
        heads[word, 0], heads[word, 1] = head(keys, key_offsets[word], key_offsets[word + 1] - key_offsets[word])


@compiled
def _fill(keys: Any, key_offsets: Any, heads: Any, exact: Any, slots: Any, only_exact: bool) -> None:
    """Enter the words of one round: those equal to their own lower-case form first, then the others where free."""
    id_bits = np.uint32((slots.size - 1) >> 1)
    for word in range(key_offsets.size - 1):
        start, end = key_offsets[word], key_offsets[word + 1]
        if exact[word] != only_exact or find(keys, start, end, slots, heads, keys, key_offsets) >= 0:
            continue
        code = hashed(heads[word, 0], heads[word, 1], keys, start, end)
        at = hash_slot(code, slots)
        while slots[at] != _EMPTY:
            at = (at + 1) & (slots.size - 1)
        slots[at] = (code & ~id_bits) | np.uint32(word)


@compiled
def _lower_all(words: Any, offsets: Any, lower: Any, kinds: Any, out: Any, out_offsets: Any, exact: Any) -> Any:
    at = np.int64(0)
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

    ``keys`` uint8 and ``offsets`` int64 [V + 1] hold the lower-cased words, ``heads`` uint64 [V, 2] the first sixteen
    bytes of each. ``slots`` uint32 [2^k > 2 V] is the table: the id in its k - 1 lowest bits, which are never all ones,
    and what room is left holds as many bits of the hash. Of several words with one lower-case form the one that *is*
    that form is found, else the first.
    """

    slots: npt.NDArray[np.uint32]
    heads: npt.NDArray[np.uint64]
    keys: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The table as ``find`` takes it."""
        return self.slots, self.heads, self.keys, self.offsets

    @classmethod
    def of_words(cls, words: Iterable[str]) -> WordTable:
        """Build the table of words in their order."""
        return cls.build(*concatenate([word.encode() for word in words]))

    @classmethod
    def build(cls, words: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> WordTable:
        """Build the table of V words given as concatenated UTF-8 and int64 [V + 1] offsets."""
        count = offsets.size - 1
        keys = np.empty(int(words.size) * 3 // 2 + 8, dtype=np.uint8)
        key_offsets = np.empty(count + 1, dtype=np.int64)
        exact = np.empty(count, dtype=np.bool_)
        used = _lower_all(for_loops(words), offsets.astype(np.int64), LOWER, KINDS, keys, key_offsets, exact)
        keys = keys[:used].copy()
        capacity = 1 << max(4, (2 * count).bit_length())
        slots = np.full(capacity, _EMPTY, dtype=np.uint32)
        heads = np.empty((count, 2), dtype=np.uint64)
        _fill_heads(keys, key_offsets, heads)
        for only_exact in (True, False):
            _fill(keys, key_offsets, heads, exact, slots, only_exact)
        return cls(slots, heads, keys, key_offsets)
