"""Built-in rules: IBANs, cards, national ids, IP addresses, phone numbers, dates of birth, contacts.

A compiled loop lists the few places that could be meant: groups of ASCII letters and digits, joined by a blank, hyphen,
full stop, slash or brackets, and what stands around some marks and words. Whether such a place is a number of its kind
is the word of python-stdnum and phonenumbers. A part of a longer chain (*12-555-123-4567-8*) is ignored.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import ipaddress
import re
from importlib import resources
from typing import Any

import numpy as np

from corpusveil.compiled import called, compiled, u
from corpusveil.errors import PackageError
from corpusveil.recognizers.rule_words import (
    BIRTH_WORDS,
    ENDINGS,
    IDS,
    LABELS,
    MONTHS,
    PHONE_WORDS,
    REGIONS,
    WORDLIKE,
)
from corpusveil.text import classes
from corpusveil.text.folding import plain
from corpusveil.text.output_words import concatenate
from corpusveil.text.spans import Declared, Spans
from corpusveil.text.tokens import Tokens
from corpusveil.text.word_table import WordTable, find

NAMES = ("iban", "card", "national_id", "ip", "phone", "date_of_birth", "contact")
_KINDS: Any = np.arange(7)  # of one type for the loops, not of seven literals
_IBAN, _CARD, _ID, _IP, _PHONE, _BIRTH, _CONTACT = _KINDS
_WORD, _NUMBER, _PUNCTUATION, _ADDRESS = classes.WORD, classes.NUMBER, classes.PUNCTUATION, classes.CONTACT
_AROUND, _ALL = 80, np.int64(1 << 30)
"""How many bytes to each side of a mark are looked at."""
_CALLED = 1
"""The form of a phone number after a word for phones."""
_RANKS = {_IBAN: 0, _CARD: 1, _IP: 2, _ID: 4, _PHONE: 5}
"""Of the same characters, the kind with the lowest rank that is valid is taken; a phone number after its word has 3."""
_AMERICAN = r"(?:1[-. ])?(?:\([2-9]\d\d\) ?|[2-9]\d\d[-.])\d{3}[-.]\d{4}"
_NO_ID = re.compile(rf"\d{{3}} \d\d \d{{4}}|\d{{7,9}}[ .]\d\d?|{_AMERICAN}")
"""Likelier columns of a table, a number and a count, a decimal, or a phone number: ids have other marks there."""
_IPV4 = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}")
_REST = re.compile(rb"(?:[-. /()]|\xc2\xa0){1,3}(\d+)")
"""More digits after a number."""
_AMERICAN_PHONE, _MARKS = re.compile(_AMERICAN), re.compile("[^0-9A-Za-z]")


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
def _mark(data: Any, start: int, end: int, touches: Any, endings: Any) -> Any:
    """Return the kind of what may stand around the mark or ending address ``data[start:end]``, or -1."""
    byte = data[start]
    if byte == 0x40:
        return _CONTACT if touches and data[start - 1] == 0x22 else -1
    if byte == 0x3A:  # two colons, or seven
        colons = 8 if end < data.size and data[end] == 0x3A else 1
        for k in range(end, min(end + 32, data.size)):
            if data[k] != 0x3A and not _is_plain(data[k]):
                break
            colons += data[k] == 0x3A
        return _IP if colons >= 7 else -1
    if byte == 0x2E and touches:
        stop = end
        while stop < data.size and _is_plain(data[stop]):
            stop += 1
        same = data[end] & 0x20 == data[stop - 1] & 0x20  # unlike Yes.It
        return _CONTACT if same and find(data, end, stop, *endings) >= 0 else -1
    return _CONTACT if byte == 0xEF and end - start == 3 and data[start + 1] == 0xBC and data[start + 2] == 0xA0 else -1


@compiled
def _pick(data: Any, starts: Any, kinds: Any, out: Any) -> Any:
    """List the tokens at which something may begin, int32 [T]; return how many."""
    n = np.int64(0)
    last = np.int64(data.size - 1)
    for t in range(kinds.size):
        start, kind = np.int64(starts[u(t)]), kinds[u(t)]
        byte, second, third = data[u(start)], data[u(min(start + 1, last))], data[u(min(start + 2, last))]
        seventh = data[u(min(start + 6, last))]
        mark = ((byte == 0x2E) | (byte == 0x3A)) & (_is_plain(second) | (second == 0x3A)) | (byte == 0xEF)
        word = _is_digit(byte) | _is_digit(third) | _is_digit(seventh)
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
    data: Any, tokens: Any, where: Any, t: int, start: int, iban: Any, born: int, phones: int, words: Any, forms: Any,
    out: Any, n: Any,
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
                n = _put(out, n, start, stop, _IBAN, form)
            for k in range(forms.size if ends_itself and bare and digits >= 5 and 8 <= total <= 18 else 0):
                if forms[k] == form:
                    n = _put(out, n, start, stop, _ID, form)
            if groups == 4 and dots == 3 and digits == total <= 12 and led != 0x2E and trail != 0x2E:
                n = _put(out, n, start, stop, _IP, np.int64(0))
            if bare and not letters and 13 <= digits <= 19 and shortest >= 3 and 0x32 <= data[start] <= 0x36:
                usual = groups == 1 or code // 20 in (1684, 33684) or code in (1725, 1724, 168, 133)  # from 4-4-4-1 on
                n = _put(out, n, start, stop, _CARD, form) if usual and _luhn(data, start, stop) else n
            if not letters and 6 <= digits <= 15 and (ends_itself or plus):
                date = code in (842, 844, 1642, 824, 444, 424, 1622, 1641)
                usual = data[start] == 0x30 and digits >= 9 and (groups == 1 or shortest > 1) and not date
                usual |= plus or code in (10, 11, 1264, 9264) or (early and digits >= 9)
                usual |= data[start] == 0x30 and data[start + 1] == 0x30 and digits >= 9
                if asked == -2:
                    asked = _word_before(data, tokens, begin, t, np.int64(3), born, phones, words)
                    if asked >= 0 and _word_before(data, tokens, asked, t, np.int64(3), phones, _ALL, words) >= 0:
                        asked = np.int64(-1)
                if usual or asked >= 0:
                    n = _put(out, n, begins - (opened and brackets > 0), stop, _PHONE, np.int64(asked >= 0))
        if after == stop or (not iban and not _is_digit(data[after]) and (blank or mark == 0x28)):
            break
        dots += mark == 0x2E
        slashes += mark == 0x2F
        brackets += mark == 0x28
        early |= mark == 0x28 and groups == 1 and (opened or stop - at <= 2)
        at = after
    return n


@compiled
def _scan(
    data: Any, documents: Any, tokens: Any, token_offsets: Any, picked: Any, forms: Any, born: Any, phones: Any,
    words: Any, endings: Any, out: Any,
) -> Any:  # fmt: skip
    """Write start, end, kind and form of each candidate to ``out``, int64 [N, 4], while there is room; return N.

    ``forms`` int64 are those of national ids. Of the words before numbers, those below ``born`` are of birth, and
    those from there to below ``phones`` are of phones.
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
                end = np.int64(ends[word])
                n = _put(out, n, end, min(end + _AROUND, behind), _BIRTH, np.int64(0))
                end = np.int64(ends[t])
        if kind == _WORD:
            iban = end - start >= 4 and _is_digit(data[start + 2]) and _is_digit(data[start + 3])
            if not iban and end - start < 8:
                continue
        elif kind != _NUMBER:
            touches = t > begin and ends[t - 1] == start
            of = _mark(data, start, end, touches, endings)
            if of >= 0:
                low, high = start, end
                while low > max(first, start - _AROUND) and (
                    data[low - 1] > 0x20 or (kind == _ADDRESS and data[low - 1] == 0x20)
                ):
                    low -= 1
                while high < min(behind, end + _AROUND) and data[high] > 0x20:
                    high += 1
                n = _put(out, n, low, high, of, np.int64(start - low + 1))
            continue
        where, stop = (first, behind, begin), np.int64(ends[t])
        while start < stop:
            n = _numbers(data, tokens, where, t, start, iban, born, phones, words, forms, out, n)
            while start < stop and data[start] != 0x2C and data[start] != 0x2E:
                start += 1
            start += 1
    return n


