"""Content words: how much it counts that a reader guesses a word, as public weights of a space's words.

A reader who guesses *the* has learned nothing: a function word weighs 0 and any other word 1. Nothing here affects what
a release draws: weights only measure.
"""

from __future__ import annotations

import functools

import numpy as np

from corpusveil.arrays import Bool, Float64
from corpusveil.spaces.space import Space
from corpusveil.spaces.vocabulary import parts
from corpusveil.text.languages import function_words as listed

FREQUENT = 150
"""The number of most frequent words that are function words where the vocabulary is not English."""


def stop_words_of(space: Space, language: str | None = None) -> Bool:
    """Return which words of a space are stop words, as a text policy with this language reads them; bool [V]."""
    return _in_list(space, space.read_in(language))


@functools.lru_cache(maxsize=4)
def _in_list(space: Space, language: str | None) -> Bool:
    stops = listed(language)
    return np.array([word in stops for word in space.vocabulary.words], dtype=np.bool_)


def content_weights(space: Space, language: str | None = None) -> Float64:
    """Return which words of a space are content words: float64 [V], 1 for a content word, 0 for a function word.

    Function words are the stop words of ``language`` (default: that of the space), and collocations of stop words only.
    Without a language: the English list if the vocabulary has at least half of it, otherwise the 150 most frequent
    words (at most half of all). Without counts every word has 1.

    >>> cv.content_weights(space).shape == (len(space),)
    True
    """
    return _weights(space, space.read_in(language))


@functools.lru_cache(maxsize=4)
def _weights(space: Space, language: str | None) -> Float64:
    words = space.vocabulary.words
    weights = np.ones(len(space))
    if (stops := listed(language)) and (language or 2 * int(_in_list(space, None).sum()) >= len(stops)):
        weights[[at for at, word in enumerate(words) if all(part in stops for part in parts(word))]] = 0.0
    elif space.counts is not None:
        # Stable, so that equally frequent words are chosen by id on every machine.
        weights[np.argsort(-space.counts, kind="stable")[: min(FREQUENT, len(space) // 2)]] = 0.0
    weights.flags.writeable = False
    return weights
