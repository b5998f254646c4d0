"""Denoising: what the words of a release most likely were, by the published law and a public language model.

A function of the release and public data alone is post-processing, so every guarantee of the release still holds.
Nothing else is read here: not the original, not the records, not which released words replace numbers or unknown words.
"""

from __future__ import annotations

import functools
import math
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.budget import Budget
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.compiled import compiled
from corpusveil.errors import SettingError, VersionError
from corpusveil.kernel.prepared import Prepared, chunks, prepare, public_weights
from corpusveil.mechanisms import Mechanism
from corpusveil.sampling.weights import TOTAL
from corpusveil.text import policy as roles
from corpusveil.text.classes import TOKENIZER_VERSION, WORD
from corpusveil.text.languages import rule
from corpusveil.text.policy import ALL_ROLES, MASKS, TextPolicy
from corpusveil.text.sentences import ends_and_crossed
from corpusveil.text.text_writer import (
    NO_SPAN_TEXTS,
    ROLES_OF_CLASSES,
    Decided,
    assign_roles,
    enter,
    output_bound,
    write_text,
)
from corpusveil.text.tokens import Tokens, string_buffers
from corpusveil.text.utf8 import CHARACTERS
from corpusveil_evaluate.readers.ngrams.channel import ALL, Candidates, changes_of, public_shares, spoken_of
from corpusveil_evaluate.readers.ngrams.lattice import Runs, search_runs
from corpusveil_evaluate.readers.ngrams.lattice_bigrams import Channel
from corpusveil_evaluate.readers.ngrams.lattice_room import LONGEST, Room, Spoken, room
from corpusveil_evaluate.readers.ngrams.model import LanguageModel

LEAST = 0.01
"""The least share, relative to the best, of a candidate after the first pass (``lattice.py``)."""
MARGIN = 0.4
"""The default for texts to be read, in nats: the largest at which no utility falls (docs/evaluation-figures.md)."""
MEMORY = 2000.0
"""How many words of public text a document weighs as much as (``lattice.py``); chosen on public text."""
NO_FACTS = "A denoised text may read well, and no single fact in it can be trusted: any word may be a wrong guess."
CUT = 1e-3
"""The least share, relative to the likeliest, of a candidate without context."""
MOST = 256
_BREAK, _PLACE, _SILENT = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How the originals of released words are searched; no setting affects privacy.

    ``breadth`` candidates are tried for each word, at most ``width`` of them in trigrams. ``unknown_share`` is the
    share of replaced tokens that are outside the vocabulary; None: by the model's counts. ``margin``, in nats, is by
    how much a word has to be likelier than a released rare word to replace it (``changes_of``). 0 is what an attacker
    guesses, who does not hold back; ``MARGIN`` is for readers.
    """

    breadth: int = 32
    width: int = 16
    unknown_share: float | None = None
    margin: float = 0.0

    def __post_init__(self) -> None:
        for name in ("breadth", "width"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
                raise SettingError(f"{name} = {value}: give a whole number from 1 to {MOST}.")
        if self.unknown_share is not None and not 0 <= self.unknown_share < 1:
            raise SettingError(f"unknown_share = {self.unknown_share}: give a number from 0 to below 1.")
        if not 0 <= self.margin < math.inf:
            raise SettingError(f"margin = {self.margin}: give a number of nats, 0 or more.")


THOROUGH = Search(breadth=64, width=40)
"""An attacker has time: at small epsilons, the default misses a tenth of what this search guesses."""


def check_readable(budget: Budget, policy: TextPolicy) -> None:
    """Raise UserError if a reader of a release cannot know the epsilon at which its words were replaced.

    Also for a release whose words cannot be told apart.
    """
    if rule(policy.language, "unspaced"):
        raise SettingError(
            f"language = {policy.language!r}: words of this release have no blanks between them, so a reader cannot "
            "tell which were drawn; denoise releases in other languages only."
        )
    if budget.per == "token":
        return
    why = None
    if budget.allocation == "word-share" and policy.tokenizer != "word":
        why = "how many words the original units had, which its text does not show"
    elif budget.allocation == "word-share":
        if policy.numbers == "resample" or "resample" in (policy.contacts, policy.punctuation, policy.other):
            why = "how many of its words represent numbers or other tokens, which its text does not show"
        elif "drop" in (policy.unknown_words, policy.stop_words):
            why = "how many words were dropped, which its text does not show"
    if why is not None:
        raise SettingError(
            f"allocation = {budget.allocation!r}: the share of a word in this release depends on {why}, so a reader "
            "does not know the law of the word. Denoise a release with allocation uniform, or with a budget "
            "per token."
        )


@compiled
def _runs(kinds: Any, ends: Any, offsets: Any, longest: int, index: Any, starts: Any) -> Any:
    """List the places of unbroken runs of words; return the numbers of runs and places."""
    runs = 0
    n = 0
    for document in range(offsets.size - 1):
        inside = False
        for t in range(offsets[document], offsets[document + 1]):
            if kinds[t] == _PLACE:
                if not inside or n - starts[runs - 1] >= longest:
                    starts[runs] = n
                    runs += 1
                    inside = True
                index[n] = t
                n += 1
            elif kinds[t] == _BREAK:
                inside = False
            if ends[t]:
                inside = False
    starts[runs] = n
    return runs, n


def places_of(tokens: Tokens, words: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the places of words, bool [T], in unbroken runs, int64 [P], and where runs begin, int64 [R + 1]."""
    kinds = np.where(words, _PLACE, _BREAK).astype(np.uint8)
    ends, silent = ends_and_crossed(tokens)
    kinds[silent] = _SILENT
    index, starts = np.empty(len(tokens), np.int64), np.empty(len(tokens) + 1, np.int64)
    runs, places = _runs(kinds, ends, tokens.offsets, LONGEST, index, starts)
    return index[:places], starts[: runs + 1]


