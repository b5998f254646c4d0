"""Surrogates of numbers: random digits and letters in the shape of a number, drawn anew in each place.

The shape is a function of the number: a digit of any script, or any other numeral (*½*), becomes a random digit, a
letter a random small letter; ``.`` and ``,`` stay; other characters, such as marks on a digit, are left out. A
surrogate is a function of the shape and of keyed draws at its position, so surrogates do not distinguish two numbers of
equal shape, whatever the budget.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import compiled
from corpusveil.sampling.draws import SURROGATE, Draws
from corpusveil.text.characters import DIGIT, LETTER
from corpusveil.text.text_writer import NO_SURROGATES, Surrogates
from corpusveil.text.tokens import Tokens
from corpusveil.text.utf8 import KINDS, decode, kind_of

CHARACTERS = 8
"""Characters that one 64-bit draw invents: 8 letters take 38 of its 56 used bits."""
_FRACTION = np.uint64(56)
_REST = np.uint64((1 << 56) - 1)
_SPARE = np.uint64(8)


@compiled
def _draw(
    data: Any, starts: Any, ends: Any, index: Any, kinds: Any, lanes: Any, lane_offsets: Any, out: Any, offsets: Any
) -> int:
    """Write the surrogate of each number token, one after the other; return the number of bytes."""
    at = 0
    offsets[0] = 0
    for n in range(index.size):
        fraction = np.uint64(0)
        drawn = 0
        i = np.int64(starts[index[n]])
        end = np.int64(ends[index[n]])
        while i < end:
            code, length = decode(data, i, end)
            kind = kind_of(code, kinds)
            i += length
            if kind == DIGIT or kind == LETTER:
                if drawn % CHARACTERS == 0:
                    fraction = lanes[lane_offsets[n] + drawn // CHARACTERS] >> _SPARE
                drawn += 1
                fraction = fraction * np.uint64(10 if kind == DIGIT else 26)
                out[at] = np.uint8(0x30 if kind == DIGIT else 0x61) + np.uint8(fraction >> _FRACTION)
                fraction = fraction & _REST
                at += 1
            elif code == 0x2C or code == 0x2E:
                out[at] = code
                at += 1
        offsets[n + 1] = at
    return at


def _lanes(draws: Draws, sizes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return the draws of each token, enough to invent as many characters as it has bytes, and where they begin.

    Tokens are grouped by the power of two that their draws fit in, so that a long number does not slow down the others.
    """
    pairs = -(-np.maximum(sizes, 1) // (2 * CHARACTERS))
    rounded = np.left_shift(1, np.frexp(pairs - 1)[1].astype(np.int64))  # exact, as a logarithm is not
    offsets = np.concatenate([[0], np.cumsum(2 * rounded)]).astype(np.int64)
    lanes = np.empty(int(offsets[-1]), np.uint64)
    for size in np.unique(rounded).tolist():
        at = np.flatnonzero(rounded == size)
        lanes[offsets[at][:, None] + np.arange(2 * size)] = draws.of(at).lanes(SURROGATE, size)
    return lanes, offsets


def surrogates(tokens: Tokens, index: npt.NDArray[np.int32], draws: Draws) -> Surrogates:
    """Return the surrogates of the number tokens ``index`` int32 [N]."""
    if not index.size:
        return NO_SURROGATES
    sizes = (tokens.ends[index] - tokens.starts[index]).astype(np.int64)
    out, offsets = np.empty(int(sizes.sum()), np.uint8), np.empty(index.size + 1, np.int64)
    used = _draw(tokens.data, tokens.starts, tokens.ends, index, KINDS, *_lanes(draws, sizes), out, offsets)
    return Surrogates(out[:used], offsets)
