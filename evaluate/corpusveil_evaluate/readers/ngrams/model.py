"""A language model for look-up by compiled code: Kneser-Ney trigrams as fixed-point logarithms in flat arrays.

Bigrams are found in hash tables, one for each first word; the trigrams after a bigram are stored together, by id
(``lookup.py``). The arrays are memory-mapped: one copy per machine, however many workers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from corpusveil.collocations.artifact import ReadingOptions, read_artifact, reading_of
from corpusveil.compiled import called, compiled
from corpusveil.errors import ArtifactError, UserError
from corpusveil.spaces.vocabulary import Vocabulary, read_only, read_vocabulary
from corpusveil.storage import files, home
from corpusveil.storage.artifacts import Saved
from corpusveil_evaluate.readers.ngrams.fixed import LEAST
from corpusveil_evaluate.readers.ngrams.lookup import begin_of, is_sound, left_of, log_in, log_of, pair, size_of, third

KIND = "model"
VOCABULARY = "vocabulary.parquet"


class Arrays(NamedTuple):
    """Of V words, B bigrams and T trigrams; logarithms are int32 in 2^-16 nats, none below ``fixed.LEAST``.

    ``first`` [V + 1] without context, the unknown word last, and ``start`` [V + 1] at the beginning of a run; ``left2``
    [V] the factor of the shorter context. ``regions`` uint32 [V + 1] and ``slots`` uint64 [2 B] find the entry of a
    bigram; ``bigrams`` uint64 [3 B] holds its logarithm, the factor of the shorter context after it, and the place of
    the trigrams that begin with it in ``slots3`` uint64 [2 T] (``lookup.py``).
    """

    first: npt.NDArray[np.int32]
    start: npt.NDArray[np.int32]
    left2: npt.NDArray[np.int32]
    regions: npt.NDArray[np.uint32]
    slots: npt.NDArray[np.uint64]
    bigrams: npt.NDArray[np.uint64]
    slots3: npt.NDArray[np.uint64]


DTYPES = dict(zip(Arrays._fields, ("<i4", "<i4", "<i4", "<u4", "<u8", "<u8", "<u8"), strict=True))


@compiled
def spoken(context: Any, last: Any, word: Any, arrays: Any) -> Any:
    """Return ln P(word | before, last), int64 in 2^-16 nats; ``context`` is the entry of (before, last), or -1."""
    if last < 0:
        return np.int64(arrays.first[word])
    return spoken_by(pair(last, word, arrays.regions, arrays.slots), context, last, word, arrays)


@called
def spoken_by(entry: Any, context: Any, last: Any, word: Any, arrays: Any) -> Any:
    """Return ln P(word | before, last), where ``entry`` is that of (last, word), or -1."""
    value = log_of(arrays.bigrams, entry) if entry >= 0 else np.int64(arrays.left2[last]) + arrays.first[word]
    if context >= 0:
        if entry >= 0:
            slot = third(context, word, arrays.bigrams, arrays.slots3)
            if slot != 0:
                return log_in(slot)
        value += left_of(arrays.bigrams, context)
    return max(value, np.int64(LEAST))


@compiled
def _find(first: Any, second: Any, regions: Any, slots: Any, out: Any) -> None:
    for t in range(first.size):
        out[t] = pair(first[t], second[t], regions, slots)


def find(first: npt.NDArray[np.int32], second: npt.NDArray[np.int32], arrays: Arrays) -> npt.NDArray[np.int64]:
    """Return the entries of bigrams, int64, -1 for none."""
    out = np.empty(first.size, np.int64)
    _find(first, second, arrays.regions, arrays.slots, out)
    return out


@compiled
def _score(before: Any, last: Any, words: Any, arrays: Any, out: Any) -> None:
    for t in range(words.size):
        context = pair(before[t], last[t], arrays.regions, arrays.slots) if last[t] >= 0 else -1
        out[t] = spoken(context, last[t], words[t], arrays)


@dataclass(frozen=True, slots=True, eq=False)
class LanguageModel:
    """Kneser-Ney trigrams over V words, ids 0 to V - 1 with the most frequent first, and ``<unk>``, id V.

    Pickled as its address if it is saved. ``least``: n-grams and words with lower counts were left out.
    """

    vocabulary: Vocabulary
    arrays: Arrays
    digest: str
    least: int
    reading: ReadingOptions
    url: str | None = None
    info: dict[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LanguageModel) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[object, ...]:
        if self.url is not None:
            return _reopen, (self.url, self.digest)
        return LanguageModel, (self.vocabulary, self.arrays, self.digest, self.least, self.reading)

    @property
    def unknown(self) -> int:
        """The id of ``<unk>``, V."""
        return len(self.vocabulary)

    def ids(self, words: Sequence[str]) -> npt.NDArray[np.int32]:
        """Return the ids of words, int32 [k]; that of ``<unk>`` for a word that the vocabulary lacks."""
        return self.vocabulary.ids([word.lower() for word in words], self.unknown)

    def score(
        self, before: npt.NDArray[np.int32], last: npt.NDArray[np.int32], words: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int64]:
        """Return ln P(word | before last) token by token, int32 [T] each, -1 for none; int64, 2^-16 nats."""
        out = np.empty(words.size, np.int64)
        _score(before, last, words, self.arrays, out)
        return out


def digest_of(vocabulary: Vocabulary, sums: Mapping[str, str], reading: ReadingOptions) -> str:
    """Return the SHA-256 of a model's content, hexadecimal; ``sums`` are those of its arrays (``sum_of``)."""
    digests = {"text": sum_of(vocabulary.text), "offsets": sum_of(vocabulary.offsets), **sums}
    if reading.hyphens == "split":  # then n-grams cross hyphens
        digests["over_hyphens"] = "true"
    return hashlib.sha256("".join(f"{name} {digests[name]}\n" for name in sorted(digests)).encode()).hexdigest()


