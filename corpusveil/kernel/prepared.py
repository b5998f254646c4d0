"""Preparations of a release and its readers for a space and a text policy: the tokenizer, the words as written."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from corpusveil.collocations.collocation_table import Collocations
from corpusveil.sampling.weights import WeightTable, integer_weights
from corpusveil.spaces import Space
from corpusveil.spaces.vocabulary import parts
from corpusveil.storage.documents import Documents
from corpusveil.text.languages import function_words
from corpusveil.text.output_words import Wording, concatenate
from corpusveil.text.policy import TextPolicy
from corpusveil.text.text_writer import role_table
from corpusveil.text.tokens import MAX_BYTES, Tokenizer, string_buffers
from corpusveil.text.word_table import WordTable

if TYPE_CHECKING:
    from corpusveil.collocations.tokenizers import Joiner

CHUNK_BYTES = 1 << 21
"""Documents are worked on in runs of about this many bytes: the fewer runs, the more seldom each step has to bring its
table into the cache again."""
_BLANKS = np.frombuffer(b" \n\t", dtype=np.uint8)
_WINDOW = 1 << 16


@dataclass(frozen=True, slots=True)
class Prepared:
    """The tables that a process prepares once for a space and a text policy."""

    tokenizer: Tokenizer
    wording: Wording
    roles: npt.NDArray[np.uint8]
    public: WeightTable
    joiner: Joiner | None
    actions: npt.NDArray[np.uint8]


@functools.lru_cache(maxsize=4)
def public_weights(space: Space) -> npt.NDArray[np.uint64]:
    """Return the integer weights that ``resample`` draws with: the space's public counts, uniform without them."""
    counts = space.counts
    weights = integer_weights(np.zeros(len(space), dtype=np.int64) if counts is None else counts)
    weights.flags.writeable = False  # each caller has the same array
    return weights


@functools.lru_cache(maxsize=4)
def prepare(space: Space, policy: TextPolicy, collocations: Collocations | None = None) -> Prepared:
    """Build look-up tables, word forms and the public draw for one space and policy; once a process."""
    words, offsets = space.vocabulary.text, space.vocabulary.offsets.astype(np.int64)
    is_stop = np.zeros(len(space), dtype=np.bool_)
    table_words, table_offsets = words, offsets
    if policy.parts_stop_words():
        vocabulary = space.vocabulary
        stop_words = function_words(policy.language)
        extra = sorted(word.encode() for word in stop_words if word not in vocabulary)
        more, more_offsets = concatenate(extra)
        table_words = np.concatenate([words, more])
        table_offsets = np.concatenate([offsets, more_offsets[1:] + offsets[-1]])
        is_stop = np.append(is_stop, np.ones(len(extra), dtype=np.bool_))
        is_stop[[vocabulary.id(word) for word in stop_words if word in vocabulary]] = True
    joiner = None
    if collocations is not None:
        table_words, table_offsets, joiner = _joined(space, policy, collocations, table_words, table_offsets)
    table = WordTable.build(table_words, table_offsets)
    return Prepared(
        Tokenizer(table, policy.hyphens, policy.language),
        Wording.build(_spoken(space, table), table.offsets[: len(space) + 1], capitals=policy.case == "restore"),
        role_table(is_stop),
        WeightTable(public_weights(space)),
        joiner,
        policy.actions(),
    )


def _spoken(space: Space, table: WordTable) -> npt.NDArray[np.uint8]:
    """Return the words' bytes with the parts of collocations apart: ``new_york`` is written as two words."""
    keys = table.keys
    joined = np.flatnonzero(keys[: table.offsets[len(space)]] == ord("_"))
    if not joined.size:
        return keys
    keys = keys.copy()
    words = np.searchsorted(table.offsets, joined, side="right") - 1
    several = {int(word) for word in np.unique(words) if len(parts(space.word(int(word)))) > 1}
    keys[[at for at, word in zip(joined.tolist(), words.tolist(), strict=True) if word in several]] = ord(" ")
    return keys


def _joined(
    space: Space,
    policy: TextPolicy,
    collocations: Collocations,
    words: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], Joiner]:
    """Add the words of collocations that the tokenizer does not know yet; return words, offsets and their joiner."""
    held = collocations.restricted(space.vocabulary)
    known = offsets.size - 1
    reader = Tokenizer(WordTable.build(words, offsets), policy.hyphens)  # each of these is a token already
    ids = reader.tokenize(held.words).ids.copy()
    new = np.flatnonzero(ids < 0)
    more, more_offsets = concatenate([held.words[number].encode() for number in new])
    ids[new] = np.arange(known, known + new.size)
    tokenizers = importlib.import_module("corpusveil.collocations.tokenizers")  # who joins no words does without
    joiner: Joiner = tokenizers.Joiner.for_space(
        held, cast("Any", policy.tokenizer), space, ids, known, known + new.size
    )
    return np.concatenate([words, more]), np.concatenate([offsets, more_offsets[1:] + offsets[-1]]), joiner


def chunks(documents: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Part documents into runs of about ``CHUNK_BYTES``, one document at least."""
    first = 0
    while first < documents.size - 1:
        last = int(np.searchsorted(documents, documents[first] + CHUNK_BYTES, side="right")) - 1
        last = min(max(last, first + 1), documents.size - 1)
        yield first, last
        first = last


def runs(documents: Documents) -> Iterator[tuple[Documents, npt.NDArray[np.uint8], npt.NDArray[np.int64]]]:
    """Part documents likewise; yield each run of D, and its texts as they are given, as bytes and int64 [D + 1]."""
    data, places = string_buffers(documents.texts)
    for first, last in chunks(places):
        yield documents.part(first, last), data, places[first : last + 1]


def parts_of(data: npt.NDArray[np.uint8], start: int, end: int) -> Iterator[npt.NDArray[np.int64]]:
    """Part ``data[start:end]`` into runs int64 [2] of about ``CHUNK_BYTES`` that begin at blanks, if there are any."""
    while CHUNK_BYTES * 2 < end - start <= MAX_BYTES:
        window = np.arange(0)
        at = start + CHUNK_BYTES
        while at < end and not window.size:
            window = np.flatnonzero(np.isin(data[at : min(at + _WINDOW, end)], _BLANKS))
            at += int(window[0]) if window.size else _WINDOW
        if not window.size:
            break
        yield np.array([start, at], dtype=np.int64)
        start = at
    yield np.array([start, end], dtype=np.int64)
