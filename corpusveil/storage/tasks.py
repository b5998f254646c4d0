"""Shard tasks: what is scheduled, committed and resumed."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

from corpusveil.errors import UserError
from corpusveil.storage import files, formats
from corpusveil.storage.inputs import InputShard
from corpusveil.storage.rows import BLOCK_ROWS

RAW_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class ShardTask:
    """One input shard, or the rows ``start`` to ``stop`` of it, and the output file or piece of one that it makes."""

    shard: int
    shards: int
    url: str
    relative: str
    size: int
    suffix: str
    start: int = 0
    stop: int | None = None
    piece: int | None = None

    @property
    def shard_name(self) -> str:
        """The name of the shard's output file."""
        return f"part-{self.shard:05d}-of-{self.shards:05d}{self.suffix}"

    @property
    def record_name(self) -> str:
        """The name of the task's record."""
        piece = "" if self.piece is None else f".piece-{self.piece:05d}"
        return f"part-{self.shard:05d}-of-{self.shards:05d}{piece}.json"


def plan(shards: Sequence[InputShard], suffix: str | None, rows_per_task: int | None) -> list[ShardTask]:
    """Return one task a shard; with ``rows_per_task`` (a multiple of 8,192) several for a shard with more rows.

    ``suffix`` is that of the output files, None for that of the input. Raises UserError for a wrong number of rows.
    """
    if rows_per_task is not None and (rows_per_task <= 0 or rows_per_task % BLOCK_ROWS):
        raise UserError(f"rows per task = {rows_per_task}: it has to be a multiple of {BLOCK_ROWS}.")
    tasks: list[ShardTask] = []
    for number, shard in enumerate(shards):
        form = formats.form_of(shard.url)
        base = (number, len(shards), shard.url, shard.relative, shard.size, suffix or form)
        if rows_per_task is None:
            tasks.append(ShardTask(*base))
            continue
        with files.open_read(shard.url) as file:
            rows = formats.find(form).rows(file, shard.url)
        if rows <= rows_per_task:
            tasks.append(ShardTask(*base))
            continue
        starts = range(0, rows, rows_per_task)
        tasks += [ShardTask(*base, start, start + rows_per_task, piece) for piece, start in enumerate(starts)]
    return tasks


class KeyedReader(io.RawIOBase):
    """A file that computes a keyed BLAKE2b of all that is read from it."""

    def __init__(self, file: IO[bytes], key: bytes) -> None:
        super().__init__()
        self._file = file
        self._state = hashlib.blake2b(digest_size=16, key=key)
        self._ended = False

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Read, and add to the digest."""
        data = self._file.read(size)
        self._state.update(data)
        return data

    def readinto(self, buffer: Any, /) -> int:
        """Read into a buffer, and add to the digest."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def digest(self) -> str:
        """Read what is left and return the digest of the whole file, hexadecimal."""
        while not self._ended and self.read(RAW_BYTES):
            pass
        return self._state.hexdigest()

    def whole(self) -> IO[bytes]:
        """Read everything and return the file itself, at its beginning, for forms that need one that seeks."""
        self.digest()
        self._ended = True
        self._file.seek(0)
        return self._file


def keyed_digest(url: str, key: bytes) -> str:
    """Return the keyed digest of a file as it lies there."""
    with files.open_read(url) as file:
        return KeyedReader(file, key).digest()


def plain_digest(url: str) -> str:
    """Return the BLAKE2b of a file as it lies there; of output only, which is public."""
    return keyed_digest(url, b"")


class CountingFile:
    """A file that computes the BLAKE2b of all that is written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._state = hashlib.blake2b(digest_size=16)

    def write(self, data: Any) -> int:
        """Write, and add to the digest."""
        self._state.update(data)
        return self._file.write(data)

    @property
    def closed(self) -> bool:
        """Say that it is open: whoever opened the file closes it."""
        return False

    def flush(self) -> None:
        """Leave flushing to the file."""

    def close(self) -> None:
        """Leave the file open."""

    def digest(self) -> str:
        """Return the digest of what was written, hexadecimal."""
        return self._state.hexdigest()
