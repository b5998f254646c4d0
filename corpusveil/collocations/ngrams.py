"""Pass 2 of counting: n-grams as packed integers, counted by sorting.

A word's id plus one takes ``63 // max_n`` bits, the last word the lowest; an n-gram's key is multiplied by an odd
constant modulo 2^64, which is undone at the end and spreads the keys evenly, so that ranges of keys have equal work.
Sorted runs of (key, count) are written in parts, and the runs of a part are merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from corpusveil.arrays import Bool, Int64, UInt64
from corpusveil.collocations.collocation_table import KEY_BITS
from corpusveil.compiled import compiled
from corpusveil.text.classes import WORD
from corpusveil.text.tokens import Tokens

MULTIPLIER = 0x9E3779B97F4A7C15
_INVERSE = pow(MULTIPLIER, -1, 1 << 64)
MOST_KEYS = 16 << 20
"""Keys in memory before they are counted and written: 128 MiB."""
KeyCounts: TypeAlias = tuple[UInt64, Int64]
"""Different keys, sorted, and the count of each."""


@compiled
def _gather(ids: Any, classes: Any, ends: Any, offsets: Any, max_n: int, bits: int, out: Any) -> Any:
    """Write the n-grams that end at each token; return how many there are."""
    multiplier, shift = np.uint64(MULTIPLIER), np.uint64(bits)
    keep = np.uint64((1 << (bits * max_n)) - 1)
    used = 0
    for document in range(offsets.size - 1):
        run = 0
        packed = np.uint64(0)
        for t in range(offsets[document], offsets[document + 1]):
            if classes[t] != WORD or ids[t] < 0:
                run = 0
                continue
            run = min(run + 1, max_n)
            packed = ((packed << shift) | np.uint64(ids[t] + 1)) & keep
            for n in range(2, run + 1):
                mask = np.uint64((1 << (bits * n)) - 1)
                out[used] = (packed & mask) * multiplier
                used += 1
            if ends[t]:
                run = 0
    return used


def keys_of(tokens: Tokens, ends: Bool, max_n: int) -> UInt64:
    """Return the n-grams of a batch of two words or more, by ids of a vocabulary; ``ends`` bool [T] of sentences."""
    keys = np.empty(len(tokens) * (max_n - 1), dtype=np.uint64)
    return keys[: _gather(tokens.ids, tokens.classes, ends, tokens.offsets, max_n, KEY_BITS // max_n, keys)]


def counted(keys: Sequence[UInt64]) -> KeyCounts:
    """Count equal keys."""
    different, counts = np.unique(np.concatenate([np.empty(0, np.uint64), *keys]), return_counts=True)
    return different, counts


def merged(runs: Sequence[KeyCounts]) -> KeyCounts:
    """Add up the counts of equal keys."""
    keys = np.concatenate([np.empty(0, np.uint64), *(keys for keys, _ in runs)])
    counts = np.concatenate([np.empty(0, np.int64), *(counts for _, counts in runs)])
    order = np.argsort(keys, kind="stable")  # quick for a few sorted runs
    keys = keys[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])[: keys.size])
    return keys[first], np.add.reduceat(counts[order], first)


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
