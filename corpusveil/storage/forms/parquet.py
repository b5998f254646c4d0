"""Parquet, a row group per block; kept columns keep their types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import IO, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpusveil.choices import Separator
from corpusveil.errors import DataError, existing
from corpusveil.storage import files
from corpusveil.storage.forms import Form, Writer, runs
from corpusveil.storage.forms.jsonlines import rendered
from corpusveil.storage.parquet import opened, sound
from corpusveil.storage.rows import JSON, Batch, Columns
from corpusveil.storage.values import as_strings, is_string, require_kept

SUFFIXES = (".parquet",)
CODECS = ("",)
"""Parquet compresses its own pages."""

_READ_ROWS = 1024
_READ_BYTES = 1 << 20
"""So much of each column is read at a time; without it, all that a row group has of it."""


def _not_sound(name: str) -> str:
    return f"{name}: this is not a valid Parquet file, or has text that is not UTF-8; fetch or make it again."


def _open(file: IO[bytes], name: str) -> pq.ParquetFile:
    with sound(_not_sound(name)):
        parquet = opened(file, _READ_BYTES)
        sizes = [parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups)]
    if sum(sizes) != parquet.metadata.num_rows or min(sizes, default=0) < 0:
        raise DataError(_not_sound(name))
    return parquet


def _is_text(kind: pa.DataType) -> bool:
    kind = _plain_type(kind)
    return is_string(kind) or bool(pa.types.is_null(kind))


def _check(schema: pa.Schema, columns: Columns, name: str) -> None:
    names = Counter(schema.names)
    for column in columns.named:
        if names[column] != 1:
            if names[column]:
                raise DataError(f"{name}: there are several columns {column!r}; rename them first.")
            raise DataError(f"{name}: there is no column {column!r}{existing(column, names)}")
    text = schema.field(columns.text).type
    if not _is_text(text):
        raise DataError(f"{name}: column {columns.text!r} is of type {text}, not text; make it a string.")
    for column in columns.keep:
        require_kept(_plain_type(schema.field(column).type), f"{name}: {column}")
    if columns.id is not None:
        kind = schema.field(columns.id).type
        if not _is_text(kind) and not pa.types.is_integer(kind):
            raise DataError(f"{name}: the id column {columns.id!r} is {kind}; make it a string or a whole number.")


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type without a dictionary, which has values of other rows, and of strings one whose rows are taken."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.large_string() if pa.types.is_string_view(kind) else kind


def _plain(column: Any) -> pa.Array:
    if (kind := _plain_type(column.type)) != column.type:
        column = column.cast(kind)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _runs(file: pq.ParquetFile, columns: Columns, start: int, stop: int) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
    """Yield (number of the first row, rows in parts) for rows start to stop, which are there."""
    groups: list[int] = []
    number = first = 0
    for group in range(file.metadata.num_row_groups):
        size = file.metadata.row_group(group).num_rows
        if number + size > start and number < stop:
            first = first if groups else number
            groups.append(group)
        number += size
    if groups:
        batches = file.iter_batches(_READ_ROWS, row_groups=groups, columns=columns.named, use_threads=False)
        yield from runs(batches, lambda rows: pc.binary_length(_texts(rows, columns)).fill_null(0), first, start, stop)


def _texts(rows: pa.RecordBatch, columns: Columns) -> pa.Array:
    return _plain(rows.column(columns.text)).cast(pa.large_string())


def _joined(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of all parts, and let go of these column by column: wide rows are not in memory twice."""
    names = parts[0].schema.names
    columns = [pa.chunked_array([part.column(k) for part in parts]) for k in range(len(names))]
    parts.clear()
    return pa.RecordBatch.from_arrays([_plain(columns.pop(0)) for _ in names], names=names)


def _parse(rows: pa.RecordBatch, columns: Columns, first: int) -> Batch:
    rows.validate(full=True)
    numbers, ids = list(range(first, first + rows.num_rows)), None
    if columns.id is not None:
        ids = rows.column(columns.id).to_pylist()
    kept = [rows.column(name) for name in columns.keep]
    return Batch(first + rows.num_rows, numbers, _texts(rows, columns), ids, kept)


def _text_and_kept(rows: Any) -> tuple[pa.Array, list[pa.Array]]:
    first, *kept = map(_plain, rows.columns)
    return first, kept


