"""A frozen vocabulary: words and ids, as bytes and offsets that compiled code can read."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.arrays import Int32, Int64, UInt8
from corpusveil.errors import ArtifactError, DataError, SettingError
from corpusveil.storage import files
from corpusveil.storage.forms import unmarked
from corpusveil.storage.parquet import read_whole, sound, write_table
from corpusveil.text.output_words import concatenate

BLANKS = frozenset(" \t\n\r\v\f\0")
"""Characters that no word contains."""
BLOCK = 8192


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """V different words, numbered from 0.

    Attributes: text: uint8, the words' UTF-8 bytes one after another. offsets: int64 [V + 1]; word i is
        ``text[offsets[i]:offsets[i + 1]]``. counts: int64 [V], how often each occurs in public text; None if unknown.
    """

    text: UInt8
    offsets: Int64
    counts: Int64 | None = None

    def __post_init__(self) -> None:
        for name in ("text", "offsets", "counts"):
            if (array := getattr(self, name)) is not None:
                object.__setattr__(self, name, read_only(array))

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} words, {'without' if self.counts is None else 'with'} public counts)"

    @classmethod
    def from_words(cls, words: Sequence[str], counts: Int64 | None = None) -> Vocabulary:
        vocabulary = cls(*concatenate([word.encode() for word in words]), counts)
        if len(vocabulary._index) != len(words):
            raise SettingError("A vocabulary contains each word once; remove the duplicates.")
        return vocabulary

    @functools.cached_property
    def words(self) -> Sequence[str]:
        """The words by id, decoded once."""
        text, ends = self.text.tobytes(), self.offsets.tolist()
        return [text[a:b].decode("utf-8") for a, b in pairwise(ends)]

    @functools.cached_property
    def _index(self) -> dict[str, int]:
        return {word: id for id, word in enumerate(self.words)}

    def id(self, word: str) -> int:
        """Return the id of ``word``. Raises UserError, which does not repeat the word, if there is none."""
        if (id_ := self._index.get(word)) is None:
            raise SettingError(f"This word is not among the {len(self):,} words of this vocabulary.")
        return id_

    def ids(self, words: Sequence[str], missing: int) -> Int32:
        """Return the ids of words, int32 [k]; ``missing`` for a word that the vocabulary lacks."""
        index = self._index
        return np.fromiter((index.get(word, missing) for word in words), np.int32, len(words))

    def word(self, id: int) -> str:
        if not 0 <= id < len(self):
            raise SettingError(f"There is no word {id}; the ids of this vocabulary are 0 to {len(self) - 1}.")
        return self.words[id]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __contains__(self, word: object) -> bool:
        return word in self._index

    def __reduce__(self) -> tuple[object, ...]:
        return Vocabulary, (self.text, self.offsets, self.counts)


def read_words(url: str) -> list[str]:
    """Read a list of words, one a line. Raises UserError that names the file and the line."""
    try:
        lines = unmarked(files.read_bytes(url), url).decode().splitlines()
    except UnicodeDecodeError:
        raise DataError(f"{url}: this file is not valid UTF-8; write a word on each line.") from None
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        word = line.strip()
        if len(word.split()) > 1:
            raise DataError(f"{url}, line {number}: the word contains a blank; write one word on each line.")
        if word and (first := seen.setdefault(word, number)) != number:
            raise DataError(f"{url}, line {number}: this word is also in line {first}; delete either line.")
    if not seen:
        raise DataError(f"{url}: this file has no words; write a word on each line.")
    return list(seen)


def rows_without(words: Sequence[str], excluded: Collection[str]) -> list[int]:
    """Return the rows of words but the excluded: in any case, before an apostrophe, and within a collocation too."""
    if isinstance(excluded, str):
        raise SettingError("exclude: give a list of words, not one string.")
    refused = {compared(word) for word in excluded}

    def offends(word: str) -> bool:
        pieces = word.split("_")
        return word in refused or any({piece, piece.partition("'")[0]} & refused for piece in pieces)

    return [row for row, word in enumerate(words) if not offends(compared(word))]


def compared(word: str) -> str:
    """Return a form that is equal for words that differ only in case, coding of accents, or apostrophe."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", word).casefold()).replace("’", "'")


def parts(token: str) -> list[str]:
    """Return the words of a token: a collocation's are joined by ``_`` ("new_york"); else the token itself."""
    if "_" not in token:
        return [token]
    words = token.split("_")
    return words if all(words) else [token]


def read_only(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return a read-only view."""
    view = array.view()
    view.setflags(write=False)
    return view


def write_vocabulary(vocabulary: Vocabulary, url: str) -> None:
    """Write ``id: int32, token: string, words: int8, count: int64`` (0 when not known)."""
    words = list(vocabulary.words)
    counts = np.zeros(len(words), np.int64) if vocabulary.counts is None else vocabulary.counts
    table = pa.table(
        {
            "id": pa.array(np.arange(len(words), dtype=np.int32)),
            "token": pa.array(words, pa.string()),
            "words": pa.array([min(len(parts(word)), 127) for word in words], pa.int8()),
            "count": pa.array(counts),
        }
    )
    write_table(table, url)


def read_vocabulary(url: str) -> Vocabulary:
    """Read what ``write_vocabulary`` wrote; the ``UserError`` of a broken file names it."""
    unsound = f"{url}: this is not a valid vocabulary; build the artifact again."
    table = read_whole(url, unsound, lambda _: ["id", "token", "count"])
    if not (pa.types.is_string(table["token"].type) or pa.types.is_large_string(table["token"].type)):
        raise ArtifactError(unsound)
    with sound(unsound):
        ids, tokens = table["id"].to_numpy(), table["token"].cast(pa.large_string()).combine_chunks()
        counts = table["count"].cast(pa.int64())
    if tokens.null_count or counts.null_count or not np.array_equal(ids, np.arange(len(ids))):
        raise ArtifactError(f"{url}: the ids do not run from 0, or a value is empty; build the artifact again.")
    if pc.count_distinct(tokens).as_py() != len(tokens):
        raise ArtifactError(f"{url}: a word occurs twice; build the artifact again.")
    offsets, text = buffers(tokens)
    counted = counts.to_numpy()
    if counted.min(initial=0) < 0:
        raise ArtifactError(f"{url}: a count is negative; build the artifact again.")
    return Vocabulary(text, offsets, counted if counted.any() else None)


def buffers(strings: Any) -> tuple[Int64, UInt8]:
    """Return the offsets, from 0, and the bytes of an Arrow array of large strings."""
    _, offsets, text = strings.buffers()
    ends = np.frombuffer(offsets, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    flat = np.frombuffer(text, np.uint8) if text is not None and text.size else np.empty(0, np.uint8)
    return ends - ends[0], flat[ends[0] : ends[-1]]
