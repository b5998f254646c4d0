"""UTF-8 in compiled loops: decode, encode and lower-case without leaving the byte buffer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from corpusveil.compiled import called, compiled
from corpusveil.text.characters import LETTER, OTHER, TABLE_END, character_table, lower_table

KINDS = character_table()
LOWER = lower_table()


class Characters(NamedTuple):
    """What loops look up: the kind of each byte, uint8 [256], and of each code point, and small letters, int32."""

    bytes: Any
    kinds: Any
    lower: Any


CHARACTERS = Characters(np.concatenate([KINDS[:128] & 0x0F, np.full(128, 0x0F, dtype=np.uint8)]), KINDS, LOWER)
"""The kind of a byte is that of an ASCII character; 15 for a byte of a longer sequence."""

_INVALID = 0x110000
_KIND_MASK = np.uint8(0x0F)


@called
def kind_of(code: int, kinds: Any) -> int:
    """Return the character kind of a code point."""
    return int(kinds[code] & _KIND_MASK) if code < TABLE_END else OTHER


@compiled
def decode(data: Any, at: int, end: int) -> Any:
    """Return (code point, bytes) of the character at ``at``; a malformed byte is (0x110000, 1), of kind `OTHER`."""
    first = np.int64(data[at])
    if first < 0x80:
        return first, 1
    if first < 0xC2:
        return _INVALID, 1
    length = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if first > 0xF4 or at + length > end:
        return _INVALID, 1
    code = first & (0x7F >> length)
    for k in range(1, length):
        byte = np.int64(data[at + k])
        if byte & 0xC0 != 0x80:
            return _INVALID, 1
        code = (code << 6) | (byte & 0x3F)
    too_small = (length == 3 and code < 0x800) or (length == 4 and code < 0x10000)
    if too_small or code > 0x10FFFF or 0xD800 <= code < 0xE000:
        return _INVALID, 1
    return code, length


@compiled
def encode(code: int, out: Any, at: int) -> int:
    """Write a code point as UTF-8 at ``out[at]``; return the position after it."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at] = 0xC0 | (code >> 6)
        out[at + 1] = 0x80 | (code & 0x3F)
        return at + 2
    if code < 0x10000:
        out[at] = 0xE0 | (code >> 12)
        out[at + 1] = 0x80 | ((code >> 6) & 0x3F)
        out[at + 2] = 0x80 | (code & 0x3F)
        return at + 3
    out[at] = 0xF0 | (code >> 18)
    out[at + 1] = 0x80 | ((code >> 12) & 0x3F)
    out[at + 2] = 0x80 | ((code >> 6) & 0x3F)
    out[at + 3] = 0x80 | (code & 0x3F)
    return at + 4


@called
def _letter_follows(data: Any, at: int, end: int, kinds: Any) -> bool:
    while at < end:
        code, length = decode(data, at, end)
        if kind_of(code, kinds) == LETTER:
            return True
        at += length
    return False


@compiled
def lower_into(data: Any, start: int, end: int, out: Any, at: int, lower: Any, kinds: Any) -> int:
    """Write the lower-case form of ``data[start:end]`` to ``out`` from ``at`` on; return the position after it.

    Characters are lowered one by one as Unicode's simple mapping does, with three additions: U+0130 becomes ``i`` and
    U+0307, a capital sigma after a letter and before none becomes the final sigma, and the typographic apostrophe
    U+2019 becomes ``'``. The result is at most half as long again as the input.
    """
    i = start
    behind_letter = False
    while i < end:
        code, length = decode(data, i, end)
        if code == _INVALID:
            out[at] = data[i]
            at += 1
        else:
            small = np.int64(lower[code] if code < lower.size else code)
            if code == 0x2019:
                small = np.int64(0x27)
            elif code == 0x130:
                out[at] = 0x69
                at += 1
                small = np.int64(0x307)
            elif code == 0x3A3 and behind_letter and not _letter_follows(data, i + length, end, kinds):
                small = np.int64(0x3C2)
            at = encode(small, out, at)
        if kind_of(code, kinds) == LETTER:
            behind_letter = True
        i += length
    return at
