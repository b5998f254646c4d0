"""What forms of lines share: splitting, and pieces that are joined by putting one behind the other."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from corpusveil.choices import Codec
from corpusveil.errors import BadRowError, UserError
from corpusveil.storage import files
from corpusveil.storage.compression import chunks
from corpusveil.storage.rows import Columns

MOST_LINE_BYTES = 256 << 20
"""Of one line, or one row of CSV. It is 50 times the Bible, and what a worker with 4 GB can still privatize; a few
hundred kilobytes of gzip can hold a line that fills any memory."""
_RAW_BYTES = 4 << 20


def too_long(name: str, line: int) -> UserError:
    """Return the sentence about a line, or a row of CSV that begins there, that is larger than memory should hold."""
    return BadRowError(
        f"{name}, line {line:,}: this line is longer than {MOST_LINE_BYTES >> 20} MiB, the most that is read; split "
        "it, or fetch the file again if it should not have such a line."
    )


def split(pieces: Iterator[bytes], name: str) -> Iterator[list[bytes]]:
    r"""Yield the lines of each chunk, without their ``\n``; a line that spans chunks comes with its last one.

    A byte order mark before the first line is none of it. Raises UserError for a line that is too long.
    """
    mark, rest, size, number = codecs.BOM_UTF8, list[bytes](), 0, 1
    for piece in pieces:
        first, *others = piece.split(b"\n")
        rest.append(first)
        size += len(first)
        if size > MOST_LINE_BYTES:
            raise too_long(name, number)
        if others:
            yield [b"".join(rest).removeprefix(mark), *others[:-1]]
            number += len(others)
            mark, rest, size = b"", [others[-1]], len(others[-1])
    if last := b"".join(rest).removeprefix(mark):
        yield [last]


class OfBytes:
    """A form whose shards are bytes, perhaps compressed."""

    __slots__ = ()

    seeks: ClassVar[bool] = False
    checksum: ClassVar[str] = "SHA-256 of each shard's uncompressed bytes"
    codec: Codec

    def join(self, pieces: Sequence[str], sink: Any, columns: Columns, digest: Any) -> None:
        """Put the pieces one behind the other; one without rows is an empty file."""
        for piece in filter(files.size, pieces):
            with files.open_read(piece) as file:
                while data := file.read(_RAW_BYTES):
                    sink.write(data)
            with files.open_read(piece) as file:
                for data in chunks(file, piece, self.codec):
                    digest.update(data)
