"""What forms of lines share: splitting, and pieces that are joined by putting one behind the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from corpusveil.choices import Codec
from corpusveil.storage import files
from corpusveil.storage.compression import chunks
from corpusveil.storage.rows import Columns

_RAW_BYTES = 4 << 20


def split(pieces: Iterator[bytes]) -> Iterator[list[bytes]]:
    r"""Yield the lines of each chunk, without their ``\n``; a line that spans chunks comes with its last one."""
    rest: list[bytes] = []
    for piece in pieces:
        first, *others = piece.split(b"\n")
        rest.append(first)
        if others:
            yield [b"".join(rest), *others[:-1]]
            rest = [others[-1]]
    if last := b"".join(rest):
        yield [last]


class OfBytes:
    """A form whose shards are bytes, perhaps compressed."""

    __slots__ = ()

    seeks: ClassVar[bool] = False
    checksum: ClassVar[str] = "SHA-256 of each shard's uncompressed bytes"
    codec: Codec

    def join(self, pieces: Sequence[str], sink: Any, columns: Columns, digest: Any) -> None:
        """Put the pieces one behind the other."""
        for piece in pieces:
            with files.open_read(piece) as file:
                while data := file.read(_RAW_BYTES):
                    sink.write(data)
            with files.open_read(piece) as file:
                for data in chunks(file, piece, self.codec):
                    digest.update(data)
