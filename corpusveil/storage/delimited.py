"""Comma-separated values (RFC 4180) in UTF-8, with a header; also separated by semicolons or tabs."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.choices import Codec, Separator
from corpusveil.errors import BadFileError, ColumnError, existing, is_name
from corpusveil.storage import lines
from corpusveil.storage.compression import Blocks, blocks, chunks
from corpusveil.storage.csv_text import cells
from corpusveil.storage.rows import BadRow, Batch, Columns, cut, refuse_others
from corpusveil.storage.values import as_strings

MARKS: dict[Separator, str] = {"comma": ",", "semicolon": ";", "tab": "\t"}


class _Record(NamedTuple):
    """The fields of a row, or why there are none, and then a line of it; ``size`` in characters."""

    fields: list[str]
    why: str = ""
    size: int = 0
    line: str = ""


class _Text:
    """Yields the lines, wrong bytes marked; ``begin`` says that the next one begins a row."""

    def __init__(self, pieces: Iterator[bytes], name: str) -> None:
        self._lines = (line for group in lines.split(pieces, name) for line in group)
        self._name = name
        self._number = self._first = self._size = 0
        self.line = ""

    def begin(self) -> None:
        self._first, self._size = self._number + 1, 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._number += 1
            self._size += len(line) + 1
            if self._size > lines.MOST_LINE_BYTES:
                raise lines.too_long(self._name, self._first)
            self.line = line.decode("utf-8", "surrogateescape") + "\n"
            yield self.line


def _records(file: IO[bytes], name: str, codec: Codec, separator: Separator) -> Iterator[_Record]:
    """Yield the header and every row that is not blank."""
    csv.field_size_limit(lines.MOST_LINE_BYTES + 1)
    text = _Text(chunks(file, name, codec), name)
    reader = csv.reader(text, delimiter=MARKS[separator], strict=True)
    while True:
        text.begin()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error:
            why = "not valid CSV (a quote is not closed, or is inside a field); repair or remove the row."
            yield _Record([], why, line=text.line)
            continue
        if fields:
            yield _Record(fields, size=sum(map(len, fields)))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # the decoder's mark for a wrong byte
        return False
    return True


def _header(records: Iterator[_Record], name: str, separator: Separator) -> list[str]:
    first = next(records, None)
    if first is None:
        return []
    if first.why:
        refuse_separator(first.line, name, separator)
        raise ColumnError(f"{name}: the first line, which names the columns, is {first.why}")
    if not all(map(_is_unicode, first.fields)):
        raise BadFileError(f"{name}: the first line, which names the columns, is {lines.NOT_UTF8}")
    return first.fields


def refuse_separator(line: str, name: str, separator: Separator, column: str | None = None) -> None:
    """Raise ColumnError if another separator than the given one parts a first line, or parts a column from others."""
    for other, mark in MARKS.items():
        cells = [cell.strip().strip('"') for cell in line.split(mark)]
        if mark in line and other != separator and (MARKS[separator] not in line or column in cells):
            raise ColumnError(
                f"{name}: the first line names {'no column' if column is None else f'no column {column!r}'} where a "
                f"{separator} separates them, and it has {other}s; give the separator (separator {other}), or "
                f"write the file with {separator}s."
            )


def _places(header: Sequence[str], columns: Columns, name: str) -> dict[str, int]:
    refuse_others(header, columns, name)
    for column in columns.named:
        if header.count(column) > 1:
            raise ColumnError(f"{name}: the first line names several columns {column!r}; rename them first.")
        if column not in header:
            refuse_separator(MARKS[columns.separator].join(header), name, columns.separator, column)
            if not all(map(is_name, filter(None, header))):  # it can be a row of a file without names
                raise ColumnError(
                    f"{name}: the first line names no column {column!r}, and does not look like a list of names; give "
                    "the file a first line that names its columns, or correct the name."
                )
            raise ColumnError(f"{name}: the first line names no column {column!r}{existing(column, header)}")
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
            why = lines.NOT_UTF8
        if why:
            batch.bad.append(BadRow(number, why, _written(row.fields, MARKS[columns.separator])))
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


def _written(row: Sequence[str], separator: str) -> bytes:
    lines = _Lines()
    csv.writer(lines, delimiter=separator, lineterminator="\r\n").writerow(row)
    return "\n".join([*lines, ""]).encode("utf-8", "surrogateescape")


def _rows(columns: Sequence[tuple[memoryview, npt.NDArray[np.int64]]], separator: str) -> list[Any]:
    """Return the cells of several columns row by row, and what stands between them."""
    pieces: list[Any] = []
    between = separator.encode()
    starts: tuple[int, ...] = (0,) * len(columns)
    whole = [cells for cells, _ in columns]
    for ends in zip(*(ends.tolist() for _, ends in columns), strict=True):
        for cells_, first, last in zip(whole, starts, ends, strict=True):
            pieces += (cells_[first:last], between)
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
        self._separator = MARKS[columns.separator]

    def _put(self, data: Any) -> None:
        if len(data):
            self._digest.update(data)
            self._blocks.write(data)

    def _begin(self) -> bytes:
        header, self._header = self._header, None
        return b"" if header is None else _written(header, self._separator)

    def write(self, texts: pa.Array, kept: Sequence[pa.Array]) -> None:
        arrays = [texts, *map(as_strings, kept)]
        columns = [cells(cell, separator=self._separator, alone=not kept, escapes=self._escapes) for cell in arrays]
        self._put(b"".join([self._begin(), *([columns[0][0]] if not kept else _rows(columns, self._separator))]))

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

    def names(self, file: IO[bytes], name: str, separator: Separator) -> list[str]:
        """Return the fields of the header."""
        return _header(_records(file, name, self.codec, separator), name, separator)

    def kept_types(self, file: IO[bytes], name: str, columns: Columns) -> list[pa.DataType]:
        """Return strings: CSV knows nothing else."""
        return [pa.large_string()] * len(columns.keep)

    def rows(self, file: IO[bytes], name: str, separator: Separator = "comma") -> int:
        """Return the number of rows behind the header."""
        return max(0, sum(1 for _ in _records(file, name, self.codec, separator)) - 1)

    def batches(
        self, file: IO[bytes], name: str, columns: Columns, start: int = 0, stop: int | None = None
    ) -> Iterator[Batch]:
        """Yield the rows start to stop. Raises UserError for a header without the columns."""
        records = _records(file, name, self.codec, columns.separator)
        header = _header(records, name, columns.separator)
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
