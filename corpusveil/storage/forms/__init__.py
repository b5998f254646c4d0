"""Forms of documents, a module each: how documents are read from a file, and written to one.

All else is derived from these two ideas: rows that are counted, cut into batches and resumed in the middle; blocks that
are compressed by themselves; pieces of a shard that are joined; bad rows that are left out and counted.
"""

from __future__ import annotations

import abc
import codecs
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import IO, Any, ClassVar

import numpy as np
import pyarrow as pa

from corpusveil.choices import Codec, Separator
from corpusveil.errors import DataError
from corpusveil.storage import files
from corpusveil.storage.compression import CHUNK_BYTES, Blocks, chunks, codec_of
from corpusveil.storage.rows import BATCH_BYTES, BLOCK_ROWS, BadRow, Batch, Columns

MOST_LINE_BYTES = 256 << 20
"""Of one line. It is 50 times the Bible, and what a worker with 4 GB can still privatize; a few
hundred kilobytes of gzip can hold a line that fills any memory."""

RECODE = "If all of the file has another encoding, such as Latin-1, convert it: iconv -f LATIN1 -t UTF-8 OLD > NEW."
NOT_UTF8 = f"not valid UTF-8; repair or remove the row. {RECODE}"


def _wide(encoding: str) -> str:
    return f"{encoding}, and only UTF-8 is read; convert it: iconv -f {encoding} -t UTF-8 OLD > NEW"


_OTHER_FILES = {
    codecs.BOM_UTF32_LE: _wide("UTF-32"),
    codecs.BOM_UTF16_LE: _wide("UTF-16"),
    codecs.BOM_UTF16_BE: _wide("UTF-16"),
    b"PK\3\4": "a ZIP archive, or a workbook of Excel; unpack it, or save it as CSV",
    b"\x1f\x8b": "a gzip file; end its name in .gz, or unpack it if that is packed twice",
    b"\x28\xb5\x2f\xfd": "a zstd file; end its name in .zst, or unpack it if that is packed twice",
    b"PAR1": "a Parquet file; end its name in .parquet",
    b"%PDF-": "a PDF; extract its text",
    b"{\\rtf": "a document in RTF; save it as plain text",
    b"version https://git-lfs": "a pointer of Git LFS, not the file; fetch that: git lfs pull",
}
"""The first bytes of other files, and the end of a sentence about them."""


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def split(pieces: Iterator[bytes], name: str) -> Iterator[list[bytes]]:
    r"""Yield the lines of each chunk, without their ``\n``; a line that spans chunks comes with its last one.

    A byte order mark before the first line is none of it. Raises UserError for a line that is too long.
    """
    rest, number = io.BytesIO(), 1  # which hands over a huge line without a copy
    for piece in pieces:
        first, *others = piece.split(b"\n")
        if rest.write(first) and rest.tell() > MOST_LINE_BYTES:
            raise DataError(
                f"{name}, line {number:,}: this line is longer than {MOST_LINE_BYTES >> 20} MiB, the most that is "
                "read; split it, or fetch the file again if it should not have such a line."
            )
        if others:
            line, rest = rest.getvalue(), io.BytesIO()
            rest.write(others.pop())
            yield [unmarked(line, name) if number == 1 else line, *others]
            number += 1 + len(others)
    line, rest = rest.getvalue(), io.BytesIO()
    if last := unmarked(line, name) if number == 1 else line:
        yield [last]


def unmarked(line: bytes, name: str) -> bytes:
    """Return the first line without its byte order mark. Raises UserError for bytes that are not UTF-8."""
    for begin, what in _OTHER_FILES.items():
        if line.startswith(begin):
            raise DataError(f"{name}: this is {what}.")
    if line[257:262] == b"ustar":
        raise DataError(f"{name}: this is an archive of tar; unpack it.")
    if len(line) > 5 and any(not line[at::2].strip(b"\0") and 0 not in line[1 - at :: 2] for at in (0, 1)):
        raise DataError(f"{name}: every second byte of the first line is zero: this is {_wide('UTF-16LE')}.")
    return line.removeprefix(codecs.BOM_UTF8)


