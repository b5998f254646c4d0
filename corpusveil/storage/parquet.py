"""Parquet files of our own making: opened on this thread alone, and read whole, each batch checked."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from corpusveil.errors import DataError, UserError
from corpusveil.storage import files

_UNSOUND = (pa.ArrowException, OSError, ValueError, TypeError, LookupError, ArithmeticError, MemoryError)
"""The errors of Arrow on a damaged file."""
_WHOLE_ROWS = 4096
_SMALL_BYTES = 256 << 20
_MOST_PACKED = 1000
"""A small file that unpacks to more than this many times its size was made to fill the memory."""


@contextlib.contextmanager
def sound(sentence: str, kind: type[UserError] = DataError) -> Iterator[None]:
    """Turn Arrow's error on a damaged file into a UserError of this sentence; Arrow's own words may quote rows."""
    try:
        yield
    except _UNSOUND as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        if "crypt" in str(error):
            why = "this Parquet file, or a column of it, is encrypted; write it without encryption."
            raise DataError(f"{sentence.partition(': ')[0]}: {why}") from None
        raise kind(sentence) from None


def opened(file: IO[bytes], buffer: int = 0) -> pq.ParquetFile:
    """Open a Parquet file that is read on this thread alone, if its methods are called with ``use_threads=False``.

    Arrow would read ahead on a thread of its own. That thread may let go of the Python file only after the call has
    returned, and where the process ends just then (a wrong argument) there is no interpreter to do it in: the process
    aborts with status 134 (apache/arrow#33975). Times of type INT96 are microseconds: as nanoseconds, the year 9999
    would be 1816 (apache/arrow#23391). Pages that have a checksum, as Spark writes it, are checked.
    """
    return pq.ParquetFile(
        file, pre_buffer=False, buffer_size=buffer, coerce_int96_timestamp_unit="us", page_checksum_verification=True
    )


def read_table(url: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a file of our own making, or columns of it, read on this thread alone."""
    with files.open_read(url) as file:
        return opened(file).read(columns, use_threads=False)


def write_table(table: pa.Table, url: str) -> None:
    """Write a file of our own making."""
    with files.open_write(url) as file:
        pq.write_table(table, file, compression="zstd")


def read_whole(url: str, sentence: str, pick: Callable[[pa.Schema], Sequence[str]]) -> pa.Table:
    """Return the columns of a file that ``pick`` chooses from its schema, valid to the last byte.

    Raises UserError of the ``sentence`` when the file is not sound, lacks a column or has it twice, and when it holds
    far more than a file of its size would.
    """
    with files.open_read(url) as file, sound(sentence):
        parquet = opened(file)
        whole = parquet.schema_arrow
        names = list(pick(whole))
        if any(whole.names.count(name) != 1 for name in names):
            raise DataError(sentence)
        most = max(_SMALL_BYTES, _MOST_PACKED * file.seek(0, 2))
        held, batches = 0, list[pa.RecordBatch]()
        for batch in parquet.iter_batches(_WHOLE_ROWS, columns=names, use_threads=False):
            held += batch.nbytes
            if held > most:
                raise DataError(sentence)
            batch.validate(full=True)
            batches.append(batch)
        if sum(batch.num_rows for batch in batches) != parquet.metadata.num_rows:
            raise DataError(sentence)
        schema = pa.schema([whole.field(name) for name in names])
        table = pa.Table.from_batches(batches, batches[0].schema if batches else schema)
        return table.select(names).replace_schema_metadata(whole.metadata)
