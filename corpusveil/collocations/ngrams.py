"""Pass 2 of counting: n-grams as packed integers, counted by sorting.

A word's id plus one takes ``63 // max_n`` bits, the last word the lowest; an n-gram's key is multiplied by an odd
constant modulo 2^64, which is undone at the end and spreads the keys evenly, so that ranges of keys have equal work.
Sorted runs of (key, count) are merged two at a time, and written in parts when they grow too large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.arrays import Int64, UInt64
from corpusveil.collocations.collocation_table import KEY_BITS, most_words
from corpusveil.compiled import compiled, for_loops
from corpusveil.errors import DataError
from corpusveil.text.classes import WORD
from corpusveil.text.tokens import Tokens

MULTIPLIER = 0x9E3779B97F4A7C15
_INVERSE = pow(MULTIPLIER, -1, 1 << 64)
BUFFER_KEYS = 8 << 20
"""Keys collected before sorting: 64 MiB."""
MOST_KEYS = 24 << 20
"""Different keys in memory before they are written: 384 MiB of keys and counts, twice that during merging."""


@compiled
def _gather(
    ids: Any, classes: Any, ends: Any, offsets: Any, document: int, token: int, max_n: int, bits: int,
    unigrams: Any, buffer: Any, used: int,
) -> Any:  # fmt: skip
    """Add the n-grams that end at each token; return (document, token, used) when the buffer is full."""
    multiplier = np.uint64(MULTIPLIER)
    shift = np.uint64(bits)
    keep = np.uint64((1 << (bits * max_n)) - 1)
    for d in range(document, offsets.size - 1):
        first = offsets[d] if d > document else max(offsets[d], token)
        run = 0
        packed = np.uint64(0)
        if first > offsets[d]:  # resume in the middle of a document: collect the words before it again
            back = first - 1
            while (
                back >= offsets[d] and run < max_n - 1 and not ends[back] and classes[back] == WORD and ids[back] >= 0
            ):
                run += 1
                back -= 1
            for k in range(first - run, first):
                packed = (packed << shift) | np.uint64(ids[k] + 1)
        for t in range(first, offsets[d + 1]):
            if used + max_n > buffer.size:
                return d, t, used
            if classes[t] != WORD or ids[t] < 0:
                run = 0
                packed = np.uint64(0)
                continue
            unigrams[ids[t]] += 1
            run = min(run + 1, max_n)
            packed = ((packed << shift) | np.uint64(ids[t] + 1)) & keep
            for n in range(2, run + 1):
                mask = np.uint64((1 << (bits * n)) - 1)
                buffer[used] = (packed & mask) * multiplier
                used += 1
            if ends[t]:
                run = 0
                packed = np.uint64(0)
    return offsets.size - 1, 0, used


@compiled
def _merge(a: Any, ca: Any, b: Any, cb: Any, out: Any, cout: Any) -> int:
    i = 0
    j = 0
    n = 0
    while i < a.size and j < b.size:
        x = a[i]
        y = b[j]
        if x < y:
            out[n] = x
            cout[n] = ca[i]
            i += 1
        elif y < x:
            out[n] = y
            cout[n] = cb[j]
            j += 1
        else:
            out[n] = x
            cout[n] = ca[i] + cb[j]
            i += 1
            j += 1
        n += 1
    while i < a.size:
        out[n] = a[i]
        cout[n] = ca[i]
        i += 1
        n += 1
    while j < b.size:
        out[n] = b[j]
        cout[n] = cb[j]
        j += 1
        n += 1
    return n


def merge(first: tuple[UInt64, Int64], second: tuple[UInt64, Int64]) -> tuple[UInt64, Int64]:
    """Merge two runs of different sorted keys, adding the counts of equal ones."""
    size = first[0].size + second[0].size
    keys, counts = np.empty(size, dtype=np.uint64), np.empty(size, dtype=np.int64)
    used = _merge(*map(for_loops, (*first, *second)), keys, counts)
    return keys[:used], counts[:used]


def merge_all(runs: list[tuple[UInt64, Int64]]) -> tuple[UInt64, Int64]:
    runs = sorted(runs, key=lambda run: -run[0].size)
    if not runs:
        return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    while len(runs) > 1:
        runs.append(merge(runs.pop(), runs.pop()))
        runs.sort(key=lambda run: -run[0].size)
    return runs[0]


@dataclass(slots=True)
class Runs:
    """Runs that are merged as they arrive, with runs of about the same size."""

    _runs: list[tuple[UInt64, Int64]] = field(default_factory=list)

    def add(self, run: tuple[UInt64, Int64]) -> None:
        while self._runs and self._runs[-1][0].size <= 2 * run[0].size:
            run = merge(self._runs.pop(), run)
        self._runs.append(run)

    def __len__(self) -> int:
        return sum(run[0].size for run in self._runs)

    def take(self) -> tuple[UInt64, Int64]:
        """Return all runs merged, and start again."""
        runs, self._runs = self._runs, []
        return merge_all(runs)


@dataclass(slots=True)
class NgramCounter:
    """Counts the n-grams of batches: ``unigrams`` int64 [V], and longer ones in sorted runs of (mixed key, count)."""

    words: int
    max_n: int
    buffer_keys: int = BUFFER_KEYS
    most: int = MOST_KEYS
    unigrams: Int64 = field(init=False)
    _buffer: UInt64 = field(init=False)
    _used: int = field(default=0, init=False)
    _runs: Runs = field(default_factory=Runs, init=False)

    def __post_init__(self) -> None:
        if self.words > most_words(self.max_n):
            raise DataError(
                f"{self.words:,} words occur often enough, and {self.max_n}-grams can have "
                f"{most_words(self.max_n):,} different words; raise min_count or lower max_n."
            )
        self.unigrams = np.zeros(self.words, dtype=np.int64)
        self._buffer = np.empty(self.buffer_keys, dtype=np.uint64)

    def add(self, tokens: Tokens, ends: npt.NDArray[np.bool_]) -> Iterator[tuple[UInt64, Int64]]:
        """Count a batch with ids of the vocabulary; yield runs that have to be written."""
        document, token = 0, 0
        while True:
            document, token, self._used = _gather(
                tokens.ids, tokens.classes, ends, tokens.offsets, document, token, self.max_n,
                KEY_BITS // self.max_n, self.unigrams, self._buffer, self._used,
            )  # fmt: skip
            if document >= tokens.offsets.size - 1:
                return
            self._sort()
            if len(self._runs) > self.most:
                yield self._runs.take()

    def _sort(self) -> None:
        keys = self._buffer[: self._used]
        keys.sort()
        begins = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        self._runs.add((keys[begins], np.diff(begins, append=keys.size)))
        self._used = 0

    def finish(self) -> tuple[UInt64, Int64]:
        if self._used:
            self._sort()
        return self._runs.take()


def unpacked(keys: UInt64, max_n: int) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
    """Return the lengths int8 [K] and word ids int32 [K, max_n] (-1 after the last word) of mixed keys."""
    bits = KEY_BITS // max_n
    plain = keys * np.uint64(_INVERSE)
    mask = np.uint64((1 << bits) - 1)
    fields = np.stack([(plain >> np.uint64(bits * (max_n - 1 - k))) & mask for k in range(max_n)], axis=1)
    ids = fields.astype(np.int64) - 1
    lengths = (ids >= 0).sum(axis=1)
    shifted = np.full(ids.shape, -1, dtype=np.int32)
    for n in range(1, max_n + 1):
        rows = np.flatnonzero(lengths == n)
        shifted[rows[:, None], np.arange(n)] = ids[rows, max_n - n :]
    return lengths.astype(np.int8), shifted
