r"""The tokenizer's loop: UTF-8 in, flat arrays of spans, classes and ids out.

The rules, in the order in which they are tried at each character (kinds as in ``characters``):

* **contact**: letters followed by ``://``, or ``www.``, up to a blank or one of ``<>"{}|\^` ``, less trailing
  punctuation; ``name@domain`` and ``@handle``.
* **word**: a letter and all letters, marks and digits after it. An apostrophe (``'`` or U+2019) with a letter on
  both sides belongs to the word, but for languages with elision (``languages.py``), and so does a hyphen (``-``) where
  that is asked for: *don't* is one token, *well-known* three, or one.
* **number**: a digit and all digits, letters and marks after it (*3rd*, *10km*); a full stop or comma between two
  digits belongs to it.
* **punctuation**: one character each.
* **other**: a run of anything else.

Blanks separate tokens and belong to none; every other character belongs to exactly one token.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from corpusveil.compiled import called, compiled, inlined, u
from corpusveil.text import classes
from corpusveil.text.characters import DIGIT, LETTER, MARK, PUNCTUATION, SPACE
from corpusveil.text.characters import OTHER as OTHER_KIND
from corpusveil.text.utf8 import Characters, decode, kind_of, lower_into
from corpusveil.text.word_table import fetch_head, find, found, hash_slot, hashed, head
from corpusveil.wide import SPAN, blank_bits, fetch, plain_bits, zeros_below

_WORD, _NUMBER, _PUNCTUATION = classes.WORD, classes.NUMBER, classes.PUNCTUATION
_CONTACT, _OTHER = classes.CONTACT, classes.OTHER
_EVERY = np.uint64(0xFFFFFFFFFFFFFFFF)
_ROOM = 24
"""What is known of the bytes ahead is found anew when it reaches less far: most words are shorter."""
_BLANK = 0x20


@called
def _kind_at(data: Any, at: int, end: int, kinds: Any) -> Any:
    if at >= end:
        return SPACE
    code, _ = decode(data, at, end)
    return kind_of(code, kinds)


@called
def _ends_address(byte: int) -> bool:
    r"""Say whether an ASCII byte ends an address: blank, control, or one of ``<>"{}|\^` ``."""
    return byte <= 0x20 or byte in (0x22, 0x3C, 0x3E, 0x5C, 0x5E, 0x60, 0x7B, 0x7C, 0x7D, 0x7F)


@called
def _trails_address(byte: int) -> bool:
    """Say whether a byte at the end of an address is punctuation of the sentence: one of ``!'),.:;?]*_~``."""
    return byte in (0x21, 0x27, 0x29, 0x2C, 0x2E, 0x3A, 0x3B, 0x3F, 0x5D, 0x2A, 0x5F, 0x7E)


@called
def _address_end(data: Any, at: int, end: int, kinds: Any) -> int:
    """Return where the address whose body starts at ``at`` ends; ``at`` when it has no body."""
    i = at
    while i < end:
        if data[i] < 0x80:
            if _ends_address(data[i]):
                break
            i += 1
        else:
            code, length = decode(data, i, end)
            if kind_of(code, kinds) == SPACE:
                break
            i += length
    while i > at and _trails_address(data[i - 1]):
        i -= 1
    return i


@called
def _name_end(data: Any, at: int, end: int, kinds: Any) -> int:
    """Return where the domain or handle at ``at`` ends: letters, digits, marks, ``_``, ``.`` and ``-``; or ``at``.

    It must start with a letter, a digit or ``_``.
    """
    i = at
    if at >= end or not (data[at] == 0x5F or _kind_at(data, at, end, kinds) in (LETTER, DIGIT)):
        return at
    while i < end:
        code, length = decode(data, i, end)
        kind = kind_of(code, kinds)
        if not (kind in (LETTER, DIGIT, MARK) or code in (0x5F, 0x2E, 0x2D)):
            break
        i += length
    while i > at and (data[i - 1] == 0x2E or data[i - 1] == 0x2D):
        i -= 1
    return i


@called
def _local_part(data: Any, at: int, starts: Any, ends: Any, kinds: Any, first: int, count: int) -> int:
    """Return how many of the last tokens, touching each other and the ``@`` at ``at``, are its local part."""
    taken = 0
    edge = at
    useful = 0
    while count - taken > first and ends[count - taken - 1] == edge:
        token = count - taken - 1
        kind = kinds[token]
        local = kind in (_WORD, _NUMBER, _CONTACT)
        if not local:
            byte = data[starts[token]]
            if kind != _PUNCTUATION or byte not in (0x2E, 0x5F, 0x25, 0x2B, 0x2D):
                break
        taken += 1
        edge = starts[token]
        if local:
            useful = taken
        if kind == _CONTACT:
            break
    return useful


