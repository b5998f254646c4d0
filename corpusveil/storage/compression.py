"""Compressed streams: gzip and zstd, read in chunks and written block by block."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import IO, Any, cast

import pyarrow as pa
from isal import igzip, isal_zlib

from corpusveil.choices import CODECS, Codec
from corpusveil.errors import DataError, UserError

NAMES = {".gz": "gzip", ".zst": "zstd"}
CHUNK_BYTES = 1 << 20
GZIP_LEVEL = 1
_GZIP_WBITS = 31
_CUT_SHORT = "Truncated compressed stream"
_DAMAGED = {
    ".gz": "this gzip file is damaged, or not a valid one; fetch or make it again; if the server or a browser unpacked "
    "it on the way, save it without .gz.",
    ".zst": "this zstd file is damaged, needs a dictionary (zstd -D) or a window of more than 128 MiB (--long=28), or "
    "is not a valid one; fetch or make it again.",
}


def codec_of(name: str) -> Codec:
    """Return the compression that a name ends in."""
    return next((codec for codec in CODECS if codec and name.endswith(codec)), "")


def chunks(file: IO[bytes], name: str, codec: Codec) -> Iterator[bytes]:
    """Yield the uncompressed content of a file. Raises UserError when the file is cut short or damaged."""
    source: Any = file
    raw = CountingReader(file)
    if codec == ".gz":
        source = igzip.IGzipFile(fileobj=cast("Any", raw))
    elif codec == ".zst":
        source = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    try:
        while chunk := source.read(CHUNK_BYTES):
            yield chunk
        if codec and not raw.taken:
            raise DataError(
                f"{name}: the file has 0 bytes, and a {NAMES[codec]} file never has; its upload has probably failed. "
                "Fetch or make it again."
            )
    except EOFError:
        raise _cut_short(name) from None
    except (OSError, zlib.error, isal_zlib.error) as error:
        if not codec or (isinstance(error, OSError) and error.errno is not None):
            raise
        if _CUT_SHORT in str(error):
            raise _cut_short(name) from None
        raise DataError(f"{name}: {_DAMAGED[codec]}") from None


class Unpacked(io.RawIOBase):
    """The uncompressed content of a file, as a file."""

    def __init__(self, file: IO[bytes], name: str, codec: Codec) -> None:
        super().__init__()
        self._chunks, self._rest = chunks(file, name, codec), memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        self._rest = self._rest or memoryview(next(self._chunks, b""))
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


class CountingReader(io.RawIOBase):
    """A file that counts the bytes that are ``read`` from it, and stays open when this is closed."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self.taken = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        self.taken += len(data)
        return data

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _cut_short(name: str) -> UserError:
    return DataError(f"{name}: the file ends in the middle of its compressed data; fetch or make it again.")


class Blocks:
    """Writes blocks to a file, each readable by itself: a gzip member or a zstd frame each, or the plain bytes.

    What goes into the compressor, and in which pieces, has to depend on the block's rows only. The file stays open.
    """

    def __init__(self, file: Any, codec: Codec) -> None:
        self._file, self._codec = file, codec
        self._block: Any = None

    def write(self, data: Any) -> None:
        """Write a part of a block."""
        if self._codec == ".zst":
            self._block = self._block or pa.CompressedOutputStream(
                pa.PythonFile(LeftOpen(self._file), mode="w"), "zstd"
            )
            self._block.write(data)
        elif self._codec == ".gz":
            self._block = self._block or isal_zlib.compressobj(GZIP_LEVEL, isal_zlib.DEFLATED, _GZIP_WBITS)
            self._file.write(self._block.compress(data))
        else:
            self._file.write(data)

    def end(self) -> None:
        """End the block."""
        if self._codec == ".zst" and self._block is not None:
            self._block.close()
        elif self._block is not None:
            self._file.write(self._block.flush())
        self._block = None


class LeftOpen:
    """A file for Arrow to write to, which closes what it is given."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: Any) -> Any:
        return self._file.write(data)

    def flush(self) -> None: ...

    def close(self) -> None: ...