class _Abandonable(pq.ParquetWriter):
    """Arrow's writer, which writes no end to a file that an error has closed."""

    def __del__(self) -> None:
        """Leave the file as it is: who finishes it calls ``close``."""


class ParquetWriter(Writer):
    """Writes a row group a block, zstd-compressed. The digest is fed the rows as JSON lines."""

    def __init__(self, file: Any, columns: Columns, digest: Any, kept_types: Sequence[pa.DataType]) -> None:
        types = [pa.large_string() if kind == JSON else _plain_type(kind) for kind in kept_types]
        self._schema = pa.schema([(columns.text, pa.large_string()), *zip(columns.keep, types, strict=True)])
        keep = list(columns.keep)
        self._file = _Abandonable(file, self._schema, compression="zstd", use_dictionary=keep, write_statistics=keep)
        self._columns = columns
        self._digest = digest
        self._block: list[pa.RecordBatch] = []

    def write(self, texts: pa.Array, kept: Sequence[pa.Array]) -> None:
        texts, *kept = (as_strings(column) if column.type == JSON else column for column in (texts, *kept))
        self._digest.update(rendered(texts, kept, self._columns))
        self._block.append(pa.RecordBatch.from_arrays([texts, *kept], schema=self._schema))

    def end_block(self) -> None:
        if self._block:
            table = pa.Table.from_batches([_joined(self._block)])
            self._file.write_table(table, row_group_size=max(1, table.num_rows))

    def close(self) -> None:
        self.end_block()
        self._file.close()


class Parquet(Form):
    """A row a document: no bytes that follow one another, so it reads, writes and joins in its own way."""

    __slots__ = ()
    seeks: ClassVar[bool] = True
    checksum: ClassVar[str] = "SHA-256 of each shard's rows written as JSON lines"

    def names(self, file: IO[bytes], name: str, separator: Separator) -> list[str]:
        return list(_open(file, name).schema_arrow.names)

    def kept_types(self, file: IO[bytes], name: str, columns: Columns) -> list[pa.DataType]:
        """Return the columns' own types, dictionaries unpacked. Raises UserError for columns that aren't there."""
        schema = _open(file, name).schema_arrow
        _check(schema, columns, name)
        return [_plain_type(schema.field(column).type) for column in columns.keep]

    def count_rows(self, file: IO[bytes], name: str) -> int:
        return int(_open(file, name).metadata.num_rows)

    def batches(
        self, file: IO[bytes], name: str, columns: Columns, start: int = 0, stop: int | None = None
    ) -> Iterator[Batch]:
        parquet = _open(file, name)
        _check(parquet.schema_arrow, columns, name)
        size = parquet.metadata.num_rows
        stop = size if stop is None else min(stop, size)
        parts = _runs(parquet, columns, start, stop)
        at = start
        while True:
            with sound(_not_sound(name)):
                run = next(parts, None)
                batch = None if run is None else _parse(_joined(run[1]), columns, run[0])
            if batch is None:
                break
            at = batch.stop
            yield batch
        if at < stop:  # fewer rows than the file says, which nothing else would notice
            raise DataError(_not_sound(name))

    def writer(
        self, file: Any, columns: Columns, digest: Any, kept_types: Sequence[pa.DataType], *, first: bool = True
    ) -> ParquetWriter:
        return ParquetWriter(file, columns, digest, kept_types)

    def feed(self, file: IO[bytes], name: str, text: str, digest: Any) -> None:
        parquet = _open(file, name)
        first, *others = parquet.schema_arrow.names
        columns = Columns(text, keep=tuple(others))
        if first != text or len(set(others)) < len(others):
            raise DataError(_not_sound(name))
        with sound(_not_sound(name)):
            for rows in parquet.iter_batches(_READ_ROWS, use_threads=False):
                digest.update(rendered(*_text_and_kept(rows), columns))

    def join(self, pieces: Sequence[str], sink: Any, columns: Columns, digest: Any) -> None:
        writer = None
        for piece in pieces:
            with files.open_read(piece) as file:
                parquet = _open(file, piece)
                if writer is None:
                    types = [parquet.schema_arrow.field(column).type for column in columns.keep]
                    writer = self.writer(sink, columns, digest, types)
                for group in range(parquet.num_row_groups):
                    table = parquet.read_row_group(group, use_threads=False).combine_chunks()
                    writer.write(*_text_and_kept(table))
                    writer.end_block()
        if writer is not None:
            writer.close()
