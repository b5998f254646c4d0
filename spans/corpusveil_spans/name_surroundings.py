"""The loops that say what stands around a word, by which it is a name: lines, cues before it, days and speakers."""

from __future__ import annotations

from typing import Any

import numpy as np

from corpusveil.compiled import called
from corpusveil.text import classes
from corpusveil_spans.cues import (
    ADDRESS,
    AFTER,
    AND,
    CLOSING,
    DATE,
    FAMILY,
    FIELD,
    GIVEN,
    GREETING,
    INTRODUCTION,
    IS,
    KNOWN,
    LABEL,
    OTHER,
    PARTICLE,
    PLAIN,
    RARELY,
    SUBJECT,
    TITLE,
    WHEN,
)

_WORD, _NUMBER, _PUNCTUATION = classes.WORD, classes.NUMBER, classes.PUNCTUATION

# What was seen before a run:
NOTHING, GREETED, CLOSED, TOLD, HEADER, TITLED, ALONE, LAST = range(8)
_SAID = CLOSING | TITLE | INTRODUCTION | IS | GREETING | AND
"""Of the words right before a run, without a mark between."""


@called
def breaks(data: Any, start: int, end: int) -> Any:
    """Say whether a line breaks in white space."""
    for at in range(start, end):
        byte = data[at]
        if 0x0A <= byte <= 0x0D or (byte == 0x85 and data[at - 1] == 0xC2):
            return True
        if (byte == 0xA8 or byte == 0xA9) and data[at - 1] == 0x80 and data[at - 2] == 0xE2:  # U+2028, U+2029
            return True
    return False


@called
def ends_run(data: Any, start: int, end: int) -> Any:
    """Say whether a line or a column ends in white space."""
    for at in range(start, end):
        if data[at] == 0x09:
            return True
    return breaks(data, start, end)


@called
def begins_here(data: Any, starts: Any, ends: Any, token_classes: Any, bits: Any, t: int, begin: int) -> Any:
    """Say whether a sentence, a quotation or a line begins at a token."""
    if t == begin or breaks(data, ends[t - 1], starts[t]):
        return True
    if token_classes[t - 1] != _PUNCTUATION:
        return False
    byte = data[starts[t - 1]]
    if byte == 0x2E and t - 2 >= begin and ends[t - 2] == starts[t - 1]:
        return ends[t - 2] - starts[t - 2] > 1 and bits[t - 2] & TITLE == 0
    if byte in (0x2E, 0x21, 0x3F, 0x22, 0x28, 0x3A, 0xE2, 0x2A, 0x5D):
        return True
    return t - 1 == begin or breaks(data, ends[t - 2], starts[t - 1])  # after the mark of a quoted line or of an item


@called
def fills_line(data: Any, starts: Any, ends: Any, token_classes: Any, cases: Any, t: int, stop: int) -> Any:
    """Return if a token and what follows are a line of at most three capitalized words: the last, or with a comma."""
    at, words = t, 0
    while at < stop and (at == t or not breaks(data, ends[at - 1], starts[at])):
        byte = data[starts[at]]
        if token_classes[at] == _WORD:
            if cases[at] == 0:
                return NOTHING
            words += 1
        elif byte in (0x28, 0x7C):  # Ann Lee (Mrs), Ann Lee | Director
            return ALONE if words <= 3 else NOTHING
        elif byte == 0x2C and words <= 3 and at + 1 < stop and breaks(data, ends[at], starts[at + 1]):
            return LAST
        elif byte not in (0x2E, 0x2D):
            return NOTHING
        at += 1
    if words > 3:
        return NOTHING
    return LAST if at == stop or data[starts[at]] == 0x2D else ALONE


@called
def head_of(data: Any, starts: Any, ends: Any, bits: Any, t: int, begin: int) -> Any:
    """Return the first particle right before a word (*van* in *van 't Hof*), or the word."""
    head = t
    while head > begin and not ends_run(data, ends[head - 1], starts[head]):
        mark = head - 2 >= begin and data[starts[head - 1]] == 0x27
        if bits[head - 1 - mark] & PARTICLE == 0:
            break
        head -= 1 + mark
    return np.int64(head)


