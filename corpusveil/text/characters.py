"""The kind of each Unicode character for the tokenizer: one byte per code point; and its case forms.

| kind | general categories |
|---|---|
| `SPACE` | what `str.isspace` says, except the separators U+001C to U+001F, which are control characters |
| `LETTER` | L* |
| `MARK` | M* and the joiners U+200C, U+200D; part of a word only after a letter or a digit |
| `DIGIT` | N* |
| `PUNCTUATION` | P*, Sc (currency signs), and the ASCII symbols ``+<=>^`|~`` |
| `OTHER` | everything else: other symbols, emoji, control, unassigned and private-use characters |

The tables are part of this package, because each minor version of Python has those of another Unicode version, by which
the same release would have other bytes. ``scripts/unicode_table.py`` wrote them.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

OTHER, SPACE, LETTER, MARK, DIGIT, PUNCTUATION = range(6)
UPPER = 0x10
"""Bit set for upper-case and title-case letters."""

TABLE_END = 0xE0200
"""All code points from here on are `OTHER` (private use and unassigned)."""
LOWER_END = 0x1E922
"""No code point from here on has a lower-case form other than itself."""

TABLE = "unicode.json"
"""The file of the tables: runs of equal kinds, and of code points with equal distances to their other case."""


@functools.cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = json.loads((resources.files("corpusveil.text") / TABLE).read_bytes())
    return tables


UNICODE_VERSION: str = _tables()["unicode"]


@functools.cache
def character_table() -> npt.NDArray[np.uint8]:
    """Return kind and upper-case bit of every code point below ``TABLE_END``; uint8 [TABLE_END], read-only."""
    runs = np.array(_tables()["kinds"]).reshape(-1, 2)
    table = np.repeat(runs[:, 1].astype(np.uint8), runs[:, 0])
    table.flags.writeable = False
    return table


@functools.cache
def lower_table() -> npt.NDArray[np.int32]:
    """Return the one-character lower-case form of every code point below ``LOWER_END``; int32, read-only.

    The one character whose lower case has two code points, U+0130, maps to itself here; ``scan.lower_into`` writes
    both. A final capital sigma becomes a final small sigma there, too.
    """
    table = np.arange(LOWER_END, dtype=np.int32)
    for first, step, number, distance in np.array(_tables()["lower"]).reshape(-1, 4).tolist():
        table[first : first + step * number : step] += distance
    table.flags.writeable = False
    return table


@functools.cache
def _upper_forms() -> dict[int, str]:
    forms = {int(code): form for code, form in _tables()["upper_long"].items()}
    for first, step, number, distance in np.array(_tables()["upper"]).reshape(-1, 4).tolist():
        forms |= {code: chr(code + distance) for code in range(first, first + step * number, step)}
    return forms


def upper(text: str) -> str:
    """Return a text in capitals, as ``str.upper`` of a Python with these tables does."""
    return text.translate(_upper_forms())