@functools.cache
def _forms() -> dict[int, list[Any]]:
    """Return the modules of python-stdnum by forms: 3-2-4 is a number of base 20, below zero with letters."""
    modules: dict[int, list[Any]] = {}
    for entry in IDS.split(";"):
        name, *forms = entry.split()
        for form in forms:
            code = functools.reduce(lambda code, size: code * 20 + int(size), form.lstrip("+").split("-"), 0)
            modules.setdefault(-code if form[0] == "+" else code, []).append(_package(f"stdnum.{name}"))
    return modules


@functools.cache
def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise PackageError("The recognizer 'rules' needs packages: pip install 'corpusveil[spans]'.") from None


@functools.cache
def _tables() -> tuple[Any, ...]:
    """Return the arguments of the loop that are the same at each call."""
    texts = (BIRTH_WORDS, PHONE_WORDS, LABELS, ENDINGS + WORDLIKE)
    born, phone, labels, endings = (text.encode().split() for text in texts)
    tables = (WordTable.build(*concatenate(words)) for words in (born + phone + labels, endings))
    before, after = ((table.slots, table.heads, table.keys, table.offsets) for table in tables)
    return np.array(sorted(_forms()), np.int64), len(born), len(born + phone), before, after


@functools.cache
def _iban_lengths() -> dict[str, int]:
    """Return the length of an IBAN by country, of python-stdnum's table: AD bban="4!n4!n12!c" has 24 characters."""
    lines = resources.files(_package("stdnum")).joinpath("iban.dat").read_text("utf-8").splitlines()
    forms = (re.match(r'([A-Z]{2}) .*bban="([^"]*)"', line) for line in lines)
    return {form[1]: 4 + sum(map(int, re.findall(r"(\d+)!", form[2]))) for form in forms if form}


