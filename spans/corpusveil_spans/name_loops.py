"""The loops of the recognizer of names: where a name begins and ends, and parts of it again."""

from __future__ import annotations

from typing import Any

import numpy as np

from corpusveil.compiled import called, compiled
from corpusveil.text import classes
from corpusveil_spans.cues import (
    AFTER,
    AT,
    BEFORE,
    CLOSING,
    COMMON,
    DATE,
    EPONYM,
    FAMILY,
    FIRM,
    GIVEN,
    GREETING,
    HEAD,
    INTRODUCTION,
    IS,
    KNOWN,
    LABEL,
    NEVER,
    NOBLE,
    OTHER,
    PARTICLE,
    PLAIN,
    RARELY,
    SEEN,
    SITE,
    SUBJECT,
    SUFFIX,
    TITLE,
)
from corpusveil_spans.name_bits import stem
from corpusveil_spans.name_surroundings import (
    ALONE,
    CLOSED,
    GREETED,
    HEADER,
    LAST,
    NOTHING,
    TITLED,
    TOLD,
    begins_here,
    breaks,
    cue_of,
    ends_run,
    fills_line,
    head_of,
    is_date,
    speaker_at,
)

_WORD, _NUMBER, _PUNCTUATION = classes.WORD, classes.NUMBER, classes.PUNCTUATION

_MOST = 6
"""Parts of a name."""


@called
def _is_part(bit: int, case: int, size: int, cue: int, inside: Any) -> Any:
    """Say whether a word can be a part of a name: the first of a run, or one ``inside`` it."""
    is_listed, is_usual = bit & (GIVEN | FAMILY) != 0, bit & PLAIN != 0 or bit & (KNOWN | RARELY) == KNOWN
    if bit & NEVER or (bit & OTHER and not is_listed and cue == NOTHING):
        return False
    if case == 0:
        return (cue == TITLED and not inside) or (cue != NOTHING and is_listed and bit & PLAIN == 0)
    if case == 2:
        return is_listed or not is_usual or cue != NOTHING
    if size == 1 or (size == 2 and bit & (KNOWN | GIVEN | FAMILY) == 0 and inside):
        return True
    return is_listed or ((cue != NOTHING or inside) and not is_usual)


@called
def _next_part(
    data: Any, starts: Any, ends: Any, token_classes: Any, bits: Any, cases: Any, t: int, stop: int, cue: int,
) -> Any:  # fmt: skip
    """Return the next part of a run after token t; -1 if the run ends there."""
    at = t + 1
    if at < stop and token_classes[at] == _PUNCTUATION and ends[t] == starts[at]:
        touches = at + 1 < stop and ends[at] == starts[at + 1]
        is_initial = data[starts[at]] == 0x2E and ends[t] - starts[t] <= 2
        if not (is_initial or (data[starts[at]] == 0x2D and touches)):
            return np.int64(-1)
        at += 1
    free: Any = np.bool_(False)  # after a particle
    for _ in range(3):
        if at >= stop or token_classes[at] != _WORD or ends_run(data, ends[at - 1], starts[at]):
            return np.int64(-1)
        is_free = free and cases[at] == 2 and bits[at] & NEVER == 0 and bits[at] & (OTHER | FAMILY) != OTHER
        is_part = _is_part(bits[at], cases[at], ends[at] - starts[at], cue, np.bool_(True))
        if is_free or ((cases[at] or cue) and is_part):
            return np.int64(at)
        if bits[at] & PARTICLE == 0:
            return np.int64(-1)
        free |= bits[at] & NOBLE != 0
        at += 1
        at += at < stop and (data[starts[at]] == 0x27 or (data[starts[at]] == 0x2D and starts[at] == ends[at - 1]))
    return np.int64(-1)