def lines_of(url: str) -> Iterator[bytes]:
    """Yield the lines of a whole file, by its name's compression. Raises UserError for bytes that are not UTF-8."""
    with files.open_read(url) as file:
        yield from chain.from_iterable(split(chunks(file, url, codec_of(url)), url))


def runs(
    batches: Iterable[Any], sizes: Callable[[Any], Any], at: int, start: int, stop: int | None
) -> Iterator[tuple[int, list[Any]]]:
    """Yield (number of the first row, rows in parts) for rows start to stop, cut by the rows of their block only.

    Batches are lists of rows, or Arrow's. ``at`` is the number of the first row, and ``sizes`` says how large rows are.
    """
    pending: list[Any] = []
    weight = 0
    for batch in batches:
        low, high = max(start - at, 0), len(batch) if stop is None else min(stop - at, len(batch))
        left, row = batch[low : max(low, high)], at + low
        at += len(batch)
        while len(left):
            grown = weight + np.cumsum(sizes(left))
            room = BLOCK_ROWS - row % BLOCK_ROWS
            full = int(np.searchsorted(grown, BATCH_BYTES)) + 1
            take = min(room, full, len(left))
            pending.append(left[:take])
            weight = int(grown[take - 1])
            row += take
            left = left[take:]
            if take in {room, full}:
                yield row - sum(map(len, pending)), pending
                pending, weight = [], 0
        if high < len(batch):
            break
    if pending:
        yield row - sum(map(len, pending)), pending


@dataclass(frozen=True, slots=True)
class Form(abc.ABC):
    """A form of documents, compressed or not."""

    codec: Codec
    seeks: ClassVar[bool] = False
    """Whether reading needs a file that can seek."""
    checksum: ClassVar[str] = "SHA-256 of each shard's uncompressed bytes"
    """The content that the checksum of a shard covers, in words."""
    has_columns: ClassVar[bool] = True
    has_separator: ClassVar[bool] = False
    lacks_nan: ClassVar[bool] = False
    """Whether the form has no words for floats that are no numbers."""

    def check(self, columns: Columns) -> None:
        """Raise UserError if the form cannot hold these columns."""
        kept = (columns.keep or (None,))[0]
        for option, column in (("id", columns.id), ("keep", kept)):
            if column is not None and not self.has_columns:
                raise DataError(
                    f"{option} {column}: plain text has no other columns; leave this out, or use a format that has "
                    "columns."
                )

    def names(self, file: IO[bytes], name: str, separator: Separator) -> list[str]:
        """Return the names of a file's columns; where each row has its own, of those at the beginning."""
        return []

    def kept_types(self, file: IO[bytes], name: str, columns: Columns) -> list[pa.DataType]:
        """Return the types of columns that are written whole; only a form that ``seeks`` may read the file for it."""
        return [pa.large_string()] * len(columns.keep)

    def count_rows(self, file: IO[bytes], name: str) -> int | None:
        """Return the number of rows that a file declares, None if only reading it shows them."""
        return None

    @abc.abstractmethod
    def batches(
        self, file: IO[bytes], name: str, columns: Columns, start: int = 0, stop: int | None = None
    ) -> Iterator[Batch]:
        """Yield the rows start to stop in batches that depend on nothing but the rows of their block.

        Raises UserError for columns that are not there or of a wrong type.
        """

    @abc.abstractmethod
    def writer(
        self, file: Any, columns: Columns, digest: Any, kept_types: Sequence[pa.DataType], *, first: bool = True
    ) -> Writer:
        """Return a writer of a shard, or of a piece of one that is not the ``first``.

        ``digest`` (hashlib's interface) is fed what ``checksum`` says.
        """

    @abc.abstractmethod
    def feed(self, file: IO[bytes], name: str, text: str, digest: Any) -> None:
        """Feed ``digest`` with what a writer fed it for this file; ``text`` is its text column."""

    @abc.abstractmethod
    def join(self, pieces: Sequence[str], sink: Any, columns: Columns, digest: Any) -> None:
        """Write the shard whose pieces are at these addresses; ``digest`` is fed."""


