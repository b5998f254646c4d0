"""Comma-separated values (RFC 4180), with a header; also separated by semicolons or tabs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import IO, Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.choices import Separator
from corpusveil.display import several
from corpusveil.errors import BadFileError, ColumnError, existing, is_name
from corpusveil.storage import forms
from corpusveil.storage.compression import chunks
from corpusveil.storage.forms import NOT_UTF8, ByteForm, split, too_long
from corpusveil.storage.rows import BadRow, Batch, Columns
from corpusveil.storage.values import as_strings, joined, string_bytes

SUFFIXES = (".csv",)

MARKS: dict[Separator, str] = {"comma": ",", "semicolon": ";", "tab": "\t"}


_ROW = {
    mark: re.compile(f"{cell}(?:{mark}{cell})*+[\r\n]*+")
    for mark in MARKS.values()
    for cell in [f'(?:"[^"]*+(?:""[^"]*+)*+"|[^"\r\n{mark}]*+)']
}
"""A row of RFC 4180, by the separator."""
_ESCAPED = re.compile(r"(?<!\\)(?:\\\\)*\\[\r\n]*\Z")
_MEND = (
    "so it is not certain where rows end, and none is used. Cells with separators, line breaks or quotes have to be in "
    "quotes, and quotes in them are written twice (in Spark, by option('escape', '\"')); write the file so, or as JSON "
    "lines."
)


class _Record(NamedTuple):
    """The fields of a row, or why they cannot be used, and then all of the row; ``size`` in characters."""

    fields: list[str]
    size: int = 0
    why: str = ""
    row: str = ""


class _Text:
    """Yields the lines, wrong bytes marked; ``begin`` says that the next one begins a row."""

    def __init__(self, pieces: Iterator[bytes], name: str) -> None:
        self._lines = (line for group in split(pieces, name) for line in group)
        self._name = name
        self._number = self._size = self.first = 0
        self._row: list[str] = []

    def begin(self) -> None:
        self.first, self._size, self._row = self._number + 1, 0, []

    @property
    def row(self) -> str:
        """All that was read of the row."""
        return "".join(self._row)

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._number += 1
            self._size += len(line) + 1
            if self._size > forms.MOST_LINE_BYTES:
                raise too_long(self._name, self.first)
            self._row.append(line.decode("utf-8", "surrogateescape") + "\n")
            yield self._row[-1]


def _rows(pieces: Iterator[bytes], name: str, separator: Separator) -> Iterator[tuple[list[str], str]]:
    """Yield the fields of the header and of every row that is not blank, with all of the row.

    Raises UserError where it is not certain where a row ends: what follows could be the rest of a text, and then also
    rows before it that looked sound, so that nothing can be set aside instead.
    """
    csv.field_size_limit(forms.MOST_LINE_BYTES + 1)
    text, mark, width, number = _Text(pieces, name), MARKS[separator], 0, 0
    reader = csv.reader(text, delimiter=mark, strict=True)
    while True:
        text.begin()
        why = ""
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error:
            why = "not valid CSV (a quote is not closed, or text is behind one, or a line ends in a carriage return)"
        else:
            if not fields:
                continue
            # the module takes a quote in a cell without quotes for a part of it
            if any('"' in cell for cell in fields) and not _ROW[mark].fullmatch(text.row):
                why = "not valid CSV (a quote is inside a cell that is not in quotes)"
            elif width and len(fields) != width:
                why = f"has {several(len(fields), 'field')}, the first line has {width}"
            elif width and fields[-1].endswith("\\") and _ESCAPED.search(text.row):
                why = "ends in a backslash without quotes, which some programs write before a line break in a text"
        if why and not number:
            refuse_separator(text.row, name, separator)
            raise BadFileError(f"{name}: the first line, which names the columns, is {why}, {_MEND}")
        if why:
            raise BadFileError(f"{name}, row {number}: {why} (line {text.first:,}), {_MEND}")
        width = width or len(fields)
        number += 1
        yield fields, text.row


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # the decoder's mark for a wrong byte
        return False
    return True


def _header(rows: Iterator[tuple[list[str], str]], name: str) -> list[str]:
    names, _ = next(rows, ([], ""))
    if names and names[0].lower().startswith("sep="):
        raise BadFileError(f"{name}: the first line tells Excel the separator; remove it: tail -n +2 OLD > NEW.")
    if not all(map(_is_unicode, names)):
        raise BadFileError(f"{name}: the first line, which names the columns, is {NOT_UTF8}")
    return names


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


def _places(header: Sequence[str], columns: Columns, name: str) -> list[int]:
    """Return the places of the named columns. Raises UserError if one is not there, or there twice."""
    for column in columns.named:
        if header.count(column) > 1:
            raise ColumnError(f"{name}: the first line names several columns {column!r}; rename them first.")
        if column not in header:
            refuse_separator(MARKS[columns.separator].join(header), name, columns.separator, column)
            if set(columns.named) & set(header):
                raise ColumnError(f"{name}: the first line names no column {column!r}{existing(column, header)}")
            import difflib

            # This may be a row of a file without names: at most a cell is quoted that is almost the name asked for.
            near = difflib.get_close_matches(column, filter(is_name, header), 1, 0.8)
            mend = "name one that it has as text, or add a first line of names."
            mend = f"did you mean {near[0]}?" if near else mend
            many = several(len(header), "field")
            raise ColumnError(f"{name}: the first line names no column {column!r}, and has {many}; {mend}")
    return [header.index(column) for column in columns.named]


def _written(row: Sequence[str], separator: str) -> bytes:
    text = io.StringIO(newline="")  # the module quotes a field for the line ends that it writes itself only
    csv.writer(text, delimiter=separator, lineterminator="\r\n").writerow(row)
    return (text.getvalue().removesuffix("\r\n") + "\n").encode("utf-8", "surrogateescape")


def _cells(texts: pa.Array, columns: Columns, *, alone: bool) -> pa.Array:
    """Return texts as cells, large_string [N], nulls as nothing.

    A cell stands in quotes where it holds a separator, a quote or a line end, quotes in it twice, or ends in a
    backslash; and where it is empty and ``alone`` in its row, since a blank line is no row.
    """
    texts = as_strings(texts).fill_null("")
    in_quotes = pc.match_substring_regex(texts, rf'["\r\n{MARKS[columns.separator]}]|\\$' + ("|^$" if alone else ""))
    return pc.if_else(in_quotes, joined('"', pc.replace_substring(texts, '"', '""'), '"'), texts)


class Csv(ByteForm):
    """A row a document, fields in quotes where they hold separators, quotes or line breaks; blank lines are no rows.

    The text column is written first, nulls as nothing.
    """

    __slots__ = ()
    has_separator: ClassVar[bool] = True

    def names(self, file: IO[bytes], name: str, separator: Separator) -> list[str]:
        return _header(_rows(chunks(file, name, self.codec), name, separator), name)

    def rows(self, file: IO[bytes], name: str, separator: Separator = "comma") -> int:
        """Return the number of rows after the header, whatever the columns."""
        return max(0, sum(1 for _ in _rows(chunks(file, name, self.codec), name, separator)) - 1)

    def documents(self, pieces: Iterator[bytes], name: str, columns: Columns) -> Iterator[Sequence[_Record]]:
        """Yield the named fields of rows. Raises UserError for a header without the columns."""
        rows = _rows(pieces, name, columns.separator)
        header = _header(rows, name)
        if not header:
            return
        places = _places(header, columns, name)
        for fields, row in rows:
            named = [fields[place] for place in places]
            if all(cell.isascii() or _is_unicode(cell) for cell in named):
                yield [_Record(named, sum(map(len, fields)))]
            else:
                yield [_Record([], len(row), NOT_UTF8, row)]

    def size(self, document: _Record) -> int:
        return document.size

    def parsed(self, documents: Sequence[_Record], first: int, columns: Columns) -> Batch:
        batch = Batch(first + len(documents))
        sound = []
        for number, record in enumerate(documents, first):
            if record.why:
                batch.bad.append(BadRow(number, record.why))
            else:
                batch.numbers.append(number)
                sound.append(record.fields)
        named = dict(zip(columns.named, zip(*sound, strict=True) if sound else [()] * len(columns.named), strict=True))
        batch.texts = pa.array(named[columns.text], type=pa.large_string())
        batch.ids = None if columns.id is None else list(named[columns.id])
        batch.kept = [pa.array(named[name], type=pa.large_string()) for name in columns.keep]
        return batch

    def header(self, columns: Columns) -> bytes:
        return _written([columns.text, *columns.keep], MARKS[columns.separator])

    def render(self, texts: pa.Array, kept: Sequence[pa.Array], columns: Columns) -> Any:
        mark, alone = MARKS[columns.separator], not kept
        first, *others = (_cells(column, columns, alone=alone) for column in (texts, *kept))
        rows = joined(first, *chain.from_iterable((mark, cells) for cells in others), "\n")
        data, offsets = string_bytes(rows)
        return data[offsets[0] : offsets[-1]].data
