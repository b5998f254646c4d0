"""A collocation table for look-up by compiled code."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.choices import Hyphens
from corpusveil.collocations.artifact import ReadingOptions, read_artifact, reading_of
from corpusveil.compiled import called, compiled
from corpusveil.errors import ArtifactError, DataError, SettingError, UserError, check_whole, replaced
from corpusveil.spaces.installed import located
from corpusveil.storage import files
from corpusveil.storage.parquet import read_whole, sound
from corpusveil.text.tokens import Tokenizer

KEY_BITS = 63
"""Bits of an n-gram of word ids."""
LARGEST_N = 5
_NONE = -1
_READ = pa.schema([("ngram", pa.large_string()), ("score", pa.float64())])
_MIX = np.uint64(0x9E3779B97F4A7C15)


def most_words(max_n: int) -> int:
    """Return how many words a vocabulary may have for n-grams of up to ``max_n`` words."""
    check_whole("max_n", max_n, most=LARGEST_N)
    return int((1 << KEY_BITS // max_n) - 2)


@compiled
def _at(key: Any, mask: int) -> int:
    mixed = (key ^ (key >> np.uint64(29))) * _MIX
    return int(np.int64(mixed >> np.uint64(20)) & mask)


@compiled
def _fill(keys: Any, slots: Any) -> int:
    """Enter keys; return the first duplicate, or -1."""
    mask = slots.size - 1
    for entry in range(keys.size):
        at = _at(keys[entry], mask)
        while slots[at] != _NONE:
            if keys[slots[at]] == keys[entry]:
                return entry
            at = (at + 1) & mask
        slots[at] = entry
    return -1


@called
def find_entry(key: Any, keys: Any, slots: Any) -> int:
    """Return the entry of a packed n-gram, or -1."""
    mask = slots.size - 1
    at = _at(key, mask)
    while True:
        entry = int(slots[at])
        if entry == _NONE or keys[entry] == key:
            return entry
        at = (at + 1) & mask


@dataclass(frozen=True, slots=True, eq=False)
class Collocations:
    """G collocations of 2 to ``max_n`` words out of W, as ``load_collocations`` returns them.

    ``words`` are sorted; ``tokens`` are the words of each collocation joined by ``_``, in the order given; ``scores``
    are float64 [G]; ``keys`` uint64 [G] are packed word ids, and ``slots`` int32 a hash table of them. ``left_out``
    counts rows whose words the tokenizer does not produce; ``reading`` is how text was read when they were counted.

    >>> table = cv.load_collocations("table")
    >>> len(table.tokens) == len(table.scores)
    True
    """

    words: list[str]
    tokens: list[str]
    scores: npt.NDArray[np.float64]
    max_n: int
    keys: npt.NDArray[np.uint64] = field(repr=False)
    slots: npt.NDArray[np.int32] = field(repr=False)
    left_out: int
    reading: ReadingOptions
    url: str | None = None
    _digest: str | None = field(default=None, init=False, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        if self.url is not None:  # a saved table is sent to workers as its address
            return _reopen, (self.url, self.digest)
        return Collocations, (
            self.words, self.tokens, self.scores, self.max_n, self.keys, self.slots, self.left_out, self.reading,
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Collocations) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def from_table(cls, table: pa.Table, reading: ReadingOptions | None = None) -> Collocations:
        """Compile a table of ``ngram, score``. Raises UserError if it is invalid or empty."""
        reading = reading or ReadingOptions()
        split, scores = [ngram.split(" ") for ngram in table["ngram"].to_pylist()], table["score"].to_numpy()
        if not np.isfinite(scores).all():
            raise ArtifactError("A row of the collocation table has no finite score; score again.")
        words = sorted({word for parts in split for word in parts})
        tokens = Tokenizer.of_words(words, reading.hyphens).tokenize(words)
        single = (np.diff(tokens.offsets) == 1) & (tokens.ids[tokens.offsets[:-1]] == np.arange(len(words)))
        known = {word: id for id, (word, alone) in enumerate(zip(words, single, strict=True)) if alone}
        kept = [k for k, parts in enumerate(split) if len(parts) > 1 and all(word in known for word in parts)]
        if not kept:
            raise DataError("The collocation table is empty; score with a lower threshold.")
        max_n = max(len(split[k]) for k in kept)
        if len(words) > most_words(max_n):
            raise DataError(
                f"The collocations have {len(words):,} words, and {most_words(max_n):,} is the most; score fewer "
                "collocations."
            )
        bits = KEY_BITS // max_n
        keys = np.zeros(len(kept), dtype=np.uint64)
        for row, k in enumerate(kept):
            key = 0
            for word in split[k]:
                key = key << bits | (known[word] + 1)
            keys[row] = key
        slots = np.full(1 << max(4, (2 * len(kept)).bit_length()), _NONE, dtype=np.int32)
        if (twice := _fill(keys, slots)) >= 0:
            raise ArtifactError(f"Row {kept[twice] + 1} of the collocation table occurs twice; score again.")
        names = ["_".join(split[k]) for k in kept]
        left_out = len(split) - len(kept)
        return cls(words, names, scores[kept].astype(np.float64), max_n, keys, slots, left_out, reading)

    @property
    def hyphens(self) -> Hyphens:
        """Whether a hyphen between letters splits words or joins them."""
        return self.reading.hyphens

    @property
    def bits(self) -> int:
        """The bits of a word's id in the key of an n-gram."""
        return KEY_BITS // self.max_n

    @property
    def digest(self) -> str:
        """The SHA-256 (hex) of the collocations, their scores and how text is read, whatever their order."""
        if self._digest is None:
            pairs = zip(self.tokens, self.scores.tolist(), strict=True)
            lines = sorted(f"{token} {score.hex()}\n" for token, score in pairs)
            joins = self.hyphens == "join"
            lines += ["hyphens join\n"] * joins + ["over stops\n"] + ["over hyphens\n"] * (not joins)
            lines += [f"language {self.reading.language}\n"] * (self.reading.language is not None)
            object.__setattr__(self, "_digest", hashlib.sha256("".join(lines).encode()).hexdigest())
        return str(self._digest)

    def require_some_in(self, vocabulary: Container[str]) -> None:
        """Raise UserError if a vocabulary has none of the collocations as tokens."""
        if not any(token in vocabulary for token in self.tokens):
            raise SettingError(
                "The space has none of the collocations; build it from vectors of a corpus that was tokenized "
                "with them."
            )

    def restricted(self, vocabulary: Container[str]) -> Collocations:
        """Return the collocations that a vocabulary has as tokens. Raises UserError when it has none."""
        self.require_some_in(vocabulary)
        rows = [k for k, token in enumerate(self.tokens) if token in vocabulary]
        ngrams = [self.tokens[k].replace("_", " ") for k in rows]
        return Collocations.from_table(pa.table({"ngram": ngrams, "score": self.scores[rows]}), self.reading)


