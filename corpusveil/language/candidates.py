"""The likeliest originals of released words, as a table for a model of the user's own.

As in denoising, everything comes from the release and public data.
"""

from __future__ import annotations

import decimal
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.errors import BadValueError
from corpusveil.kernel.prepared import chunks, prepare
from corpusveil.language.channel import Candidates, public_shares
from corpusveil.language.denoise import MOST, Channel, Denoiser
from corpusveil.spaces.vocabulary import parts
from corpusveil.text.tokens import Tokens, string_buffers

TOGETHER = 1 << 20
"""About this number of candidates is in memory, and in a table."""
_LOGARITHMS = decimal.Context(prec=25)
_CANDIDATE = pa.struct([("word", pa.large_string()), ("log_likelihood", pa.float64()), ("log_prior", pa.float64())])
_PLACE = pa.struct([
    ("start", pa.int64()), ("end", pa.int64()), ("word", pa.large_string()),
    ("candidates", pa.large_list(_CANDIDATE)), ("exact", pa.bool_()),
])  # fmt: skip
SCHEMA = pa.schema([("row", pa.int64()), ("text", pa.large_string()), ("places", pa.large_list(_PLACE))])
"""A table of candidates: a row for each row of a released shard, in its order."""


@dataclass(slots=True)
class Offer(Channel):
    """What a process prepares once to list candidates: the V words as they are written, and their log-priors."""

    written: pa.LargeStringArray
    log_priors: npt.NDArray[np.float64]

    def places(
        self, ids: npt.NDArray[np.int32], spans: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
    ) -> pa.StructArray:
        """Return P replaced words as ``SCHEMA`` has them, by their spans, int64 [2, P], and rows of candidates."""
        there = self.candidates.words[rows] >= 0
        words = self.candidates.words[rows][there]
        columns = [_logarithms(self.candidates.emissions[rows][there]), self.log_priors[words]]
        listed = pa.StructArray.from_arrays(
            [self.written.take(pa.array(words)), *map(pa.array, columns)], fields=list(_CANDIDATE)
        )
        nested = pa.LargeListArray.from_arrays(pa.array(np.append(0, np.cumsum(there.sum(axis=1)))), listed)
        exact = pa.array(np.full(rows.size, self.candidates.exact))
        columns = [*map(pa.array, spans), self.written.take(pa.array(ids)), nested, exact]
        return pa.StructArray.from_arrays(columns, fields=list(_PLACE))


@dataclass(frozen=True, slots=True)
class Lister(Denoiser):
    """Lists ``count`` candidates of each word of a release. Without a ``model`` (None), priors are the space's counts.

    ``search`` is unused.
    """

    model: Any
    count: int = field(kw_only=True)

    def __post_init__(self) -> None:
        Denoiser.__post_init__(self)
        if isinstance(self.count, bool) or not isinstance(self.count, int) or not 1 <= self.count <= MOST:
            raise BadValueError(f"count = {self.count}: give a whole number from 1 to {MOST}.")

    def reader(self) -> Offer:
        return _offer_of(self)

    def tables(self, texts: pa.Array, numbers: Sequence[int]) -> Iterator[pa.Table]:
        """Yield the table of D released documents, strings [D] and their rows [D], in parts."""
        reader, (data, documents) = self.reader(), string_buffers(texts)
        for first, last in chunks(documents):
            with reader.lock:
                tokens, replaced, _ = self.read(reader, data, documents[first : last + 1])
                rows = self.rows(reader, tokens, replaced)
            for low, high, places in self._parts(reader, tokens, replaced, rows):
                here = slice(first + low, first + high)
                yield pa.table([pa.array(numbers[here], pa.int64()), texts[here], places], schema=SCHEMA)

    def _parts(
        self, reader: Offer, tokens: Tokens, replaced: npt.NDArray[np.bool_], rows: npt.NDArray[np.int64]
    ) -> Iterator[tuple[int, int, pa.LargeListArray]]:
        """Yield the places of some documents, the number of the first, and that after the last."""
        before = np.append(0, np.cumsum((tokens.data & 0xC0) != 0x80))  # characters, by their first bytes
        begins = np.repeat(before[tokens.documents[:-1]], np.diff(tokens.offsets))[replaced]
        spans = np.stack([before[edges[replaced]] - begins for edges in (tokens.starts, tokens.ends)])
        ends, ids = np.searchsorted(np.flatnonzero(replaced), tokens.offsets), tokens.ids[replaced]
        low = 0
        while low < ends.size - 1:
            full = int(np.searchsorted(ends, ends[low] + TOGETHER // self.count, side="right")) - 1
            high = max(low + 1, full)
            some = slice(ends[low], ends[high])
            places = reader.places(ids[some], spans[:, some], rows[some])
            yield low, high, pa.LargeListArray.from_arrays(pa.array(ends[low : high + 1] - ends[low]), places)
            low = high


@functools.lru_cache(maxsize=2)
def _offer_of(lister: Lister) -> Offer:
    space, policy = lister.mechanism.space, lister.policy
    shares, _ = public_shares(space, lister.model)
    written = pa.array([" ".join(parts(word)) for word in space.vocabulary.words], pa.large_string())
    candidates = Candidates(lister.mechanism, shares, min(lister.count, len(space)))
    prepared = prepare(space, policy, lister.collocations)
    return Offer(prepared, candidates, "mask" in policy.as_dict().values(), written, _logarithms(shares))


@functools.lru_cache(maxsize=1 << 20)
def _logarithm(value: float) -> float:
    return float(_LOGARITHMS.ln(decimal.Decimal(value)))


def _logarithms(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return natural logarithms, correctly rounded, so that they are equal on every machine; float64 [N]."""
    distinct, which = np.unique(values, return_inverse=True)
    return np.array([_logarithm(value) for value in distinct.tolist()])[which]
