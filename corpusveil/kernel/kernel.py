"""The batch kernel: documents in, privatized documents out. Every engine runs this and nothing else."""

from __future__ import annotations

import functools
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.arrays import Scratch
from corpusveil.budget import Budget
from corpusveil.budget.accounting import Readings, joined, readings, unbounded, with_length
from corpusveil.budget.length import Length
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.compiled import compiled, u
from corpusveil.errors import ChangedError, UnsetError, VersionError
from corpusveil.kernel.lengths import at_released_length, fillers_of, length_epsilon
from corpusveil.kernel.prepared import Prepared, chunks, parts_of, prepare, public_weights
from corpusveil.kernel.span_texts import digest_of_list, public_list, span_texts
from corpusveil.kernel.surrogates import surrogates
from corpusveil.mechanisms import Mechanism
from corpusveil.recognizers.registry import make as make_recognizer
from corpusveil.recognizers.registry import mark as mark_of
from corpusveil.recognizers.registry import name_of
from corpusveil.recognizers.row_values import RowValues
from corpusveil.sampling.draws import RESAMPLE as RESAMPLE_PURPOSE
from corpusveil.sampling.draws import DrawKey, Draws, keyed_tags, with_values
from corpusveil.sampling.weights import TOTAL
from corpusveil.spaces import Space
from corpusveil.spaces.vocabulary import parts
from corpusveil.storage.documents import Documents
from corpusveil.text import languages
from corpusveil.text.classes import SPAN, TOKENIZER_VERSION, WORD
from corpusveil.text.counts import Counts
from corpusveil.text.markup import Texts
from corpusveil.text.policy import ALL_ROLES, PRIVATIZE, REPLACE, RESAMPLE, SURROGATE, TextPolicy
from corpusveil.text.policy import SPAN as SPAN_ROLE
from corpusveil.text.spans import Covered, OfFunction, Recognizer, SpanPolicy, Spans, covered
from corpusveil.text.text_writer import (
    NO_SURROGATES,
    Surrogates,
    assign_roles,
    enter,
    output_bound,
    write_text,
)
from corpusveil.text.tokens import Tokens, string_buffers
from corpusveil.text.utf8 import KINDS, LOWER

KERNEL_VERSION = 1
"""Part of the release digest; goes up whenever the same release would write other text."""


_scratch = Scratch()


@dataclass(frozen=True, slots=True)
class Picked:
    """The K tokens that an action is for, of which documents they are, where in these, and their ids; int32 [K]."""

    index: npt.NDArray[np.int32]
    documents: npt.NDArray[np.int32]
    positions: npt.NDArray[np.int32]
    ids: npt.NDArray[np.int32]

    def draws(self, key: DrawKey, tags: npt.NDArray[np.uint64]) -> Draws:
        """Return what these tokens draw."""
        return Draws(key, tags, self.documents, self.positions)


@compiled
def _pick(
    roles: Any, actions: Any, action: int, ids: Any, offsets: Any,
    index: Any, documents: Any, positions: Any, words: Any,
) -> Any:  # fmt: skip
    """List the tokens with one action: which, of which document, at which position, their ids; return how many."""
    wanted = 0  # a bit for each role
    for role in range(actions.size):
        wanted |= (actions[role] == action) << role
    n = np.int64(0)
    for document in range(offsets.size - 1 if wanted else 0):
        first = offsets[document]
        for t in range(first, offsets[document + 1]):
            index[u(n)] = t
            documents[u(n)] = document
            positions[u(n)] = t - first
            words[u(n)] = ids[u(t)]
            n += (wanted >> np.int64(roles[u(t)])) & 1  # written over by the next unless it is one
    return n


def picked(
    tokens: Tokens, roles: npt.NDArray[np.uint8], actions: npt.NDArray[np.uint8], action: int, before: int = 0
) -> Picked:
    """Return the tokens that an action is for; they hold until the next ones of this action are asked for.

    ``before`` is how many tokens of the document precede these, of which it is a part.
    """
    names = ("index", "documents", "positions", "words")
    lists = [_scratch.array(f"{name} of {action}", len(tokens), np.int32) for name in names]
    size = _pick(roles, actions, action, tokens.ids, tokens.offsets, *lists)
    chosen = Picked(*(values[:size] for values in lists))
    if before:
        np.add(chosen.positions, before, out=chosen.positions)
    return chosen