def sum_of(*pieces: npt.NDArray[Any]) -> str:
    """Return the SHA-256 of an array given in pieces."""
    sha = hashlib.sha256()
    for piece in pieces:
        sha.update(np.ascontiguousarray(piece).data.cast("B") if piece.size else b"")
    return sha.hexdigest()


def sums_of(arrays: Arrays) -> dict[str, str]:
    """Return the SHA-256 of each array."""
    return {name: sum_of(array) for name, array in arrays._asdict().items()}


SAVED: Saved[LanguageModel] = Saved("model")


def open_model(url: str, *, verify: bool = True) -> LanguageModel:
    """Open the model in a folder, at any fsspec URL; a remote one is copied here once.

    ``verify`` compares the content with its digest (about a second a gigabyte). Raises UserError if there is no model,
    or if it is damaged.
    """
    address = files.absolute(url)
    description = read_artifact(address, "model")
    names = [VOCABULARY, *(f"{name}.npy" for name in Arrays._fields)]
    folder = home.local_folder(address, names, str(description.get("digest")))
    damaged = ArtifactError(
        f"{address}: this model is damaged; copy it again from an undamaged copy, or make it again."
    )
    try:
        vocabulary = read_vocabulary(str(folder / VOCABULARY))
        mapped = [np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in Arrays._fields]
    except (UserError, OSError, ValueError, EOFError):
        raise damaged from None
    whole: list[Any] = [read_only(np.asarray(array)) for array in mapped]
    arrays = Arrays(*whole)
    reading = reading_of(address, description)
    if not _fits(len(vocabulary), arrays) or (
        verify and digest_of(vocabulary, sums_of(arrays), reading) != description["digest"]
    ):
        raise damaged
    return LanguageModel(
        vocabulary, arrays, description["digest"], int(description["least"]), reading, address, description
    )


def _fits(words: int, arrays: Arrays) -> bool:
    """Say whether the arrays have the types, sizes, logarithms and tables that compiled loops assume."""
    if not all(array.dtype == DTYPES[name] and array.ndim == 1 for name, array in arrays._asdict().items()):
        return False
    first = (words + 1, words + 1, words, words + 1)
    if tuple(array.size for array in arrays[:4]) != first or arrays.slots.size != int(arrays.regions[-1]):
        return False
    if not all(array.size == 0 or LEAST <= array.min() <= array.max() <= 0 for array in arrays[:3]):
        return False
    count, rest = divmod(arrays.bigrams.size, 3)
    end = begin_of(arrays.bigrams, count - 1) + size_of(arrays.bigrams, count - 1) if count else 0
    if rest or arrays.slots.size != 2 * count or arrays.slots3.size != end:
        return False
    return bool(is_sound(words, *arrays[3:]))


def _reopen(url: str, digest: str) -> LanguageModel:
    return SAVED.reopen(open_model, url, digest)
