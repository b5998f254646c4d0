"""The likeliest originals of released words for a model of the user's own: as a table, or for a function that chooses.

As in denoising, everything comes from the release and public data. A chooser is given nothing else, so what it chooses
is post-processing, as long as the chooser itself knows nothing private.
"""

from __future__ import annotations

import decimal
import functools
import hashlib
import operator
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.errors import BadValueError, ChooserError
from corpusveil.kernel.prepared import chunks, prepare
from corpusveil.language.channel import Candidates, public_shares
from corpusveil.language.denoise import MOST, Channel, Denoiser
from corpusveil.recognizers.registry import imported
from corpusveil.spaces.vocabulary import parts
from corpusveil.text.counts import Counts
from corpusveil.text.tokens import Tokens, string_buffers

OFFERED, BATCH = 16, 64
"""The default number of candidates for a chooser, and the most documents that it is given at once."""
TOGETHER = 1 << 20
"""About this number of candidates is in memory, and in a row group of the table."""
_LOGARITHMS = decimal.Context(prec=25)
_CANDIDATE = pa.struct([("word", pa.large_string()), ("log_likelihood", pa.float64()), ("log_prior", pa.float64())])
_PLACE = pa.struct([
    ("start", pa.int64()), ("end", pa.int64()), ("word", pa.large_string()),
    ("candidates", pa.large_list(_CANDIDATE)), ("exact", pa.bool_()),
])  # fmt: skip
SCHEMA = pa.schema([("row", pa.int64()), ("text", pa.large_string()), ("places", pa.large_list(_PLACE))])
"""The table of candidates: a row for each row of the released shard, in its order."""


class Candidate(NamedTuple):
    """A possible original: a word in lower case, ln P[word, released word], and ln of its public share, in nats."""

    word: str
    log_likelihood: float
    log_prior: float


class Place(NamedTuple):
    """A replaced word: ``text[start:end]`` of the released text, in lower case ``word``.

    Candidates have the largest sums of log-likelihood and log-prior of the whole vocabulary, the largest first, and
    include the released word.
    """

    start: int
    end: int
    word: str
    candidates: tuple[Candidate, ...]


class ReleasedText(NamedTuple):
    """A document of a release with one replaced word or more: all that a chooser sees of it."""

    text: str
    places: tuple[Place, ...]


Choose = Callable[[Sequence[ReleasedText]], Sequence[Sequence[int]]]
"""Returns, for each document, the index of a candidate for each of its places."""


@dataclass(frozen=True, slots=True)
class Chooser:
    """A function that chooses among candidates: ``name`` is MODULE:FUNCTION, by which other processes import it.

    ``digest`` is the SHA-256 of the module's file, hexadecimal; None without a file.
    """

    name: str
    digest: str | None
    function: Choose | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, chooser: str | Choose, *, elsewhere: bool = False) -> Self:
        """Return the chooser of a name or a function.

        Raises ChooserError for anything else, and for a function that other processes need (``elsewhere``) but would
        not get by its name.
        """
        function, name = (_imported(chooser) if isinstance(chooser, str) else chooser), str(chooser)
        if not isinstance(chooser, str) and callable(function):
            name = f"{function.__module__}:{getattr(function, '__qualname__', type(function).__qualname__)}"
        if not callable(function) or (elsewhere and _imported(name) is not function):
            raise ChooserError(f"chooser {name}: give a function at the top level of a module, or MODULE:FUNCTION.")
        return cls(name, _digest(name), function)

    def __reduce__(self) -> tuple[type[Chooser], tuple[str, str | None]]:
        return Chooser, (self.name, self.digest)

    def __call__(self, batch: Sequence[ReleasedText]) -> npt.NDArray[np.int64]:
        """Return the index that is chosen at each of P places, int64 [P].

        Raises ChooserError if the function fails, or returns anything but an index of a candidate for each place.
        """
        function = self.function or _imported(self.name)
        if self.function is None and _digest(self.name) != self.digest:
            raise ChooserError(f"chooser {self.name}: this worker has another file of its module; use the same file.")
        try:
            answers = [list(map(operator.index, indices)) for indices in function(tuple(batch))]
        except (Exception, SystemExit) as error:  # noqa: BLE001 - code of the user's, which raises anything
            raise ChooserError(f"chooser {self.name}: it failed ({_said(error)}); correct it, and run again.") from None
        sizes = [[len(place.candidates) for place in document.places] for document in batch]
        sound = [len(indices) for indices in answers] == [len(limits) for limits in sizes]
        chosen, limits = (np.array([k for each in lists for k in each], np.int64) for lists in (answers, sizes))
        if not sound or (chosen < 0).any() or (chosen >= limits).any():
            raise ChooserError(
                f"chooser {self.name}: it did not return a list for each document, and in it a number for each place, "
                "from 0 to below the number of candidates there; correct it, and run again."
            )
        return chosen