@called
def _ahead_at_the_end(data: Any, at: int, end: int, byte_kinds: Any) -> Any:
    solid, plain = np.uint64(0), np.uint64(0)
    for k in range(min(end - at, SPAN)):
        kind = byte_kinds[data[at + k]]
        bit = np.uint64(1) << np.uint64(k)
        if kind != SPACE:
            solid |= bit
        if kind == LETTER or kind == DIGIT:
            plain |= bit
    return solid, plain


@inlined
def _ahead(data: Any, at: int, end: int, byte_kinds: Any) -> Any:
    """Return which of the 64 bytes from ``at`` on are no blanks, and which are ASCII letters or digits.

    The first byte's bit is the lowest; all are zero from ``end`` on.
    """
    if at + SPAN > data.size:
        return _ahead_at_the_end(data, at, end, byte_kinds)
    inside = _EVERY >> np.uint64(max(SPAN - (end - at), 0))
    return ~blank_bits(data, at) & inside, plain_bits(data, at) & inside


@called
def _word_end(data: Any, at: int, end: int, kinds: Any, hyphens: bool, apostrophes: bool, letter: bool) -> int:
    """Return the end of the word that starts at ``at``, or goes on there after a ``letter`` or something else.

    ``hyphens`` and ``apostrophes`` between two letters join where these are set.
    """
    i = at
    while i < end:
        code, length = decode(data, i, end)
        kind = kind_of(code, kinds)
        if kind == LETTER:
            letter = True
        elif kind == DIGIT:
            letter = False
        elif kind != MARK:
            joins = (apostrophes and code in (0x27, 0x2019)) or (hyphens and code == 0x2D)
            if not (joins and letter and _kind_at(data, i + length, end, kinds) == LETTER):
                break
        i += length
    return i


@called
def _find_folded(
    data: Any, start: int, end: int, slots: Any, heads: Any, words: Any, offsets: Any,
    kinds: Any, lower: Any, scratch: Any,
) -> Any:  # fmt: skip
    """Look up a word that is not plain ASCII letters; ``scratch`` has room for twice its bytes."""
    used = lower_into(data, start, end, scratch, np.int64(0), lower, kinds)
    return find(scratch, np.int64(0), used, slots, heads, words, offsets)


@called
def _other_end(data: Any, at: int, end: int, kinds: Any) -> int:
    i = at
    while i < end:
        code, length = decode(data, i, end)
        kind = kind_of(code, kinds)
        if i > at and kind != OTHER_KIND and kind != MARK:
            break
        i += length
    return i


@called
def _number_end(data: Any, at: int, end: int, kinds: Any) -> int:
    i = at
    digit = False
    while i < end:
        code, length = decode(data, i, end)
        kind = kind_of(code, kinds)
        if kind == DIGIT:
            digit = True
        elif kind == LETTER:
            digit = False
        elif kind != MARK and not (code in (0x2E, 0x2C) and digit and _kind_at(data, i + 1, end, kinds) == DIGIT):
            break
        i += length
    return i


@called
def _address(data: Any, start: int, stop: int, end: int, kinds: Any) -> int:
    """Return the end of the address whose first word is ``data[start:stop]``; ``stop`` when it starts none."""
    if stop + 3 < end and data[stop] == 0x3A and data[stop + 1] == 0x2F and data[stop + 2] == 0x2F:
        body = _address_end(data, stop + 3, end, kinds)
        return body if body > stop + 3 else stop
    starts = stop - start == 3 or (stop - start > 4 and data[stop - 4] in (0x27, 0x99))  # l'www.example.org
    if not starts or data[stop] != 0x2E:
        return stop
    for k in range(stop - 3, stop):
        if data[k] | 0x20 != 0x77:
            return stop
    body = _address_end(data, stop + 1, end, kinds)
    return body if body > stop + 1 else stop


@inlined
def _without(pending: Any, asked: int, first: int) -> int:
    """Return how many words are still to be looked up if the tokens from ``first`` on are no words."""
    while asked > 0 and pending[asked - 1] >= first:
        asked -= 1
    return asked


class TokenArrays(NamedTuple):
    """The documents ``data[documents[d]:documents[d + 1]]`` and their tokens, as loops take them.

    ``starts``, ``ends`` int32 [T] are byte positions in ``data``; ``classes`` uint8 [T]; ``ids`` int32 [T], -1 for
    anything but a word of the vocabulary; ``offsets`` int64 [D + 1] are the first tokens of documents.
    """

    data: Any
    documents: Any
    starts: Any
    ends: Any
    classes: Any
    ids: Any
    offsets: Any


class Room(NamedTuple):
    """Where a loop works: ``folded`` uint8, twice as long as the longest document; ``pending`` int32, for its words."""

    folded: Any
    pending: Any


