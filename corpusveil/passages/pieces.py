"""Pieces of texts: sentences, paragraphs, or whole texts, as runs of tokens.

A *paragraph* ends at a blank line. A *sentence* ends as ``text/sentences.py`` says, at the end of its paragraph, and at
a line break that does not merely wrap it. A break wraps a sentence if both lines are as deep in a quotation (``>``),
the first is no heading or row of a table (``# |``), the second begins neither with a blank nor as an item or heading
does (``- * + # | • –``, or digits or a letter and a bracket, or digits and a full stop), and

* the second begins with a small letter a to z, or
* the first has 45 bytes or more.

So mail that was wrapped at 72 columns is read as it was meant, in quotations, too; and lists, headings, tables and
indented code are a piece a line. Each
sentence or paragraph has at least one token, so a text of blanks has none; a whole text is always one piece.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from corpusveil.arrays import Int32, Int64
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
    bounds = np.append(0, np.flatnonzero(ends) + 1)
    return Pieces(tokens, np.searchsorted(bounds, tokens.offsets), bounds)


@compiled
def _soften(data: Any, documents: Any, out: Any) -> None:
    """Write a blank for each line break that wraps a sentence, and for the marks of the quotation that goes on."""
    for document in range(documents.size - 1):
        stop = documents[document + 1]
        line = documents[document]
        text, depth = _quoted(data, line, stop)
        for at in range(documents[document], stop):
            if data[at] != 0x0A:
                continue
            following, deeper = _quoted(data, at + 1, stop)
            end = at - 1 if at > line and data[at - 1] == 0x0D else at
            headed = text < end and (data[text] == 0x23 or data[text] == 0x7C)
            wraps = (
                end > text
                and following < stop
                and deeper == depth
                and not headed
                and not _begins(data, following, stop)
            )
            if wraps and (0x61 <= data[following] <= 0x7A or end - line >= LONG):
                out[end:following] = 0x20
            line, text, depth = at + 1, following, deeper


@compiled
def _quoted(data: Any, at: Any, stop: Any) -> Any:
    """Return where the text of a line begins after its marks of quotation, and the number of these."""
    text, depth = at, 0
    while text < stop and (data[text] == 0x3E or (data[text] == 0x20 and depth > 0)):
        depth += data[text] == 0x3E
        text += 1
    return text, depth


@compiled
def _begins(data: Any, at: Any, stop: Any) -> Any:
    """Say whether a line is empty or begins with a blank, or as an item or a heading does."""
    code = data[at]
    after = at + 1 if code == 0x28 else at  # of an open bracket
    mark = after
    while mark < stop and 0x30 <= data[mark] <= 0x39:
        mark += 1
    if mark == after and mark < stop and 0x61 <= data[mark] | 0x20 <= 0x7A:
        mark += 1
    item = mark > after and mark < stop and (data[mark] == 0x29 or (data[mark] == 0x2E and code <= 0x39))
    sign = code == 0xE2 and at + 2 < stop and not (data[at + 1] == 0x80 and 0x98 <= data[at + 2] <= 0x9F)  # no quote
    return item or sign or code in (0x09, 0x0A, 0x0D, 0x20, 0x23, 0x2A, 0x2B, 0x2D, 0x7C)


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