@called
def _in_field(data: Any, starts: Any, ends: Any, bits: Any, t: int, begin: int) -> Any:
    """Say whether a word is the value of a field for names: *"last": "Lee"*, *surname=Lee*, *<lastName>Lee*."""
    at = t - 1
    if at - 1 < begin or starts[t] > ends[at]:
        return False
    at -= data[starts[at]] in (0x22, 0x27)
    if at - 1 < begin or data[starts[at]] not in (0x3A, 0x3D, 0x3E):
        return False
    at -= 1
    at -= at > begin and data[starts[at]] in (0x22, 0x27)
    at -= 2 * (at - 2 >= begin and data[starts[at - 1]] == 0x5F)  # last_name
    return bits[at] & FIELD != 0


@called
def cue_of(
    data: Any, starts: Any, ends: Any, token_classes: Any, bits: Any, cases: Any, t: int, head: int, begin: int
) -> Any:
    """Return what was said right before a word, and before its particles, which begin at ``head``."""
    at = head - 1
    if at < begin:
        return NOTHING
    if bits[at] & _SAID == 0 and token_classes[at] == _WORD and starts[head] - ends[at] == 1 and data[ends[at]] == 0x20:
        return NOTHING  # as most
    if _in_field(data, starts, ends, bits, head, begin):
        return HEADER
    is_line = breaks(data, ends[at], starts[head])
    while at > begin and data[starts[at]] == 0x3E and token_classes[at] == _PUNCTUATION:  # quoted
        is_line |= breaks(data, ends[at - 1], starts[at])
        at -= 1
    marked, byte = token_classes[at] == _PUNCTUATION, data[starts[at]]
    at -= marked and at > begin
    bit = bits[at]
    if is_line:  # after a closing, or a line that begins with one
        for _ in range(12):
            if bit & CLOSING or at == begin or breaks(data, ends[at - 1], starts[at]):
                break
            at -= 1
            is_first = at == begin or breaks(data, ends[at - 1], starts[at]) or data[starts[at - 1]] == 0x3E
            bit = bits[at] if is_first else np.uint32(0)
        return CLOSED if bit & CLOSING else NOTHING
    if marked and byte == 0x3A:
        if data[starts[at]] == 0x29 and at > begin:  # Received by (name):
            bit = bits[at - 1]
        if bit & LABEL:
            return HEADER
    if marked and byte == 0x2D and (at == head - 1 or breaks(data, ends[at], starts[head - 1])):
        return CLOSED  # a dash begins the line
    listed, usual = bits[t] & (GIVEN | FAMILY) != 0, bits[t] & (PLAIN | OTHER) != 0
    is_title: Any = at - 2 >= begin and bits[at - 2] & TITLE != 0  # Sig.ra
    usual |= cases[t] == 0 and bits[t] & AFTER != 0
    if bit & ADDRESS and not (usual and bits[t] & AFTER):  # dr smith, not dr visit
        is_title |= (
            cases[t] > 0 or listed or (bits[t] & (KNOWN | RARELY) != KNOWN and cases[at] != 1)
        )  # not MS sufferers
    else:  # the judge jackson, not the doctor will
        is_title |= (cases[at] > 0 and cases[t] > 0) or (listed and not usual)
    if bit & TITLE and is_title and (not marked or byte == 0x2E):
        return TITLED
    tells = bit & INTRODUCTION or (bit & IS and at > begin and bits[at - 1] & SUBJECT)
    if tells and (not marked or byte == 0x3A):
        return TOLD
    if bit & GREETING and (
        begins_here(data, starts, ends, token_classes, bits, at, begin) or data[starts[at - 1]] == 0x2C
    ):  # dear Ann, dear Bob
        return GREETED
    if bit & CLOSING and (marked or begins_here(data, starts, ends, token_classes, bits, at, begin)):
        return CLOSED
    if not marked and bit & CLOSING and at > begin and bits[at - 1] & CLOSING:
        return CLOSED
    joins: Any = (not marked and bit & AND != 0) or (marked and byte == 0x26)
    if joins or (marked and byte in (0x2C, 0x2F)):  # From: Sarah Lee, Bob Stone; Hi Ann and Bob
        for _ in range(12):
            if at <= begin or breaks(data, ends[at - 1], starts[at]):
                break
            at -= 1
            if data[starts[at]] == 0x3A and at > begin:
                return HEADER if bits[at - 1] & LABEL else NOTHING
            if joins and bits[at] & IS and at > begin and bits[at - 1] & SUBJECT:
                return GREETED
            if joins and bits[at] & GREETING and begins_here(data, starts, ends, token_classes, bits, at, begin):
                return GREETED
            joins &= cases[at] > 0 or bits[at] & (TITLE | AND) != 0 or token_classes[at] == _PUNCTUATION
    return NOTHING


