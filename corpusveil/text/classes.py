"""Token classes, and the version of the rules that assign them."""

from __future__ import annotations

from corpusveil.text.characters import UNICODE_VERSION

WORD, NUMBER, PUNCTUATION, CONTACT, OTHER, SPAN = range(6)
CLASS_NAMES = ("word", "number", "punctuation", "contact", "other", "span")

UNKNOWN = -1
"""The id of a token that is not a word of the vocabulary."""

TOKENIZER_VERSION = f"1/unicode-{UNICODE_VERSION}"
"""Part of every release digest, since other rules or character tables make another release."""