@functools.cache
def _national() -> re.Pattern[str]:
    """Return what the digits of a valid phone number of a region are, with its prefix for calls within the country."""
    metadata = _package("phonenumbers.phonemetadata").PhoneMetadata
    patterns = []
    for region in REGIONS.split():
        about = metadata.metadata_for_region(region)
        kinds = (about.fixed_line, about.mobile, about.toll_free, about.shared_cost, about.voip, about.personal_number)
        numbers = "|".join(kind.national_number_pattern for kind in kinds if kind and kind.national_number_pattern)
        prefix = {"1": "1?", None: "(?=0)"}.get(about.national_prefix, about.national_prefix)
        patterns.append(f"{prefix}(?:{numbers})")
    return re.compile("|".join(patterns))


@functools.cache
def _patterns() -> dict[int, re.Pattern[bytes]]:
    """Return what is looked for around a word or a mark: the first group of a pattern, in UTF-8."""
    letter, day, year = r"[A-Za-z\x80-\xff]", r"[0-3]?\d(?:st|nd|rd|th|er|\.)?", r"(?:1[89]|20)\d\d"
    month = rf"(?:{'|'.join(MONTHS.split())}){letter}{{0,8}}\.?"
    blank, of = r"[\s,./-]{0,3}", r"(?:\s(?:of|de|del|di))?"
    named = rf"(?:{year}|(?:'|\xe2\x80\x99)\d\d)"
    dates = (
        rf"{day}{of}{blank}{month}{of}{blank}{named}|{month}{blank}{day}[\s,./-]{{1,3}}{named}|{month}{blank}{named}|"
        rf"{year}{blank}{month}{blank}{day}|{day}(?P<c>[-./]?){month}(?P=c)\d\d|{month}[0-3]\d{year}|"
        rf"[0-3]?\d(?P<d>[-./]\s?|\s)(?:[01]?\d|[IVX]{{1,4}})(?P=d){year}|[0-3]?\d/[01]?\d[- ](?:{year}|\d\d)|"
        rf"[0-3]?\d(?P<a>\s?[-./]\s?)[0-3]?\d(?P=a)(?:{year}|\d\d)|(?:{year}|\d\d)(?P<b>[-./])[01]?\d(?P=b)[0-3]?\d|"
        rf"(?:{year}|\d\d)(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])|(?:[0-2]\d|3[01])(?:0[1-9]|1[0-2]){year}"
    )
    mark = r"""[\s,:;()*"'=_|>\[\]-]"""
    birth = rf"(?i)\A\.?(?:{mark}{{1,3}}{letter}{{1,15}}){{0,5}}?{mark}{{1,6}}({dates})(?!\d)"
    plain, every = ("|".join((text + text.upper()).split()) for text in (ENDINGS, ENDINGS + WORDLIKE))
    label, path = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.", r"""/[^\x00-\x20"<>]*[^\x00-\x20"<>!'),.:;?]|/"""
    domain = (
        rf"(?<![\w@/:.\\-])((?:(?:{label})+(?={label}(?:{every})(?!\w))[^.]{{2,}}\.(?:{every})|{label}(?:{plain}|(?:{every})(?=/)))"
        rf"(?:{path})?)(?![\w(@]|-|\.\w)"
    )
    wide = r"\xef\xbc[\x8d\x8e\x90-\x99\xa1-\xba\xbf]|\xef\xbd[\x81-\x9a]"
    local = rf"(?:[A-Za-z0-9._%+-]|{wide})+"
    quoted = r"""("(?:[^"\\\n]|\\.){1,64}"@[\w.\x80-\xff-]+\.[\w\x80-\xff]+)"""
    contact = rf"{domain}|({local}\xef\xbc\xa0{local}(?<![.-]))|{quoted}"
    six = r"(?<![\w:.])((?:[0-9A-Fa-f]{0,4}:){2,7}(?:\d+(?:\.\d+){3}|[0-9A-Fa-f]{0,4}))(?![\w:])"
    return {kind: re.compile(pattern.encode()) for kind, pattern in ((_BIRTH, birth), (_CONTACT, contact), (_IP, six))}


def _around(raw: bytes, kind: int, mark: int) -> tuple[int, int] | None:
    """Return start and end of what a pattern finds around a mark; of what follows a word, where ``mark`` is 0."""
    for match in _patterns()[kind].finditer(raw):
        if not mark or match.start() < mark <= match.end():
            return match.span(match.lastindex or 1 if kind == _CONTACT else 1)
    return None


def _is_valid(kind: int, text: str, form: int) -> bool:
    if kind == _IP:
        if ":" not in text:
            return bool(_IPV4.fullmatch(text))
        try:
            return bool(ipaddress.ip_address(text)) and any(map(str.isdigit, text))
        except ValueError:
            return False
    if kind == _CARD:  # whose checksum the loop has computed, as that of an IBAN
        return True
    digits = _MARKS.sub("", text := plain(text))
    if kind == _PHONE:
        return _is_phone(text, digits, form)
    if kind == _IBAN:
        return _iban_lengths().get(digits[:2].upper()) == len(digits)
    if _NO_ID.fullmatch(text):
        return False
    for module in _forms()[form]:
        try:
            if module.is_valid(text if module.__name__ == "stdnum.fi.hetu" else digits):  # whose sign is a century
                return True
        except (LookupError, ValueError):  # which python-stdnum raises for some numbers that are none
            continue
    return False


def _is_phone(text: str, digits: str, form: int) -> bool:
    """Say whether a phone number is valid; with ``+`` or in the form of North America it only has to be possible."""
    phones = _package("phonenumbers")
    if "+" in text or digits[:2] == "00":
        says = phones.is_possible_number if "+" in text else phones.is_valid_number
        with contextlib.suppress(phones.NumberParseException):
            if says(phones.parse(text if "+" in text else f"+{digits[2:]}")):
                return True
        if "+" in text:
            return False
    if form == _CALLED or _AMERICAN_PHONE.fullmatch(text):
        return True
    valid = _national().fullmatch
    return bool(valid(digits) or ("(" in text and valid(f"0{digits}")))


def _phones(data: Any, documents: Any, rows: list[list[int]]) -> dict[int, tuple[int, int]]:
    """Return the end of the phone number at each start, and of what is masked: no half of the digits in a row.

    Of several ends the longest is right after which no digits are left, or another phone number begins.
    """
    ends: dict[int, list[int]] = {}
    for start, end, _, form in rows:
        if _is_phone(text := plain(data[start:end].tobytes().decode()), _MARKS.sub("", text), form):
            ends.setdefault(start, []).append(end)
    phones: dict[int, tuple[int, int]] = {}
    for start, several in ends.items():
        behind = documents[np.searchsorted(documents, start, side="right")]
        rests = [_REST.match(data[end : min(end + 24, behind)].tobytes()) for end in several]
        clean = [
            end
            for end, rest in zip(several, rests, strict=True)
            if not rest or not ends.keys().isdisjoint(range(end + 1, end + rest.start(1) + 1))
        ]
        end, rest = (clean[0], None) if clean else (several[0], rests[0])
        last = len(_MARKS.split(plain(data[start:end].tobytes().decode()))[-1])
        phones[start] = end, end + rest.end() if rest and (len(rest[1]) > 4 or len(rest[1]) == last) else end
    return phones


def rules(tokens: Tokens) -> Spans:
    """Find what is of the kinds ``NAMES``. Raises UserError if a package is missing."""
    forms, *tables = _tables()
    data, arrays = tokens.data, (tokens.starts, tokens.ends, tokens.classes)
    picked, out, size = np.empty(len(tokens) + 1, np.int32), np.empty((0, 4), np.int64), 1 << 10
    picked = picked[: _pick(data, tokens.starts, tokens.classes, picked)]
    while size > len(out):
        out = np.empty((size, 4), np.int64)
        size = _scan(data, tokens.documents, arrays, tokens.offsets, picked, forms, *tables, out)
    out = out[:size]
    ranks = np.array([_RANKS.get(kind, 6) for kind in range(len(NAMES))], np.int64)[out[:, 2]]
    ranks[(out[:, 2] == _PHONE) & (out[:, 3] == _CALLED)] = 3
    spans: set[tuple[int, int, int]] = set()
    behind = 0
    rows = out[np.lexsort((ranks, -out[:, 1], out[:, 0]))].tolist()
    phones = _phones(data, tokens.documents, [row for row in rows if row[2] == _PHONE])
    for start, end, kind, form in rows:
        raw = data[start:end].tobytes()
        if kind in {_BIRTH, _CONTACT} or (kind == _IP and form):
            span = _around(raw, kind, form)
            if span and (kind != _IP or _is_valid(_IP, raw[slice(*span)].decode(), 0)):
                spans.add((start + span[0], start + span[1], kind))
        elif start >= behind and (
            phones.get(start, (0, 0))[0] == end if kind == _PHONE else _is_valid(kind, raw.decode(), form)
        ):
            behind = phones[start][1] if kind == _PHONE else end
            spans.add((start, behind, kind))
    table = np.array(sorted(spans), np.int64).reshape(-1, 3)
    return Spans(table[:, 0], table[:, 1], table[:, 2], NAMES)


RECOGNIZER = Declared(lambda _: rules, 1, NAMES, ("phonenumbers", "python-stdnum"), "'corpusveil[spans]'")
