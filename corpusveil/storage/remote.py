"""Reads of any file, which are complete or fail; and files at a store, which appear only when they are complete."""

from __future__ import annotations

import contextlib
import io
import os
import posixpath
import tempfile
import uuid
from collections.abc import Iterator
from typing import IO, Any

from fsspec.implementations.local import LocalFileSystem

from corpusveil.errors import WorkError
from corpusveil.storage.failures import failing

READ_BYTES = 8 << 20
"""The bytes of one request: large enough for throughput, small enough for the memory of a worker."""
PART_BYTES = 16 << 20
"""Smaller files are sent from memory, larger ones from a file on the local disk, to S3 in parts of this size."""
_STAMPS = ("size", "generation", "etag", "ETag", "mtime")
"""Of the description of a file: what changes when it is written again."""
_SHOWN_WHOLE = {"s3", "gs", "gcs", "abfs", "abfss", "az", "memory"}
"""Stores that show the upload of one call only when it is complete; elsewhere a file is moved to its name."""


def protocols(fs: Any) -> set[str]:
    """Return the protocol names of a file system."""
    return {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)


def shown_whole(fs: Any) -> bool:
    """Say whether a store has no folders, and shows the upload of one call only when it is complete."""
    return bool(protocols(fs) & _SHOWN_WHOLE)


class Reader(io.RawIOBase):
    """A file with exactly the bytes that it had when it was opened; failing reads say of what they are.

    An answer of another length than requested is refused: some clients interpret an empty one as the end of the file.
    """

    def __init__(self, fs: Any, path: str, url: str) -> None:
        super().__init__()
        self._fs, self._path, self._url = fs, path, url
        with failing(url, "read"):
            before = fs.info(path) if isinstance(fs, LocalFileSystem) else None
            self._file: Any = fs.open(path, "rb", block_size=READ_BYTES, cache_type="none")
            self._info: dict[str, Any] = before or getattr(self._file, "details", None) or fs.info(path)
            if self._info.get("type") == "directory":
                raise IsADirectoryError
        size = None if self._info.get("type") == "other" else self._info.get("size")  # of a pipe, nobody knows it
        self._size: int | None = None if size is None else int(size)
        self._position = 0

    def refuse_changed(self) -> None:
        """Raise WorkError if the file is not as it was when it was opened: longer, or written again."""
        with failing(self._url, "read"):
            now = self._fs.info(self._path)
        if any(now[name] != self._info[name] for name in _STAMPS if name in now and self._info.get(name) is not None):
            raise WorkError(f"{self._url}: this file changed while it was read; run the same command again.")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._size is not None

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if self._size is None:
            raise io.UnsupportedOperation(f"{self._url}: the size of this file is not known.")
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self._fetch(len(view))
        view[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        return b"".join(iter(lambda: self._fetch(READ_BYTES), b""))

    def close(self) -> None:
        if not self.closed and hasattr(self, "_file"):
            self._file.close()
        super().close()

    def _fetch(self, length: int) -> bytes:
        wanted = length if self._size is None else max(0, min(length, self._size - self._position))
        with failing(self._url, "read"):
            if self._size is not None:
                self._file.seek(self._position)
            data = bytes(self._file.read(wanted)) if wanted else b""
        if self._size is not None and len(data) != wanted:
            self.refuse_changed()
            raise WorkError(
                f"{self._url}: could not be read ({len(data):,} of {wanted:,} bytes came from byte "
                f"{self._position:,} on); run the same command again later."
            )
        self._position += len(data)
        return data


@contextlib.contextmanager
def writing(fs: Any, path: str, url: str) -> Iterator[IO[bytes]]:
    """Open a file that appears at the store, complete, when the block ends without an exception.

    Raises WorkError if its length at the store then differs.
    """
    try:
        with tempfile.SpooledTemporaryFile(PART_BYTES) as file:
            yield file
            written = file.tell()
            file.seek(0)
            with failing(url, "written"):
                where = path
                if not shown_whole(fs):
                    folder, name = posixpath.split(path)
                    fs.makedirs(folder, exist_ok=True)
                    where = posixpath.join(folder, f".{name}.{uuid.uuid4().hex}.part")
                if written <= PART_BYTES:
                    fs.pipe_file(where, file.read())
                else:
                    file.flush()
                    # S3's client would hold ten parts of 50 MiB in memory.
                    options = {"chunksize": PART_BYTES, "max_concurrency": 1} if "s3" in protocols(fs) else {}
                    fs.put_file(f"/dev/fd/{file.fileno()}", where, **options)
                size = int(fs.info(where)["size"])
    except OSError as error:
        raise WorkError(f"{tempfile.gettempdir()}: could not be written ({error.strerror}).") from None
    if size != written:
        raise WorkError(
            f"{url}: the store has {size:,} of the {written:,} bytes that were written; run the same command again."
        )
    if where != path:
        with failing(url, "written"):
            fs.mv(where, path)
