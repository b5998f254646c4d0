"""Texts as JSON strings, straight from the bytes of a column."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from corpusveil.compiled import called, compiled
from corpusveil.wide import SPAN, copy_span, escaped_bits, ones, zeros_below

_LONGEST = 6
_WRITTEN = np.zeros((256, _LONGEST), dtype=np.uint8)
_WRITTEN[:, 0] = np.arange(256)
_SIZES = np.ones(256, dtype=np.int64)
"""What is written for a byte, and how many bytes that is."""
for _byte in range(128):
    _text = orjson.dumps(chr(_byte))[1:-1]
    _WRITTEN[_byte, : len(_text)], _SIZES[_byte] = list(_text), len(_text)
_NULL = np.frombuffer(b"null", dtype=np.uint8)


@compiled
def _escapes(data: Any, first: int, last: int) -> int:
    """Return how many of the bytes are escaped."""
    count = 0
    for i in range(first, last - SPAN + 1, SPAN):
        count += ones(escaped_bits(data, i))
    for i in range(last - (last - first) % SPAN, last):
        count += (data[i] < 0x20) | (data[i] == 0x22) | (data[i] == 0x5C)
    return count


@called
def _copied(source: Any, out: Any, at: int) -> Any:
    for k in range(source.size):
        out[at + k] = source[k]
    return at + source.size


@called
def _quote(data: Any, i: int, end: int, out: Any, at: int) -> int:
    """Write ``data[i:end]`` as a JSON string; return the position after it."""
    out[at] = 0x22
    at += 1
    while i < end:
        if i + SPAN <= data.size:
            copy_span(data, i, out, at)  # what is too much is written over
            run = min(zeros_below(escaped_bits(data, i)), end - i)
            i += run
            at += run
            if run == SPAN or i == end:
                continue
        byte = data[i]
        i += 1
        for k in range(_SIZES[byte]):
            out[at + k] = _WRITTEN[byte, k]
        at += _SIZES[byte]
    out[at] = 0x22
    return at + 1


@compiled
def _write(data: Any, offsets: Any, valid: Any, before: Any, behind: Any, out: Any, ends: Any) -> None:
    at = np.int64(0)
    for row in range(offsets.size - 1):
        at = _copied(before, out, at)
        if valid.size == 0 or valid[row]:
            at = _quote(data, offsets[row], offsets[row + 1], out, at)
        else:
            at = _copied(_NULL, out, at)
        at = _copied(behind, out, at)
        ends[row] = at


def string_bytes(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes below large_string [N], and where each text begins and the last ends; int64 [N + 1]."""
    _, bounds, body = texts.buffers()
    data = np.empty(0, dtype=np.uint8) if body is None else np.frombuffer(body, dtype=np.uint8)
    if not len(texts):
        return data, np.zeros(1, dtype=np.int64)
    return data, np.frombuffer(bounds, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]


def quoted(texts: pa.Array, before: bytes, behind: bytes) -> tuple[memoryview, npt.NDArray[np.int64]]:
    """Return N texts as JSON strings, ``null`` for nulls, each between two pieces, and where each ends; int64 [N].

    ``texts`` is large_string [N]. What is written is byte for byte what orjson writes.
    """
    data, offsets = string_bytes(texts)
    valid = texts.is_valid().to_numpy(zero_copy_only=False) if texts.null_count else np.empty(0, dtype=np.bool_)
    size = offsets[-1] - offsets[0] + (_LONGEST - 1) * _escapes(data, offsets[0], offsets[-1])
    around = len(before) + len(behind) + len('""') + len(_NULL)
    out = np.empty(size + around * len(texts) + SPAN, dtype=np.uint8)
    ends = np.empty(len(texts), dtype=np.int64)
    first, last = (np.frombuffer(piece, dtype=np.uint8) for piece in (before, behind))
    _write(data, offsets, valid, first, last, out, ends)
    return out[: int(ends[-1]) if len(texts) else 0].data, ends