@compiled
def scan(
    tokens: TokenArrays, characters: Characters, vocabulary: Any, room: Room, hyphens: bool, apostrophes: bool
) -> Any:
    """Tokenize documents; return the number of tokens.

    The arrays of ``tokens`` but the documents are written in place, and are as long as ``data`` at least.
    ``vocabulary`` are the arrays of a `WordTable`. ``hyphens`` says whether a hyphen between two letters joins them to
    a word, and ``apostrophes`` whether an apostrophe does.
    """
    data, offsets, starts, ends, token_classes, ids, token_offsets = tokens
    byte_kinds, kinds, lower = characters
    slots, heads, words, word_offsets = vocabulary
    scratch, pending = room
    n = np.int64(0)
    for document in range(offsets.size - 1):
        i = offsets[document]
        end = offsets[document + 1]
        token_offsets[document] = n
        first = n
        asked = np.int64(0)
        known, solid, plain = i - SPAN, np.uint64(0), np.uint64(0)
        while i < end:
            if i - known > SPAN - _ROOM:
                known = i
                solid, plain = _ahead(data, i, end, byte_kinds)
            past = i - known
            blanks = zeros_below(solid >> np.uint64(past))
            if blanks > 0:
                i += min(blanks, SPAN - past)
                continue
            byte = data[u(i)]
            kind = byte_kinds[byte]
            starts[u(n)] = i
            ids[u(n)] = -1
            if kind == LETTER:
                run = zeros_below(~(plain >> np.uint64(past)))
                stop = i + run
                if past + run == SPAN:
                    while stop < end and (byte_kinds[data[stop]] == LETTER or byte_kinds[data[stop]] == DIGIT):
                        stop += 1
                token_classes[u(n)] = _WORD
                byte = data[u(stop)] if stop < end else _BLANK
                is_ascii = True
                if byte == 0x27 or byte >= 0x80 or (hyphens and byte == 0x2D):
                    first_part = stop
                    stop = _word_end(data, stop, end, kinds, hyphens, apostrophes, byte_kinds[data[stop - 1]] == LETTER)
                    for k in range(first_part, stop):
                        is_ascii &= data[k] < 0x80
                    byte = data[u(stop)] if stop < end else _BLANK
                if is_ascii:
                    low, high = head(data, i, stop - i)
                    code = hashed(low, high, data, i, stop)
                    fetch(slots, hash_slot(code, slots))
                    ids[u(n)] = np.int32(code)
                    pending[u(asked)] = n
                    asked += 1
                else:
                    ids[u(n)] = _find_folded(data, i, stop, slots, heads, words, word_offsets, kinds, lower, scratch)
                ends[u(n)] = stop
                n += 1
                i = stop + 1
                if byte == _BLANK:
                    continue
                i = stop
                if (byte == 0x3A) | ((byte == 0x2E) & (data[u(stop - 1)] | 0x20 == 0x77)):
                    address = _address(data, np.int64(starts[u(n - 1)]), stop, end, kinds)
                    if address > stop:
                        asked = _without(pending, asked, n - 1)
                        token_classes[u(n - 1)] = _CONTACT
                        ids[u(n - 1)] = -1
                        ends[u(n - 1)] = address
                        i = address
                        continue
                if byte != 0x40 and byte_kinds[byte] == PUNCTUATION:  # a mark right behind a word
                    token_classes[u(n)] = _PUNCTUATION
                    ids[u(n)] = -1
                    starts[u(n)] = i
                    i += 1
                    ends[u(n)] = i
                    n += 1
                continue
            if kind == PUNCTUATION:
                token_classes[u(n)] = _PUNCTUATION
                i += 1
                if byte == 0x40:
                    stop = _name_end(data, i, end, kinds)
                    if stop > i:
                        n -= _local_part(data, i - 1, starts, ends, token_classes, first, n)
                        asked = _without(pending, asked, n)
                        token_classes[u(n)] = _CONTACT
                        ids[u(n)] = -1
                        i = stop
            elif kind == DIGIT:
                token_classes[u(n)] = _NUMBER
                i = _number_end(data, i, end, kinds)
            else:
                code, length = decode(data, i, end)
                kind = kind_of(code, kinds)
                if kind == SPACE:
                    i += length
                    continue
                if kind == LETTER:
                    token_classes[u(n)] = _WORD
                    stop = _word_end(data, i, end, kinds, hyphens, apostrophes, np.bool_(False))
                    ids[u(n)] = _find_folded(data, i, stop, slots, heads, words, word_offsets, kinds, lower, scratch)
                    i = stop
                elif kind == DIGIT:
                    token_classes[u(n)] = _NUMBER
                    i = _number_end(data, i, end, kinds)
                elif kind == PUNCTUATION:
                    token_classes[u(n)] = _PUNCTUATION
                    i += length
                else:
                    token_classes[u(n)] = _OTHER
                    i = _other_end(data, i, end, kinds)
            ends[u(n)] = i
            n += 1
        for k in range(asked):
            fetch_head(np.uint32(ids[u(pending[u(k)])]), slots, heads)
        for k in range(asked):
            t = u(pending[u(k)])
            code = np.uint32(ids[t])
            ids[t] = found(code, data, np.int64(starts[t]), np.int64(ends[t]), slots, heads, words, word_offsets)
    token_offsets[offsets.size - 1] = n
    return n
