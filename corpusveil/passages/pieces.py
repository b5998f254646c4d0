"""Pieces of texts: sentences, paragraphs, or whole texts, as runs of tokens.

A *paragraph* ends at a blank line. A *sentence* ends as ``text/sentences.py`` says, at the end of its paragraph, and at
a line break that does not merely wrap it. A break wraps a sentence if the next line begins neither with a blank nor as
an item, a quotation or a heading does (``- * > # | •``, or digits and a full stop or bracket), and

* the next line begins with a small letter a to z, or
* the line before it has 45 bytes or more.

So mail that was wrapped at 72 columns is read as it was meant, and lists, code and headings are a piece a line. Each
sentence or paragraph has at least one token, so a text of blanks has none; a whole text is always one piece.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from corpusveil.arrays import Bool, Int32, Int64
from corpusveil.compiled import compiled
from corpusveil.text.sentences import sentence_ends
from corpusveil.text.tokens import Tokenizer, Tokens

VERSION = 1
"""Goes up whenever the same text would have other pieces."""
Per = Literal["document", "paragraph", "sentence"]
PERS: tuple[Per, ...] = get_args(Per)
LONG = 45
"""Bytes of a line that is long enough to have been wrapped."""
_MARKS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Pieces:
    """P pieces of D texts: ``offsets`` int64 [D + 1] bounds those of a text, ``bounds`` int64 [P + 1] their tokens.

    ``tokens`` are those of the texts, with line breaks that wrap sentences replaced by blanks.
    """

    tokens: Tokens
    offsets: Int64
    bounds: Int64

    def __len__(self) -> int:
        return self.bounds.size - 1

    @property
    def documents(self) -> Int32:
        """The text of each piece; int32 [P]."""
        return np.repeat(np.arange(self.offsets.size - 1, dtype=np.int32), np.diff(self.offsets))

    @property
    def positions(self) -> Int32:
        """The number of each piece in its text, from 0; int32 [P]."""
        return np.arange(len(self), dtype=np.int32) - self.offsets[self.documents].astype(np.int32)

    def text(self, piece: int) -> str:
        """Return the bytes from the first to the last token of a piece, in the texts as they were read."""
        first, last = self.bounds[piece], self.bounds[piece + 1] - 1
        if last < first:
            return ""
        return self.tokens.data[self.tokens.starts[first] : self.tokens.ends[last]].tobytes().decode("utf-8", "replace")


def normalized(text: str) -> str:
    """Return a piece's letters and digits, case folded, with single blanks: equal pieces are equal in this form."""
    return _MARKS.sub(" ", text.casefold()).strip()


def pieces_of(tokenizer: Tokenizer, data: Any, documents: Int64, per: Per, most: int | None = None) -> Pieces:
    """Return the pieces of the texts ``data[documents[d]:documents[d + 1]]``, uint8 and int64 [D + 1].

    Of a text with more than ``most`` pieces, all that follows the others is the last one.
    """
    if per == "sentence":
        softened = data.copy()
        _soften(data, documents, softened)
        data = softened
    tokens = tokenizer.tokens(data, documents)
    if per == "document":
        return Pieces(tokens, np.arange(documents.size, dtype=np.int64), tokens.offsets)
    ends = np.zeros(len(tokens), np.bool_)
    _paragraph_ends(tokens.data, tokens.starts, tokens.ends, tokens.offsets, ends)
    if per == "sentence":
        ends |= sentence_ends(tokens)
    if most is not None:
        _at_most(ends, tokens.offsets, most)
    return _runs(tokens, ends)


def _runs(tokens: Tokens, ends: Bool) -> Pieces:
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(ends, dtype=np.int64)])
    bounds = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(ends) + 1])
    return Pieces(replace(tokens), before[tokens.offsets], bounds)


@compiled
def _soften(data: Any, documents: Any, out: Any) -> None:
    """Write a blank for each line break that wraps a sentence."""
    for document in range(documents.size - 1):
        stop = documents[document + 1]
        line = documents[document]  # where the line begins
        for at in range(documents[document], stop):
            if data[at] != 0x0A:
                continue
            following = at + 1
            end = at - 1 if at > line and data[at - 1] == 0x0D else at
            wraps = end > line and following < stop
            if wraps:
                code = data[following]
                digits = following
                while digits < stop and 0x30 <= data[digits] <= 0x39:
                    digits += 1
                numbered = digits > following and digits < stop and (data[digits] == 0x2E or data[digits] == 0x29)
                bullet = (
                    code == 0xE2
                    and following + 2 < stop
                    and data[following + 1] == 0x80
                    and data[following + 2] == 0xA2
                )
                marked = (
                    code == 0x2D or code == 0x2A or code == 0x3E or code == 0x23 or code == 0x7C or bullet or numbered
                )
                blank = code == 0x20 or code == 0x09 or code == 0x0A or code == 0x0D
                wraps = not (marked or blank) and (0x61 <= code <= 0x7A or end - line >= LONG)
            if wraps:
                out[at] = 0x20
                if end < at:
                    out[end] = 0x20
            line = following


@compiled
def _paragraph_ends(data: Any, starts: Any, stops: Any, offsets: Any, out: Any) -> None:
    """Mark the tokens that a blank line follows, and the last one of each text."""
    for document in range(offsets.size - 1):
        for t in range(offsets[document], offsets[document + 1]):
            if t == offsets[document + 1] - 1:
                out[t] = True
                continue
            breaks = 0
            for k in range(stops[t], starts[t + 1]):
                breaks += data[k] == 0x0A
            out[t] = breaks > 1


@compiled
def _at_most(ends: Any, offsets: Any, most: Any) -> None:
    """Join all pieces of a text from number ``most`` on."""
    for document in range(offsets.size - 1):
        seen = 0
        for t in range(offsets[document], offsets[document + 1] - 1):
            if ends[t]:
                seen += 1
                ends[t] = seen < most
