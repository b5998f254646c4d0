"""Comma-separated values (RFC 4180), with a header; also separated by semicolons or tabs."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import IO, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow

from corpusveil.choices import Separator
from corpusveil.display import several
from corpusveil.errors import DataError, existing, is_name
from corpusveil.storage.compression import CHUNK_BYTES, Unpacked
from corpusveil.storage.forms import RECODE, ByteForm, runs, unmarked
from corpusveil.storage.rows import Batch, Columns
from corpusveil.storage.values import as_strings, joined, string_bytes

SUFFIXES = (".csv",)

MARKS: dict[Separator, str] = {"comma": ",", "semicolon": ";", "tab": "\t"}

_MOST_ROW_BYTES = 32 << 20
"""Of one row."""
_SOUND = {
    separator: re.compile(plain + rb'(?:(?<=[\r\n%b])"[^"]*+(?:""[^"]*+)*"(?=[\r\n%b])%b)*' % (mark, mark, plain))
    for plain in [rb'[^"\\\r]*+(?:(?:\\(?:\\|(?!\\|\r?\n))|\r(?=\n))[^"\\\r]*+)*']
    for separator, mark in ((separator, mark.encode()) for separator, mark in MARKS.items())
}
"""Lines by the separator: quotes are around whole cells, and outside no backslash or lone carriage return ends one.

Groups are not possessive: before Python 3.11.5, ``re`` matches a quote that is not closed by those (cpython 106052).
"""
_MEND = (
    "a row has as many cells as the first line and at most 32 MiB, a cell with separators, line breaks or quotes is in "
    "quotes, quotes in it are written twice (in Spark, by option('escape', '\"')), no line ends in \\r alone, the text "
    f"is UTF-8; write the file so, or as JSON lines. {RECODE}"
)


def _header(source: IO[bytes], name: str, separator: Separator) -> list[str]:
    line = unmarked(source.readline(_MOST_ROW_BYTES), name)
    while line and not line.strip(b"\r\n"):
        line = source.readline(_MOST_ROW_BYTES)
    try:
        names = next(csv.reader([line.decode()], delimiter=MARKS[separator], strict=True), [])
    except (csv.Error, UnicodeDecodeError):
        refuse_separator(line.decode(errors="replace"), name, separator)
        raise DataError(f"{name}: the first line, which names the columns, is not valid CSV: {_MEND}") from None
    return names


def _sound(source: IO[bytes], name: str, separator: Separator) -> Iterator[bytes]:
    """Yield the rest of a file, to the end of a row. Raises DataError where it is not certain where a row ends.

    Arrow takes a quote in a cell without quotes for a part of it, and so a text with escapes of another kind for
    several rows, whose cells would then be other columns'; and all after a quote that is not closed for one cell.
    """
    rest, line = b"\n", 2
    while data := source.read(CHUNK_BYTES):
        rest += data
        sound = _SOUND[separator].match(rest, 1, rest.rfind(b"\n") + 1)
        if sound is not None and (end := _end_of_row(sound[0])):
            line += rest.count(b"\n", 1, end + 1)
            yield rest[1 : end + 1]
            rest = rest[end:]
        if len(rest) > _MOST_ROW_BYTES:
            break
    rest += b"" if rest.endswith(b"\n") else b"\n"
    sound = _SOUND[separator].fullmatch(rest, 1)
    if sound is None:
        raise DataError(f"{name}, line {line:,}: not valid CSV: {_MEND}")
    yield sound[0]


def _end_of_row(data: bytes) -> int:
    """Return where the last row ends of which all is here, 0 if none does: at a line end outside of quotes."""
    end = len(data)
    while (quote := data.rfind(b'"', 0, end)) >= 0 and data.rfind(b"\n", quote, end) < 0:
        end = max(0, data.rfind(b'"', 0, quote))
    return data.rfind(b"\n", 0, end) + 1


def _cells(
    source: IO[bytes], name: str, width: int, separator: Separator, places: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Yield the cells at some places of all rows, large_string [N]; blank lines are no rows.

    Raises DataError for what is not CSV; Arrow's messages quote rows, so only the number is taken from them.
    """
    wanted = list(map(str, places))
    kinds = arrow.ConvertOptions(column_types=dict.fromkeys(wanted, pa.large_string()), include_columns=wanted)
    marks, rows = arrow.ParseOptions(delimiter=MARKS[separator], newlines_in_values=True), 0
    for lines in filter(lambda some: some.strip(b"\r\n"), _sound(source, name, separator)):
        names = arrow.ReadOptions(
            use_threads=False, block_size=len(lines) + 1, column_names=list(map(str, range(width)))
        )  # fmt: skip
        try:
            (batch,) = arrow.read_csv(io.BytesIO(lines), names, marks, kinds).combine_chunks().to_batches()
        except pa.ArrowInvalid as error:
            number = re.search(r"Row #(\d+)", str(error))
            where = f", row {rows + int(number[1]):,}" if number else ""
        else:
            yield batch
            rows += batch.num_rows
            continue
        raise DataError(f"{name}{where}: not valid CSV: {_MEND}")


