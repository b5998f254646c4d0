"""The kernel of passages: each piece of a document is replaced by one of a public store. The same on every engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.arrays import UInt64
from corpusveil.budget.accounting import Readings, joined, readings
from corpusveil.errors import VersionError
from corpusveil.kernel.prepared import runs
from corpusveil.passages import pieces
from corpusveil.passages.overlap import refuse_overlap
from corpusveil.passages.passage_exchange import PassageExchange
from corpusveil.passages.pieces import Per, Pieces, pieces_of
from corpusveil.sampling.draws import DrawKey, Draws, keyed_tags
from corpusveil.storage.documents import Documents
from corpusveil.text.classes import TOKENIZER_VERSION
from corpusveil.text.counts import Counts
from corpusveil.text.tokens import string_buffers

BETWEEN = {"document": "", "paragraph": "\n\n", "sentence": " "}
"""The text between two pieces of a document."""
READER = f"{pieces.VERSION}/{TOKENIZER_VERSION}"
"""The version of the rules that split documents into pieces."""


@dataclass(frozen=True, slots=True)
class PassageKernel:
    """Replaces the pieces of documents. Pickles small: a saved store goes by address."""

    mechanism: PassageExchange
    epsilon: float
    per: Per
    draw_key: DrawKey
    reader: str = READER
    most_pieces: int | None = None
    same_noise: bool = False
    """Equal pieces get equal noise, whatever their documents."""
    accept_overlap: bool = False
    """Replace texts that are in the store, too."""

    def apply(self, documents: Documents) -> tuple[pa.LargeStringArray, Counts]:
        """Replace the pieces of D documents: their texts -> large_string [D], nulls staying null, and counts.

        Identities, the column's name and texts go into the noise. A document becomes pieces of the store with blanks or
        blank lines between them, and nothing else. Raises UserError when this process splits documents otherwise than
        the release says.
        """
        self._check()
        texts, store = documents.texts, self.mechanism.store
        if not self.accept_overlap and len(texts) > 1:  # one alone, as in a log, may quote: a release has looked at it
            refuse_overlap(store, texts)
        counts, parts = Counts(documents=len(texts) - texts.null_count), [pa.array([], pa.large_string())]
        for some, data, places in runs(documents):
            counts.input_bytes += int(places[-1] - places[0])
            split = pieces_of(store.tokenizer, data, places, self.per, self.most_pieces)
            points = store.encoder.of_pieces(split)
            out = self.mechanism.privatize(points, self.epsilon, self._draws(split, some, data, places))
            size = int(np.count_nonzero(np.asarray(some.texts.is_valid())[split.documents]))
            counts += Counts(tokens_written=size, privatized=size)
            written = pa.ListArray.from_arrays(split.offsets.astype(np.int32), store.texts.take(pa.array(out)))
            parts.append(pc.binary_join(written, pa.scalar(BETWEEN[self.per], pa.large_string())))
        return pc.if_else(texts.is_valid(), pa.concat_arrays(parts), pa.scalar(None, pa.large_string())), counts

    def noise_tags(self, key: bytes, column: str, identities: Sequence[Any], data: Any, documents: Any) -> UInt64:
        """Return tags that distinguish the noise of D documents of this release, under a key; uint64 [D, 2]."""
        if self.same_noise:
            identities = [b""] * (documents.size - 1)
        return keyed_tags(key, column, identities, data, documents)

    def account(self, documents: Documents, key: bytes) -> tuple[UInt64, Readings]:
        """Return tags of the noise of D documents under ``key``, uint64 [D, 2], and their spending."""
        self._check()
        bound = self.mechanism.exchange(self.epsilon).epsilon
        tags, spent = [np.empty((0, 2), np.uint64)], list[Readings]()
        for some, data, places in runs(documents):
            tags.append(self.noise_tags(key, some.column, some.identities, data, places))
            split = pieces_of(self.mechanism.store.tokenizer, data, places, self.per, self.most_pieces)
            size = np.where(np.asarray(some.texts.is_valid()), np.diff(split.offsets), 0)
            spent.append(readings(size, np.full(size.size, bound)))
        return np.concatenate(tags), joined(spent)

    def _draws(self, split: Pieces, documents: Documents, data: Any, places: Any) -> Draws:
        """Return the draws of the pieces; with the same noise, each as if it were a document."""
        key, column = self.draw_key.tag, documents.column
        if not self.same_noise:
            tags = self.noise_tags(key, column, documents.identities, data, places)
            return Draws(self.draw_key, tags, split.documents, split.positions)
        alone = pa.array([split.text(piece) for piece in range(len(split))], pa.large_string())
        tags = keyed_tags(key, column, [b""] * len(split), *string_buffers(alone))
        return Draws(self.draw_key, tags, np.arange(len(split)), np.zeros(len(split), np.int64))

    def _check(self) -> None:
        if self.reader != READER:
            raise VersionError(
                f"This worker splits text by version {READER}, the release by {self.reader}; use the same version of "
                "corpusveil everywhere."
            )