class ByteForm(Form, abc.ABC):
    """A form whose files are bytes, perhaps compressed: a header, if there is one, and documents one after the other.

    A subclass says which documents bytes hold (``documents``; also ``parsed``, if these are more than the bytes of
    texts), and which bytes documents become (``render``, and ``header`` where a file begins with one).
    """

    __slots__ = ()

    @abc.abstractmethod
    def render(self, texts: pa.Array, kept: Sequence[pa.Array], columns: Columns) -> Any:
        """Return documents as bytes, in one piece: what goes into a compressor at a time decides its output."""

    def header(self, columns: Columns) -> bytes:
        """Return the bytes before the first document of a file."""
        return b""

    def writer(
        self, file: Any, columns: Columns, digest: Any, kept_types: Sequence[pa.DataType], *, first: bool = True
    ) -> Writer:
        return Writer(self, Blocks(file, self.codec), columns, digest, self.header(columns) if first else b"")

    def join(self, pieces: Sequence[str], sink: Any, columns: Columns, digest: Any) -> None:
        for piece in filter(files.size, pieces):  # one without rows is an empty file
            with files.open_read(piece) as file:
                while data := file.read(CHUNK_BYTES):
                    sink.write(data)
            with files.open_read(piece) as file:
                self.feed(file, piece, columns.text, digest)

    def feed(self, file: IO[bytes], name: str, text: str, digest: Any) -> None:
        for data in chunks(file, name, self.codec):
            digest.update(data)

    def documents(self, pieces: Iterator[bytes], name: str, columns: Columns) -> Iterator[Sequence[Any]]:
        """Yield the documents of a file's uncompressed bytes, in groups, as ``parsed`` takes them."""
        raise NotImplementedError

    def texts(self, documents: Sequence[Any]) -> Sequence[bytes]:
        """Return the text of each document in UTF-8. Here: the document itself."""
        return documents

    def parsed(self, documents: Sequence[Any], first: int, columns: Columns) -> Batch:
        """Return documents as a batch; ``first`` is the number of the first one, from 0. Here: of texts alone.

        A text that is not UTF-8 is a bad row.
        """
        batch, texts = Batch(first + len(documents)), self.texts(documents)
        numbers: Sequence[int] = range(first, first + len(documents))
        if not is_utf8(b"\n".join(texts)):
            sound = [is_utf8(text) for text in texts]
            wrong = [at for at, valid in enumerate(sound) if not valid]
            batch.bad.extend(BadRow(first + at, NOT_UTF8) for at in wrong)
            numbers, texts = [*compress(numbers, sound)], [*compress(texts, sound)]
        batch.numbers.extend(numbers)
        batch.texts = pa.array(texts, type=pa.large_binary()).view(pa.large_string())
        return batch

    def batches(
        self, file: IO[bytes], name: str, columns: Columns, start: int = 0, stop: int | None = None
    ) -> Iterator[Batch]:
        documents = self.documents(chunks(file, name, self.codec), name, columns)
        for first, parts in runs(documents, lambda some: list(map(len, some)), 0, start, stop):
            yield self.parsed([*chain.from_iterable(parts)], first, columns)


class Writer:
    """Writes the rows of one shard, block by block. Here: as the bytes that a form renders, after its header."""

    def __init__(self, form: ByteForm, file: Blocks, columns: Columns, digest: Any, header: bytes) -> None:
        self._form, self._blocks, self._columns, self._digest, self._header = form, file, columns, digest, header

    def write(self, texts: pa.Array, kept: Sequence[pa.Array]) -> None:
        """Write rows: texts large_string [N], and kept arrays [N]."""
        self._put(self._form.render(texts, kept, self._columns))

    def _put(self, data: Any) -> None:
        if self._header:
            data, self._header = b"".join((self._header, data)), b""
        if len(data):
            self._digest.update(data)
            self._blocks.write(data)

    def end_block(self) -> None:
        """End the block that was being written."""
        self._blocks.end()

    def close(self) -> None:
        """Write the end of the file, which stays open."""
        self._put(b"")  # the header of a shard without rows
        self._blocks.end()