@called
def _name_at(
    data: Any, starts: Any, ends: Any, token_classes: Any, bits: Any, cases: Any, t: int, begin: int, stop: int
) -> Any:
    """Return the last token of the name that begins at a word, -1 if none does."""
    bit, case = bits[t], cases[t]
    head = head_of(data, starts, ends, bits, t, begin)
    cue = cue_of(data, starts, ends, token_classes, bits, cases, t, head, begin)
    if case == 0 and cue == NOTHING:  # two names in small letters, or one that nothing else is called
        pair = bit & GIVEN and t + 1 < stop and bits[t + 1] & (FAMILY | PLAIN | OTHER) == FAMILY
        if pair and not breaks(data, ends[t], starts[t + 1]):
            return np.int64(t + 1)
        said = (bits[t - 1] if t > begin else np.uint32(0)) | (bits[t - 2] if t - 1 > begin else np.uint32(0))
        is_given, is_nick = bit & (GIVEN | PLAIN | OTHER) == GIVEN, bit & (KNOWN | PLAIN | OTHER) == 0
        speaks = speaker_at(data, starts, ends, token_classes, bits, t, t, begin, stop)
        is_said = (said & BEFORE and is_given) or (speaks == 1 and is_given) or (speaks > 1 and is_nick)
        return np.int64(t if is_said else -1)
    if case == 1 and ends[t] - starts[t] == 1:  # P.S.
        first = t if data[starts[t]] == 0x50 else t - 2
        if first >= begin and first + 2 < stop and data[starts[first]] == 0x50 and data[starts[first + 2]] == 0x53:
            return np.int64(-1)
    if cue == NOTHING and t > begin and breaks(data, ends[t - 1], starts[t]):
        cue = fills_line(data, starts, ends, token_classes, cases, t, stop)
    begins = begins_here(data, starts, ends, token_classes, bits, head, begin)
    noble = head < t and (bits[t - 1] | bits[head]) & NOBLE and case == 2 and (begins or cases[head - 1] == 0)  # de Wit
    noble &= bit & NEVER == 0 and bit & (OTHER | FAMILY) != OTHER
    if not noble and not _is_part(bit, case, ends[t] - starts[t], cue, np.bool_(False)):
        return np.int64(-1)
    if bit & (GREETING | CLOSING) and (begins or cue == CLOSED):
        return np.int64(-1)  # a cue itself, as the next
    if bit & (LABEL | TITLE | SUBJECT) and bit & GIVEN == 0 and (begins or bit & TITLE):
        return np.int64(-1)
    parts, strange, others, words, usuals, at, last = 0, 0, 0, 0, 0, np.int64(t), np.int64(t)
    is_name: Any = False
    given: Any = False
    listed: Any = False
    initial: Any = False
    while at >= 0 and parts < _MOST:
        bit, case, last = bits[at], cases[at], at
        within = not begins or at > t
        named, usual = bit & (GIVEN | FAMILY) != 0, bit & (PLAIN | OTHER) != 0
        is_strange = not usual and (named or (bit & SEEN == 0 and bit & (KNOWN | RARELY) != KNOWN))
        if case == 2:
            is_sure = bit & GIVEN != 0 or (bit & COMMON != 0 and (within or bit & SEEN != 0))  # not Ouch
            is_name |= is_sure and (not usual or (within and bit & OTHER == 0))
        elif case == 1 and ends[at] - starts[at] > 2:
            is_name |= bit & (GIVEN | PLAIN | OTHER) == GIVEN
        dotted = case == 1 and ends[at] - starts[at] == 1 and at + 1 < stop and data[starts[at + 1]] == 0x2E
        is_name |= (given or (initial and case == 2)) and case > 0 and (named or is_strange)
        is_name |= dotted and (given or strange > 0)  # Ann B.
        listed |= bit & GIVEN != 0 or (named and not usual)
        initial = dotted
        given = bit & GIVEN != 0 or (named and not usual)
        strange += is_strange and case == 2
        words += case == 2 and not named and not is_strange
        usuals += case > 0 and not named and usual
        others += bit & (GIVEN | PLAIN | OTHER) == OTHER
        parts += 1
        at = _next_part(data, starts, ends, token_classes, bits, cases, last, stop, cue)
    is_name |= noble or (head < t and bits[t] & (FAMILY | PLAIN | OTHER) == FAMILY)
    before = bits[head - 1] if not begins else np.uint32(0)
    ago = bits[head - 2] if not begins and head - 2 >= begin else np.uint32(0)
    marked = (last + 1 < stop and data[starts[last + 1]] == 0x5E) or (t > begin and data[starts[t - 1]] == 0x5E)
    is_name |= marked and words == usuals == 0 and (listed or strange > 0 or bit & FAMILY != 0)  # Lee^Ann
    behind = last + 1 + (last + 1 < stop and data[starts[last + 1]] == 0x2C and starts[last + 1] == ends[last])
    suffixed = behind < stop and bits[behind] & SUFFIX != 0
    suffixed &= behind < stop and bits[behind] & (DATE if cases[behind] else TITLE) == 0  # not Jun 3
    if suffixed and not ends_run(data, ends[behind - 1], starts[behind]):  # Ann Lee, Jr.
        last = np.int64(behind)
        is_name |= listed or strange > 0
    elif parts == 1 and behind == last + 2 and behind < stop and not breaks(data, ends[last], starts[behind]):
        dots = behind + 1 < stop and ends[behind] - starts[behind] == 1 and data[starts[behind + 1]] == 0x2E
        gives = bits[behind] & (GIVEN | OTHER) == GIVEN or dots
        is_name |= cases[behind] > 0 and gives and (strange > 0 or bit & FAMILY != 0)  # Lee, Ann or Lee, A.
    if cue == TITLED:
        return last
    follows = last + 1 < stop and token_classes[last + 1] == _WORD and not breaks(data, ends[last], starts[last + 1])
    after = bits[last + 1] if follows else np.uint32(0)
    is_subject = (before | ago) & BEFORE != 0 or after & AFTER != 0
    if parts == 1 and bit & DATE and cue < ALONE and is_date(token_classes, bits, t, begin, stop):
        return np.int64(-1)
    speaks = speaker_at(data, starts, ends, token_classes, bits, t, last, begin, stop)
    if speaks and (strange > 0 or (listed and speaks > 1)) and usuals == 0 and others < parts:
        return last
    if cue >= ALONE:
        alone = parts == 1 and bit & (PLAIN | OTHER) != 0
        is_name |= (listed and (cue == LAST or not alone)) or strange > 0
        is_name &= others < parts and bit & FIRM == 0 and words == 0  # not Caesar Salad
        is_name &= parts > 1 or bit & DATE == 0
    elif cue:
        two = head - 2
        is_called = two >= begin and ends[two] - starts[two] == 4 and data[starts[two]] | 0x20 == 0x6E  # my name is
        is_sure = cue in (CLOSED, HEADER) or (bit & FAMILY and (cue == GREETED or (is_called and not follows)))
        is_called |= parts > 1 or usuals == 0  # not this is Amazing
        is_name |= listed or strange > 0 or (is_called if cue == TOLD else not follows)
        is_name &= others < parts or is_sure  # not in "I am English"
    else:
        if begins and t > begin and strange:  # the last word
            is_name |= last + 1 == stop and parts <= 2
        if (strange or (listed and others == 0)) and not is_name:
            is_name = strange > 1 or is_subject or (strange > 0 and parts > 1 and words == usuals == 0)
        is_park = parts == 2 and bit & COMMON and bits[t] & (GIVEN | PLAIN | OTHER) == GIVEN
        is_place = (bits[t] & SITE and parts == 2) or (t > begin and bits[t - 1] & SITE and cases[t - 1] > 0)
        is_place |= follows and cases[last + 1] == 0 and after & HEAD and bit & EPONYM  # Parkinson's disease
        is_name &= not is_place or parts > 2
        is_name &= before & AT == 0 and (bit & FIRM == 0 or (before | ago) & BEFORE != 0 or is_park)
        is_firm = follows and cases[last + 1] == 2 and (after & FIRM or (parts == 1 and bit & GIVEN == 0))
        is_name &= not is_firm and (t == begin or data[starts[t - 1]] != 0x2D or ends[t - 1] < starts[t])
    return last if is_name and (parts > 1 or ends[t] - starts[t] > 1) else np.int64(-1)


