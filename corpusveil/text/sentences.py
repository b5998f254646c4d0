"""Sentence ends on flat token arrays.

A token ends a sentence when it is the last of its document, when a line break follows it, or when it closes a run of
terminal punctuation (``. ! ? …`` and their like in other scripts) with any closing quotes and brackets after it, and a
blank follows (not needed after the full-width stops of East Asian scripts). A full stop does not count when it touches
an abbreviation (``Mr.``, ``vs.``) or a single letter other than *I* (``J. Smith``, ``e.g.``), nor when the next token
begins with a small letter.

The full stop of an abbreviation within a sentence does not separate words: *mr. kennedy* is two consecutive words
(``consecutive``).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import called, compiled
from corpusveil.text import classes, languages
from corpusveil.text.characters import LETTER, UPPER
from corpusveil.text.tokens import Tokens
from corpusveil.text.utf8 import KINDS, decode, kind_of
from corpusveil.text.word_table import WordTable, find

_ABBREVIATIONS = """
adm al apr approx aug ave blvd capt cf cmdr co col corp dec dept dr ed eds esp est et etc feb fig figs ft gen gov hon
inc jan jr lt ltd maj mr mrs ms mt nov oct op pp prof pvt rep rev sen sens sept sgt sr st supt univ vol vols vs
"""
_WORD, _PUNCTUATION = classes.WORD, classes.PUNCTUATION


@functools.cache
def _abbreviations(language: str | None) -> WordTable:
    return WordTable.of_words(f"{_ABBREVIATIONS} {languages.rule(language, 'abbreviations') or ''}".split())


@called
def _terminal(code: int) -> int:
    """Return 1 for punctuation that ends a sentence before a blank, 2 if no blank is needed, 0 otherwise."""
    if code in (0x2E, 0x21, 0x3F, 0x2026, 0x203C, 0x2047, 0x2048, 0x2049, 0x61F, 0x6D4, 0x964, 0x965):
        return 1
    return 2 if code in (0x3002, 0xFF01, 0xFF0E, 0xFF1F, 0xFF61) else 0


@called
def _closes(code: int) -> bool:
    return code in (0x22, 0x27, 0x29, 0x5D, 0x7D, 0xBB, 0x203A, 0x2019, 0x201D, 0x300D, 0x300F, 0xFF09)


@called
def _abbreviated(
    data: Any, starts: Any, ends: Any, kinds: Any, t: int, first: int, slots: Any, heads: Any, words: Any, offsets: Any
) -> Any:
    if t == first or ends[t - 1] != starts[t] or kinds[t - 1] != _WORD:
        return False
    start = np.int64(starts[t - 1])
    end = np.int64(ends[t - 1])
    _, length = decode(data, start, end)
    if start + length == end:
        return data[start] != 0x49
    return find(data, start, end, slots, heads, words, offsets) >= 0


@called
def _starts_small(data: Any, start: int, end: int, kinds: Any) -> Any:
    code, _ = decode(data, np.int64(start), np.int64(end))
    return kind_of(code, kinds) == LETTER and kinds[code] & UPPER == 0


@compiled
def _mark(
    data: Any, starts: Any, ends: Any, token_classes: Any, token_offsets: Any,
    kinds: Any, slots: Any, heads: Any, words: Any, offsets: Any, out: Any, silent: Any,
) -> None:  # fmt: skip
    for document in range(token_offsets.size - 1):
        first = token_offsets[document]
        last = token_offsets[document + 1]
        strength = 0  # of the terminal punctuation that the tokens up to here close
        for t in range(first, last):
            code = 0
            if token_classes[t] == _PUNCTUATION:
                code, _ = decode(data, np.int64(starts[t]), np.int64(ends[t]))
            touches = t > first and ends[t - 1] == starts[t]
            kind = _terminal(code)
            if kind > 0:
                stop = code == 0x2E and _abbreviated(
                    data, starts, ends, token_classes, t, first, slots, heads, words, offsets
                )
                silent[t] = stop
                strength = 0 if stop else max(kind, strength if touches else 0)
            elif not (strength > 0 and touches and _closes(code)):
                strength = 0
            if t == last - 1:
                out[t] = True
                continue
            gap = starts[t + 1] - ends[t]
            for k in range(ends[t], starts[t + 1]):
                if data[k] == 0x0A or data[k] == 0x0D:
                    out[t] = True
            if (
                gap > 0
                and strength > 0
                and not (code == 0x2E and _starts_small(data, starts[t + 1], ends[t + 1], kinds))
            ):
                out[t] = True
            elif strength == 2 and gap == 0:
                following, _ = decode(data, np.int64(starts[t + 1]), np.int64(ends[t + 1]))
                if not _closes(following) and _terminal(following) == 0:
                    out[t] = True
            if out[t]:
                strength = 0


def sentence_ends(tokens: Tokens) -> npt.NDArray[np.bool_]:
    """Say for each token whether it is the last of its sentence; bool [T]."""
    return ends_and_stops(tokens)[0]


def ends_and_stops(tokens: Tokens) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Say for each token whether it ends its sentence, and whether it is an abbreviation's full stop that does not."""
    out, silent = np.zeros(len(tokens), dtype=np.bool_), np.zeros(len(tokens), dtype=np.bool_)
    _mark(
        tokens.data, tokens.starts, tokens.ends, tokens.classes, tokens.offsets,
        KINDS, *_abbreviations(tokens.language).arrays, out, silent,
    )  # fmt: skip
    return out, silent & ~out


def ends_and_crossed(tokens: Tokens) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Say which tokens end a sentence, and which marks n-grams cross; bool [T] each.

    They cross the full stops of abbreviations within a sentence, and the hyphens that split words: *x-ray* is the
    bigram that *x ray* is.
    """
    last, crossed = ends_and_stops(tokens)
    starts, ends, word = tokens.starts, tokens.ends, tokens.classes == _WORD
    at = np.flatnonzero((tokens.classes[1:-1] == _PUNCTUATION) & word[:-2] & word[2:]) + 1
    at = at[(ends[at - 1] == starts[at]) & (ends[at] == starts[at] + 1) & (starts[at + 1] == ends[at])]
    crossed[at[tokens.data[starts[at]] == ord("-")]] = True
    return last, crossed


def consecutive(tokens: Tokens) -> tuple[Tokens, npt.NDArray[np.bool_]]:
    """Return tokens without the marks that n-grams cross, and which of these end a sentence."""
    ends, crossed = ends_and_crossed(tokens)
    return (tokens.only(~crossed), ends[~crossed]) if crossed.any() else (tokens, ends)
