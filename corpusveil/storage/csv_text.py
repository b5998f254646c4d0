"""Texts as cells of CSV, straight from the bytes of a column."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.compiled import called, compiled
from corpusveil.storage.json_text import string_bytes
from corpusveil.wide import SPAN, comma_bits, copy_span, semicolon_bits, tab_bits, zeros_below

_FORMULA = np.zeros(256, dtype=np.bool_)
_FORMULA[[ord(mark) for mark in "=+-@\t\r"]] = True
"""What a cell begins with that a spreadsheet takes for a formula."""


@called
def _first_mark(data: Any, i: int, end: int, separator: int) -> int:
    """Return the first separator, quote or line end of ``data[i:end]``, ``end`` where there is none."""
    while i < end:
        if i + SPAN <= data.size:
            if separator == 0x2C:
                run = zeros_below(comma_bits(data, i))
            elif separator == 0x3B:
                run = zeros_below(semicolon_bits(data, i))
            else:
                run = zeros_below(tab_bits(data, i))
            i += run
            if run < SPAN:
                break
        elif data[i] == 0x22 or data[i] == separator or data[i] == 0x0A or data[i] == 0x0D:
            break
        else:
            i += 1
    return min(i, end)


@called
def _copied(data: Any, i: int, end: int, out: Any, at: int) -> int:
    while i < end:
        if i + SPAN <= data.size:
            copy_span(data, i, out, at)  # what is too much is written over
            run = min(SPAN, end - i)
        else:
            out[at] = data[i]
            run = 1
        i += run
        at += run
    return at


@compiled
def _write(
    data: Any, offsets: Any, separator: int, alone: bool, escapes: bool, line_end: bool, out: Any, ends: Any
) -> None:
    at = np.int64(0)
    for row in range(offsets.size - 1):
        i, end = offsets[row], offsets[row + 1]
        mark = _first_mark(data, i, end, separator)
        in_quotes = mark < end or (alone and i == end)
        if in_quotes:
            out[at] = 0x22
            at += 1
        if escapes and i < end and _FORMULA[data[i]]:
            out[at] = 0x27
            at += 1
        while mark < end:
            if data[mark] == 0x22:
                at = _copied(data, i, mark + 1, out, at)
                out[at] = 0x22
                at += 1
                i = mark + 1
            mark = _first_mark(data, mark + 1, end, separator)
        at = _copied(data, i, end, out, at)
        if in_quotes:
            out[at] = 0x22
            at += 1
        if line_end:
            out[at] = 0x0A
            at += 1
        ends[row] = at


def cells(texts: pa.Array, *, separator: str, alone: bool, escapes: bool) -> tuple[memoryview, npt.NDArray[np.int64]]:
    """Return N texts as cells and where each ends, int64 [N]; ``texts`` is large_string [N], nulls are empty.

    A cell stands in quotes where it holds a ``separator``, a quote or a line end, quotes in it twice. Those of an only
    column (``alone``) each have a line end behind them, and stand in quotes also where they are empty, since a blank
    line is no row. ``escapes`` puts an apostrophe before what a spreadsheet takes for a formula (OWASP).
    """
    data, offsets = string_bytes(texts.fill_null("") if texts.null_count else texts)
    quotes = int(np.count_nonzero(data[offsets[0] : offsets[-1]] == ord('"')))
    out = np.empty(int(offsets[-1] - offsets[0]) + quotes + 4 * len(texts) + SPAN, dtype=np.uint8)
    ends = np.empty(len(texts), dtype=np.int64)
    _write(data, offsets, ord(separator), alone, escapes, alone, out, ends)
    return out[: int(ends[-1]) if len(texts) else 0].data, ends