@functools.lru_cache(maxsize=2)
def words_of(space: Space) -> npt.NDArray[np.int64]:
    """Return how many words each entry of the vocabulary has; int64 [V]."""
    return np.array([len(parts(space.word(id))) for id in range(len(space))], dtype=np.int64)


@functools.lru_cache(maxsize=4)
def _recognizers(policy: SpanPolicy, marks: tuple[str, ...], space: Space) -> tuple[Recognizer, ...]:
    """Return what finds spans; made once per process. Raises UserError where it is not what the release was made of."""
    for name, mark, here in zip((*policy.find, *policy.lists), marks, span_marks(policy), strict=True):
        if mark != here:
            raise ChangedError(
                f"{name_of(name)}: this is not what the release was made with, or another version of it; give the same "
                "to all processes, or start again with another output."
            )
    return tuple(make_recognizer(name, space) for name in policy.find)


def span_marks(policy: SpanPolicy) -> tuple[str, ...]:
    """Return what decides what is found and written for spans: of each recognizer, and of each list of pseudonyms."""
    return (*map(mark_of, policy.find), *(public_list(url, digest_of_list(url))[2] for url in policy.lists))


@dataclass(frozen=True, slots=True)
class Kernel:
    """Privatizes batches of documents. Pickles small: a saved space goes by address.

    It holds what this release draws from, which for this release is as secret as the key; the key itself it does not.
    """

    mechanism: Mechanism
    budget: Budget
    policy: TextPolicy
    draw_key: DrawKey
    tokenizer_version: str
    collocations: Collocations | None = None
    same_noise: bool = False
    """Equal texts get equal noise, whatever their identities."""
    length: Length | None = None
    """How many words documents are released with; None: as many as they have."""
    spans: SpanPolicy | None = None
    span_marks: tuple[str, ...] = ()
    """What recognizers and lists of pseudonyms are in every process."""
    pseudonyms: DrawKey | None = None
    """What pseudonyms are drawn with; the same in each release under one key of pseudonyms."""

    def privatize(self, documents: Documents) -> tuple[pa.LargeStringArray, Counts]:
        """Privatize D documents: their texts -> large_string [D], nulls staying null, and what was counted.

        Identities, the column's name and texts go into the noise. Raises UserError without ``scopes`` where pseudonyms
        are equal within units only, and when this process tokenizes otherwise than the release says.
        """
        texts, column, units, known = documents.texts, documents.column, documents.scopes, documents.known
        if units is None and self.scoped:
            raise UnsetError(
                "pseudonyms = 'unit': documents have no unit here; name its column where a corpus or a frame is "
                "privatized, or choose corpus or document."
            )
        if self.tokenizer_version != (version := f"{TOKENIZER_VERSION}{self.policy.reading_version()}"):
            raise VersionError(
                f"This worker tokenizes by version {version}, the release by {self.tokenizer_version}; use the same "
                "version of corpusveil and of its extras everywhere."
            )
        space = self.mechanism.space
        prepared = prepare(space, self.policy, self.collocations)
        identities = self._identified(documents)
        given, places = string_buffers(texts)
        read = Texts.read(texts, self.policy)
        counts = Counts(documents=len(texts) - texts.null_count, input_bytes=int(places[-1] - places[0]))
        body = io.BytesIO()
        lengths: list[npt.NDArray[np.int64]] = [np.zeros(1, dtype=np.int64)]
        present = texts.is_valid().to_numpy(zero_copy_only=False)
        for first, last in chunks(places):
            tags = self.noise_tags(self.draw_key.tag, column, identities[first:last], given, places[first : last + 1])
            some = read.part(first, last)
            if last - first == 1 and self._goes_in_parts():
                before = body.tell()
                self._write_long(prepared, some, tags, counts, body)
                lengths.append(np.array([body.tell() - before]))
                continue
            own = () if units is None else units[first:last]
            values = None if known is None else known[first:last]
            piece, sizes, _ = self._chunk(prepared, some, tags, present[first:last], counts, units=own, known=values)
            body.write(piece.data)
            lengths.append(sizes)
        offsets = np.cumsum(np.concatenate(lengths))
        valid = pa.py_buffer(np.packbits(present, bitorder="little"))
        array = pa.LargeStringArray.from_buffers(
            len(texts),
            pa.py_buffer(offsets),
            pa.py_buffer(body.getvalue()),
            valid if texts.null_count else None,
            texts.null_count,
        )
        return languages.written(array, self.policy.language, self.policy.layout), counts

    @property
    def scoped(self) -> bool:
        """Whether documents need units, within which pseudonyms are equal."""
        return self.spans is not None and self.spans.scoped

    def _identified(self, documents: Documents) -> Sequence[Any]:
        """Return what distinguishes documents: also the values that are masked, which decide where words stand."""
        identities, known = documents.identities, documents.known
        if self.spans is None or not self.spans.spans_from:
            return identities
        if known is None:
            raise UnsetError(
                "spans_from: documents have no columns here, and values of a row's columns are to be masked; privatize "
                "a corpus or a frame, or leave spans_from out."
            )
        if self.same_noise:
            identities = [b""] * len(known)
        return [with_values(identity, values) for identity, values in zip(identities, known, strict=True)]

    def noise_tags(
        self,
        key: bytes,
        column: str,
        identities: Sequence[Any],
        data: npt.NDArray[np.uint8],
        documents: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.uint64]:
        """Return what tells the noise of D documents of this release apart, under a key; uint64 [D, 2].

        Under the key of the draws these are the tags that the noise is drawn by, under a ledger's the fingerprints by
        which it is counted: what makes noise fresh makes an entry, because both are computed here.
        """
        if self.same_noise and not (self.spans is not None and self.spans.spans_from):  # see _identified
            identities = [b""] * (documents.size - 1)
        return keyed_tags(key, column, identities, data, documents)

    def account(self, documents: Documents, key: bytes) -> tuple[npt.NDArray[np.uint64], Readings]:
        """Return what D documents would spend, without drawing: their readings.

        The tags, uint64 [D, 2], distinguish under ``key`` the noise of different documents of this release.
        """
        texts, column, known = documents.texts, documents.column, documents.known
        prepared = prepare(self.mechanism.space, self.policy, self.collocations)
        identities = self._identified(documents)
        given, places = string_buffers(texts)
        read = Texts.read(texts, self.policy)
        noise = self.noise_tags(key, column, identities, given, places)
        present = texts.is_valid().to_numpy(zero_copy_only=False)
        spent: list[Readings] = []
        for first, last in chunks(places):
            part = read.part(first, last)
            values = None if known is None else known[first:last]
            tokens, roles, _, words, _ = self._parsed(prepared, part, values)
            if self.length is not None:
                own = given, places[first : last + 1]
                tags = self.noise_tags(self.draw_key.tag, column, identities[first:last], *own)
                tokens, roles = self._at_length(self.length, prepared, tokens, roles, tags, present[first:last])
            replaced, resampled = (picked(tokens, roles, prepared.actions, action) for action in (PRIVATIZE, RESAMPLE))
            epsilons = self._shares(tokens, replaced, resampled, words)
            different, at = np.unique(epsilons, return_inverse=True)
            public = public_weights(self.mechanism.space).astype(np.float64) / TOTAL
            unknown = self.mechanism.unknown_bound_at_most(public)
            bounds = np.array([_bound(self.mechanism, float(epsilon), unknown) for epsilon in different])
            drawn = np.bincount(resampled.documents, minlength=last - first).astype(np.float64)
            drawn[drawn > 0] *= unknown  # which may be infinite
            spent.append(readings(self.budget, replaced.documents, epsilons, bounds[at], drawn, last - first))
        whole = with_length(joined(spent), length_epsilon(self.length))
        return noise, whole if self.mechanism.private else unbounded(whole)

    def read(
        self, texts: pa.Array, known: Sequence[Sequence[str]] | None = None
    ) -> tuple[Tokens, npt.NDArray[np.uint8]]:
        """Return the tokens of documents as they are treated, and the action for each, uint8 [T]; nothing is drawn.

        They hold until the next texts are read; ``known`` are those of ``privatize``.
        """
        prepared = prepare(self.mechanism.space, self.policy, self.collocations)
        tokens, roles, *_ = self._parsed(prepared, Texts.read(texts, self.policy), known)
        return tokens, prepared.actions[roles]

    def _parsed(
        self, prepared: Prepared, texts: Texts, known: Sequence[Sequence[str]] | None = None
    ) -> tuple[Tokens, npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64] | None, Covered | None]:
        """Return tokens, or units, their roles, how many there are of each, words of each document, and spans.

        Words are counted where the budget asks for them. The id of a token that is a span is -2 less its number.
        """
        tokens = prepared.tokenizer.tokens(texts.data, texts.documents, _scratch)
        marked = None
        if self.spans is not None:
            recognizers = _recognizers(self.spans, self.span_marks, self.mechanism.space)
            if known is not None and self.spans.spans_from:
                recognizers = (*recognizers, OfFunction("spans_from", RowValues(known)))
            tokens, marked = covered(tokens, Spans.joined(recognize(tokens) for recognize in recognizers))
        words = _words(tokens) if self.budget.allocation == "word-share" else None
        if prepared.joiner is not None:
            tokens = prepared.joiner(tokens)
        if marked is not None:
            tokens.ids[tokens.classes == SPAN] = -2 - np.arange(marked.starts.size)
        roles = _scratch.array("roles", len(tokens), np.uint8)
        by_role = np.zeros(len(ALL_ROLES), dtype=np.int64)
        assign_roles(tokens.classes, tokens.ids, prepared.roles, roles, by_role)
        return tokens, roles, by_role, words, marked

    def _chunk(
        self,
        prepared: Prepared,
        texts: Texts,
        tags: npt.NDArray[np.uint64],
        present: npt.NDArray[np.bool_],
        counts: Counts,
        before: int = 0,
        units: Sequence[str] = (),
        known: Sequence[Sequence[str]] | None = None,
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], int]:
        """Return what documents become, how many bytes each has, and how many tokens all had.

        Or part of a document, which has ``before`` tokens in earlier parts.
        """
        tokens, roles, by_role, words, marked = self._parsed(prepared, texts, known)
        counts.roles += by_role
        if not before:
            counts.note_foreign(roles, tokens.offsets)
        if marked is not None:
            kinds = np.bincount(marked.kinds, minlength=len(marked.names)).tolist()
            counts.spans.update({name: count for name, count in zip(marked.names, kinds, strict=True) if count})
        if self.length is not None:
            tokens, roles = self._at_length(self.length, prepared, tokens, roles, tags, present)
            by_role = np.bincount(roles, minlength=len(ALL_ROLES))
        drawn, drawn_bytes = self._draw(prepared, tokens, roles, tags, words, counts, before)
        replaced = self._surrogates(prepared, tokens, roles, tags, drawn, before)
        if marked is not None and self.spans is not None:
            given = self._spans(self.spans, marked, prepared, tokens, roles, tags, units)
            drawn[roles == SPAN_ROLE] = np.arange(given.offsets.size - 1) + replaced.offsets.size - 1
            replaced = replaced.followed_by(given)
        keep_layout = self.policy.layout == "keep"
        wording = prepared.wording
        drawn_bytes += int(replaced.offsets[-1])
        bound = output_bound(
            tokens.data.size, by_role, prepared.actions, drawn_bytes, wording.mask_offsets, keep_layout
        )
        out = np.empty(bound, dtype=np.uint8)
        offsets = np.empty(tokens.documents.size, dtype=np.int64)
        counts.tokens_written += write_text(
            tokens.data, tokens.documents, tokens.starts, tokens.ends, tokens.offsets, roles, prepared.actions, drawn,
            wording.words, wording.offsets, wording.records, len(self.mechanism.space), wording.masks,
            wording.mask_offsets, keep_layout, self.policy.case == "lower", KINDS, LOWER, out, offsets,
            replaced.text, replaced.offsets,
        )  # fmt: skip
        return out[: offsets[-1]], np.diff(offsets), len(tokens)

    def _goes_in_parts(self) -> bool:
        """Whether what becomes of a token depends on nothing in its document beyond the next blank."""
        return self.budget.per == "token" and all(part is None for part in (self.collocations, self.length, self.spans))

    def _write_long(
        self, prepared: Prepared, text: Texts, tags: npt.NDArray[np.uint64], counts: Counts, body: io.BytesIO
    ) -> None:
        """Write what one document becomes, in parts, of which each begins at a blank: memory is for one part."""
        there = np.ones(1, dtype=np.bool_)
        before, begin = 0, body.tell()
        for bounds in parts_of(text.data, int(text.documents[0]), int(text.documents[1])):
            piece, _, size = self._chunk(prepared, Texts(text.data, bounds), tags, there, counts, before)
            before += size
            if piece.size and body.tell() > begin and self.policy.layout == "normalize":
                body.write(b" ")
            body.write(piece.data)

    def _at_length(
        self,
        length: Length,
        prepared: Prepared,
        tokens: Tokens,
        roles: npt.NDArray[np.uint8],
        tags: npt.NDArray[np.uint64],
        present: npt.NDArray[np.bool_],
    ) -> tuple[Tokens, npt.NDArray[np.uint8]]:
        """Return the words that documents are released with, and their roles."""
        fillers = fillers_of(self.mechanism.space, self.policy)
        return at_released_length(tokens, roles, prepared.actions, present, length, self.draw_key, tags, fillers)

    def _surrogates(
        self,
        prepared: Prepared,
        tokens: Tokens,
        roles: npt.NDArray[np.uint8],
        tags: npt.NDArray[np.uint64],
        drawn: npt.NDArray[np.int32],
        before: int,
    ) -> Surrogates:
        """Return the surrogates of numbers, and enter in ``drawn`` which of them a token gets."""
        if self.policy.numbers != "surrogate":
            return NO_SURROGATES
        numbers = picked(tokens, roles, prepared.actions, SURROGATE, before)
        drawn[numbers.index] = np.arange(numbers.index.size)
        return surrogates(tokens, numbers.index, numbers.draws(self.draw_key, tags))

    def _spans(
        self,
        policy: SpanPolicy,
        marked: Covered,
        prepared: Prepared,
        tokens: Tokens,
        roles: npt.NDArray[np.uint8],
        tags: npt.NDArray[np.uint64],
        units: Sequence[str],
    ) -> Surrogates:
        """Return what is written for the tokens that are spans."""
        spans = picked(tokens, roles, prepared.actions, REPLACE)
        which = -2 - spans.ids.astype(np.int64)
        draws = spans.draws(self.draw_key, tags)
        lists = dict(zip(policy.lists, self.span_marks[len(policy.find) :], strict=True))
        return span_texts(policy, marked, which, tokens.data, draws, prepared, self.pseudonyms, lists, units)

    def _draw(
        self,
        prepared: Prepared,
        tokens: Tokens,
        roles: npt.NDArray[np.uint8],
        tags: npt.NDArray[np.uint64],
        words: npt.NDArray[np.int64] | None,
        counts: Counts,
        before: int,
    ) -> tuple[npt.NDArray[np.int32], int]:
        """Return the replacement of each token that gets one, int32 [T], and the bytes of all at most."""
        longest, size = prepared.wording.longest, 0
        drawn = _scratch.array("drawn", len(tokens), np.int32)
        known, resampled = (picked(tokens, roles, prepared.actions, action, before) for action in (PRIVATIZE, RESAMPLE))
        if resampled.index.size:
            cells = prepared.public.cells(resampled.draws(self.draw_key, tags).uint64(RESAMPLE_PURPOSE))
            size += enter(cells, resampled.index, longest, drawn)
        if known.index.size:
            epsilon: float | npt.NDArray[np.float64] = self.budget.epsilon
            if self.budget.per == "document":
                epsilon = self._shares(tokens, known, resampled, words)
            out = self.mechanism.privatize(known.ids, epsilon, known.draws(self.draw_key, tags))
            size += enter(out, known.index, longest, drawn)
            same = out == known.ids
            if self.length is not None:
                same = same[tokens.ends[known.index] > tokens.starts[known.index]]  # no fillers
            counts.privatized += same.size
            counts.fillers += out.size - same.size
            counts.unchanged += int(np.count_nonzero(same))
        return drawn, size

    def _shares(
        self,
        tokens: Tokens,
        known: Picked,
        resampled: Picked,
        words: npt.NDArray[np.int64] | None,
    ) -> npt.NDArray[np.float64]:
        """Return the epsilon of each privatized token, float64 [K], out of its document's budget."""
        budget, size = self.budget, tokens.offsets.size - 1
        if budget.per == "token":
            return np.full(known.index.size, budget.epsilon)
        at_known = known.documents
        replaced = np.bincount(at_known, minlength=size) + np.bincount(resampled.documents, minlength=size)
        return budget.shares(replaced if words is None else words)[at_known]


@functools.lru_cache(maxsize=4096)
def _bound(mechanism: Mechanism, epsilon: float, unknown: float) -> float:
    """Return the plain-LDP bound of one token, known or not; 0 where none holds and ``unbounded`` says so."""
    plain = mechanism.guarantee(epsilon).plain_ldp
    return unknown if plain is None else max(plain, unknown)


def _words(tokens: Tokens) -> npt.NDArray[np.int64]:
    """Return how many words each document has; int64 [D]."""
    before = np.concatenate([[0], np.cumsum(tokens.classes == WORD)])
    return np.diff(before[tokens.offsets]).astype(np.int64)