def refuse_separator(line: str, name: str, separator: Separator, column: str | None = None) -> None:
    """Raise DataError if another separator than the given one parts a first line, or parts a column from others."""
    for other, mark in MARKS.items():
        cells = [cell.strip().strip('"') for cell in line.split(mark)]
        if mark in line and other != separator and (MARKS[separator] not in line or column in cells):
            raise DataError(
                f"{name}: the first line names {'no column' if column is None else f'no column {column!r}'} where a "
                f"{separator} separates them, and it has {other}s; give the separator (separator {other}), or "
                f"write the file with {separator}s."
            )


def _places(header: Sequence[str], columns: Columns, name: str) -> list[int]:
    """Return the places of the named columns. Raises UserError if one is not there, or there twice."""
    places = {column: place for place, column in enumerate(header)}
    twice = Counter(header) - Counter(places.keys())
    for column in columns.named:
        if column in twice:
            raise DataError(f"{name}: the first line names several columns {column!r}; rename them first.")
        if column not in places:
            refuse_separator(MARKS[columns.separator].join(header), name, columns.separator, column)
            if set(columns.named) & set(header):
                raise DataError(f"{name}: the first line names no column {column!r}{existing(column, header)}")
            import difflib

            # This may be a row of a file without names: at most a cell is quoted that is almost the name asked for.
            near = difflib.get_close_matches(column, filter(is_name, header), 1, 0.8)
            mend = "if it has names, name the column of the texts (text); if it has none, add a first line of names."
            mend = f"did you mean {near[0]}?" if near else mend
            many = several(len(header), "field")
            raise DataError(f"{name}: the first line names no column {column!r}, and has {many}; {mend}")
    return [places[column] for column in columns.named]


def _quoted(texts: pa.Array, columns: Columns, *, alone: bool) -> pa.Array:
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

    def _source(self, file: IO[bytes], name: str) -> IO[bytes]:
        return io.BufferedReader(Unpacked(file, name, self.codec), CHUNK_BYTES)

    def names(self, file: IO[bytes], name: str, separator: Separator) -> list[str]:
        return _header(self._source(file, name), name, separator)

    def batches(
        self, file: IO[bytes], name: str, columns: Columns, start: int = 0, stop: int | None = None
    ) -> Iterator[Batch]:
        source = self._source(file, name)
        header = _header(source, name, columns.separator)
        if not header:
            return
        cells = _cells(source, name, len(header), columns.separator, _places(header, columns, name))
        for first, parts in runs(cells, lambda rows: pc.binary_length(rows.column(0)), 0, start, stop):
            (rows,) = pa.Table.from_batches(parts).combine_chunks().to_batches()
            named = dict(zip(columns.named, rows.columns, strict=True))
            numbers = list(range(first, first + rows.num_rows))
            ids = None if columns.id is None else named[columns.id].to_pylist()
            yield Batch(numbers[-1] + 1, numbers, named[columns.text], ids, [named[name] for name in columns.keep])

    def header(self, columns: Columns) -> bytes:
        names = _quoted(pa.array([columns.text, *columns.keep], pa.large_string()), columns, alone=not columns.keep)
        return (MARKS[columns.separator].join(names.to_pylist()) + "\n").encode()

    def render(self, texts: pa.Array, kept: Sequence[pa.Array], columns: Columns) -> Any:
        mark, alone = MARKS[columns.separator], not kept
        first, *others = (_quoted(column, columns, alone=alone) for column in (texts, *kept))
        rows = joined(first, *chain.from_iterable((mark, cells) for cells in others), "\n")
        data, offsets = string_bytes(rows)
        return data[offsets[0] : offsets[-1]].data
