"""The shape of a number: what its surrogate has in common with it, and so discloses.

A number is a token of that class, or, where marks are kept, several that touch one ``-``, ``/`` or ``:`` between each
two (*2024-05-17*, *12:30*). Its shape is its characters, where

* a digit of any script, or any other numeral (*½*), is ``0``;
* an ASCII letter is itself, in lower case, if enough public numbers have it there (``spaces/number_counts.py``);
  otherwise it is ``A``, like every other letter;
* marks and joiners upon characters are left out;
* ``.``, ``,`` and joining marks are themselves.

So *1,234.50* is ``0,000.00`` and *3rd* ``0rd``. The shape is a function of the number and of public data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import called, compiled
from corpusveil.text import classes
from corpusveil.text.characters import DIGIT, LETTER
from corpusveil.text.tokens import Tokens
from corpusveil.text.utf8 import KINDS, decode, kind_of

_NUMBER, _PUNCTUATION = classes.NUMBER, classes.PUNCTUATION
DIGIT_SIGN, LETTER_SIGN = 0x30, 0x41
"""``0`` and ``A``, for any digit and for a hidden letter."""


@called
def joins(byte: int) -> bool:
    """Say whether a character between two numbers makes them one: ``-``, ``/`` or ``:``."""
    return byte in (0x2D, 0x2F, 0x3A)


@compiled
def shape_into(data: Any, start: int, end: int, kinds: Any, out: Any, at: int) -> Any:
    """Write the shape of ``data[start:end]`` to ``out`` from ``at`` on; return its end, and whether a letter is hidden.

    All ASCII letters are written as they are, in lower case. The shape is no longer than the number, in bytes.
    """
    hidden = False
    i = start
    while i < end:
        code, length = decode(data, i, end)
        kind = kind_of(code, kinds)
        if kind == DIGIT:
            out[at] = DIGIT_SIGN
            at += 1
        elif kind == LETTER:
            if 0x41 <= (code & 0xDF) <= 0x5A and code < 0x80:
                out[at] = code | 0x20
            else:
                out[at] = LETTER_SIGN
                hidden = True
            at += 1
        elif code in (0x2C, 0x2E) or joins(code):
            out[at] = code
            at += 1
        i += length
    return at, hidden


@compiled
def _units(
    data: Any, starts: Any, ends: Any, token_classes: Any, offsets: Any, join: bool, firsts: Any, lasts: Any
) -> int:
    n = 0
    for document in range(offsets.size - 1):
        t = offsets[document]
        end = offsets[document + 1]
        while t < end:
            if token_classes[t] != _NUMBER:
                t += 1
                continue
            last = t
            while (
                join
                and last + 2 < end
                and token_classes[last + 1] == _PUNCTUATION
                and token_classes[last + 2] == _NUMBER
                and starts[last + 1] == ends[last]
                and ends[last + 1] == starts[last + 1] + 1
                and starts[last + 2] == ends[last + 1]
                and joins(data[starts[last + 1]])
            ):
                last += 2
            firsts[n] = t
            lasts[n] = last
            n += 1
            t = last + 1
    return n


def units(tokens: Tokens, *, join: bool) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the first and the last token of each number; int64 [U] each. With ``join`` dates and times are numbers."""
    firsts, lasts = (np.empty(int(np.count_nonzero(tokens.classes == _NUMBER)), np.int64) for _ in range(2))
    count = _units(tokens.data, tokens.starts, tokens.ends, tokens.classes, tokens.offsets, join, firsts, lasts)
    return firsts[:count], lasts[:count]


def shape_of(number: str) -> str:
    """Return the shape of one number, with all its ASCII letters; for inspection and tests."""
    data = np.frombuffer(number.encode(), np.uint8)
    out = np.empty(data.size, np.uint8)
    end, _ = shape_into(data, 0, data.size, KINDS, out, 0)
    return out[:end].tobytes().decode()
