"""Capitalised runs inside a sentence that hold an unknown or a rare word, of kind ``name``: by public counts only.

A run is of capitalised words, and initials, with blanks or a hyphen between them. Neither a word in capitals nor a
known word at the beginning of a sentence makes a run a name, though both can be part of one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import called, compiled
from corpusveil.spaces import Space
from corpusveil.text import classes
from corpusveil.text.characters import LETTER, UPPER
from corpusveil.text.sentences import sentence_ends
from corpusveil.text.spans import Spans
from corpusveil.text.tokens import Tokens
from corpusveil.text.utf8 import KINDS, decode, kind_of
from corpusveil.text.word_table import WordTable, find

VERSION = 1
"""Goes up whenever other spans would be found in the same text by the same space."""
RARE = 30.0
"""A word with fewer occurrences in a million public words is rare."""
_WORD, _PUNCTUATION = classes.WORD, classes.PUNCTUATION


@called
def _case(data: Any, start: int, end: int, kinds: Any) -> Any:
    """Return 0 for a word that is not capitalised, 1 for an initial or a word in capitals, 2 for another."""
    code, size = decode(data, start, end)
    if kind_of(code, kinds) != LETTER or kinds[code] & UPPER == 0:
        return 0
    at = start + size
    while at < end:
        code, size = decode(data, at, end)
        if kind_of(code, kinds) == LETTER and kinds[code] & UPPER == 0:
            return 2
        at += size
    return 1


@called
def _stem(data: Any, start: int, end: int) -> Any:
    """Return where the word ends before an apostrophe with one or two letters after it (*She'll*)."""
    for at in range(end - 1, max(start, end - 4), -1):
        if data[at] == 0x27:
            return np.int64(at)
        if data[at] == 0x99 and at - 2 > start and data[at - 1] == 0x80 and data[at - 2] == 0xE2:
            return np.int64(at - 2)
    return end


@compiled
def _runs(
    data: Any, starts: Any, ends: Any, token_classes: Any, ids: Any, token_offsets: Any, sentence_ends: Any, kinds: Any,
    rare: Any, words: Any, firsts: Any, lasts: Any,
) -> Any:  # fmt: skip
    """Write first and last token of each run that holds an unknown or a rare word, int64 [T]; return how many."""
    n = np.int64(0)
    for document in range(token_offsets.size - 1):
        behind = token_offsets[document + 1]
        first, last, begins = np.int64(-1), np.int64(-1), True
        is_name: Any = False
        for t in range(token_offsets[document], behind):
            start, end, kind = np.int64(starts[t]), np.int64(ends[t]), token_classes[t]
            case = _case(data, start, end, kinds) if kind == _WORD else 0
            if case > 0:
                first, last, word = np.int64(t) if first < 0 else first, np.int64(t), np.int64(ids[t])
                if word < 0 and case == 2:
                    word = find(data, start, _stem(data, start, end), *words)
                is_name |= case == 2 and (word < 0 or (rare[word] and not begins))
            joins = kind == _PUNCTUATION and last == t - 1 and ends[last] == start
            joins = joins and (data[start] == 0x2D or (data[start] == 0x2E and ends[last] - starts[last] == 1))
            begins = sentence_ends[t] or (begins and kind == _PUNCTUATION)
            if first >= 0 and ((case == 0 and not joins) or sentence_ends[t] or t == behind - 1):
                if is_name:
                    firsts[n], lasts[n] = first, last
                    n += 1
                first, is_name = np.int64(-1), False
    return n


@dataclass(frozen=True, slots=True)
class Names:
    """Finds such runs by the vocabulary and the public counts of a space; without counts only unknown words count."""

    space: Space
    rare: npt.NDArray[np.bool_] = field(init=False, repr=False, compare=False)
    table: WordTable = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        counts = np.full(len(self.space), np.inf) if self.space.counts is None else self.space.counts
        object.__setattr__(self, "rare", counts * 1e6 < RARE * counts.sum())
        vocabulary = self.space.vocabulary
        object.__setattr__(self, "table", WordTable.build(vocabulary.text, vocabulary.offsets))

    def __reduce__(self) -> tuple[type[Names], tuple[Space]]:
        return Names, (self.space,)

    def __call__(self, tokens: Tokens) -> Spans:
        firsts, lasts = (np.empty(len(tokens), np.int64) for _ in range(2))
        table = self.table
        n = _runs(
            tokens.data, tokens.starts, tokens.ends, tokens.classes, tokens.ids, tokens.offsets, sentence_ends(tokens),
            KINDS, self.rare, (table.slots, table.heads, table.keys, table.offsets), firsts, lasts,
        )  # fmt: skip
        starts, ends = tokens.starts[firsts[:n]].astype(np.int64), tokens.ends[lasts[:n]].astype(np.int64)
        return Spans(starts, ends, np.zeros(n, np.int64), ("name",))