@called
def is_date(token_classes: Any, bits: Any, t: int, begin: int, stop: int) -> Any:
    """Say whether a number, another day or month, or a word such as *since* stands beside a day or month."""
    for at in range(max(begin, t - 2), min(stop, t + 3)):
        if at != t and (token_classes[at] == _NUMBER or bits[at] & DATE):
            return True
    return t > begin and bits[t - 1] & WHEN != 0


@called
def speaker_at(
    data: Any, starts: Any, ends: Any, token_classes: Any, bits: Any, t: Any, last: int, begin: int, stop: int
) -> Any:
    """Return 1 if what begins a line stands as who speaks in a chat does, 2 if also a time or brackets say so, else 0.

    *Ann: hi*, *> Ann: hi*, ***Ann**: hi*, *[10:12] Ann: hi*, *10:12 - ~ Ann Lee: hi*, *10:12 From Ann to Everyone*,
    *<Ann> hi*, and *Ann 10:12*, *Ann — Today at 10:12* or *Ann (2024-03-12 10:12): hi* of a line.
    """
    behind = last + 1
    while behind < stop and data[starts[behind]] in (0x2A, 0x5D) and starts[behind] == ends[behind - 1]:
        behind += 1
    sent: Any = t > begin and behind < stop and bits[t - 1] & bits[behind] & LABEL != 0 and data[starts[t - 1]] < 0x60
    t -= sent
    while t > begin and (data[starts[t - 1]] == 0x7E or (behind > last + 1 and data[starts[t - 1]] in (0x2A, 0x5B))):
        t -= 1
    t -= t > begin and data[starts[t - 1]] == 0x3E and (t - 1 == begin or breaks(data, ends[t - 2], starts[t - 1]))
    before = data[starts[t - 1]] if t > begin and token_classes[t - 1] == _PUNCTUATION else 0
    is_line: Any = t == begin or breaks(data, ends[t - 1], starts[t])
    at = t - 2 if (before == 0x2D and starts[t] > ends[t - 1]) or before == 0x3C else t - 1
    is_time = at - 1 > begin and token_classes[at] == _NUMBER and data[ends[at - 1] - 1] == 0x3A
    timed = before == 0x5D or (is_time and starts[at] == ends[at - 1])
    clock = at - (at > begin and data[starts[at]] == 0x2E)  # am, PM, p. m.
    is_half = clock > begin and ends[clock] - starts[clock] <= 2 and data[ends[clock] - 1] | 0x20 == 0x6D
    timed |= before != 0x3C and is_half
    if behind >= stop or breaks(data, ends[behind - 1], starts[behind]) or sent:
        return 2 * (sent and timed)
    mark = data[starts[behind]]
    if mark == 0x3E:
        at = t - 2 - (before != 0x3C)  # <v Ann>
        is_glued = before == 0x3C and (behind + 1 >= stop or starts[behind + 1] == ends[behind])
        if at + 1 < begin or data[starts[at + 1]] != 0x3C or is_glued:
            return 0
        return 2 * (at < begin or breaks(data, ends[at], starts[at + 1]) or data[starts[at]] == 0x5D or timed)
    is_apart = behind + 1 == stop or starts[behind + 1] > ends[behind]
    if mark == 0x3A and starts[behind] == ends[behind - 1] and is_apart:
        is_value = behind + 1 < stop and token_classes[behind + 1] == _NUMBER  # Phone: 123
        return 2 if timed else 1 if is_line and not is_value else 0
    timed, at = False, behind  # the rest of the line is a time
    while is_line and at < stop and not breaks(data, ends[at - 1], starts[at]):
        is_time = token_classes[at] == _NUMBER and at + 1 < stop and data[starts[at + 1]] == 0x3A
        if token_classes[at] == _WORD and bits[at] & DATE == 0 and ends[at] - starts[at] > 2:
            return 2 * (timed and data[starts[at - 1]] == 0x3A)
        timed |= is_time
        at += 1
    return 2 * timed
