"""What texts are equal for readers: canonical equivalence, invisible characters, quotes, hyphens, white space, case.

All texts are read ``composed``: in normal form C, without characters that nobody sees. Functions that find spans get
``plain`` text, of as many characters; terms are looked for in ``folded`` text, with a map of positions.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.compiled import compiled
from corpusveil.text.characters import TABLE_END
from corpusveil.text.utf8 import decode
from corpusveil.wide import SPAN, high_bits, zeros_below

_OTHER_SCRIPTS = "\u0590-\u1dff\u200c\u200d\u2190-\ufdff\ufe00-\ufe0f\U00010000-\U0010ffff"
"""Characters next to which joiners, selectors and marks of direction mean something; here also emoji."""
_INVISIBLE = re.compile(
    rf"(?<![{_OTHER_SCRIPTS}])[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    rf"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]++(?![{_OTHER_SCRIPTS}])"
)
_UNSURE = """
ad 300-36f 374 37e 387 483-487 591-5c7 610-61c 64b-670 6d6-6ed 711 730-74a 7eb-7fd 816-82d 859-85b 898-8ff 93c-963
9bc-9fe a33-a5e abc-acd b3c-b5d bbe-c56 cbc-cd6 d3b-d57 dca-ddf e38-e4b eb8-ecb f18-fc6 102e-103a 108d 115f-11c2
135d-135f 1714-180f 18a9-1cf9 1dc0-1dff 1f71-1fff 2000 2001 200b-200f 202a-202e 2060-206f 20d0-20f0 2126-212b 2329 232a
2adc 2cef-2cf1 2d7f-2dff 302a-302f 3099 309a 3164 a66f-abff f900-faff fb1d-fb4e fe00-fe2f feff ffa0 fff9-fffb
101fd-10fff 11000-11fff 16af0-16fff 1bc9e-1bca3 1d15e-1d1c0 1d242-1d244 1e000-1e94f 2f800-2fa1d e0000-e0fff
"""
"""Code points that ``composed`` may change, and others among them, for a quick look."""
_PLAIN = (
    dict.fromkeys(map(ord, "‘’‚‛ʹʻʼʽˈ′`´"), "'")
    | dict.fromkeys(map(ord, "“”„‟″«»"), '"')
    | dict.fromkeys(map(ord, "‐‑‒–−⁃﹘﹣"), "-")
    | dict.fromkeys(map(ord, "\xa0\u1680\u202f\u205f\u3000"), " ")
    | dict.fromkeys(range(0x2000, 0x200B), " ")
    | {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
)
_DOT = "\u0307"
"""Behind the *i* that most programs make of *İ* in lower case."""
_BREAK = r"[^\S\r\n]*[\r\n]+(?:\s*[>|#*/])*\s*"
_GAP = re.compile(
    rf"(?<=[^\W\d_])(?:{_BREAK}|\s+)?[-_—―](?:{_BREAK}|\s+)?(?=[^\W\d_])|{_BREAK}|\s{{2,}}|[^\S ]|(?<=i){_DOT}"
)
"""A hyphen between letters, a line break with the marks of quoted mail after it, other white space, or ``_DOT``."""
_DOTLESS = {ord("İ"): "i", ord("ı"): "i"}
"""Of Turkish, in which *I* and *i* are two letters."""


@functools.cache
def _unsure() -> npt.NDArray[np.bool_]:
    table = np.zeros(TABLE_END + 0x1000, np.bool_)
    for first, _, last in (part.partition("-") for part in _UNSURE.split()):
        table[int(first, 16) : int(last or first, 16) + 1] = True
    return table


@compiled
def _look(data: Any, offsets: Any, unsure: Any, out: Any) -> Any:
    """Say of each document whether ``unsure`` has a character of it, bool [D], and it is UTF-8; return if of any."""
    for document in range(offsets.size - 1):
        at, end = offsets[document], offsets[document + 1]
        while at < end:
            plain_ones = zeros_below(high_bits(data, at)) if at + SPAN <= data.size else np.int64(0)
            if plain_ones > 0:
                at += plain_ones
                continue
            code, size = decode(data, at, end)
            if code >= 0x110000:
                out[document] = False
                break
            out[document] |= code < unsure.size and unsure[code]
            at += size
    return np.any(out)


def composed(texts: pa.Array, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> pa.Array:
    """Return strings [D] in normal form C without invisible characters; nulls stay null.

    ``data`` and ``offsets`` int64 [D + 1] are their bytes.
    """
    unsure = np.zeros(len(texts), np.bool_)
    if not _look(data, offsets, _unsure(), unsure):
        return texts
    mask = pa.array(unsure)
    return pc.replace_with_mask(texts, mask, pa.array(map(composed_text, texts.filter(mask).to_pylist()), texts.type))


def composed_text(text: str) -> str:
    """Return one text so."""
    return unicodedata.normalize("NFC", _INVISIBLE.sub("", text))


def plain(text: str) -> str:
    """Return a text with simple quotes, hyphens and blanks, character by character."""
    return text.replace("`", "'") if text.isascii() else text.translate(_PLAIN)


def folded(text: str) -> tuple[str, list[int] | range]:
    """Return a text as terms are compared, and at which character of the text each of its characters begins, and ends.

    Case does not matter, nor how much white space there is and of which kind, nor whether it is a hyphen between
    letters, nor the marks of quoted mail.
    """
    text, size = plain(text).translate(_DOTLESS), len(text)
    places: list[int] | range = range(size + 1)
    if _GAP.search(text):
        pieces, kept, last = list[str](), list[int](), 0
        for match in _GAP.finditer(text):
            gap = "" if match[0] == _DOT else " "
            pieces += text[last : match.start()], gap
            kept += range(last, match.start() + len(gap))
            last = match.end()
        text, places = "".join([*pieces, text[last:]]), [*kept, *range(last, size + 1)]
    small = text.casefold()
    if len(small) != len(text):
        sizes = [len(letter.casefold()) for letter in text]
        places = [*itertools.chain(*([place] * n for place, n in zip(places, sizes, strict=False))), places[-1]]
    return small, places
