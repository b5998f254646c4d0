"""The loops of the built-in rules: they list the few places of a text that could be a number or a contact."""

from __future__ import annotations

from typing import Any

import numpy as np

from corpusveil.compiled import called, compiled, u
from corpusveil.text import classes
from corpusveil.text.word_table import find

_KINDS: Any = np.arange(7)  # of one type for the loops, not of seven literals
IBAN, CARD, ID, IP, PHONE, BIRTH, CONTACT = _KINDS
_WORD, _NUMBER, _PUNCTUATION, _ADDRESS = classes.WORD, classes.NUMBER, classes.PUNCTUATION, classes.CONTACT
_AROUND, _ALL = 80, np.int64(1 << 30)
"""How many bytes to each side of a mark are looked at."""
_NEAR, _FIRST = np.int64(3), np.int64(0)
CALLED = 1
"""The form of a phone number or an id after a word for these."""


@called
def _is_digit(byte: int) -> Any:
    return np.uint8(byte - 0x30) < 10


@called
def _is_plain(byte: int) -> Any:
    return (np.uint8(byte - 0x30) < 10) | (np.uint8((byte & 0xDF) - 0x41) < 26)


@called
def _join(data: Any, at: int, end: int) -> Any:
    """Return where the next group begins, or ``at``; the mark between, 0x28 for brackets; whether a blank is there."""
    i, blanks, mark, brackets = at, 0, 0, 0
    while i < end and i - at < 8:
        byte, size = data[i], 1
        if byte == 0xC2 and i + 1 < end and data[i + 1] == 0xA0:
            byte, size = 0x20, 2
        elif byte == 0xE2 and i + 2 < end and data[i + 1] == 0x80:  # U+2000 to 200A and 202F; U+2010 to 2013
            third = data[i + 2]
            byte = 0x20 if 0x80 <= third <= 0x8A or third == 0xAF else 0x2D if 0x90 <= third <= 0x93 else byte
            size = 3
        if byte not in (0x20, 0x28, 0x29, 0x2D, 0x2E, 0x2F) or (byte >= 0x2D and mark > 0):
            break
        blanks += byte == 0x20
        brackets += byte == 0x28 or byte == 0x29
        mark = byte if byte >= 0x2D else mark
        i += size
    if i == at or i >= end or not _is_plain(data[i]) or blanks > 2 or brackets > 2 or (mark == 0x2E and blanks > 0):
        return at, 0, False
    return i, 0x28 if brackets > 0 else mark, blanks > 0


@called
def _luhn(data: Any, start: int, end: int) -> Any:
    """Say whether the checksum of a card is right: of every other digit from the last, twice is counted."""
    total: Any = np.int64(0)
    twice = np.int64(0)
    for k in range(end - 1, start - 1, -1):
        if _is_digit(data[k]):
            digit = (np.int64(data[k]) - 0x30) << twice
            total += digit - 9 * (digit > 9)
            twice = np.int64(1) - twice
    return total % 10 == 0


@called
def _remainder(data: Any, start: int, end: int) -> Any:
    """Return the remainder by 97 of an IBAN, whose first four characters count last and letters as 10 to 35."""
    total: Any = np.int64(0)
    seen = np.int64(0)
    head: Any = np.int64(0)
    scale: Any = np.int64(1)
    for k in range(start, end):
        if _is_plain(data[k]):
            digit = _is_digit(data[k])
            value = np.int64(data[k]) - 0x30 if digit else np.int64(data[k] & 0xDF) - 0x37
            size = np.int64(10) if digit else np.int64(100)
            if seen < 4:
                head = head * size + value
                scale = scale * size
            else:
                total = (total * size + value) % 97
            seen += 1
    return (total * scale + head) % 97


@called
def _word_before(data: Any, tokens: Any, first: int, t: int, most: int, low: int, high: int, words: Any) -> Any:
    """Return the last token before t, of at most ``most``, that is a word with an id from low to below high, or -1."""
    for k in range(t - 1, max(first, t - most) - 1, -1):
        if tokens[2][k] == _WORD:
            word = find(data, np.int64(tokens[0][k]), np.int64(tokens[1][k]), *words)
            if low <= word < high:
                return k
    return np.int64(-1)


