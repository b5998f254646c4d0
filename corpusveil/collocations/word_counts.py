"""The words of batches in lower case, and how often each occurs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.arrays import Int32, Int64, UInt8, UInt64
from corpusveil.compiled import compiled
from corpusveil.text.classes import WORD
from corpusveil.text.tokens import Tokens, string_buffers
from corpusveil.text.utf8 import KINDS, LOWER, lower_into
from corpusveil.text.word_table import hashed, head

COUNTS = pa.schema([("word", pa.large_string()), ("count", pa.int64())])
_BLANK, _BREAK = 0x20, 0x0A


@compiled
def _write(
    data: Any, starts: Any, ends: Any, classes: Any, offsets: Any, stops: Any, lengths: Any, lower: Any, kinds: Any,
    out: Any, token_ends: Any, rows: Any,
) -> Any:  # fmt: skip
    """Write lower-cased units with blanks and line breaks; return the numbers of bytes and units."""
    at = 0
    unit = 0
    for document in range(offsets.size - 1):
        rows[document] = unit
        t = offsets[document]
        open_line = False
        while t < offsets[document + 1]:
            length = max(lengths[t], 1)
            if classes[t] == WORD:
                for k in range(t, t + length):
                    if classes[k] == WORD:  # the full stop of an abbreviation is not part of the word
                        if k > t:
                            out[at] = 0x5F
                            at += 1
                        at = lower_into(data, np.int64(starts[k]), np.int64(ends[k]), out, at, lower, kinds)
                token_ends[unit] = at
                unit += 1
                out[at] = _BLANK
                at += 1
                open_line = True
            if stops[t + length - 1] and open_line:
                out[at - 1] = _BREAK
                open_line = False
            t += length
        if open_line:
            out[at - 1] = _BREAK
    rows[offsets.size - 1] = unit
    return at, unit


def _padded(
    tokens: Tokens, stops: npt.NDArray[np.bool_], lengths: npt.NDArray[np.int8]
) -> tuple[UInt8, Int64, pa.Array]:
    """Return the word units of a batch, each with a blank or line break: bytes, the first of documents, and strings."""
    out = np.empty(tokens.data.size * 3 // 2 + 2 * len(tokens) + 8, dtype=np.uint8)
    token_ends = np.empty(len(tokens), dtype=np.int64)
    rows = np.zeros(tokens.offsets.size, dtype=np.int64)
    size, units = _write(
        tokens.data, tokens.starts, tokens.ends, tokens.classes, tokens.offsets, stops, lengths, LOWER, KINDS,
        out, token_ends, rows,
    )  # fmt: skip
    offsets = np.append(np.int64(0), token_ends[:units] + 1)
    text = out[:size].copy()
    return text, rows, pa.LargeStringArray.from_buffers(units, pa.py_buffer(offsets), pa.py_buffer(text))


def written(
    tokens: Tokens, stops: npt.NDArray[np.bool_], lengths: npt.NDArray[np.int8]
) -> tuple[bytes, pa.Array, pa.Array]:
    """Return the word units of a batch, lower-cased: as LineSentence text, as list<string> per document, and flat."""
    text, rows, padded = _padded(tokens, stops, lengths)
    flat = pc.utf8_rtrim(padded, " \n")
    return text.tobytes(), pa.LargeListArray.from_arrays(pa.array(rows), flat), flat


def counted(tokens: Tokens) -> pa.Table:
    """Return how often each word of a batch occurs (``COUNTS``); it may be in two rows."""
    _, _, padded = _padded(tokens, np.zeros(len(tokens), np.bool_), np.ones(len(tokens), np.int8))
    words, counts = padded.value_counts().flatten()  # the last word of a document ends with a line break
    return pa.table([pc.utf8_rtrim(words, " \n"), counts], schema=COUNTS)


def with_more(usual: pa.Table, ids: Int32) -> pa.Table:
    """Return the counts of a vocabulary's words with what these ids, -1 for other words, add to them."""
    more = np.bincount(ids + 1, minlength=len(usual) + 1)[1:]
    return pa.table([usual["word"], usual["count"].to_numpy() + more], schema=COUNTS)


def summed(tables: Iterable[pa.Table]) -> pa.Table:
    """Return counts added up, a row for each word, in any order."""
    added = (
        pa.concat_tables([COUNTS.empty_table(), *tables])
        .group_by("word", use_threads=False)
        .aggregate([("count", "sum")])
    )
    return added.select(["word", "count_sum"]).rename_columns(COUNTS.names)


def most_frequent(counts: pa.Table) -> pa.Table:
    """Return counts in their order: falling, then by word."""
    return counts.take(pc.sort_indices(counts, [("count", "descending"), ("word", "ascending")]))


def spread(words: pa.Array) -> UInt64:
    """Return a key for each word that spreads them evenly, uint64 [V]."""
    data, offsets = string_buffers(words)
    keys = np.empty(len(words), np.uint64)
    _spread(data, offsets, keys)
    return keys


@compiled
def _spread(data: Any, offsets: Any, keys: Any) -> None:
    for word in range(keys.size):
        start, size = offsets[word], offsets[word + 1] - offsets[word]
        low, high = head(data, start, size)
        keys[word] = np.uint64(hashed(low, high, data, start, start + size)) << np.uint64(32)
