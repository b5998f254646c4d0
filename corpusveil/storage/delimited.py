"""Comma-separated values (RFC 4180) in UTF-8, with a header."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.choices import Codec
from corpusveil.errors import BadFileError, ColumnError
from corpusveil.storage import lines
from corpusveil.storage.compression import Blocks, blocks, chunks
from corpusveil.storage.csv_text import cells
from corpusveil.storage.rows import BadRow, Batch, Columns, cut, refuse_others
from corpusveil.storage.values import as_strings


class _Record(NamedTuple):
    """The fields of a row, or why there are none; ``size`` in characters."""

    fields: list[str]
    why: str = ""
    size: int = 0


class _Text:
    """Yields the lines, wrong bytes marked; ``begin`` says that the next one begins a row."""

    def __init__(self, pieces: Iterator[bytes], name: str) -> None:
        self._lines = (line for group in lines.split(pieces, name) for line in group)
        self._name = name
        self._number = self._first = self._size = 0

    def begin(self) -> None:
        self._first, self._size = self._number + 1, 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._number += 1
            self._size += len(line) + 1
            if self._size > lines.MOST_LINE_BYTES:
                raise lines.too_long(self._name, self._first)
            yield line.decode("utf-8", "surrogateescape") + "\n"


def _records(file: IO[bytes], name: str, codec: Codec) -> Iterator[_Record]:
    """Yield the header and every row that is not blank."""
    csv.field_size_limit(lines.MOST_LINE_BYTES + 1)
    text = _Text(chunks(file, name, codec), name)
    reader = csv.reader(text, strict=True)
    while True:
        text.begin()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield _Record([], "not valid CSV (a quote is not closed, or is inside a field); repair or remove the row.")
            continue
        if fields:
            yield _Record(fields, size=sum(map(len, fields)))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # the decoder's mark for a wrong byte
        return False
    return True


def _header(records: Iterator[_Record], name: str) -> list[str]:
    first = next(records, None)
    if first is None:
        return []
    if first.why:
        raise ColumnError(f"{name}: the first line, which names the columns, is {first.why}")
    if not all(map(_is_unicode, first.fields)):
        raise BadFileError(f"{name}: the first line, which names the columns, is not valid UTF-8; repair it.")
    return first.fields


def _places(header: Sequence[str], columns: Columns, name: str) -> dict[str, int]:
    refuse_others(header, columns, name)
    for column in columns.named:
        if header.count(column) != 1:
            several = "several columns" if column in header else "no column"
            raise ColumnError(
                f"{name}: the first line names {several} {column!r}; give the right name "
                "(--text names the text column)."
            )
    return {column: header.index(column) for column in columns.named}


def _parse(rows: Sequence[_Record], width: int, places: dict[str, int], columns: Columns, first: int) -> Batch:
    batch = Batch(first + len(rows))
    sound: list[list[str]] = []
    named = list(places.values())
    for number, row in enumerate(rows, first):
        why, fields = row.why, row.fields
        if not why and len(fields) != width:
            why = f"has {len(fields)} fields, the first line has {width}; repair or remove the row."
        if not why and not all(fields[place].isascii() or _is_unicode(fields[place]) for place in named):
            why = "not valid UTF-8; repair or remove the row."
        if why:
            batch.bad.append(BadRow(number, why, _written(row.fields)))
            continue
        batch.numbers.append(number)
        sound.append(row.fields)

    def column(name: str) -> list[str]:
        place = places[name]
        return [fields[place] for fields in sound]

    batch.texts = pa.array(column(columns.text), type=pa.large_string())
    batch.ids = None if columns.id is None else list(column(columns.id))
    batch.kept = [pa.array(column(name), type=pa.large_string()) for name in columns.keep]
    return batch


class _Lines(list[str]):
    r"""Takes each row with its ``\r\n``: the csv module quotes a field for the line ends that it writes itself only."""

    def write(self, row: str) -> None:
        self.append(row[:-2])


def _written(row: Sequence[str]) -> bytes:
    lines = _Lines()
    csv.writer(lines, lineterminator="\r\n").writerow(row)
    return "\n".join([*lines, ""]).encode("utf-8", "surrogateescape")


def _rows(columns: Sequence[tuple[memoryview, npt.NDArray[np.int64]]]) -> list[Any]:
    """Return the cells of several columns row by row, and what stands between them."""
    pieces: list[Any] = []
    starts: tuple[int, ...] = (0,) * len(columns)
    whole = [cells for cells, _ in columns]
    for ends in zip(*(ends.tolist() for _, ends in columns), strict=True):
        for cells_, first, last in zip(whole, starts, ends, strict=True):
            pieces += (cells_[first:last], b",")
        pieces[-1] = b"\n"
        starts = ends
    return pieces


class CsvWriter:
    """Writes a header, in the first piece, and a row a document; the text column first, nulls as nothing."""

    def __init__(self, file: Blocks, columns: Columns, digest: Any, *, first: bool) -> None:
        self._blocks = file
        self._digest = digest
        self._header = [columns.text, *columns.keep] if first else None
        self._escapes = columns.formulas == "escape"

    def _put(self, data: Any) -> None:
        if len(data):
            self._digest.update(data)
            self._blocks.write(data)

    def _begin(self) -> bytes:
        header, self._header = self._header, None
        return b"" if header is None else _written(header)

    def write(self, texts: pa.Array, kept: Sequence[pa.Array]) -> None:
        arrays = [texts, *map(as_strings, kept)]
        columns = [cells(array, alone=not kept, escapes=self._escapes) for array in arrays]
        self._put(b"".join([self._begin(), *([columns[0][0]] if not kept else _rows(columns))]))

    def end_block(self) -> None:
        self._blocks.end()

    def close(self) -> None:
        self._put(self._begin())  # a shard without rows
        self._blocks.end()


@dataclass(frozen=True, slots=True)
class Csv(lines.OfBytes):
    """A row a document, fields in quotes where they hold commas, quotes or line breaks; blank lines are no rows."""

    suffixes: tuple[str, ...]
    codec: Codec = ""

    def check(self, columns: Columns) -> None:
        """Hold any columns."""

    def names(self, file: IO[bytes], name: str) -> list[str]:
        """Return the fields of the header."""
        return _header(_records(file, name, self.codec), name)

    def kept_types(self, file: IO[bytes], name: str, columns: Columns) -> list[pa.DataType]:
        """Return strings: CSV knows nothing else."""
        return [pa.large_string()] * len(columns.keep)

    def rows(self, file: IO[bytes], name: str) -> int:
        """Return the number of rows behind the header."""
        return max(0, sum(1 for _ in _records(file, name, self.codec)) - 1)

    def batches(
        self, file: IO[bytes], name: str, columns: Columns, start: int = 0, stop: int | None = None
    ) -> Iterator[Batch]:
        """Yield the rows start to stop. Raises UserError for a header without the columns."""
        records = _records(file, name, self.codec)
        header = _header(records, name)
        if not header:
            return
        places = _places(header, columns, name)
        for first, rows in cut(([record] for record in records), lambda record: record.size, start, stop):
            yield _parse(rows, len(header), places, columns, first)

    def writer(
        self,
        file: Any,
        columns: Columns,
        digest: Any,
        kept_types: Sequence[pa.DataType],
        *,
        first: bool = True,
    ) -> CsvWriter:
        """Return a writer to ``file``; ``digest`` (hashlib's interface) is fed the uncompressed bytes."""
        return CsvWriter(blocks(file, self.codec), columns, digest, first=first)
