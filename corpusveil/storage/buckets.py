"""Rows spread over buckets: private files at any fsspec URL, from which the rows of one bucket can be read.

A file holds the rows of all buckets in sequence, each as a stream in Arrow's format, and at its end the start and
number of rows of each. So a bucket is read by two short reads of each file, whatever the number of buckets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.errors import ChangedError
from corpusveil.storage import files

_PACKED = pa.ipc.IpcWriteOptions(compression="lz4")
_AT, _ROWS = 0, 1


def bucket_of(tags: pa.Array, buckets: int, *, half: int = 0) -> npt.NDArray[np.int64]:
    """Return the bucket of each 16-byte tag, by the first ``half`` of it (0) or the second (1); int64 [rows].

    Tags are as good as random, so all buckets get about the same number of different tags.
    """
    return (halves(tags)[:, half] % np.uint64(buckets)).astype(np.int64)


def halves(tags: pa.Array) -> npt.NDArray[np.uint64]:
    """Return 16-byte tags as numbers; uint64 [rows, 2]."""
    return np.frombuffer(tags.buffers()[1], np.uint64).reshape(-1, 2)[tags.offset : tags.offset + len(tags)]


def write(url: str, table: pa.Table, which: npt.NDArray[np.int64], buckets: int) -> None:
    """Write a table, each row to the bucket that ``which`` says, int64 [rows], in their order."""
    order = np.argsort(which.astype(np.uint16 if buckets <= 1 << 16 else np.int64), kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=buckets))
    sorted_rows = table.take(pa.array(order)).combine_chunks()
    index = np.zeros((buckets + 1, 2), np.int64)
    with files.open_write(url, private=True) as file:
        at = 0
        for bucket in range(buckets):
            first = int(ends[bucket - 1]) if bucket else 0
            index[bucket] = at, ends[bucket] - first
            if index[bucket, _ROWS]:
                data = packed(sorted_rows.slice(first, ends[bucket] - first))
                file.write(data)
                at += len(data)
        index[buckets] = at, table.num_rows
        file.write(index.tobytes())


def packed(table: pa.Table) -> pa.Buffer:
    """Return rows as a stream of Arrow's format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_PACKED) as writer:
        writer.write_table(table)
    return sink.getvalue()


def rows_in(urls: Sequence[str], bucket: int, buckets: int) -> int:
    """Return how many rows all files have in one bucket."""
    total = 0
    for url in urls:
        with files.open_read(url) as file:
            total += int(_place(file, bucket, buckets, url)[0, _ROWS])
    return total


def read(urls: Sequence[str], bucket: int, buckets: int) -> Iterator[pa.Table]:
    """Yield the rows that each file has in one bucket, where it has some."""
    for url in urls:
        with files.open_read(url) as file:
            place = _place(file, bucket, buckets, url)
            if place[0, _ROWS]:
                yield unpacked(_part(file, int(place[0, _AT]), int(place[1, _AT]), url))


def unpacked(data: bytes) -> pa.Table:
    """Return the rows of a stream of Arrow's format."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


def _place(file: Any, bucket: int, buckets: int, url: str) -> npt.NDArray[np.int64]:
    """Return where a bucket begins, and how many rows it has, and the same of the next one; int64 [2, 2]."""
    begin = file.raw.seek(0, 2) - 16 * (buckets + 1 - bucket)
    return np.frombuffer(_part(file, begin, begin + 32, url), np.int64).reshape(2, 2)


def _part(file: Any, begin: int, end: int, url: str) -> bytes:
    """Return a part of a file, and read nothing else of it."""
    file.raw.seek(begin)
    data: bytes = file.raw.read(end - begin)
    if len(data) != end - begin:
        raise ChangedError(f"{url}: this file was cut while it was read; run again.")
    return data
