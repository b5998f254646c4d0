"""Surrogates: each number is replaced by a number of its shape, drawn from public numbers and otherwise independent.

A surrogate is a function of the shape, of public data and of keyed draws at its own position. So surrogates do not
distinguish two numbers of equal shape, whatever the budget, and a number has different surrogates at different places.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import called, compiled
from corpusveil.sampling.draws import SURROGATE, Draws
from corpusveil.spaces.number_counts import Numbers, tables_of
from corpusveil.text.number_shapes import DIGIT_SIGN, LETTER_SIGN, joins, shape_into, units
from corpusveil.text.text_writer import NO_SURROGATES, Surrogates
from corpusveil.text.tokens import Tokens
from corpusveil.text.utf8 import KINDS
from corpusveil.text.word_table import find

CHARACTERS = 8
"""Characters that one 64-bit draw invents: 8 letters take 38 of its 56 used bits."""
CHOICES = 2
"""Pairs of draws that choose: the whole number, a part of another whole number, a separate number."""
_FRACTION = np.uint64(56)
_REST = np.uint64((1 << 56) - 1)
_SPARE = np.uint64(8)
_DIGITS, _LETTERS = np.uint64(10), np.uint64(26)


@called
def _shape_id(shape: Any, end: int, hidden: bool, slots: Any, heads: Any, keys: Any, key_offsets: Any) -> Any:
    """Return the index of a public shape, -1 for any other shape."""
    if hidden:
        return -1
    return find(shape, 0, end, slots, heads, keys, key_offsets)


@compiled
def _cell(bounds: Any, first: int, last: int, draw: Any) -> Any:
    """Return the last cell from ``first`` to before ``last`` whose lower bound is at most the draw."""
    low, high = first, last - 1
    while low < high:
        middle = (low + high + 1) // 2
        if bounds[middle] <= draw:
            low = middle
        else:
            high = middle - 1
    return low


@called
def _make_up(shape: Any, end: int, letters_stay: bool, lanes: Any, lane: int, out: Any, at: int) -> int:
    """Write a number of a shape, digit by digit, from draws at ``lanes[lane]`` on; return the position after it."""
    fraction = np.uint64(0)
    for k in range(end):
        if k % CHARACTERS == 0:
            fraction = lanes[lane + k // CHARACTERS] >> _SPARE
        sign = shape[k]
        if sign == DIGIT_SIGN:
            fraction = fraction * _DIGITS
            out[at] = np.uint8(0x30) + np.uint8(fraction >> _FRACTION)
            fraction = fraction & _REST
        elif sign == LETTER_SIGN or (sign >= 0x61 and not letters_stay):
            fraction = fraction * _LETTERS
            out[at] = np.uint8(0x61) + np.uint8(fraction >> _FRACTION)
            fraction = fraction & _REST
        else:
            out[at] = sign
        at += 1
    return at


@called
def _copy_part(text: Any, start: int, end: int, part: int, out: Any, at: int) -> int:
    """Write one of the parts of a date or time from its text; return the position after it."""
    for k in range(start, end):
        if joins(text[k]):
            part -= 1
        elif part == 0:
            out[at] = text[k]
            at += 1
    return at


@compiled
def _draw(
    data: Any, starts: Any, ends: Any, firsts: Any, lasts: Any, kinds: Any,
    slots: Any, heads: Any, keys: Any, key_offsets: Any, cells: Any, bounds: Any, text: Any, text_offsets: Any,
    lanes: Any, lane_offsets: Any, scratch: Any, out: Any, offsets: Any,
) -> int:  # fmt: skip
    """Write the surrogate of each number token, one unit after the other; return the number of bytes."""
    at = 0
    n = 0
    offsets[0] = 0
    for unit in range(firsts.size):
        first, last = firsts[unit], lasts[unit]
        chosen = whole = np.int64(-1)
        if last > first:
            end, hidden = shape_into(data, starts[first], ends[last], kinds, scratch, 0)
            whole = _shape_id(scratch, end, hidden, slots, heads, keys, key_offsets)
            if whole >= 0:
                cell = _cell(bounds, cells[whole], cells[whole + 1], lanes[lane_offsets[n]])
                if cell > cells[whole]:
                    chosen = cell
        if chosen >= 0:
            for k in range(text_offsets[chosen], text_offsets[chosen + 1]):
                if joins(text[k]):
                    n += 1
                    offsets[n] = at
                else:
                    out[at] = text[k]
                    at += 1
            n += 1
            offsets[n] = at
            continue
        for t in range(first, last + 1, 2):
            if whole >= 0:  # another number of the shape has a part for this place
                cell = _cell(bounds, cells[whole], cells[whole + 1], lanes[lane_offsets[n] + 1])
                if cell > cells[whole]:
                    at = _copy_part(text, text_offsets[cell], text_offsets[cell + 1], (t - first) // 2, out, at)
                    n += 1
                    offsets[n] = at
                    continue
            end, hidden = shape_into(data, starts[t], ends[t], kinds, scratch, 0)
            shape = _shape_id(scratch, end, hidden, slots, heads, keys, key_offsets)
            cell = np.int64(-1)
            if shape >= 0:
                cell = _cell(bounds, cells[shape], cells[shape + 1], lanes[lane_offsets[n] + 2])
                if cell == cells[shape]:
                    cell = np.int64(-1)
            if cell >= 0:
                for k in range(text_offsets[cell], text_offsets[cell + 1]):
                    out[at] = text[k]
                    at += 1
            else:
                at = _make_up(scratch, end, shape >= 0, lanes, lane_offsets[n] + 2 * CHOICES, out, at)
            n += 1
            offsets[n] = at
    return at


def _lanes(draws: Draws, sizes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return the draws of each token, four to choose and then enough to make up so many bytes, and where they begin.

    Tokens are grouped by the power of two that their draws fit in, so that a long number does not slow down the others.
    """
    pairs = CHOICES + -(-np.maximum(sizes, 1) // (2 * CHARACTERS))
    rounded = np.left_shift(1, np.ceil(np.log2(pairs)).astype(np.int64))
    offsets = np.concatenate([[0], np.cumsum(2 * rounded)]).astype(np.int64)
    lanes = np.empty(int(offsets[-1]), np.uint64)
    for size in np.unique(rounded).tolist():
        at = np.flatnonzero(rounded == size)
        some = draws.of(at)
        lanes[offsets[at][:, None] + np.arange(2 * size)] = some.lanes(SURROGATE, size)
    return lanes, offsets


def surrogates(
    tokens: Tokens, index: npt.NDArray[np.int32], draws: Draws, public: Numbers, *, join: bool
) -> Surrogates:
    """Return the surrogates of number tokens: those of ``index`` int32 [N], which are all that ``tokens`` has.

    With ``join`` numbers that touch one mark between each two are one: a date is drawn as a whole.
    """
    if not index.size:
        return NO_SURROGATES
    firsts, lasts = units(tokens, join=join)
    sizes = (tokens.ends[index] - tokens.starts[index]).astype(np.int64)
    lanes, lane_offsets = _lanes(draws, sizes)
    tables = tables_of(public)
    longest = int((tokens.ends[lasts] - tokens.starts[firsts]).max(initial=0))
    out, offsets = np.empty(int(sizes.sum()), np.uint8), np.empty(index.size + 1, np.int64)
    used = _draw(
        tokens.data, tokens.starts, tokens.ends, firsts, lasts, KINDS,
        tables.shapes.slots, tables.shapes.heads, tables.shapes.keys, tables.shapes.offsets, tables.cells,
        tables.bounds, tables.text, tables.offsets, lanes, lane_offsets, np.empty(longest, np.uint8), out, offsets,
    )  # fmt: skip
    return Surrogates(out[:used], offsets)
