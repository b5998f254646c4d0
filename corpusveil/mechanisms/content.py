"""Content words: how much it counts that a reader guesses a word, as public weights of a space's words.

A reader who guesses *the* has learned nothing. By default a function word weighs 0 and any other word 1. A file may
name other words, or give each word a weight, such as -ln of its public share (``docs/mathematics.md``). Nothing here
affects what a release draws: weights only measure.
"""

from __future__ import annotations

import functools

import numpy as np

from corpusveil.arrays import Bool, Float64
from corpusveil.errors import BadRowError, DataError
from corpusveil.spaces.space import Space
from corpusveil.spaces.vocabulary import parts
from corpusveil.storage import files
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


def content_weights(space: Space, function_words: str | None = None, language: str | None = None) -> Float64:
    """Return how much each word of a space counts, float64 [V]: by default 1 for a content word, 0 for a function word.

    Function words are the stop words of the ``language`` (by default that of the space), and collocations of these
    alone. Without a language they are the English ones, if the vocabulary has at least half of the list; otherwise the
    150 most frequent words by the space's counts, but at most half of all words, as for a language without a list.
    Without counts every word counts.

    ``function_words`` is the URL of a public file, UTF-8, one word a line, that replaces the list. A number after a
    tab, 0 or more, is the weight of its word; a word without a number weighs 0, and a word that is not in the file 1.
    Raises BadRowError for another line, and DataError if the file has no word of the space, or no word counts.
    """
    return _weights(space, function_words, space.read_in(language))


@functools.lru_cache(maxsize=4)
def _weights(space: Space, function_words: str | None, language: str | None) -> Float64:
    words = space.vocabulary.words
    weights = np.ones(len(space))
    if function_words is not None:
        weights = _of_file(space, function_words)
    elif (stops := listed(language)) and (language or 2 * int(_in_list(space, None).sum()) >= len(stops)):
        weights[[at for at, word in enumerate(words) if all(part in stops for part in parts(word))]] = 0.0
    elif space.counts is not None:
        # Stable, so that equally frequent words are chosen by id on every machine.
        weights[np.argsort(-space.counts, kind="stable")[: min(FREQUENT, len(space) // 2)]] = 0.0
    weights.flags.writeable = False
    return weights


def _of_file(space: Space, url: str) -> Float64:
    weights, known = np.ones(len(space)), 0
    for number, line in enumerate(files.read_bytes(url).decode("utf-8-sig", "replace").splitlines(), 1):
        word, _, written = line.partition("\t")
        if not word.strip():
            continue
        try:
            weight = float(written or 0)
        except ValueError:
            weight = -1.0
        if not 0 <= weight < np.inf:
            raise BadRowError(f"{url}: line {number}: write a word, or a word, a tab and a number of 0 or more.")
        if word.strip() in space.vocabulary:
            weights[space.vocabulary.id(word.strip())] = weight
            known += 1
    if not known:
        raise DataError(f"{url}: none of these function words is in the space; give a file of its words, one a line.")
    if not weights.any():
        raise DataError(f"{url}: no word of the space has a weight above 0; leave out the words that should count.")
    return weights
