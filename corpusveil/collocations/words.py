"""Pass 1 of counting: how often each lower-cased word occurs, in a table of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.text.classes import WORD
from corpusveil.text.tokens import Tokens
from corpusveil.text.utf8 import KINDS, LOWER, lower_into
from corpusveil.text.words import SEED, hash_step

_FIRST_SLOTS = 1 << 16
_FIRST_BYTES = 1 << 20
_EMPTY = -1
MOST_WORDS = 8 << 20
"""Different words that are held before they are handed out as partial counts."""


@numba.njit(cache=True)
def _same(keys: Any, first: int, last: int, word: Any, size: int) -> bool:
    if last - first != size:
        return False
    for k in range(size):
        if keys[first + k] != word[k]:
            return False
    return True


@numba.njit(cache=True)
def _mixed(state: Any) -> Any:
    return (state ^ (state >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)


@numba.njit(cache=True)
def _count(
    data: Any, starts: Any, ends: Any, classes: Any, token: int, state: Any,
    slots: Any, keys: Any, offsets: Any, hashes: Any, counts: Any, kinds: Any, lower: Any,
) -> int:  # fmt: skip
    """Count words from ``token`` on; return where it stopped: behind the last, or before one there is no room for.

    ``state`` int64 [2] holds the number of words and of their bytes.
    """
    mask = slots.size - 1
    scratch = np.empty(64, dtype=np.uint8)
    t = token
    while t < starts.size:
        if classes[t] != WORD:
            t += 1
            continue
        length = ends[t] - starts[t]
        if scratch.size < 2 * length + 8:
            scratch = np.empty(4 * length + 8, dtype=np.uint8)
        size = lower_into(data, starts[t], ends[t], scratch, 0, lower, kinds)
        hashed = SEED
        for k in range(size):
            hashed = hash_step(hashed, scratch[k])
        hashed = _mixed(hashed)
        at = np.int64(hashed >> np.uint64(24)) & mask
        while True:
            word = slots[at]
            if word == _EMPTY:
                if 2 * state[0] >= slots.size or state[0] + 1 >= counts.size or state[1] + size > keys.size:
                    return t
                word = state[0]
                keys[state[1] : state[1] + size] = scratch[:size]
                slots[at] = word
                hashes[word] = hashed
                counts[word] = 0
                state[0] += 1
                state[1] += size
                offsets[word + 1] = state[1]
                break
            if hashes[word] == hashed and _same(keys, offsets[word], offsets[word + 1], scratch, size):
                break
            at = (at + 1) & mask
        counts[word] += 1
        t += 1
    return t


@numba.njit(cache=True)
def _enter(slots: Any, hashes: Any, words: int) -> None:
    mask = slots.size - 1
    for word in range(words):
        at = np.int64(hashes[word] >> np.uint64(24)) & mask
        while slots[at] != _EMPTY:
            at = (at + 1) & mask
        slots[at] = word


class WordCounter:
    """Counts the words of batches; its tables grow up to ``most`` words, then they are handed out and emptied."""

    def __init__(self, most: int = MOST_WORDS) -> None:
        self._most = most
        self._clear()

    def _clear(self) -> None:
        self._state = np.zeros(2, dtype=np.int64)
        self._slots = np.full(_FIRST_SLOTS, _EMPTY, dtype=np.int32)
        self._keys = np.empty(_FIRST_BYTES, dtype=np.uint8)
        self._offsets = np.zeros(_FIRST_SLOTS // 2 + 1, dtype=np.int64)
        self._hashes = np.empty(_FIRST_SLOTS // 2, dtype=np.uint64)
        self._counts = np.empty(_FIRST_SLOTS // 2, dtype=np.int64)

    def __len__(self) -> int:
        return int(self._state[0])

    def add(self, tokens: Tokens) -> Iterator[pa.Table]:
        """Count the words of a batch; yield partial counts whenever the table is full."""
        token = 0
        while True:
            token = _count(
                tokens.data, tokens.starts, tokens.ends, tokens.classes, token, self._state,
                self._slots, self._keys, self._offsets, self._hashes, self._counts, KINDS, LOWER,
            )  # fmt: skip
            if token >= len(tokens):
                return
            if len(self) >= self._most:
                yield self.take()
            else:
                self._grow(int(tokens.ends[token] - tokens.starts[token]))

    def _grow(self, length: int) -> None:
        words, used = len(self), int(self._state[1])
        if used + 2 * length + 8 > self._keys.size:
            self._keys = _larger(self._keys, used, 2 * self._keys.size + 2 * length)
        if 2 * words >= self._slots.size or words + 1 >= self._counts.size:
            size = 2 * self._slots.size
            self._offsets = _larger(self._offsets, words + 1, size // 2 + 1)
            self._hashes = _larger(self._hashes, words, size // 2)
            self._counts = _larger(self._counts, words, size // 2)
            self._slots = np.full(size, _EMPTY, dtype=np.int32)
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