@called
def _mark(data: Any, start: int, end: int, first: int, behind: int, touches: Any, endings: Any) -> Any:
    """Return the kind of what may stand around the mark or ending address ``data[start:end]``, or -1.

    Its document is from ``first`` to ``behind``, and nothing else is read: another text decides nothing.
    """
    byte = data[start]
    if byte == 0x40:
        return CONTACT if (start > first and data[start - 1] in (0x20, 0x22)) or end - start == 1 else -1
    if byte == 0x28 or byte | 0x20 == 0x7B:  # anna (at) example [dot] com
        last = np.int64(behind - 1)
        at = min(end + (data[min(end, last)] == 0x20), last)
        is_at, is_dot = data[at] | 0x20 == 0x61, data[at] | 0x20 == 0x64
        size = 1 if data[at] in (0x2E, 0x40) else 2 if is_at else 3
        after = min(at + size, last)
        is_whole = size == 1 or ((is_at or is_dot) and data[after - 1] | 0x20 == 0x74)
        return CONTACT if is_whole and data[min(after + (data[after] == 0x20), last)] in (0x29, 0x5D, 0x7D) else -1
    if byte == 0x3A:  # two colons, or seven
        colons = 8 if end < behind and data[end] == 0x3A else 1
        for k in range(end, min(end + 32, behind)):
            if data[k] != 0x3A and not _is_plain(data[k]):
                break
            colons += data[k] == 0x3A
        return IP if colons >= 7 else -1
    if byte == 0x2E and touches and end < behind:
        stop = end
        while stop < behind and _is_plain(data[stop]):
            stop += 1
        same = data[end] & 0x20 == data[stop - 1] & 0x20  # unlike Yes.It
        return CONTACT if same and find(data, end, stop, *endings) >= 0 else -1
    return CONTACT if byte == 0xEF and end - start == 3 and data[start + 1] == 0xBC and data[start + 2] == 0xA0 else -1


@compiled
def pick(data: Any, starts: Any, kinds: Any, out: Any) -> Any:
    """List the tokens at which something may begin, int32 [T]; return how many."""
    n = np.int64(0)
    last = np.int64(data.size - 1)
    for t in range(kinds.size):
        start, kind = np.int64(starts[u(t)]), kinds[u(t)]
        byte, second, third = data[u(start)], data[u(min(start + 1, last))], data[u(min(start + 2, last))]
        seventh = data[u(min(start + 6, last))]
        mark = ((byte == 0x2E) | (byte == 0x3A)) & (_is_plain(second) | (second == 0x3A)) | (byte == 0xEF)
        mark |= (byte == 0x28) | (byte | 0x20 == 0x7B) | ((byte == 0x40) & (second <= 0x5D))
        word = _is_digit(byte) | _is_digit(third) | _is_digit(seventh)
        word |= ((byte | 0x20) == 0x64) & ((second | 0x20) == 0x6F) & ((third | 0x20) == 0x74)  # dot
        out[u(n)] = t
        other = ((kind == _PUNCTUATION) & mark) | ((kind == _ADDRESS) & (byte == 0x40))
        n += ((kind == _WORD) & word) | (kind == _NUMBER) | other
    return n


@called
def _put(out: Any, n: Any, start: int, end: int, kind: int, form: int) -> Any:
    if n < out.shape[0]:
        out[n, 0], out[n, 1], out[n, 2], out[n, 3] = start, end, kind, form
    return n + 1


