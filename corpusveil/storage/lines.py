"""What forms of lines share: splitting, and pieces that are joined by putting one behind the other."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from corpusveil.choices import Codec
from corpusveil.errors import BadFileError, BadRowError, UserError
from corpusveil.storage import files
from corpusveil.storage.compression import chunks
from corpusveil.storage.rows import Columns

MOST_LINE_BYTES = 256 << 20
"""Of one line, or one row of CSV. It is 50 times the Bible, and what a worker with 4 GB can still privatize; a few
hundred kilobytes of gzip can hold a line that fills any memory."""
_RAW_BYTES = 4 << 20


RECODE = "If all of the file has another encoding, such as Latin-1, convert it: iconv -f LATIN1 -t UTF-8 OLD > NEW."
NOT_UTF8 = f"not valid UTF-8; repair or remove the row. {RECODE}"


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
    rest, number = io.BytesIO(), 1  # which hands over a huge line without a copy
    for piece in pieces:
        first, *others = piece.split(b"\n")
        if rest.write(first) and rest.tell() > MOST_LINE_BYTES:
            raise too_long(name, number)
        if others:
            line, rest = rest.getvalue(), io.BytesIO()
            rest.write(others.pop())
            yield [_unmarked(line, name) if number == 1 else line, *others]
            number += 1 + len(others)
    line, rest = rest.getvalue(), io.BytesIO()
    if last := _unmarked(line, name) if number == 1 else line:
        yield [last]


def _unmarked(line: bytes, name: str) -> bytes:
    """Return the first line without its byte order mark. Raises UserError for that of UTF-16."""
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise BadFileError(
            f"{name}: this file is UTF-16, and only UTF-8 is read; convert it: iconv -f UTF-16 -t UTF-8 OLD > NEW."
        )
    return line.removeprefix(codecs.BOM_UTF8)


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
