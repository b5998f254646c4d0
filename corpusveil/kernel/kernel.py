"""The batch kernel: documents in, privatized documents out. Every engine runs this and nothing else."""

from __future__ import annotations

import functools
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from corpusveil.arrays import Float64, Int32, Int64, UInt8, UInt64
from corpusveil.budget import Budget
from corpusveil.budget.accounting import Readings, joined, readings, unbounded
from corpusveil.collocations.collocation_table import Collocations
from corpusveil.errors import ChangedError, VersionError
from corpusveil.kernel.chunk import Chunk, Picked, scratch
from corpusveil.kernel.prepared import Prepared, parts_of, prepare, public_weights, runs
from corpusveil.kernel.span_texts import span_texts
from corpusveil.mechanisms import Mechanism
from corpusveil.recognizers.registry import named
from corpusveil.sampling.draws import RESAMPLE as RESAMPLE_PURPOSE
from corpusveil.sampling.draws import DrawKey, keyed_tags
from corpusveil.sampling.weights import TOTAL
from corpusveil.spaces import Space
from corpusveil.storage.documents import Documents
from corpusveil.text import languages
from corpusveil.text.classes import SPAN, TOKENIZER_VERSION, WORD
from corpusveil.text.counts import Counts
from corpusveil.text.markup import Texts
from corpusveil.text.policy import ALL_ROLES, PRIVATIZE, REPLACE, RESAMPLE, TextPolicy
from corpusveil.text.policy import SPAN as SPAN_ROLE
from corpusveil.text.spans import Recognizer, SpanPolicy, Spans, covered
from corpusveil.text.text_writer import NO_SPAN_TEXTS, Decided, assign_roles, enter, output_bound, write_text
from corpusveil.text.tokens import Tokens
from corpusveil.text.utf8 import CHARACTERS

KERNEL_VERSION = 1
"""Part of the release digest; goes up whenever the same release would write other text."""
NO_TAGS: UInt64 = np.empty((0, 2), np.uint64)


@functools.lru_cache(maxsize=4)
def _recognizers(policy: SpanPolicy, marks: tuple[str, ...], space: Space) -> tuple[Recognizer, ...]:
    """Return the recognizers, made once per process. Raises UserError if they are not those of the release."""
    recognizers = [named(name) for name in policy.find]
    for recognizer, mark in zip(recognizers, marks, strict=True):
        if recognizer.mark != mark:
            raise ChangedError(
                f"{recognizer.name}: this is not what the release was made with, or another version of it; give the "
                "same to all processes, or start again with another output."
            )
    return tuple(recognizer.make(space) for recognizer in recognizers)