def _said(error: BaseException) -> str:
    """Return the type and the first line of an error."""
    return f"{type(error).__name__}: {str(error)[:120]}".split("\n")[0].removesuffix(": ")


def _imported(name: str) -> Any:
    """Return the object of MODULE:FUNCTION."""
    try:
        return imported(name) if ":" in name else None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the same
        raise ChooserError(
            f"chooser {name}: it cannot be imported here ({_said(error)}); install its module, or put it into the "
            "working folder."
        ) from None


def _digest(name: str) -> str | None:
    file = getattr(sys.modules.get(name.partition(":")[0]), "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file and os.path.isfile(file) else None


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
    """Lists ``count`` candidates of each word of a release, or lets a chooser choose among them.

    ``search`` is unused. Without a ``model`` (None), priors are the space's counts.
    """

    model: Any
    count: int = OFFERED
    chooser: Chooser | None = None

    def __post_init__(self) -> None:
        Denoiser.__post_init__(self)
        if not 1 <= self.count <= MOST:
            raise BadValueError(f"candidates = {self.count}: give a whole number from 1 to {MOST}.")

    def reader(self) -> Offer:
        return _offer_of(self)

    def guesses(
        self, reader: Offer, tokens: Tokens, replaced: npt.NDArray[np.bool_], kept: Any  # noqa: ARG002
    ) -> npt.NDArray[np.int32]:  # fmt: skip
        assert self.chooser is not None  # noqa: S101 - without one, no text is written
        rows, chosen, ends = self.rows(reader, tokens, replaced), [np.empty(0, np.int64)], tokens.documents.tolist()
        for low, high, places in self._parts(reader, tokens, replaced, rows, BATCH):
            texts = [tokens.data[a:b].tobytes().decode() for a, b in pairwise(ends[low : high + 1])]
            if documents := _views(texts, places):
                chosen.append(self.chooser(documents))
        out = np.maximum(tokens.ids, 0).astype(np.int32)
        out[replaced] = reader.candidates.words[rows, np.concatenate(chosen)]
        return out

    def tables(self, texts: pa.Array, numbers: Sequence[int], counts: Counts) -> Iterator[pa.Table]:
        """Yield the table of D released documents, large_string [D] and their rows [D], in parts; add to the counts."""
        reader, (data, documents) = self.reader(), string_buffers(texts)
        counts += Counts(documents=len(texts) - texts.null_count, without_text=texts.null_count)
        for first, last in chunks(documents):
            with reader.lock:
                tokens, replaced, _ = self.read(reader, data, documents[first : last + 1])
                rows = self.rows(reader, tokens, replaced)
            counts += Counts(tokens_written=len(tokens), privatized=rows.size, unchanged=rows.size)
            for low, high, places in self._parts(reader, tokens, replaced, rows, last - first):
                here = slice(first + low, first + high)
                yield pa.table([pa.array(numbers[here], pa.int64()), texts[here], places], schema=SCHEMA)

    def _parts(
        self, reader: Offer, tokens: Tokens, replaced: npt.NDArray[np.bool_], rows: npt.NDArray[np.int64], most: int
    ) -> Iterator[tuple[int, int, pa.LargeListArray]]:
        """Yield the places of at most this many documents, the number of the first, and that after the last."""
        before = np.append(0, np.cumsum((tokens.data & 0xC0) != 0x80))  # characters, by their first bytes
        begins = np.repeat(before[tokens.documents[:-1]], np.diff(tokens.offsets))[replaced]
        spans = np.stack([before[edges[replaced]] - begins for edges in (tokens.starts, tokens.ends)])
        ends, ids = np.searchsorted(np.flatnonzero(replaced), tokens.offsets), tokens.ids[replaced]
        low = 0
        while low < ends.size - 1:
            full = int(np.searchsorted(ends, ends[low] + TOGETHER // self.count, side="right")) - 1
            high = min(max(low + 1, full), low + most)
            some = slice(ends[low], ends[high])
            places = reader.places(ids[some], spans[:, some], rows[some])
            yield low, high, pa.LargeListArray.from_arrays(pa.array(ends[low : high + 1] - ends[low]), places)
            low = high


def _views(texts: Sequence[str], places: pa.LargeListArray) -> list[ReleasedText]:
    """Return the documents that have replaced words, as plain values, which refer to nothing else."""
    start, end, word, listed, _ = places.values.flatten()
    candidates = [*map(Candidate, *(column.to_pylist() for column in listed.values.flatten()))]
    offered = (tuple(candidates[a:b]) for a, b in pairwise(listed.offsets.to_pylist()))
    every = [*map(Place, start.to_pylist(), end.to_pylist(), word.to_pylist(), offered)]
    bounds = pairwise(places.offsets.to_pylist())
    return [ReleasedText(text, tuple(every[a:b])) for text, (a, b) in zip(texts, bounds, strict=True) if a < b]


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
