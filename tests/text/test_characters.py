"""Tables of characters are the package's own, so every Python makes the same release; lower-casing is Python's."""

from __future__ import annotations

import hashlib
import json
import sys
import unicodedata
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusveil.text.characters import TABLE, TABLE_END, UNICODE_VERSION, character_table, lower_table, upper
from corpusveil.text.classes import TOKENIZER_VERSION
from corpusveil.text.utf8 import KINDS, LOWER, decode, lower_into
from scripts import unicode_table

EVERY = "".join(map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1))))
same_unicode = pytest.mark.skipif(
    unicodedata.unidata_version != UNICODE_VERSION, reason="this Python has other Unicode tables than the package"
)
DIGESTS = ("2af3f1e588345b4f", "2cee1db7059971bd", "61a79e5ccd3ab390")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


@same_unicode
def test_the_tables_are_those_of_a_python_of_their_version() -> None:
    """A hand that slips in the file, or a rule that changes in the script alone, is seen."""
    assert json.loads((resources.files("corpusveil.text") / TABLE).read_bytes()) == unicode_table.tables()
    assert [upper(one) for one in EVERY] == [one.upper() for one in EVERY]


def test_every_python_has_the_same_tables() -> None:
    """What the loops read, whatever tables the interpreter has; these bytes are part of every release since 0.5."""
    found = character_table().tobytes(), lower_table().astype("<i4").tobytes(), upper(EVERY).encode()
    assert tuple(map(digest, found)) == DIGESTS
    assert TOKENIZER_VERSION == "1/unicode-14.0.0"
    later = 0x11F04  # a letter since Unicode 15.0, so of Python 3.12
    assert character_table()[later] == 0
    assert (unicodedata.category(chr(later)) == "Lo") == (sys.version_info >= (3, 12))


def test_all_currency_signs_are_punctuation_like_the_dollar() -> None:
    """So that a release keeps or drops them alike: € and £ vanished where $ stayed."""
    table = character_table()
    signs = "$¢£¤¥֏฿₡₣₤₦₨₩₪₫€₱₲₴₵₸₹₺₽₿﷼＄￠￡￥￦"
    assert [one for one in signs if table[ord(one)] != table[ord(".")]] == []
    assert table[ord("©")] == table[ord("😀")] == 0


def lowered(text: str) -> str:
    raw = np.frombuffer(text.encode(), dtype=np.uint8)
    out = np.full(raw.size * 3 // 2 + 8, 0xFF, dtype=np.uint8)
    used = lower_into(raw, 0, raw.size, out, 0, LOWER, KINDS)
    assert used <= raw.size * 3 // 2 + 1
    assert (out[used:] == 0xFF).all()
    return out[:used].tobytes().decode()


@same_unicode
def test_every_character_is_lowered_as_python_does() -> None:
    """All of Unicode, each behind a blank so that none is final: only the apostrophe U+2019 differs, by design."""
    codes = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000 and code != 0x2019]
    for first in range(0, len(codes), 50_000):
        part = [chr(code) for code in codes[first : first + 50_000]]
        assert lowered(" 1 ".join(part)).split(" 1 ") == " 1 ".join(part).lower().split(" 1 ")
    assert lowered("\u2019") == "'"


def test_python_whitespace_is_space_but_for_the_separator_controls() -> None:
    blanks = {code for code in range(TABLE_END) if character_table()[code] & 0x0F == 1}
    assert blanks == {code for code in range(TABLE_END) if chr(code).isspace()} - {0x1C, 0x1D, 0x1E, 0x1F}


CASED = "abcXYZéÉßẞİıǅΣσςΩώЖжȺⱥ'’\u0301"


@given(st.text(st.sampled_from(CASED), max_size=30))
@settings(max_examples=400)
def test_any_word_of_cased_letters_is_lowered_as_python_does(word: str) -> None:
    """Final sigma included."""
    assert lowered(word) == word.replace("’", "'").lower()


@given(st.binary(max_size=12))
def test_decode_is_strict_about_what_is_utf8(raw: bytes) -> None:
    """A sequence is accepted exactly where Python accepts it; otherwise one byte is malformed."""
    data = np.frombuffer(raw, dtype=np.uint8)
    at, good = 0, True
    while at < data.size:
        code, length = decode(data, at, data.size)
        if code == 0x110000:
            good = False
            assert length == 1
        else:
            assert raw[at : at + length].decode() == chr(code)
        at += length
    try:
        raw.decode()
    except UnicodeDecodeError:
        assert not good
    else:
        assert good
