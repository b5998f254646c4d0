"""The kind of each Unicode character for the tokenizer: one byte per code point, from Python's Unicode tables.

| kind | general categories |
|---|---|
| `SPACE` | what `str.isspace` says, except the separators U+001C to U+001F, which are control characters |
| `LETTER` | L* |
| `MARK` | M* and the joiners U+200C, U+200D; part of a word only behind a letter or a digit |
| `DIGIT` | N* |
| `PUNCTUATION` | P*, and the ASCII symbols ``$+<=>^`|~`` |
| `OTHER` | everything else: symbols, emoji, control, unassigned and private-use characters |
"""

from __future__ import annotations

import functools
import unicodedata

import numpy as np
import numpy.typing as npt

OTHER, SPACE, LETTER, MARK, DIGIT, PUNCTUATION = range(6)
KIND_MASK = 0x0F
UPPER = 0x10
"""Bit set for upper-case and title-case letters."""

TABLE_END = 0xE0200
"""All code points from here on are `OTHER` (private use and unassigned)."""

UNICODE_VERSION = unicodedata.unidata_version

_BY_MAJOR = {"L": LETTER, "M": MARK, "N": DIGIT, "P": PUNCTUATION, "Z": SPACE}
_KIND_OF = {
    major + minor: _BY_MAJOR.get(major, OTHER) | (UPPER if major + minor in {"Lu", "Lt"} else 0)
    for major in "CLMNPSZ"
    for minor in "acdefiklmnopstu"
}
"""The table's byte for each general category, and for some that do not exist."""

_ASCII_SYMBOLS = "$+<=>^`|~"
_SPACE_CONTROLS = [0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x85]
"""Control characters that ``str.isspace`` takes for spaces, less U+001C to U+001F."""
_JOINERS = (0x200C, 0x200D)
_EMPTY_PLANES = range(0x40000, 0xE0000)


@functools.cache
def character_table() -> npt.NDArray[np.uint8]:
    """Return kind and upper-case bit of every code point below ``TABLE_END``; uint8 [TABLE_END], read-only."""
    table = np.zeros(TABLE_END, dtype=np.uint8)
    for codes in (range(_EMPTY_PLANES.start), range(_EMPTY_PLANES.stop, TABLE_END)):
        table[codes.start : codes.stop] = list(map(_KIND_OF.__getitem__, map(unicodedata.category, map(chr, codes))))
    table[_SPACE_CONTROLS] = SPACE
    table[[ord(symbol) for symbol in _ASCII_SYMBOLS]] = PUNCTUATION
    table[list(_JOINERS)] = MARK
    table.flags.writeable = False
    return table


LOWER_END = 0x1E922
"""No code point from here on has a lower-case form other than itself."""


@functools.cache
def lower_table() -> npt.NDArray[np.int32]:
    """Return the one-character lower-case form of every code point below ``LOWER_END``; int32, read-only.

    The one character whose lower case has two code points, U+0130, maps to itself here; ``scan.lower_into`` writes
    both. A final capital sigma becomes a final small sigma there, too.
    """
    table = np.arange(LOWER_END, dtype=np.int32)
    for code, lowered in enumerate(map(str.lower, map(chr, range(LOWER_END)))):
        if len(lowered) == 1:
            table[code] = ord(lowered)
    table.flags.writeable = False
    return table
