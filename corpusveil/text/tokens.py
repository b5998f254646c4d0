"""Documents as flat arrays of tokens, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.arrays import Scratch
from corpusveil.choices import Hyphens
from corpusveil.compiled import for_loops
from corpusveil.errors import DataError
from corpusveil.text import languages
from corpusveil.text.folding import composed
from corpusveil.text.tokenizer_loop import Room, TokenArrays, scan
from corpusveil.text.utf8 import CHARACTERS
from corpusveil.text.word_table import WordTable

MAX_BYTES = (1 << 31) - 64
"""Positions are int32: one call takes at most this many bytes of text."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of D documents of ``data`` (uint8, UTF-8), T in all.

    ``starts``, ``ends`` int32 [T] are byte positions in ``data``; ``classes`` uint8 [T]; ``ids`` int32 [T], -1 for
    anything but a word of the vocabulary; ``offsets`` int64 [D + 1] says which tokens a document has and ``documents``
    int64 [D + 1] which bytes. What lies between two tokens of a document is white space. ``language`` is that in which
    they were read.
    """

    data: npt.NDArray[np.uint8]
    documents: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int32]
    classes: npt.NDArray[np.uint8]
    ids: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    language: str | None = None

    def __len__(self) -> int:
        return self.starts.size

    @property
    def arrays(self) -> TokenArrays:
        """All arrays, as loops take them."""
        return TokenArrays(
            self.data, self.documents, self.starts, self.ends, self.classes, self.ids, self.offsets
        )  # fmt: skip

    def only(self, kept: npt.NDArray[np.bool_]) -> Tokens:
        """Return some of the tokens; bool [T]."""
        at = np.flatnonzero(kept)
        return Tokens(
            self.data, self.documents, self.starts.take(at), self.ends.take(at), self.classes.take(at),
            self.ids.take(at), np.searchsorted(at, self.offsets), self.language,
        )  # fmt: skip

    def text(self, token: int) -> str:
        """Return the token as in the input."""
        return self.data[self.starts[token] : self.ends[token]].tobytes().decode("utf-8", "replace")


def strings(column: pa.Array) -> pa.Array:
    """Return a column as string or large_string. Raises UserError when it is not of strings."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        try:
            column = column.cast(pa.large_string())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
            raise DataError(f"The text column is of type {column.type}; cast it to string or large_string.") from None
        if not pa.types.is_large_string(column.type):
            raise DataError("The text column could not be read as strings; cast it to string.")
    return column


def string_buffers(column: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of a string column and its int64 [rows + 1] offsets into them, without a copy of the bytes.

    Raises UserError when the column is not of strings. A null counts as an empty text here (and costs a copy).
    """
    column = strings(column)
    if column.null_count:  # a null may have bytes underneath; they are no text of this column
        column = column.fill_null("")
    width = np.int64 if pa.types.is_large_string(column.type) else np.int32
    _, offsets, data = column.buffers()
    if len(column) == 0 or offsets is None:
        return np.empty(0, dtype=np.uint8), np.zeros(len(column) + 1, dtype=np.int64)
    spans = np.frombuffer(offsets, dtype=width)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    return for_loops(np.frombuffer(data, dtype=np.uint8)) if data is not None else np.empty(0, dtype=np.uint8), spans


def read(texts: pa.Array, language: str | None) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the buffers of strings [D] as every text is read: composed, and by the rules of its language."""
    return string_buffers(languages.read(composed(texts, *string_buffers(texts)), language))


class Tokenizer:
    """Splits text into tokens and looks words up in one vocabulary; see ``scan`` for the rules."""

    __slots__ = ("hyphens", "language", "table")

    def __init__(self, table: WordTable, hyphens: Hyphens = "split", language: str | None = None) -> None:
        self.table, self.hyphens, self.language = table, hyphens, language

    @classmethod
    def of_words(cls, words: Sequence[str], hyphens: Hyphens = "split", language: str | None = None) -> Tokenizer:
        """Return a tokenizer of a vocabulary given as strings; ids are positions."""
        return cls(WordTable.of_words(words), hyphens, language)

    def tokens(
        self, data: npt.NDArray[np.uint8], documents: npt.NDArray[np.int64], scratch: Scratch | None = None
    ) -> Tokens:
        """Tokenize the documents ``data[documents[d]:documents[d + 1]]``, read before; at most ``MAX_BYTES`` bytes.

        With ``scratch`` the tokens hold until it is used for the next ones.
        """
        base = int(documents[0])
        data = data[base : int(documents[-1])]
        documents = documents - base
        if data.size > MAX_BYTES:
            raise DataError(
                f"A document or batch has {data.size:,} bytes of text, and {MAX_BYTES:,} is the most; split it."
            )
        scratch = scratch or Scratch()
        starts, ends, ids = (scratch.array(name, data.size, np.int32) for name in ("starts", "ends", "ids"))
        classes = scratch.array("classes", data.size, np.uint8)
        offsets = np.empty(documents.size, dtype=np.int64)
        longest = int(np.diff(documents).max(initial=0))
        room = Room(
            scratch.array("folded", 2 * longest, np.uint8), scratch.array("pending", longest // 2 + 1, np.int32)
        )
        arrays = TokenArrays(data, documents, starts, ends, classes, ids, offsets)
        apostrophes = languages.rule(self.language, "elides") is None
        count = scan(arrays, CHARACTERS, self.table.arrays, room, self.hyphens == "join", apostrophes)
        ends = ends[:count]
        return Tokens(data, documents, starts[:count], ends, classes[:count], ids[:count], offsets, self.language)

    def tokenize(self, texts: Sequence[str] | pa.Array) -> Tokens:
        """Tokenize strings or an Arrow string array, a document each, as the language is read."""
        column = texts if isinstance(texts, pa.Array) else pa.array(list(texts), type=pa.large_string())
        return self.tokens(*read(column, self.language))
