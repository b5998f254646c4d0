"""Write ``corpusveil/text/unicode.json``: kinds and cases of characters, from the Unicode tables of this Python.

Another Unicode version makes other releases, so this runs with a Python of the version that is wanted, once.
``tests/text/test_characters.py`` compares the file with this Python's tables.
"""

from __future__ import annotations

import json
import unicodedata
from itertools import groupby
from pathlib import Path
from typing import Any

from corpusveil.text import characters
from corpusveil.text.characters import (
    DIGIT,
    LETTER,
    LOWER_END,
    MARK,
    OTHER,
    PUNCTUATION,
    SPACE,
    TABLE,
    TABLE_END,
    UPPER,
)

_BY_MAJOR = {"L": LETTER, "M": MARK, "N": DIGIT, "P": PUNCTUATION, "Z": SPACE}
_SPACE_CONTROLS = {0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x85}
"""Control characters that ``str.isspace`` takes for spaces, less U+001C to U+001F."""
_ASCII_SYMBOLS = "+<=>^`|~"
_JOINERS = {0x200C, 0x200D}


def kind(code: int) -> int:
    """Return the table's byte for a code point, by the rules of ``characters.py``."""
    if code in _SPACE_CONTROLS:
        return SPACE
    if code in _JOINERS:
        return MARK
    if chr(code) in _ASCII_SYMBOLS:
        return PUNCTUATION
    category = unicodedata.category(chr(code))
    if category == "Sc":
        return PUNCTUATION
    return _BY_MAJOR.get(category[0], OTHER) | (UPPER if category in {"Lu", "Lt"} else 0)


def tables() -> dict[str, Any]:
    """Return the content of the file."""
    kinds = [[len(list(run)), value] for value, run in groupby(kind(code) for code in range(TABLE_END))]
    lower = {code: chr(code).lower() for code in range(LOWER_END)}
    upper = {code: chr(code).upper() for code in range(TABLE_END)}
    return {
        "unicode": unicodedata.unidata_version,
        "kinds": [number for run in kinds for number in run],
        "lower": _runs({code: ord(one) - code for code, one in lower.items() if len(one) == 1 and ord(one) != code}),
        "upper": _runs({code: ord(one) - code for code, one in upper.items() if len(one) == 1 and ord(one) != code}),
        "upper_long": {str(code): one for code, one in upper.items() if len(one) > 1},
    }


def _runs(distances: dict[int, int]) -> list[int]:
    """Return code points in steps of one or two with equal distances: first, step, number and distance of each run."""
    runs: list[list[int]] = []
    for code, distance in distances.items():
        if runs and runs[-1][3] == distance:
            first, step, number, _ = runs[-1]
            gap = code - (first + step * (number - 1))
            if gap == step or (number == 1 and gap == 2):
                runs[-1][1:3] = gap, number + 1
                continue
        runs.append([code, 1, 1, distance])
    return [number for run in runs for number in run]


if __name__ == "__main__":
    found = json.dumps(tables(), separators=(",", ":"), ensure_ascii=True)
    Path(characters.__file__).with_name(TABLE).write_text(found + "\n", encoding="ascii")
