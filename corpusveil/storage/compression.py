"""Compressed streams: gzip and zstd, read in chunks and written block by block."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import IO, Any, Protocol, cast

import pyarrow as pa
from isal import igzip, isal_zlib

from corpusveil.choices import CODECS, Codec
from corpusveil.errors import BadFileError, UserError

NAMES = {".gz": "gzip", ".zst": "zstd"}
CHUNK_BYTES = 1 << 20
GZIP_LEVEL = 1
_GZIP_WBITS = 31
_CUT_SHORT = "Truncated compressed stream"


def codec_of(name: str) -> Codec:
    """Return the compression that a name ends in."""
    return next((codec for codec in CODECS if codec and name.endswith(codec)), "")


def chunks(file: IO[bytes], name: str, codec: Codec) -> Iterator[bytes]:
    """Yield the uncompressed content of a file. Raises UserError when the file is cut short or damaged."""
    source: Any = file
    raw = _Raw(file)
    if codec == ".gz":
        source = igzip.IGzipFile(fileobj=cast("Any", raw))
    elif codec == ".zst":
        source = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    try:
        while chunk := source.read(CHUNK_BYTES):
            yield chunk
        if codec and raw.is_empty:
            raise BadFileError(
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
        raise BadFileError(f"{name}: this is not a valid {NAMES[codec]} file; fetch or make it again.") from None


class _Raw(io.RawIOBase):
    """A file that knows whether anything was in it."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self.is_empty = True

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        self.is_empty = self.is_empty and not data
        return data

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _cut_short(name: str) -> UserError:
    return BadFileError(f"{name}: the file ends in the middle of its compressed data; fetch or make it again.")


class Blocks(Protocol):
    """Writes blocks, each readable by itself.

    What goes into the compressor, and in which pieces, has to depend on the block's rows only.
    """

    def __init__(self, file: Any) -> None: ...

    def write(self, data: bytes) -> Any: ...

    def end(self) -> None:
        """End the block."""


def blocks(file: Any, codec: Codec) -> Blocks:
    """Return what writes blocks to ``file``: a gzip member or a zstd frame each, or the plain bytes."""
    kinds: dict[Codec, type[Blocks]] = {"": PlainBlocks, ".gz": GzipBlocks, ".zst": ZstdBlocks}
    return kinds[codec](file)


def nothing(codec: Codec) -> bytes:
    """Return a file without content: no compressed one has 0 bytes."""
    made = io.BytesIO()
    writer = blocks(made, codec)
    writer.write(b"")
    writer.end()
    return made.getvalue()


class PlainBlocks:
    """Blocks without a border."""

    def __init__(self, file: Any) -> None:
        self.write = file.write

    def end(self) -> None:
        """Nothing marks the end of a block in a plain file."""


class GzipBlocks:
    """A gzip member a block."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._member: Any = None

    def write(self, data: bytes) -> None:
        if self._member is None:
            self._member = isal_zlib.compressobj(GZIP_LEVEL, isal_zlib.DEFLATED, _GZIP_WBITS)
        self._file.write(self._member.compress(data))

    def end(self) -> None:
        if self._member is not None:
            self._file.write(self._member.flush())
            self._member = None


class ZstdBlocks:
    """A zstd frame a block."""

    def __init__(self, file: Any) -> None:
        self._file = _LeftOpen(file)
        self._frame: Any = None

    def write(self, data: bytes) -> None:
        if self._frame is None:
            self._frame = pa.CompressedOutputStream(pa.PythonFile(self._file, mode="w"), "zstd")
        self._frame.write(data)

    def end(self) -> None:
        if self._frame is not None:
            self._frame.close()
            self._frame = None


class _LeftOpen(io.RawIOBase):
    """A file for Arrow to write to, which closes what it is given."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._file.write(data)
        return len(data)

    def close(self) -> None:
        """Leave the file open: another block follows."""
