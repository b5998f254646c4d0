"""Token classes, and the version of the rules that assign them."""

from __future__ import annotations

from typing import Literal, get_args

from corpusveil.text.characters import UNICODE_VERSION

WORD, NUMBER, PUNCTUATION, CONTACT, OTHER = range(5)
CLASS_NAMES = ("word", "number", "punctuation", "contact", "other")

Hyphens = Literal["split", "join"]
"""What a hyphen between two letters does: *long-term* is three tokens, or one word."""
HYPHENS: tuple[Hyphens, ...] = get_args(Hyphens)

UNKNOWN = -1
"""The id of a token that is no word of the vocabulary."""

TOKENIZER_VERSION = f"1/unicode-{UNICODE_VERSION}"
"""Part of every release digest: other rules, or other character tables, make another release."""
