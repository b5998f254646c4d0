"""Sound containers around mutated content: without them most inputs would only test gzip, zstd or Parquet itself."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Sequence

import pyarrow as pa

RAW = 0x80
"""This bit of an input's first byte says that its bytes are the container itself."""


class Choices:
    """Values that bytes decide, zeros after their end."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def number(self, least: int, most: int) -> int:
        """Return a number of a range, of one byte."""
        return least + int.from_bytes(self._data.read(1)) % (most - least + 1)

    def integer(self) -> int:
        """Return a signed number of four bytes."""
        return int.from_bytes(self._data.read(4).ljust(4, b"\0"), "little", signed=True)

    def text(self, size: int) -> str:
        """Return at most this many characters."""
        return self._data.read(size).decode("utf-8", "replace")


def packed(data: bytes, codec: str, *, raw: bool) -> bytes:
    """Return bytes compressed in two parts, or unchanged if they are ``raw`` or the format has no compression."""
    if raw or not codec:
        return data
    half = len(data) // 2
    parts = (data[:half], data[half:])
    if codec == ".gz":
        return b"".join(gzip.compress(part, 1, mtime=0) for part in parts)
    return b"".join(pa.Codec("zstd").compress(part, asbytes=True) for part in parts)


def changed(whole: bytes, edits: bytes) -> bytes:
    """Return a file with changed bytes: of every three of ``edits``, two are the place, and one is the new byte."""
    data = bytearray(whole)
    for at in range(0, len(edits) - 2, 3):
        if data:
            data[int.from_bytes(edits[at : at + 2], "little") % len(data)] ^= edits[at + 2]
    return bytes(data)


def zipped(members: Sequence[tuple[str, bytes]]) -> bytes:
    """Return a ZIP archive of these members."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return sink.getvalue()


def pieces(data: bytes, count: int) -> list[bytes]:
    """Split bytes into this many pieces, each except the last preceded by its length in two bytes.

    Missing pieces are empty.
    """
    found = []
    for _ in range(count - 1):
        length = int.from_bytes(data[:2], "little")
        found.append(data[2 : 2 + length])
        data = data[2 + length :]
    return [*found, data]


def one(*parts: bytes) -> bytes:
    """Return what ``pieces`` splits into these parts."""
    return b"".join(len(part).to_bytes(2, "little") + part for part in parts[:-1]) + parts[-1]