class Law(Protocol):
    """Candidates for released words, ``words`` int32 [R, count], padded by -1, and the law of their replacement.

    ``emissions`` float64 [R, count] may be scaled by row.
    """

    words: npt.NDArray[np.int32]
    emissions: npt.NDArray[np.float64]


@dataclass(slots=True)
class Reader:
    """The data that a process prepares once to denoise a release."""

    prepared: Prepared
    candidates: Candidates
    masks: bool
    shares: npt.NDArray[np.float64]
    said: Spoken
    unknown: npt.NDArray[np.float64]
    rho: float
    room: Room
    changes: npt.NDArray[np.float64]
    lock: threading.Lock = field(default_factory=threading.Lock, init=False)


@dataclass(frozen=True, slots=True)
class Denoiser:
    """Denoises batches of released documents. Cheap to pickle: space and model are sent as their URLs."""

    mechanism: Mechanism
    budget: Budget
    policy: TextPolicy
    model: LanguageModel
    search: Search = field(default_factory=Search)
    collocations: Collocations | None = None
    tokenizer_version: str | None = None
    spans: bool = field(default=False, kw_only=True)
    """Whether the release has masks of spans, which are no words."""

    def __post_init__(self) -> None:
        check_readable(self.budget, self.policy)
        if self.spans and self.budget.per == "document":
            raise SettingError(
                "This release has spans, and its documents share a budget: a reader cannot tell how many words shared "
                "it, so no epsilon can be computed; only a budget per token can be denoised with spans."
            )

    def readable(self, texts: Sequence[str | None]) -> list[Any]:
        """Denoise the texts of a release, as any reader of it can; None stays. Nothing is drawn or spent."""
        reader, (data, places) = reader_of(self), string_buffers(pa.array(texts, pa.large_string()))
        pieces, lengths = [np.empty(0, np.uint8)], [np.zeros(1, np.int64)]
        for first, last in chunks(places):
            with reader.lock:
                piece, sizes = self._chunk(reader, data, places[first : last + 1])
            pieces.append(piece)
            lengths.append(sizes)
        offsets = pa.py_buffer(np.cumsum(np.concatenate(lengths)))
        made = pa.LargeStringArray.from_buffers(len(texts), offsets, pa.py_buffer(np.concatenate(pieces)))
        return [None if text is None else read for text, read in zip(texts, made.to_pylist(), strict=True)]

    def _chunk(
        self, reader: Reader, data: npt.NDArray[np.uint8], documents: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        tokens, replaced, kept = self.read(reader, data, documents)
        guessed = self.guesses(reader, tokens, replaced, kept)
        role = np.where(replaced, roles.KNOWN_WORD, ROLES_OF_CLASSES[tokens.classes]).astype(np.uint8)
        actions = np.full(len(ALL_ROLES), roles.KEEP, np.uint8)
        actions[roles.KNOWN_WORD] = roles.PRIVATIZE
        wording = reader.prepared.wording
        by_role = np.bincount(role, minlength=len(ALL_ROLES))
        at = np.flatnonzero(replaced).astype(np.int32)
        guessed_bytes = enter(guessed[at], at, wording.longest, guessed)
        out = np.empty(
            output_bound(tokens.data.size, by_role, actions, guessed_bytes, wording.mask_offsets, keep=True), np.uint8
        )
        offsets = np.empty(tokens.documents.size, np.int64)
        forms = len(self.mechanism.space) if self.policy.case == "restore" else 0  # words between case forms
        write_text(
            tokens.arrays, Decided(role, actions, guessed), wording, forms, NO_SPAN_TEXTS, CHARACTERS, True, False, out,
            offsets,
        )  # fmt: skip
        return out[: offsets[-1]], np.diff(offsets)

    def read(
        self, reader: Reader, data: npt.NDArray[np.uint8], documents: npt.NDArray[np.int64]
    ) -> tuple[Tokens, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return the tokens, or units, of released text, which of them were replaced, and which are words in the clear.

        A word of the vocabulary was replaced, by the mechanism or by a public draw, unless it is part of a mask, or a
        stop word in a release that does not replace these.
        """
        version = f"{TOKENIZER_VERSION}{self.policy.reading_version()}"
        if self.tokenizer_version not in (None, version):
            raise VersionError(
                f"This worker tokenizes by version {version}, the release by {self.tokenizer_version}; use the "
                "versions of corpusveil and of its extras that made the release."
            )
        tokens = reader.prepared.tokenizer.tokens(data, documents)
        if reader.prepared.joiner is not None:
            tokens = reader.prepared.joiner(tokens)
        role = np.empty(len(tokens), np.uint8)
        assign_roles(tokens.classes, tokens.ids, reader.prepared.roles, role, np.zeros(len(ALL_ROLES), np.int64))
        replaced = role == roles.KNOWN_WORD
        stops = role == roles.STOP_WORD
        replaced |= stops & (reader.prepared.actions[roles.STOP_WORD] == roles.PRIVATIZE)
        replaced &= tokens.ids < len(self.mechanism.space)
        masked = _within(_MASKS, tokens) if reader.masks else np.zeros(len(tokens), np.bool_)
        if self.spans:
            masked |= _within(_WRITTEN_FOR_SPANS, tokens)
        kept = stops & ~replaced & (tokens.ids < len(self.mechanism.space)) & ~masked
        return tokens, replaced & ~masked, kept

    def guesses(
        self, reader: Any, tokens: Tokens, replaced: npt.NDArray[np.bool_], kept: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int32]:
        """Return the likeliest original of each replaced token, int32 [T]; other tokens keep their ids (0: none)."""
        rows = np.full(len(tokens), -1, np.int64)
        rows[replaced] = self.candidate_rows(reader, tokens, replaced)
        out = np.maximum(tokens.ids, 0).astype(np.int32)
        self.search_words(reader, tokens, replaced, kept, rows, reader.candidates, reader.rho, out)
        return out

    def search_words(
        self, reader: Reader, tokens: Tokens, replaced: npt.NDArray[np.bool_], kept: npt.NDArray[np.bool_],
        rows: npt.NDArray[np.int64], law: Law, rho: float, out: npt.NDArray[np.int32],
    ) -> None:  # fmt: skip
        """Write the likeliest originals of words in their context into ``out``, int32 [T].

        ``rows`` int64 [T] are the rows of ``law`` for each replaced token, -1 for other tokens; ``rho`` is the share of
        replaced tokens that were outside the vocabulary.
        """
        index, starts = places_of(tokens, replaced | kept)
        documents = np.searchsorted(np.append(index, len(tokens))[starts], tokens.offsets)
        originals = np.empty(index.size, np.int32)
        search_runs(
            out[index], rows[index], Runs(starts, documents), Channel(law.words, law.emissions, reader.unknown, rho),
            LEAST, reader.changes, reader.shares, MEMORY, reader.said, self.model.arrays, reader.room, originals, ALL,
            originals,
        )  # fmt: skip
        out[index] = originals

    def candidate_rows(self, reader: Reader, tokens: Tokens, replaced: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Return the row of candidates of each replaced token, int64 [K]."""
        ids, epsilon = tokens.ids[replaced], self.epsilons(tokens, replaced)
        out = np.empty(ids.size, np.int64)
        for value in np.unique(epsilon).tolist():
            some = epsilon == value
            out[some] = reader.candidates.candidate_rows(value, ids[some])
        return out

    def epsilons(self, tokens: Tokens, replaced: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """Return the epsilon at which each replaced token was replaced, float64 [K], as any reader can compute it."""
        budget, size = self.budget, tokens.offsets.size - 1
        at = np.flatnonzero(replaced)
        if budget.per == "token":
            return np.full(at.size, budget.epsilon)
        document = np.repeat(np.arange(size), np.diff(tokens.offsets))
        counted = (tokens.classes == WORD) if budget.allocation == "word-share" else replaced
        whole = np.bincount(document[counted], minlength=size).astype(np.int64)
        return budget.shares(whole[document[at]])


_MASKS = re.compile(b"|".join(re.escape(mask.encode()) for mask in MASKS))
_WRITTEN_FOR_SPANS = re.compile(rb"\[[a-z][a-z0-9_]*\]")


def written_for_spans(tokens: Tokens) -> list[tuple[int, int]]:
    """Return where masks of spans begin and end in the data of released texts."""
    return _places(_WRITTEN_FOR_SPANS, tokens)


def _places(pattern: re.Pattern[bytes], tokens: Tokens) -> list[tuple[int, int]]:
    return [match.span() for match in pattern.finditer(tokens.data.tobytes())]


def _within(pattern: re.Pattern[bytes], tokens: Tokens) -> npt.NDArray[np.bool_]:
    """Say which tokens are within what a pattern finds, such as ``[name]`` or ``NAME_7F3A1C02D4E6``."""
    inside = np.zeros(tokens.data.size + 1, np.int32)
    for start, end in _places(pattern, tokens):
        inside[start] += 1
        inside[end] -= 1
    return np.cumsum(inside)[tokens.starts] > 0


@functools.lru_cache(maxsize=2)
def reader_of(denoiser: Denoiser) -> Reader:
    """Prepare to denoise; once a process."""
    space, model, search = denoiser.mechanism.space, denoiser.model, denoiser.search
    shares, covered = public_shares(space, model)
    resampled = "resample" in (denoiser.policy.unknown_words, denoiser.policy.numbers)
    rho = 0.0
    if resampled:
        rho = min(0.5, 1.0 - covered) if search.unknown_share is None else search.unknown_share
    return Reader(
        prepare(space, denoiser.policy, denoiser.collocations),
        Candidates(denoiser.mechanism, shares, min(search.breadth, len(space)), CUT),
        "mask" in denoiser.policy.as_dict().values(),
        shares,
        spoken_of(space, model, shares),
        public_weights(space).astype(np.float64) / TOTAL,
        rho,
        room(min(search.breadth, len(space)), search.width + (search.margin > 0), len(space)),
        changes_of(shares, search.margin),
    )