@called
def _numbers(
    data: Any, tokens: Any, where: Any, t: int, start: int, iban: Any, phones: int, words: Any, forms: Any, out: Any,
    n: Any,
) -> Any:  # fmt: skip
    """Write the candidates that begin with the group of characters at ``start``, in token t; return how many there are.

    A number may follow another and a mark (``led``), or be followed by both (``trail``), if a checksum or ``+`` says
    where it begins and ends, or the mark is a comma, or a slash that it does not have itself.
    """
    first, behind, begin = where
    led: Any = 0
    if start > first and data[start - 1] == 0x5F:
        return n  # within an identifier
    if start - 2 >= first and _is_digit(data[start - 2]) and 0x2C <= data[start - 1] <= 0x2F:
        led = data[start - 1]
    asked: Any = np.int64(-2)  # the word for a phone before it, when not looked for yet
    plus = start > first and data[start - 1] == 0x2B
    begins = start - plus
    opened = begins > first and data[begins - 1] == 0x28
    at: Any = start
    total, digits, groups, dots, brackets, slashes = 0, 0, 0, 0, 0, 0
    code: Any = np.int64(0)
    shortest: Any = np.int64(99)
    early: Any = False  # a bracket stands around the first or second group
    while total <= 34 and groups < 9:
        stop = at
        while stop < behind and _is_plain(data[stop]):
            digits += _is_digit(data[stop])
            stop += 1
        total += stop - at
        groups += 1
        shortest = min(shortest, stop - at)
        code = code * 20 + min(stop - at, 19)
        after, mark, blank = _join(data, stop, behind)
        tail = data[stop] if stop < behind else 0x20
        trail: Any = 0
        if tail == 0x2C and stop + 1 < behind and _is_digit(data[stop + 1]):
            trail = tail
        elif after > stop and not blank and mark != 0x28 and _is_digit(data[after]):
            trail = mark
        if tail != 0x40 and tail != 0x5F:
            letters, bare = total > digits, not plus and brackets == 0
            form: Any = np.int64(-code if letters else code)
            ends_itself = led != 0x2E and led != 0x2D and trail != 0x2E and trail != 0x2D
            ends_itself &= slashes == 0 or (led != 0x2F and trail != 0x2F)
            if iban and 15 <= total <= 34 and _remainder(data, start, stop) == 1:
                n = _put(out, n, start, stop, IBAN, form)
            for k in range(forms.size if ends_itself and bare and digits >= 5 and 8 <= total <= 18 else 0):
                if forms[k] == form:
                    n = _put(out, n, start, stop, ID, form)
            if groups == 4 and dots == 3 and digits == total <= 12 and led != 0x2E and trail != 0x2E:
                n = _put(out, n, start, stop, IP, np.int64(0))
            if bare and not letters and 13 <= digits <= 19 and shortest >= 3 and 0x32 <= data[start] <= 0x36:
                usual = groups == 1 or code // 20 in (1684, 33684) or code in (1725, 1724, 168, 133)  # from 4-4-4-1 on
                n = _put(out, n, start, stop, CARD, form) if usual and _luhn(data, start, stop) else n
            if not letters and 6 <= digits <= 15 and (ends_itself or plus):
                date = code in (842, 844, 1642, 824, 444, 424, 1622, 1641)
                usual = data[start] == 0x30 and digits >= 9 and (groups == 1 or shortest > 1) and not date
                usual |= plus or code in (10, 11, 1264, 9264) or (early and digits >= 9)
                usual |= data[start] == 0x30 and data[start + 1] == 0x30 and digits >= 9
                if asked == -2:
                    asked = _word_before(data, tokens, begin, t, _NEAR, phones, _ALL, words)
                    if asked >= 0 and _word_before(data, tokens, asked, t, _NEAR, _FIRST, phones, words) >= 0:
                        asked = np.int64(-1)
                if usual or asked >= 0:
                    n = _put(out, n, begins - (opened and brackets > 0), stop, PHONE, np.int64(asked >= 0))
        if after == stop or (not iban and not _is_digit(data[after]) and (blank or mark == 0x28)):
            break
        dots += mark == 0x2E
        slashes += mark == 0x2F
        brackets += mark == 0x28
        early |= mark == 0x28 and groups == 1 and (opened or stop - at <= 2)
        at = after
    return n


@compiled
def scan(
    data: Any, documents: Any, tokens: Any, token_offsets: Any, picked: Any, forms: Any, ids: Any, born: Any,
    phones: Any, words: Any, endings: Any, out: Any,
) -> Any:  # fmt: skip
    """Write start, end, kind and form of each candidate to ``out``, int64 [N, 4], while there is room; return N.

    ``forms`` int64 are those of national ids. Of the words before numbers, those below ``ids`` are of ids, those from
    there to below ``born`` of birth, and those from ``phones`` on of phones.
    """
    n, document, birth = np.int64(0), np.int64(0), np.int64(-1)
    starts, ends, kinds = tokens
    for t in picked:
        while t >= token_offsets[document + 1]:
            document += 1
        first, behind, begin = documents[document], documents[document + 1], token_offsets[document]
        start, end, kind = np.int64(starts[t]), np.int64(ends[t]), kinds[t]
        iban: Any = False
        if kind == _WORD or kind == _NUMBER:
            word = _word_before(data, tokens, begin, t, np.int64(6), np.int64(0), born, words)
            if word > birth:
                birth = word
                stop = np.int64(ends[word])
                is_id = find(data, np.int64(starts[word]), stop, *words) < ids
                n = _put(out, n, stop, min(stop + _AROUND, behind), ID if is_id else BIRTH, np.int64(is_id) * CALLED)
        is_dot = kind == _WORD and end - start == 3 and data[start] | 0x20 == 0x64 and data[start + 2] | 0x20 == 0x74
        if kind == _WORD and not is_dot:
            iban = end - start >= 4 and _is_digit(data[start + 2]) and _is_digit(data[start + 3])
            if not iban and end - start < 8:
                continue
        elif kind != _NUMBER:
            touches = t > begin and ends[t - 1] == start
            of = CONTACT if is_dot else _mark(data, start, end, first, behind, touches, endings)
            if of >= 0:
                low, high, least = start, end, 0x21 - (of == CONTACT and data[start] != 0x2E)
                while low > max(first, start - _AROUND) and data[low - 1] >= least:
                    low -= 1
                while high < min(behind, end + _AROUND) and data[high] >= least:
                    high += 1
                n = _put(out, n, low, high, of, np.int64(start - low + 1))
            continue
        where, stop = (first, behind, begin), np.int64(ends[t])
        while start < stop:
            n = _numbers(data, tokens, where, t, start, iban, phones, words, forms, out, n)
            while start < stop and data[start] != 0x2C and data[start] != 0x2E:
                start += 1
            start += 1
    return n
