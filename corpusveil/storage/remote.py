"""Files at a store: reads are complete or fail, and files appear only when they are complete."""

from __future__ import annotations

import contextlib
import io
import os
import posixpath
import tempfile
import uuid
from typing import IO, Any

from corpusveil.errors import WorkError, changed_while_read
from corpusveil.storage.failures import failing

READ_BYTES = 8 << 20
"""The bytes of one request: large enough for throughput, small enough for the memory of a worker."""
PART_BYTES = 16 << 20
"""Smaller files are sent in one request, larger ones in parts of this size; S3 takes 10,000 parts, so 156 GiB."""
ATTEMPTS = 3
_DAMAGED = "FlexibleChecksumError"
"""botocore's error for an answer that does not match its checksum, which no client requests again."""
_STREAMED = {"s3"}
"""Stores whose multipart uploads show nothing until they are committed, and nothing if discarded."""
_UNPINNED = {"gs", "abfs"}
"""Stores whose clients read each part of a file from the version at that moment."""
_SHOWN_WHOLE = {"s3", "gs", "gcs", "abfs", "abfss", "az", "memory"}
"""Stores that show the upload of one call only when it is complete; elsewhere a file is moved to its name."""


def protocols(fs: Any) -> set[str]:
    """Return the protocol names of a file system."""
    return {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)


def shown_whole(fs: Any) -> bool:
    """Say whether a store has no folders, and shows the upload of one call only when it is complete."""
    return bool(protocols(fs) & _SHOWN_WHOLE)


class RemoteReader(io.RawIOBase):
    """A file at a store, with exactly the length that the store reported when it was opened.

    An answer of another length than requested is requested again, and then refused: some clients interpret an empty
    answer as the end of the file. A file that was replaced meanwhile is refused, too: S3's client reports it, and with
    other clients the current version is checked after each answer.
    """

    def __init__(self, fs: Any, path: str, url: str) -> None:
        super().__init__()
        self._url = url
        with failing(url, "read"):
            self._file: Any = fs.open(path, "rb", block_size=READ_BYTES, cache_type="none")
            info = getattr(self._file, "details", None) or fs.info(path)
            if info.get("type") == "directory":
                raise IsADirectoryError
        size = info.get("size")
        self._fs, self._path = fs, path
        self._version = _version(info) if protocols(fs) & _UNPINNED else None
        self._size: int | None = None if size is None else int(size)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._size is not None

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if self._size is None:
            raise io.UnsupportedOperation(f"{self._url}: the store does not give the size of this file.")
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
        if self._size is None:
            with failing(self._url, "read"):
                data = bytes(self._file.read(length))
            self._position += len(data)
            return data
        wanted = min(length, self._size - self._position)
        if wanted <= 0:
            return b""
        data = b""
        for attempt in range(1, ATTEMPTS + 1):
            with failing(self._url, "read"):
                try:
                    self._file.seek(self._position)
                    data = self._file.read(wanted)
                except Exception as error:
                    if type(error).__name__ == _DAMAGED and attempt < ATTEMPTS:
                        continue
                    raise
            if self._version is not None:
                with failing(self._url, "read"):
                    now = _version(self._fs.info(self._path))
                if now != self._version:
                    raise changed_while_read(self._url)
            if len(data) == wanted:
                self._position += wanted
                return bytes(data)
        raise WorkError(
            f"{self._url}: could not be read (the store gave {len(data):,} bytes for the {wanted:,} from byte "
            f"{self._position:,} on); run the same command again later."
        )


def _version(info: dict[str, Any]) -> tuple[Any, ...]:
    """Return the part of a store's description of a file that changes when it is written again."""
    return info.get("size"), info.get("generation"), info.get("etag")


class RemoteWriter(io.RawIOBase):
    """A file at a store that appears, complete, with ``commit``; ``discard`` drops what was not committed.

    Content that fits into one part is kept in memory and sent in one request. Larger content is sent to S3 in parts
    during writing, and to other stores from a file on the local disk.
    """

    def __init__(self, fs: Any, path: str, url: str) -> None:
        super().__init__()
        self._fs, self._path, self._url = fs, path, url
        self._head = bytearray()
        self._parts: Any = None
        self._spill: IO[bytes] | None = None
        self._written = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        if len(self._head) + len(view) <= PART_BYTES and self._parts is None and self._spill is None:
            self._head += view
        elif protocols(self._fs) & _STREAMED:
            self._write_parts(view)
        else:
            self._write_spill(view)
        self._written += len(view)
        return len(view)

    def commit(self) -> None:
        """Show the file. Raises WorkError if its length at the store then differs."""
        with failing(self._url, "written"):
            if self._parts is not None:
                self._parts.close()
                self._parts.commit()
                self._parts = None
                where = self._path
            elif shown_whole(self._fs):
                where = self._send(self._path)
            else:
                folder, name = posixpath.split(self._path)
                self._fs.makedirs(folder, exist_ok=True)
                where = self._send(posixpath.join(folder, f".{name}.{uuid.uuid4().hex}.part"))
            size = int(self._fs.info(where)["size"])
        if size != self._written:
            raise WorkError(
                f"{self._url}: the store has {size:,} of the {self._written:,} bytes that were written; run the "
                "same command again."
            )
        if where != self._path:
            with failing(self._url, "written"):
                self._fs.mv(where, self._path)

    def discard(self) -> None:
        """Discard what was sent and not committed; does nothing after a commit."""
        parts, self._parts = self._parts, None
        if parts is not None:
            with contextlib.suppress(Exception):  # a store that is down; why the write failed is being raised
                parts.discard()
            parts.closed = True  # closing it, as its finalizer does, would send the rest
        if self._spill is not None:
            self._spill.close()
            self._spill = None
        self._head = bytearray()

    def _write_parts(self, view: memoryview) -> None:
        with failing(self._url, "written"):
            if self._parts is None:
                self._parts = self._fs.open(self._path, "wb", block_size=PART_BYTES, autocommit=False)
                head, self._head = self._head, bytearray()
                self._parts.write(head)
            self._parts.write(view)

    def _write_spill(self, view: memoryview) -> None:
        try:
            if self._spill is None:
                self._spill = tempfile.NamedTemporaryFile(prefix="corpusveil-")  # noqa: SIM115 - closed by discard
                self._spill.write(self._head)
                self._head = bytearray()
            self._spill.write(view)
        except OSError as error:
            raise WorkError(f"{tempfile.gettempdir()}: could not be written ({error.strerror}).") from None

    def _send(self, path: str) -> str:
        if self._spill is None:
            self._fs.pipe_file(path, bytes(self._head))
        else:
            self._spill.flush()
            self._fs.put_file(self._spill.name, path)
        return path