@functools.lru_cache(maxsize=2)
def load_collocations(url: str) -> Collocations:
    """Read a collocation table: a folder that ``score_counts`` wrote, or a Parquet file of ``ngram, score``.

    The name of an installed space, such as ``en``, is the table of its package. Raises UserError if there is no valid
    table.

    >>> "new_york" in cv.load_collocations("table").tokens
    True
    """
    url = located(url, "collocations")
    fs, path = files.resolve(url)
    address, reading = url, None
    if not fs.isfile(path):
        address, reading = files.join(url, "collocations.parquet"), reading_of(url, read_artifact(url, "collocations"))
    unsound = f"{address}: this is not a valid collocation table (ngram, score); score again."
    table = read_whole(address, unsound, lambda _: _READ.names)
    with sound(unsound):
        table = table.replace_schema_metadata(None).cast(_READ)
    if any(column.null_count for column in table.columns):
        raise ArtifactError(unsound)
    try:
        compiled_table = Collocations.from_table(table, reading)
        return dataclasses.replace(compiled_table, url=files.absolute(url))
    except UserError as error:
        raise type(error)(f"{url}: {error}") from None


def _reopen(url: str, digest: str) -> Collocations:
    table = load_collocations(url)
    if table.digest != digest:
        raise replaced(url, "collocation table")
    return table
