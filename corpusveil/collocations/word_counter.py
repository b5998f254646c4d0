"""Pass 1 of counting: how often each lower-cased word occurs, in a table of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.compiled import called, compiled
from corpusveil.text.classes import WORD
from corpusveil.text.tokenizer_loop import TokenArrays
from corpusveil.text.tokens import Tokens
from corpusveil.text.utf8 import ASCII_LOWER, CHARACTERS, Characters, lower_into
from corpusveil.text.word_table import SEED

_FIRST_SLOTS = 1 << 16
_FIRST_BYTES = 1 << 20
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
"""A slot holds a word's number below 32 bits of its hash."""
MOST_WORDS = 8 << 20
"""Different words in memory before they are written as partial counts."""


@called
def _same(keys: Any, first: int, last: int, word: Any, size: int) -> bool:
    if last - first != size:
        return False
    for k in range(size):
        if keys[first + k] != word[k]:
            return False
    return True


@called
def _add(word: Any, size: int, state: Any, slots: Any, keys: Any, offsets: Any, hashes: Any, counts: Any) -> bool:
    """Count a lower-cased word; return False if there is no room for another word."""
    mask = slots.size - 1
    hashed = SEED
    for k in range(size):
        hashed = (hashed ^ np.uint64(word[k])) * _MULTIPLIER
    hashed = (hashed ^ (hashed >> _SHIFT)) * _MULTIPLIER
    tag = hashed & _LOW
    at = np.int64(hashed >> _SHIFT) & mask
    while True:
        slot = slots[at]
        if slot == _EMPTY:
            break
        known = np.int64(slot & _LOW)
        if slot >> _SHIFT == tag and _same(keys, offsets[known], offsets[known + 1], word, size):
            counts[known] += 1
            return True
        at = (at + 1) & mask
    new, used = state[0], state[1]
    if 2 * new >= slots.size or new + 1 >= counts.size or used + size > keys.size:
        return False
    for k in range(size):
        keys[used + k] = word[k]
    slots[at] = tag << _SHIFT | np.uint64(new)
    hashes[new] = hashed
    counts[new] = 1
    offsets[new + 1] = used + size
    state[0] = new + 1
    state[1] = used + size
    return True


class _Table(NamedTuple):
    """Words and their counts, which are found by their hashes."""

    slots: Any
    keys: Any
    offsets: Any
    hashes: Any
    counts: Any


@called
def _count_ascii(tokens: TokenArrays, token: int, state: Any, table: _Table, scratch: Any, ascii_lower: Any) -> Any:
    """Count words from ``token`` on; return where it stopped, which may be before a word that is not ASCII."""
    data, _, starts, ends, classes, _, _ = tokens
    slots, keys, offsets, hashes, counts = table
    for t in range(token, starts.size):
        if classes[t] != WORD:
            continue
        start, size = starts[t], ends[t] - starts[t]
        if 2 * size > scratch.size:
            return t
        for k in range(size):
            byte = data[start + k]
            if byte >= 0x80:
                return t
            scratch[k] = ascii_lower[byte]
        if not _add(scratch, size, state, slots, keys, offsets, hashes, counts):
            return t
    return starts.size


@compiled
def _count(
    tokens: TokenArrays, token: int, state: Any, table: _Table, scratch: Any, characters: Characters, ascii_lower: Any
) -> Any:
    """Count words from ``token`` on; return where it stopped: after the last, or before a word without room.

    ``state`` int64 [2] holds the number of words and of their bytes. Lowering any Unicode in the loop over ASCII words
    would make that three times as slow.
    """
    data, _, starts, ends, _, _, _ = tokens
    slots, keys, offsets, hashes, counts = table
    _, kinds, lower = characters
    t = token
    while True:
        t = _count_ascii(tokens, t, state, table, scratch, ascii_lower)
        if t == starts.size or 2 * (ends[t] - starts[t]) > scratch.size:
            return t
        size = lower_into(data, np.int64(starts[t]), np.int64(ends[t]), scratch, np.int64(0), lower, kinds)
        if not _add(scratch, size, state, slots, keys, offsets, hashes, counts):
            return t
        t += 1


@compiled
def _enter(slots: Any, hashes: Any, words: int) -> None:
    mask = slots.size - 1
    for word in range(words):
        at = np.int64(hashes[word] >> _SHIFT) & mask
        while slots[at] != _EMPTY:
            at = (at + 1) & mask
        slots[at] = (hashes[word] & _LOW) << _SHIFT | np.uint64(word)


class WordCounter:
    """Counts the words of batches; its tables grow up to ``most`` words, then they are written and emptied."""

    def __init__(self, most: int = MOST_WORDS) -> None:
        self._most = most
        self._clear()

    def _clear(self) -> None:
        self._state = np.zeros(2, dtype=np.int64)
        self._slots = np.full(_FIRST_SLOTS, _EMPTY, dtype=np.uint64)
        self._keys = np.empty(_FIRST_BYTES, dtype=np.uint8)
        self._offsets = np.zeros(_FIRST_SLOTS // 2 + 1, dtype=np.int64)
        self._hashes = np.empty(_FIRST_SLOTS // 2, dtype=np.uint64)
        self._counts = np.empty(_FIRST_SLOTS // 2, dtype=np.int64)
        self._scratch = np.empty(256, dtype=np.uint8)

    def __len__(self) -> int:
        return int(self._state[0])

    def add(self, tokens: Tokens) -> Iterator[pa.Table]:
        """Count the words of a batch; yield partial counts whenever the table is full."""
        token = 0
        while True:
            table = _Table(self._slots, self._keys, self._offsets, self._hashes, self._counts)
            token = _count(tokens.arrays, token, self._state, table, self._scratch, CHARACTERS, ASCII_LOWER)
            if token >= len(tokens):
                return
            if len(self) >= self._most:
                yield self.take()
            else:
                self._grow(int(tokens.ends[token] - tokens.starts[token]))

    def _grow(self, length: int) -> None:
        words, used = len(self), int(self._state[1])
        if 2 * length > self._scratch.size:
            self._scratch = np.empty(4 * length, dtype=np.uint8)
        if used + 2 * length + 8 > self._keys.size:
            self._keys = _larger(self._keys, used, 2 * self._keys.size + 2 * length)
        if 2 * words >= self._slots.size or words + 1 >= self._counts.size:
            size = 2 * self._slots.size
            self._offsets = _larger(self._offsets, words + 1, size // 2 + 1)
            self._hashes = _larger(self._hashes, words, size // 2)
            self._counts = _larger(self._counts, words, size // 2)
            self._slots = np.full(size, _EMPTY, dtype=np.uint64)
            _enter(self._slots, self._hashes, words)

    def take(self) -> pa.Table:
        """Return the counts so far, ``word: large_string, count: int64, hash: uint64``, and begin anew."""
        words, used = len(self), int(self._state[1])
        text = pa.LargeStringArray.from_buffers(
            words, pa.py_buffer(self._offsets[: words + 1].copy()), pa.py_buffer(self._keys[:used].copy())
        )
        table = pa.table(
            {
                "word": text,
                "count": pa.array(self._counts[:words].copy()),
                "hash": pa.array(self._hashes[:words].copy()),
            }
        )
        self._clear()
        return table


def _larger(array: npt.NDArray[Any], used: int, size: int) -> npt.NDArray[Any]:
    grown = np.zeros(size, dtype=array.dtype)
    grown[:used] = array[:used]
    return grown
