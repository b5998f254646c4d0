"""The loops that say what each word can be for the recognizer of names: its bits, its case, where a name can begin."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from corpusveil.compiled import called, compiled
from corpusveil.text import classes
from corpusveil.text.characters import LETTER, UPPER
from corpusveil.text.tokenizer_loop import TokenArrays
from corpusveil.text.utf8 import Characters, decode, kind_of, lower_into
from corpusveil.text.word_table import find
from corpusveil_spans.cues import ADDRESS, AND, CLOSING, FAMILY, GIVEN, LABEL, LEADS, NEVER, OTHER, PLAIN, TITLE

_WORD = classes.WORD


class Listed(NamedTuple):
    """The bits, uint32, of words in three tables: the vocabulary, the lists of names, and the cues."""

    known: Any
    words: Any
    listed: Any
    lists: Any
    cue_bits: Any
    cues: Any


@called
def _case(data: Any, start: int, end: int, kinds: Any) -> Any:
    """Return 0 for a word that is not capitalized, 1 for an initial or a word in capitals, 2 for another.

    A word with a capital after four and more characters (*YouTube*, not *McCoy*) is no such word.
    """
    code, size = decode(data, start, end)
    if kind_of(code, kinds) != LETTER or kinds[code] & UPPER == 0:
        return 0
    at: Any = start + size
    case, letters = 1, 1
    while at < end:
        code, size = decode(data, at, end)
        is_upper = kind_of(code, kinds) == LETTER and kinds[code] & UPPER != 0
        if kind_of(code, kinds) == LETTER and not is_upper:
            case = 2
        elif is_upper and case == 2 and letters >= 4 and data[at - 1] != 0x27 and data[at - 1] != 0x99:
            return 0
        at += size
        letters += 1
    return case


@called
def stem(data: Any, start: int, end: int) -> Any:
    """Return where the word ends before an apostrophe with one or two letters after it (*She'll*)."""
    for at in range(end - 1, max(start, end - 4), -1):
        if data[at] == 0x27:
            return np.int64(at)
        if data[at] == 0x99 and at - 2 > start and data[at - 1] == 0x80 and data[at - 2] == 0xE2:
            return np.int64(at - 2)
    return end


@called
def _unknown_bits(
    data: Any, start: int, end: int, case: int, characters: Characters, tables: Listed, scratch: Any
) -> Any:
    """Return the bits of a word that is not in the vocabulary, or of the one before its apostrophe."""
    text: Any = data
    first: Any = start
    last: Any = end
    if case == 1 or data[start] >= 0x80:
        text, first, last = scratch, np.int64(0), lower_into(
            data, start, end, scratch, np.int64(0), characters.lower, characters.kinds
        )  # fmt: skip
    place = find(text, first, last, *tables.lists)
    whole = stem(text, first, last)
    if place < 0 and whole < last:
        word = find(text, first, whole, *tables.words)
        if word >= 0:
            return tables.known[word]
        place = find(text, first, whole, *tables.lists)
    return tables.listed[place] if place >= 0 else np.uint32(0)


@compiled
def look_up(
    tokens: TokenArrays, characters: Characters, tables: Listed, scratch: Any, bits: Any, cases: Any, picked: Any
) -> Any:
    """Write the bits and the case of each word, 0 for other tokens, and where a name can begin; return how many.

    A word in small letters that is not in the vocabulary has its bits only if it is a cue, or right after one.
    """
    data, starts, ends = tokens.data, tokens.starts, tokens.ends
    n, stop, document = np.int64(0), np.int64(0), np.int64(0)
    before = np.uint32(0)  # the bits of the last word of this document
    for t in range(starts.size):
        bit, case = np.uint32(0), 0
        while t >= stop:
            document += 1
            stop, before = tokens.offsets[document], np.uint32(0)
        if tokens.classes[t] == _WORD:
            start, word = np.int64(starts[t]), np.int64(tokens.ids[t])
            byte = data[start]
            if 0x41 <= byte <= 0x5A and word >= 0 and start + 1 < ends[t] and 0x61 <= data[start + 1] <= 0x7A:
                case = 2  # as nearly every capitalized word
            elif byte < 0x61 or byte > 0x7A:
                case = _case(data, start, np.int64(ends[t]), characters.kinds)
            if word >= 0:
                bit = tables.known[word]
            elif case or before & LEADS:
                bit = _unknown_bits(data, start, np.int64(ends[t]), case, characters, tables, scratch)
            else:
                place = find(data, start, np.int64(ends[t]), *tables.cues)
                bit = tables.cue_bits[place] if place >= 0 else bit
            is_initial = case == 1 and ends[t] - start == 1 and t + 1 < stop and data[ends[t]] == 0x2E
            if is_initial and before & (CLOSING | LABEL):
                bit = np.uint32(0)  # the initial of a signature, such as A. or I.
            picked[n] = t
            named, usual = bit & (GIVEN | FAMILY), bit & (PLAIN | OTHER)
            is_small = usual == 0 and (bit & GIVEN != 0 or (named != 0 and before & LEADS != 0))
            is_small |= before & TITLE != 0 and (named != 0 or before & ADDRESS != 0) and bit & (AND | TITLE) == 0
            is_small |= word < 0 and t + 1 < stop and data[starts[t + 1]] in (0x3A, 0x3E)  # nick: or <nick>
            n += (case > 0 or is_small) and bit & NEVER == 0
            before = bit
        bits[t], cases[t] = bit, case
    return n


@compiled
def add_bits(words: Any, offsets: Any, listed: Any, lists: Any, bits: Any) -> None:
    """Add the bits of listed words to the bits of a vocabulary; *Michael's* has the bits of *Michael*."""
    for word in range(offsets.size - 1):
        place = find(words, offsets[word], offsets[word + 1], *lists)
        if place < 0:
            place = find(words, offsets[word], stem(words, offsets[word], offsets[word + 1]), *lists)
        if place >= 0:
            bits[word] |= listed[place]
