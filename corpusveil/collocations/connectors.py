"""Connector words: the function words that a collocation may not contain, or not begin or end with."""

from __future__ import annotations

from typing import Literal

from corpusveil.spaces.vocabulary import read_words

Rule = Literal["strict", "edges"]
"""``strict``: no connector anywhere. ``edges``: no connector at the beginning or end ("chain of events" is kept)."""


def connector_words(url: str | None = None) -> frozenset[str]:
    """Return gensim's English connector words, or those of a file, one per line, lower-cased."""
    if url is not None:
        return frozenset(word.lower() for word in read_words(url))
    from gensim.models.phrases import ENGLISH_CONNECTOR_WORDS

    return frozenset(ENGLISH_CONNECTOR_WORDS)
