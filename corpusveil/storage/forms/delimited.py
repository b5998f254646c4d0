"""Comma-separated values (RFC 4180), with a header; also separated by semicolons or tabs."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import threading
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from itertools import chain
from typing import IO, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

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
"""Of one row: DuckDB holds two of this size."""
_ROWS = 2048
"""DuckDB's own number of rows at a time."""
_SOUND = {
    separator: re.compile(plain + rb'(?:(?<=[\r\n%b])"[^"]*+(?:""[^"]*+)*+"(?=[\r\n%b])%b)*+' % (mark, mark, plain))
    for plain in [rb'[^"\\\r]*+(?:(?:\\(?:\\|(?!\r?\n))|\r(?=\n))[^"\\\r]*+)*+']
    for separator, mark in ((separator, mark.encode()) for separator, mark in MARKS.items())
}
"""Lines by the separator: quotes are around whole cells, and outside no backslash or lone carriage return ends one."""
_MEND = (
    "a row has as many cells as the first line and at most 32 MiB, a cell with separators, line breaks or quotes is in "
    "quotes, quotes in it are written twice (in Spark, by option('escape', '\"')), all lines end alike, the text is "
    f"UTF-8; write the file so, or as JSON lines. {RECODE}"
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
    """Yield the rest of a file, to the end of a line. Raises DataError where it is not certain where a row ends.

    DuckDB takes a quote in a cell without quotes for a part of it, and so a text with escapes of another kind for
    several rows, whose cells would then be other columns'.
    """
    rest, line = b"\n", 2
    while data := source.read(CHUNK_BYTES):
        rest += data
        sound = _SOUND[separator].match(rest, 1, rest.rfind(b"\n") + 1)
        if sound is not None:
            line += rest.count(b"\n", 1, sound.end())
            yield _lines(sound[0])
            rest = rest[sound.end() - 1 :]
        if len(rest) > _MOST_ROW_BYTES:
            break
    rest += b"" if rest.endswith(b"\n") else b"\n"
    sound = _SOUND[separator].fullmatch(rest, 1)
    if sound is None:
        raise DataError(f"{name}, line {line:,}: not valid CSV: {_MEND}")
    yield _lines(sound[0])


def _lines(data: bytes) -> bytes:
    r"""Return sound lines that end in ``\n``: DuckDB would guess the line end, also by those in quotes."""
    if b"\r" not in data:
        return data
    parts = data.split(b'"')
    parts[::2] = [outside.replace(b"\r\n", b"\n") for outside in parts[::2]]
    return b'"'.join(parts)


@contextlib.contextmanager
def _pipe(pieces: Iterator[bytes]) -> Iterator[str]:
    """Yield the path of a pipe through which a thread sends a file.

    DuckDB takes no decompressed stream, and its way to Python's files is slow. A pipe puts no private text on a disk,
    as a temporary file would, and has no limit of size.
    """
    out, into = os.pipe()
    failed: list[BaseException] = []

    def feed() -> None:
        try:
            with contextlib.suppress(BrokenPipeError), open(into, "wb") as pipe:  # broken: enough was read
                pipe.writelines(pieces)
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield f"/dev/fd/{out}"
    finally:
        os.close(out)
        thread.join()
        if failed:
            raise failed[0]


def _cells(
    source: IO[bytes], name: str, width: int, separator: Separator, places: Sequence[int]
) -> Generator[pa.RecordBatch]:
    """Yield the cells at some places of all rows, as DuckDB's strict reader finds them, strings [N]; empty ones null.

    In a file of one column a cell is null on a blank line, which is no row, and not in quotes. Raises DataError for
    what is not CSV; DuckDB's messages quote rows, so only the number is taken from them.
    """
    import duckdb

    kinds = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(width))
    named = ", ".join(f"c{place} AS k{number}" for number, place in enumerate(places))
    query = (
        f"SELECT {named} FROM read_csv($path, columns = {{{kinds}}}, allow_quoted_nulls = false, header = false, "  # noqa: S608 - numbers
        f"auto_detect = false, strict_mode = true, new_line = '\\n', delim = '{MARKS[separator]}', "
        "quote = '\"', escape = '\"', "
        f"max_line_size = {_MOST_ROW_BYTES}, buffer_size = {2 * _MOST_ROW_BYTES})"
    )
    where = None
    with _pipe(_sound(source, name, separator)) as path, duckdb.connect(config={"threads": 1}) as connection:
        try:
            with connection.sql(query, params={"path": path}).to_arrow_reader(_ROWS) as reader:
                for rows in reader:
                    yield rows.filter(rows.column(0).is_valid()) if width == 1 else rows
        except (duckdb.Error, pa.ArrowException, OSError) as error:  # the last two from a row that comes later
            line = re.search(r"CSV Error on Line: (\d+)", str(error))
            where = f", row {line[1]}" if line else ""
        if where is not None:
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
            mend = "if it has names, set text to that of the texts; if it has none, add a first line of names."
            mend = f"did you mean {near[0]}?" if near else mend
            many = several(len(header), "field")
            raise DataError(f"{name}: the first line names no column {column!r}, and has {many}; {mend}")
    return [places[column] for column in columns.named]


def _filled(column: pa.Array) -> pa.Array:
    return as_strings(column).fill_null("")


def _quoted(texts: pa.Array, columns: Columns, *, alone: bool) -> pa.Array:
    """Return texts as cells, large_string [N], nulls as nothing.

    A cell stands in quotes where it holds a separator, a quote or a line end, quotes in it twice, or ends in a
    backslash; and where it is empty and ``alone`` in its row, since a blank line is no row.
    """
    texts = _filled(texts)
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
        with contextlib.closing(cells):
            for first, parts in runs(cells, lambda rows: pc.binary_length(rows.column(0)).fill_null(0), 0, start, stop):
                (rows,) = pa.Table.from_batches(parts).combine_chunks().to_batches()
                named = dict(zip(columns.named, map(_filled, rows.columns), strict=True))
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
