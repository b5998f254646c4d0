"""Data of the search for originals (``lattice.py``): a space's words in a model, and buffers for a run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corpusveil.arrays import Float64, Int32, Int64, UInt64

LONGEST = 128
"""The most words of a run in a search; a longer run is cut."""
DOCUMENT = 1 << 14
"""The most words of a document whose guesses support each other; a longer document is cut between runs."""


class Spoken(NamedTuple):
    """The V words of a space in a language model, and the model's probabilities as float64.

    ``first`` int32 [V] is the model's id of a word's first part, -1 where the model lacks it; ``alone`` float64 [V] its
    probability by the shortest context (of a lacking word, after any), ``start`` float64 [V] that where there is none;
    ``inner`` float64 [V] that of its further parts, 1 without. ``before`` and ``last`` int32 [V] are the context after
    a word; ``before`` is -2 if it is the preceding word. ``left2`` float64 [M] and the tables ``low`` and ``high`` are
    the model's; ``rough`` float64 are the probabilities of rough logarithms (``lookup.py``).
    """

    first: Int32
    alone: Float64
    start: Float64
    inner: Float64
    before: Int32
    last: Int32
    left2: Float64
    low: Float64
    high: Float64
    rough: Float64


class Room(NamedTuple):
    """Arrays that a search works in: N = ``LONGEST`` + 1 places, K candidates a place, of which M remain.

    By place and candidate: ``words`` int32 (-1 the unknown word), ``firsts`` and ``lasts`` of them in the model,
    ``emitted`` (the law, times the parts within the word), ``alone``, ``start``, ``left`` (L of it as context, -1 if
    it is not one) and ``forward``. ``sizes``, ``kept`` int64 [N] are how many, ``chosen`` int32 [N, M] which remain and
    ``place`` [N, K] where. Bigrams that were counted, of place t from ``edges[t]`` to ``edges[t + 1]``: ``sources``,
    ``targets``, ``entries`` and ``more``, by how much they exceed what is backed off to. Of the second pass, by
    candidate of the place before and of this one: ``base`` and ``entry`` [N, M, M] the bigram, ``states`` the sums,
    ``contexts``, ``left3`` and ``members`` the two words as context. Its counted trigrams, from ``ends[t]`` on:
    ``triples`` [., 3] and ``extra``. ``backward``, ``after`` are what follows. ``own`` int64 [N] is which candidate is
    the released word, -1 for none. ``hashes``, ``spots``, ``probes``, ``asked`` and ``wanted`` are what is asked for at
    once, of one context: hashes of words, first slots and what these hold, and which words.

    Of a document of at most ``DOCUMENT`` places: ``originals`` int32 [., M] and ``shares`` float64 [., M], the words
    that remain at each place and their shares; ``expected`` float64 [V], zeros between documents.
    """

    words: Int32
    firsts: Int32
    lasts: Int32
    emitted: Float64
    alone: Float64
    start: Float64
    left: Float64
    forward: Float64
    backward: Float64
    share: Float64
    sizes: Int64
    kept: Int64
    chosen: Int32
    edges: Int64
    sources: Int32
    targets: Int32
    entries: Int64
    more: Float64
    place: Int32
    base: Float64
    entry: Int64
    states: Float64
    contexts: Int64
    left3: Float64
    after: Float64
    ends: Int64
    triples: Int32
    extra: Float64
    own: Int64
    hashes: UInt64
    spots: Int64
    probes: UInt64
    asked: Int64
    wanted: Int64
    members: UInt64
    originals: Int32
    shares: Float64
    expected: Float64


def room(candidates: int, remaining: int, words: int) -> Room:
    """Return the buffers of a search in a space of ``words`` words, which threads must not share."""
    n, k, m = LONGEST + 1, candidates + 1, min(remaining, candidates + 1)
    two, three = n * k * k, n * m * m * m
    return Room(
        np.zeros((n, k), np.int32), np.zeros((n, k), np.int32), np.zeros((n, k), np.int32), np.zeros((n, k)),
        np.zeros((n, k)), np.zeros((n, k)), np.zeros((n, k)), np.zeros((n, k)),
        np.zeros((2, k)), np.zeros(k), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros((n, m), np.int32),
        np.zeros(n + 1, np.int64), np.empty(two, np.int32), np.empty(two, np.int32), np.empty(two, np.int64),
        np.empty(two), np.zeros((n, k), np.int32), np.zeros((n, m, m)), np.zeros((n, m, m), np.int64),
        np.zeros((n, m, m)), np.zeros((n, m, m), np.int64), np.zeros((n, m, m)), np.zeros((2, m, m)),
        np.zeros(n + 1, np.int64), np.empty((three, 3), np.int32), np.empty(three), np.zeros(n, np.int64),
        np.zeros(k, np.uint64), np.zeros(k, np.int64), np.zeros(k, np.uint64), np.zeros(k, np.int64),
        np.zeros(k + 1, np.int64), np.zeros((n, m, m), np.uint64),
        np.empty((DOCUMENT, m), np.int32), np.empty((DOCUMENT, m)), np.zeros(words),
    )  # fmt: skip
