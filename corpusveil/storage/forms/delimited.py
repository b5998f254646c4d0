"""``.csv[.gz|.zst]``: comma-separated values (RFC 4180), with a header; also separated by semicolons or tabs."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import IO, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.choices import Separator
from corpusveil.errors import BadFileError, ColumnError, existing, is_name
from corpusveil.storage import forms
from corpusveil.storage.compression import chunks
from corpusveil.storage.csv_text import cells
from corpusveil.storage.forms import NOT_UTF8, ByteForm, split, too_long
from corpusveil.storage.nested import refuse_nested
from corpusveil.storage.rows import BadRow, Batch, Columns, refuse_others
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
        self._lines = (line for group in split(pieces, name) for line in group)
        self._name = name
        self._number = self._first = self._size = 0
        self.line = ""

    def begin(self) -> None:
        self._first, self._size = self._number + 1, 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._number += 1
            self._size += len(line) + 1
            if self._size > forms.MOST_LINE_BYTES:
                raise too_long(self._name, self._first)
            self.line = line.decode("utf-8", "surrogateescape") + "\n"
            yield self.line


def _records(pieces: Iterator[bytes], name: str, separator: Separator) -> Iterator[_Record]:
    """Yield the header and every row that is not blank."""
    csv.field_size_limit(forms.MOST_LINE_BYTES + 1)
    text = _Text(pieces, name)
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
        raise BadFileError(f"{name}: the first line, which names the columns, is {NOT_UTF8}")
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
    refuse_nested(columns.text, f"{name} has")
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


def _picked(record: _Record, width: int, places: dict[str, int], separator: Separator) -> _Record:
    """Return a row with its named fields alone, or with the reason that they cannot be used and all it holds."""
    why, fields = record.why, record.fields
    if not why and len(fields) != width:
        why = f"has {len(fields)} fields, the first line has {width}; repair or remove the row."
    if not why and not all(fields[place].isascii() or _is_unicode(fields[place]) for place in places.values()):
        why = NOT_UTF8
    if why:
        line = _written(fields, MARKS[separator]).decode("utf-8", "surrogateescape")
        return record._replace(fields=[], why=why, line=line)
    return record._replace(fields=[fields[place] for place in places.values()])


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


class Csv(ByteForm):
    """A row a document, fields in quotes where they hold separators, quotes or line breaks; blank lines are no rows.

    The text column is written first, nulls as nothing.
    """

    __slots__ = ()
    has_separator: ClassVar[bool] = True

    def names(self, file: IO[bytes], name: str, separator: Separator) -> list[str]:
        """Return the fields of the header."""
        return _header(_records(chunks(file, name, self.codec), name, separator), name, separator)

    def rows(self, file: IO[bytes], name: str, separator: Separator = "comma") -> int:
        """Return the number of rows after the header, whatever the columns."""
        return max(0, sum(1 for _ in _records(chunks(file, name, self.codec), name, separator)) - 1)

    def documents(self, pieces: Iterator[bytes], name: str, columns: Columns) -> Iterator[Sequence[_Record]]:
        """Yield the named fields of rows. Raises UserError for a header without the columns."""
        records = _records(pieces, name, columns.separator)
        header = _header(records, name, columns.separator)
        if not header:
            return
        places = _places(header, columns, name)
        for record in records:
            yield [_picked(record, len(header), places, columns.separator)]

    def size(self, document: _Record) -> int:
        """Return the characters of all fields."""
        return document.size

    def parsed(self, documents: Sequence[_Record], first: int, columns: Columns) -> Batch:
        """Return the named fields of rows as columns."""
        batch = Batch(first + len(documents))
        sound = []
        for number, record in enumerate(documents, first):
            if record.why:
                batch.bad.append(BadRow(number, record.why, record.line.encode("utf-8", "surrogateescape")))
            else:
                batch.numbers.append(number)
                sound.append(record.fields)
        named = dict(zip(columns.named, zip(*sound, strict=True) if sound else [()] * len(columns.named), strict=True))
        batch.texts = pa.array(named[columns.text], type=pa.large_string())
        batch.ids = None if columns.id is None else list(named[columns.id])
        batch.kept = [pa.array(named[name], type=pa.large_string()) for name in columns.keep]
        return batch

    def header(self, columns: Columns) -> bytes:
        """Return the names of the columns."""
        return _written([columns.column, *columns.keep], MARKS[columns.separator])

    def render(self, texts: pa.Array, kept: Sequence[pa.Array], columns: Columns) -> Any:
        """Return a row a document."""
        mark, escapes = MARKS[columns.separator], columns.formulas == "escape"
        arrays = [*map(as_strings, (texts, *kept))]
        written = [cells(array, separator=mark, alone=not kept, escapes=escapes) for array in arrays]
        return b"".join(_rows(written, mark)) if kept else written[0][0]
