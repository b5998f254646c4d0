"""A file of terms, one a line, ``KIND<TAB>TERM`` or just ``TERM`` (of kind ``name``): found in any case, as words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import compiled
from corpusveil.errors import BadRowError, DataError, PackageError
from corpusveil.text.spans import KIND, Spans
from corpusveil.text.tokens import Tokens
from corpusveil.text.utf8 import LOWER, decode, encode

_NO_BLANKS = 0x2E80
"""From here on, most scripts have no blanks between words."""


@compiled
def _fold(data: Any, lower: Any, out: Any) -> None:
    """Write UTF-8 in lower case where this has as many bytes, with blanks for white space of one byte."""
    at = np.int64(0)
    while at < data.size:
        code, size = decode(data, at, data.size)
        small = np.int64(lower[code] if code < lower.size else code)
        small = np.int64(0x3C3 if small == 0x3C2 else 0x20 if 0x09 <= small <= 0x0D else small)  # final sigma
        if size > 1 and (small < 0x80 or (small < 0x800) != (size == 2) or (small < 0x10000) != (size < 4)):
            small = code
        if code > 0x10FFFF:
            out[at] = data[at]
        else:
            encode(small, out, at)
        at += size


def _folded(data: npt.NDArray[np.uint8]) -> bytes:
    out = np.empty_like(data)
    _fold(data, LOWER, out)
    return out.tobytes()


@dataclass(frozen=True, slots=True)
class Terms:
    """Finds terms, each a (kind, term), between characters that are no letters or digits."""

    terms: tuple[tuple[str, str], ...]
    automaton: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            from ahocorasick_rs import BytesAhoCorasick
        except ImportError:
            raise PackageError("A file of terms needs a package: pip install 'corpusveil[spans]'.") from None
        patterns = [_folded(np.frombuffer(term.encode(), np.uint8)) for _, term in self.terms]
        object.__setattr__(self, "automaton", BytesAhoCorasick(patterns))

    def __reduce__(self) -> tuple[type[Terms], tuple[tuple[tuple[str, str], ...]]]:
        return Terms, (self.terms,)

    @classmethod
    def of_bytes(cls, raw: bytes, url: str) -> Self:
        """Return the terms of a file. Raises UserError, which quotes nothing, naming the row that cannot be used."""
        terms = []
        for row, line in enumerate(raw.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
            try:
                kind, tab, term = line.decode().partition("\t")
            except UnicodeDecodeError:
                raise BadRowError(f"{url}, row {row}: this is not valid UTF-8; convert the file to UTF-8.") from None
            kind, term = (kind.strip(), term.strip()) if tab else ("name", kind.strip())
            if (tab or term) and not (term and KIND.fullmatch(kind)):
                raise BadRowError(
                    f"{url}, row {row}: give a term, or a kind in small letters such as 'name', a tab and a term."
                )
            if term:
                terms.append((kind, term))
        if not terms:
            raise DataError(f"{url}: there are no terms in this file; give one a line.")
        return cls(tuple(dict.fromkeys(terms)))

    def __call__(self, tokens: Tokens) -> Spans:
        names = tuple(dict.fromkeys(kind for kind, _ in self.terms))
        matches = np.array(self.automaton.find_matches_as_indexes(_folded(tokens.data), overlapping=True), np.int64)
        which, starts, ends = matches.reshape(-1, 3).T
        documents = np.searchsorted(tokens.documents, starts, side="right")
        first, behind = tokens.documents[documents - 1], tokens.documents[documents]
        kept = [
            end <= last
            and not (
                _is_word(tokens, max(before, start - 4), start, -1) or _is_word(tokens, end, min(last, end + 4), 0)
            )
            for start, end, before, last in zip(*(a.tolist() for a in (starts, ends, first, behind)), strict=True)
        ]
        kinds = np.array([names.index(self.terms[term][0]) for term in which.tolist()], np.int64)
        return Spans(starts[kept], ends[kept], kinds[kept], names)


def _is_word(tokens: Tokens, start: int, end: int, which: int) -> bool:
    """Say whether the first or the last character of these bytes belongs to the same word as what it touches."""
    text = tokens.data[start:end].tobytes().decode(errors="ignore")
    return bool(text) and text[which].isalnum() and ord(text[which]) < _NO_BLANKS
