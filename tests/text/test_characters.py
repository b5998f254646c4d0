"""The tables of characters are the package's own: every Python has the same, so it makes the same release."""

from __future__ import annotations

import hashlib
import json
import sys
import unicodedata
from importlib import resources

import pytest

from corpusveil.text.characters import TABLE, UNICODE_VERSION, character_table, lower_table, upper
from corpusveil.text.classes import TOKENIZER_VERSION
from scripts import unicode_table

EVERY = "".join(map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1))))
DIGESTS = ("2af3f1e588345b4f", "2cee1db7059971bd", "61a79e5ccd3ab390")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


@pytest.mark.skipif(unicodedata.unidata_version != UNICODE_VERSION, reason="this Python has another Unicode version")
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