@compiled
def runs(
    data: Any, starts: Any, ends: Any, token_classes: Any, bits: Any, cases: Any, token_offsets: Any, picked: Any,
    firsts: Any, lasts: Any,
) -> Any:  # fmt: skip
    """Write first and last token of each run that is a name, int64 [T]; return how many there are."""
    n, free, document = np.int64(0), np.int64(0), np.int64(0)
    for t in picked:
        if t < free:
            continue
        while token_offsets[document + 1] <= t:
            document += 1
        begin, stop = token_offsets[document], token_offsets[document + 1]
        last = _name_at(data, starts, ends, token_classes, bits, cases, np.int64(t), begin, stop)
        if last >= 0:
            firsts[n], lasts[n] = max(head_of(data, starts, ends, bits, np.int64(t), max(begin, free)), free), last
            n, free = n + 1, last + 1
    return n


@called
def _is_told(data: Any, starts: Any, bits: Any, t: int, begin: int) -> Any:
    """Say whether a cue stands right before a name, which is one whatever its words mean otherwise."""
    before = bits[t - 1] if t > begin else np.uint32(0)
    ago = bits[t - 2] if t - 1 > begin else np.uint32(0)
    is_label = t > begin and data[starts[t - 1]] == 0x3A and ago & LABEL != 0
    is_apart = t > begin and data[starts[t - 1]] in (0x2C, 0x2E)  # Dr. House; a nurse, Ann
    said = before | (ago if is_apart else np.uint32(0))
    is_said = said & (CLOSING | TITLE | INTRODUCTION | GREETING | BEFORE) != 0
    return is_label or is_said or (before & IS != 0 and ago & SUBJECT != 0)


