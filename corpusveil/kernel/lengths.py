"""Documents at the length that they are released with: cut at the end, or continued by words drawn from public counts.

A filler is a word of the vocabulary that is drawn here and then replaced by the mechanism like every word of the text,
at the same epsilon. So a document and its fillers are one longer document, and the guarantee for documents of this
length holds for them (``docs/mathematics.md``, Length).
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from corpusveil.arrays import Bool, UInt64
from corpusveil.budget.length import Length, LengthNoise
from corpusveil.errors import ConflictError
from corpusveil.kernel.chunk import Chunk
from corpusveil.sampling.draws import FILLER, DrawKey, Draws
from corpusveil.sampling.weights import WeightTable, integer_weights
from corpusveil.spaces import Space
from corpusveil.text.classes import WORD
from corpusveil.text.languages import function_words
from corpusveil.text.policy import (
    ALL_ROLES,
    COLLOCATION_PLACES,
    DOCUMENT_LENGTH,
    DROP,
    KNOWN_WORD,
    ROLE_NAMES,
    TextPolicy,
)
from corpusveil.text.tokens import Tokens

HIDDEN = ("privatize", "resample", "drop")
"""The possible outputs for a class of tokens where lengths are hidden: a word like all others, or nothing."""


def refuse_unsound(length: Length | None, policy: TextPolicy, allocation: str | None) -> None:
    """Raise UserError if another part of the output would show the length of a document."""
    if length is None:
        return
    shown = [f"{name} = {value}" for name in ROLE_NAMES[1:] if (value := getattr(policy, name)) not in HIDDEN]
    if shown:
        raise ConflictError(
            f"fillers are words, so {', '.join(shown)} would show where the text ends; choose drop or resample."
        )
    for name, shows, value, what in (
        ("layout", "keep", "normalize", "line breaks"),
        ("case", "restore", "lower", "capitals"),
    ):
        if getattr(policy, name) == shows:
            raise ConflictError(
                f"fillers have no {what}, so {name} = {getattr(policy, name)} would show where the text ends; choose "
                f"{value}."
            )
    if allocation == "word-share":
        raise ConflictError(
            f"allocation = {allocation} divides epsilon by the number of words in the text, so the noise would "
            "disclose its length; choose uniform."
        )


def disclosed(policy: TextPolicy, length: Length | None) -> tuple[str, ...]:
    """Name everything that a reader of the output sees unprotected, in words."""
    if length is None:
        return policy.disclosed()
    units = () if policy.tokenizer == "word" else (COLLOCATION_PLACES,)
    return (length.disclosed, *units)


def without_token_count(shown: tuple[str, ...], length: Length | None) -> tuple[str, ...]:
    """Return a mechanism's disclosures, without the number of tokens if a length policy hides it."""
    return shown if length is None else tuple(name for name in shown if name != DOCUMENT_LENGTH)


def filler_weights(space: Space, policy: TextPolicy) -> UInt64:
    """Return the integer weights that fillers are drawn with, uint64 [V]: the public counts of words that are replaced.

    Stop words that are dropped from the text have no count, because they would show which words are fillers.
    """
    counts = np.zeros(len(space), dtype=np.int64) if space.counts is None else space.counts
    if policy.stop_words == "drop":
        counts = counts.copy() if counts.any() else np.ones_like(counts)
        counts[[space.id(word) for word in function_words(policy.language) if word in space.vocabulary]] = 0
    return integer_weights(counts)


@functools.lru_cache(maxsize=4)
def fillers_of(space: Space, policy: TextPolicy) -> WeightTable:
    """Return what draws fillers; made once a process."""
    return WeightTable(filler_weights(space, policy))


def at_released_length(chunk: Chunk, present: Bool, length: Length, key: DrawKey, fillers: WeightTable) -> Chunk:
    """Return the words that D documents are released with, which are all replaced.

    Dropped tokens are gone; fillers have no bytes of the text (``starts`` is ``ends``). ``present`` bool [D] is off for
    missing texts, which have no words.
    """
    tokens, tags = chunk.tokens, chunk.tags
    size = tokens.offsets.size - 1
    stays = chunk.actions[chunk.roles] != DROP
    before = np.concatenate([[0], np.cumsum(stays)])
    own = np.diff(before[tokens.offsets])
    places = np.arange(size, dtype=np.int64)
    released = length.released(own, Draws(key, tags, places, np.zeros(size, dtype=np.int64)))
    released = np.where(present, released, 0)
    rank = before[:-1] - np.repeat(before[tokens.offsets[:-1]], np.diff(tokens.offsets))
    stays &= rank < np.repeat(released, np.diff(tokens.offsets))
    offsets = np.concatenate([[0], np.cumsum(released)]).astype(np.int64)
    documents = np.repeat(places, released)
    positions = np.arange(offsets[-1]) - offsets[documents]
    is_own = positions < own[documents]
    fill = np.flatnonzero(~is_own)
    starts = tokens.documents[documents + 1].astype(np.int32)
    ends = starts.copy()
    classes, ids = np.full(starts.size, WORD, dtype=np.uint8), np.empty(starts.size, dtype=np.int32)
    roles = np.full(starts.size, KNOWN_WORD, dtype=np.uint8)
    ids[fill] = fillers.cells(Draws(key, tags, documents[fill], positions[fill]).uint64(FILLER))
    for new, old in (
        (starts, tokens.starts), (ends, tokens.ends), (classes, tokens.classes), (ids, tokens.ids), (roles, chunk.roles)
    ):  # fmt: skip
        new[is_own] = old[stays]
    made = Tokens(tokens.data, tokens.documents, starts, ends, classes, ids, offsets)
    return replace(chunk, tokens=made, roles=roles, by_role=np.bincount(roles, minlength=len(ALL_ROLES)))


def length_epsilon(length: Length | None) -> float:
    """Return the cost of the length alone, for each word of difference; 0 if it costs nothing."""
    return length.epsilon if isinstance(length, LengthNoise) else 0.0
