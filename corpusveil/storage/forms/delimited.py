"""Comma-separated values (RFC 4180), with a header; also separated by semicolons or tabs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import IO, Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.choices import Separator
from corpusveil.display import several
from corpusveil.errors import BadFileError, ColumnError, existing
from corpusveil.storage import forms
from corpusveil.storage.compression import chunks
from corpusveil.storage.forms import NOT_UTF8, ByteForm, split, too_long
from corpusveil.storage.nested import refuse_nested
from corpusveil.storage.rows import BadRow, Batch, Columns, refuse_others
from corpusveil.storage.values import as_strings, joined, refuse_unsaid, string_bytes

SUFFIXES = (".csv",)

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
    refuse_nested(columns.text, f"{name} has")
    for column in columns.named:
        if header.count(column) > 1:
            raise ColumnError(f"{name}: the first line names several columns {column!r}; rename them first.")
        if column not in header:
            refuse_separator(MARKS[columns.separator].join(header), name, columns.separator, column)
            if set(columns.named) & set(header):
                raise ColumnError(f"{name}: the first line names no column {column!r}{existing(column, header)}")
            import difflib

            # This may be a row of a file without names: at most a cell is quoted that is almost the name asked for.
            near = difflib.get_close_matches(column, header, 1, 0.8)
            mend = f"did you mean {near[0]}?" if near else "name a column that it has, or add a first line of names."
            many = several(len(header), "field")
            raise ColumnError(f"{name}: the first line names no column {column!r}, and has {many}; {mend}")
    refuse_others(header, columns, name)
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


def _written(row: Sequence[str], separator: str) -> bytes:
    text = io.StringIO(newline="")  # the module quotes a field for the line ends that it writes itself only
    csv.writer(text, delimiter=separator, lineterminator="\r\n").writerow(row)
    return (text.getvalue().removesuffix("\r\n") + "\n").encode("utf-8", "surrogateescape")


def _cells(texts: pa.Array, columns: Columns, *, alone: bool) -> pa.Array:
    """Return texts as cells, large_string [N], nulls as nothing.

    A cell stands in quotes where it holds a separator, a quote or a line end, quotes in it twice; and where it is empty
    and ``alone`` in its row, since a blank line is no row.
    """
    texts = as_strings(texts).fill_null("")
    in_quotes = pc.match_substring_regex(texts, f'["\r\n{MARKS[columns.separator]}]{"|^$" if alone else ""}')
    return pc.if_else(in_quotes, joined('"', pc.replace_substring(texts, '"', '""'), '"'), texts)


class Csv(ByteForm):
    """A row a document, fields in quotes where they hold separators, quotes or line breaks; blank lines are no rows.

    The text column is written first, nulls as nothing.
    """

    __slots__ = ()
    has_separator: ClassVar[bool] = True

    def names(self, file: IO[bytes], name: str, separator: Separator) -> list[str]:
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
        return document.size

    def parsed(self, documents: Sequence[_Record], first: int, columns: Columns) -> Batch:
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

    def refuse_unsaid(self, kept: Sequence[pa.Array], columns: Columns, name: str) -> None:
        refuse_unsaid(columns.whole, kept, name, "CSV", bare=True)

    def header(self, columns: Columns) -> bytes:
        return _written([columns.column, *columns.keep], MARKS[columns.separator])

    def render(self, texts: pa.Array, kept: Sequence[pa.Array], columns: Columns) -> Any:
        mark, alone = MARKS[columns.separator], not kept
        first, *others = (_cells(column, columns, alone=alone) for column in (texts, *kept))
        rows = joined(first, *chain.from_iterable((mark, cells) for cells in others), "\n")
        data, offsets = string_bytes(rows)
        return data[offsets[0] : offsets[-1]].data