@compiled
def again(
    data: Any, starts: Any, ends: Any, token_classes: Any, bits: Any, cases: Any, token_offsets: Any,
    firsts: Any, lasts: Any, parts: Any, more: Any,
) -> Any:  # fmt: skip
    """Write the words, int64 [T], that are a part of another name of their document; return how many there are.

    *Sharma*, where *Brijesh Sharma* was found. A word that means something else (*Park*) has to be the last of a name
    that a cue or a given name told.
    """
    n, run = np.int64(0), np.int64(0)
    for document in range(token_offsets.size - 1):
        begin, stop = token_offsets[document], token_offsets[document + 1]
        first, count = run, np.int64(0)
        while run < firsts.size and firsts[run] < stop:
            head, last = firsts[run], lasts[run]
            is_given = bits[head] & (GIVEN | PLAIN | OTHER) == GIVEN and head < last
            is_told = _is_told(data, starts, bits, head, begin)
            is_whole = is_told and head < last and bits[last] & (GIVEN | FAMILY) != 0  # Rajesh King
            for named in range(head, last + 1):
                bit, size = bits[named], ends[named] - starts[named]
                is_part = bit & (GIVEN | FAMILY) != 0 or bit & (KNOWN | RARELY) != KNOWN
                is_part |= is_whole and named == head
                is_cased = cases[named] == 2 or (cases[named] == 0 and bit & (PLAIN | OTHER | PARTICLE) == 0)
                if is_cased and is_part and bit & (NEVER | DATE) == 0 and size > 2:
                    is_last = named == last and bit & (GIVEN | FAMILY) != 0
                    is_sure = is_last and (is_told or (is_given and bit & FIRM == 0))
                    is_sure |= is_whole and named == head and bit & (GIVEN | PLAIN) != GIVEN | PLAIN  # not Will
                    parts[count % parts.size] = 4 * named + 2 * is_told + is_sure
                    count += 1
            run += 1
        free = first
        for t in range(begin, stop if count > 0 else begin):
            bit = bits[t]
            if (cases[t] == 0 and bit & (KNOWN | GIVEN) == KNOWN) or bit & NEVER or token_classes[t] != _WORD:
                continue  # as nearly all
            is_named, is_usual = bit & (GIVEN | FAMILY) != 0, bit & (PLAIN | OTHER) != 0
            if cases[t] != 2 and (is_usual or (bit & KNOWN and not is_named)):
                continue
            in_case = cases[t] == 2 or is_named
            while free < run and lasts[free] < t:
                free += 1
            if free < run and firsts[free] <= t:
                continue
            before = bits[t - 1] if t > begin else np.uint32(0)
            follows = t + 1 < stop and token_classes[t + 1] == _WORD and starts[t + 1] - ends[t] == 1
            is_other = before & AT != 0 or (follows and (cases[t + 1] > 0 or bits[t + 1] & FIRM != 0))  # House Bill
            is_other |= t > begin and data[starts[t - 1]] == 0x2D and ends[t - 1] == starts[t]
            unsure: Any = bit & (OTHER | FIRM) != 0 or cases[t] != 2
            unsure |= bit & PLAIN != 0 and begins_here(data, starts, ends, token_classes, bits, t, begin)
            if unsure and is_other and in_case:
                continue
            for part in parts[: min(count, parts.size)]:
                named, is_told, is_sure = part >> 2, part & 2 != 0, part & 1 != 0
                if cases[t] == 0 and cases[named] and bit & (KNOWN | RARELY) == KNOWN:
                    continue  # wolf, where Virginia Wolf was found
                is_meant = is_sure or not unsure or cases[t] == cases[named] == 0
                if (is_meant if in_case else is_told) and _is_same(
                    data, starts[named], ends[named], starts[t], ends[t]
                ):
                    more[n] = t
                    n += 1
                    break
    return n


@called
def _is_same(data: Any, first: Any, first_end: Any, second: Any, second_end: Any) -> Any:
    """Say whether two words are equal but for a possessive ending."""
    size = stem(data, np.int64(first), np.int64(first_end)) - first
    if (data[first] ^ data[second]) & 0xDF or stem(data, np.int64(second), np.int64(second_end)) - second != size:
        return False
    for at in range(1, size):
        if data[first + at] != data[second + at] and (data[first + at] ^ data[second + at]) != 0x20:
            return False
    return True