@dataclass(frozen=True, slots=True)
class Kernel:
    """Privatizes batches of documents. As secret as the key; pickled with the address of a saved space."""

    mechanism: Mechanism
    budget: Budget
    policy: TextPolicy
    draw_key: DrawKey
    tokenizer_version: str
    collocations: Collocations | None = None
    same_noise: bool = False
    """Equal texts get equal noise, whatever their identities."""
    spans: SpanPolicy | None = None
    span_marks: tuple[str, ...] = ()
    """The marks of recognizers, equal in every process."""

    def apply(self, documents: Documents) -> tuple[pa.LargeStringArray, Counts]:
        """Privatize D documents: their texts -> large_string [D], nulls staying null, and counts.

        Identities, the column's name and texts go into the noise. Raises UserError when this process tokenizes
        otherwise than the release says.
        """
        if self.tokenizer_version != (version := f"{TOKENIZER_VERSION}{self.policy.reading_version()}"):
            raise VersionError(
                f"This worker tokenizes by version {version}, the release by {self.tokenizer_version}; use the same "
                "version of corpusveil and of its extras everywhere."
            )
        prepared = self._prepared()
        # Whether the treatment of a token depends on nothing in its document beyond the next blank
        parts = self.budget.per == "token" and self.collocations is None and self.spans is None
        counts = Counts(documents=len(documents) - documents.texts.null_count)
        body, lengths = io.BytesIO(), [np.zeros(1, dtype=np.int64)]
        for some, data, places in runs(documents):
            read, tags = Texts.read(some.texts, self.policy), self._tags(self.draw_key.tag, some, data, places)
            counts.input_bytes += int(places[-1] - places[0])
            start, before, alone = body.tell(), 0, parts and len(some) == 1
            for bounds in parts_of(read.data, *read.documents.tolist()) if alone else [read.documents]:
                chunk = self._parsed(prepared, Texts(read.data, bounds), tags, before)
                before += len(chunk.tokens)
                written, sizes = self._written(prepared, chunk, counts)
                if written.size and body.tell() > start and self.policy.layout == "normalize":
                    body.write(b" ")
                body.write(written.data)
            lengths.append(np.array([body.tell() - start]) if alone else sizes)
        offsets, missing = np.cumsum(np.concatenate(lengths)), documents.texts.null_count
        valid = np.packbits(documents.texts.is_valid().to_numpy(zero_copy_only=False), bitorder="little")
        buffers = pa.py_buffer(offsets), pa.py_buffer(body.getvalue()), pa.py_buffer(valid) if missing else None
        array = pa.LargeStringArray.from_buffers(len(documents), *buffers, missing)
        return languages.written(array, self.policy.language, self.policy.layout), counts

    def _prepared(self) -> Prepared:
        return prepare(self.mechanism.space, self.policy, self.collocations)

    def _tags(self, key: bytes, documents: Documents, data: UInt8, places: Int64) -> UInt64:
        """Return the tags of D documents under a key, uint64 [D, 2]."""
        return self.noise_tags(key, documents.column, documents.identities, data, places)

    def noise_tags(self, key: bytes, column: str, identities: Sequence[Any], data: UInt8, documents: Int64) -> UInt64:
        """Return tags that distinguish the noise of D documents of this release, under a key; uint64 [D, 2].

        Under the key of the draws these are the tags that the noise is drawn by, under a ledger's the fingerprints by
        which it is counted: what makes noise fresh makes an entry, because both are computed here.
        """
        if self.same_noise:
            identities = [b""] * (documents.size - 1)
        return keyed_tags(key, column, identities, data, documents)

    def account(self, documents: Documents, key: bytes) -> tuple[UInt64, Readings]:
        """Return tags of the noise of D documents under ``key``, uint64 [D, 2], and their readings, without drawing."""
        prepared, noise, spent = self._prepared(), [NO_TAGS], list[Readings]()
        unknown = self.mechanism.unknown_bound_at_most(public_weights(self.mechanism.space).astype(np.float64) / TOTAL)
        for some, data, places in runs(documents):
            noise.append(self._tags(key, some, data, places))
            chunk = self._parsed(prepared, Texts.read(some.texts, self.policy), NO_TAGS)
            drawn = self._drawn(chunk, chunk.picked(PRIVATIZE), chunk.picked(RESAMPLE))
            different, at = np.unique(self.budget.shares(self._whole(chunk, drawn)), return_inverse=True)
            bounds = np.array([_bound(self.mechanism, float(epsilon), unknown) for epsilon in different])
            spent.append(readings(drawn, bounds[at]))
        whole = joined(spent)
        return np.concatenate(noise), whole if self.mechanism.private else unbounded(whole)

    def read(self, texts: pa.Array) -> tuple[Tokens, UInt8]:
        """Return the tokens of documents and the action for each, uint8 [T], until the next texts are read."""
        chunk = self._parsed(self._prepared(), Texts.read(texts, self.policy), NO_TAGS)
        return chunk.tokens, chunk.actions[chunk.roles]

    def _parsed(self, prepared: Prepared, texts: Texts, tags: UInt64, before: int = 0) -> Chunk:
        """Return documents, or a part of one, as tokens or units with their roles and spans."""
        tokens = prepared.tokenizer.tokens(texts.data, texts.documents, scratch)
        spans = None
        if self.spans is not None:
            recognizers = _recognizers(self.spans, self.span_marks, self.mechanism.space)
            tokens, spans = covered(tokens, Spans.joined(recognize(tokens) for recognize in recognizers))
        words = None
        if self.budget.allocation == "word-share":
            words = np.diff(np.pad(np.cumsum(tokens.classes == WORD), (1, 0))[tokens.offsets])
        if prepared.joiner is not None:
            tokens = prepared.joiner(tokens)
        if spans is not None:
            tokens.ids[tokens.classes == SPAN] = -2 - np.arange(spans.kinds.size)
        roles = scratch.array("roles", len(tokens), np.uint8)
        by_role = np.zeros(len(ALL_ROLES), dtype=np.int64)
        assign_roles(tokens.classes, tokens.ids, prepared.roles, roles, by_role)
        return Chunk(tokens, roles, prepared.actions, by_role, tags, words, spans, before)

    def _written(self, prepared: Prepared, chunk: Chunk, counts: Counts) -> tuple[UInt8, Int64]:
        """Return the private text of documents, or of a part of one, and the bytes of each."""
        counts.roles += chunk.by_role
        if chunk.spans is not None:
            names, kinds = chunk.spans.names, np.bincount(chunk.spans.kinds, minlength=len(chunk.spans.names)).tolist()
            counts.spans.update({name: count for name, count in zip(names, kinds, strict=True) if count})
        drawn, drawn_bytes = self._draw(prepared, chunk, counts)
        replaced = NO_SPAN_TEXTS
        if self.spans is not None and chunk.spans is not None:
            some = chunk.picked(REPLACE)
            which, draws = -2 - some.ids.astype(np.int64), chunk.draws(some, self.draw_key)
            replaced = span_texts(self.spans, chunk.spans, which, draws, prepared)
            drawn[chunk.roles == SPAN_ROLE] = np.arange(which.size)
        tokens, wording, keep_layout = chunk.tokens, prepared.wording, self.policy.layout == "keep"
        drawn_bytes += int(replaced.offsets[-1])
        bound = output_bound(
            tokens.data.size, chunk.by_role, chunk.actions, drawn_bytes, wording.mask_offsets, keep_layout
        )
        out = np.empty(bound, dtype=np.uint8)
        offsets = np.empty(tokens.documents.size, dtype=np.int64)
        counts.tokens_written += write_text(
            tokens.arrays, Decided(chunk.roles, chunk.actions, drawn), wording, len(self.mechanism.space), replaced,
            CHARACTERS, keep_layout, self.policy.case == "lower", out, offsets,
        )  # fmt: skip
        return out[: offsets[-1]], np.diff(offsets)

    def _draw(self, prepared: Prepared, chunk: Chunk, counts: Counts) -> tuple[Int32, int]:
        """Return the replacement of each token that gets one, int32 [T], and the bytes of all at most."""
        longest, size, tokens = prepared.wording.longest, 0, chunk.tokens
        drawn = scratch.array("drawn", len(tokens), np.int32)
        known, resampled = chunk.picked(PRIVATIZE), chunk.picked(RESAMPLE)
        if resampled.index.size:
            cells = prepared.public.cells(chunk.draws(resampled, self.draw_key).uint64(RESAMPLE_PURPOSE))
            size += enter(cells, resampled.index, longest, drawn)
        if known.index.size:
            epsilon: float | Float64 = self.budget.epsilon
            if self.budget.per == "document":
                epsilon = self._shares(chunk, known, resampled)
            out = self.mechanism.privatize(known.ids, epsilon, chunk.draws(known, self.draw_key))
            size += enter(out, known.index, longest, drawn)
            counts.privatized += out.size
            counts.unchanged += int(np.count_nonzero(out == known.ids))
        return drawn, size

    def _shares(self, chunk: Chunk, known: Picked, resampled: Picked) -> Float64:
        """Return the epsilon of each privatized token, float64 [K], out of its document's budget."""
        return self.budget.shares(self._whole(chunk, self._drawn(chunk, known, resampled)))[known.documents]

    @staticmethod
    def _drawn(chunk: Chunk, known: Picked, resampled: Picked) -> Int64:
        """Return how many tokens of each document random ones replace, int64 [D]."""
        size = chunk.tokens.offsets.size - 1
        counts = np.bincount(known.documents, minlength=size) + np.bincount(resampled.documents, minlength=size)
        return counts.astype(np.int64)

    @staticmethod
    def _whole(chunk: Chunk, drawn: Int64) -> Int64:
        """Return the number of shares of each document's budget, int64 [D]: its drawn tokens, or all of its words."""
        return drawn if chunk.words is None else chunk.words


@functools.lru_cache(maxsize=4096)
def _bound(mechanism: Mechanism, epsilon: float, unknown: float) -> float:
    """Return the plain-LDP bound of one token, known or not; 0 without a bound (``unbounded``)."""
    plain = mechanism.guarantee(epsilon).plain_ldp
    return unknown if plain is None else max(plain, unknown)
