"""Shard tasks: the units that are scheduled, committed and resumed."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import IO, Any, cast

from corpusveil.errors import DataError, SettingError
from corpusveil.storage import compression, files, formats
from corpusveil.storage.inputs import InputShard
from corpusveil.storage.rows import BLOCK_ROWS

SPLIT_FROM_BYTES = 64 << 20
MOST_PIECES = 64
_LOOKED_AT, _SHARDS_LOOKED_AT = 4, 16
"""MiB of a split shard, and split shards, by which the numbers of their rows, and of others', are estimated."""
_UNEVEN = 2
_ABOUT_EQUAL = 24
"""Bits of a size in bytes that are ignored: 16 MiB."""


@dataclass(frozen=True, slots=True)
class ShardTask:
    """One input shard, or its rows ``start`` to ``stop``, and the output file (of ``pieces``) or piece it makes."""

    shard: int
    shards: int
    url: str
    relative: str
    size: int
    suffix: str
    start: int = 0
    stop: int | None = None
    piece: int | None = None
    pieces: tuple[ShardTask, ...] = ()

    @property
    def shard_name(self) -> str:
        return f"part-{self.shard:05d}-of-{self.shards:05d}{self.suffix}"

    @property
    def record_name(self) -> str:
        piece = "" if self.piece is None else f".piece-{self.piece:05d}"
        return f"part-{self.shard:05d}-of-{self.shards:05d}{piece}.json"

    @property
    def whole(self) -> ShardTask:
        """The task of its whole shard."""
        return replace(self, start=0, stop=None, piece=None, pieces=())


def plan(
    shards: Sequence[InputShard], suffix: str | None, rows_per_task: int | None, slots: Callable[[], int] = lambda: 1
) -> list[ShardTask]:
    """Return one task for each shard; several for one of more than about ``rows_per_task`` (a multiple of 8,192) rows.

    Without ``rows_per_task``, a large shard is split if it is at least ``_UNEVEN`` equal shares of ``slots`` workers:
    one that is far larger than others, or any where shards are few. Splitting never changes the output. ``suffix`` is
    that of the output files, None for that of the input. Raises UserError for a wrong number of rows.
    """
    if rows_per_task is not None and (rows_per_task <= 0 or rows_per_task % BLOCK_ROWS):
        raise SettingError(f"rows per task = {rows_per_task}: give a multiple of {BLOCK_ROWS}.")
    tasks: list[ShardTask] = []
    shares = _shares(shards, slots) if rows_per_task is None else dict.fromkeys(range(len(shards)), 0)
    rows_per_byte: list[float] = []
    for number, shard in enumerate(shards):
        form = formats.suffix_of_file(shard.url)
        whole = ShardTask(number, len(shards), shard.url, shard.relative, shard.size, suffix or form)
        tasks += _parts(whole, form, shares.get(number, 1), rows_per_task, rows_per_byte)
    return tasks


def whole_shards(tasks: Sequence[ShardTask]) -> list[ShardTask]:
    """Return one task per shard, whether it was done in pieces or not."""
    return [task.whole for task in tasks if not task.piece]


def joining_tasks(tasks: Sequence[ShardTask]) -> list[ShardTask]:
    """Return one task per shard that is done in pieces, which joins them."""
    by_shard: dict[ShardTask, list[ShardTask]] = {}
    for task in tasks:
        if task.piece is not None:
            by_shard.setdefault(task.whole, []).append(task)
    return [replace(whole, pieces=tuple(pieces)) for whole, pieces in by_shard.items()]


def largest_first(tasks: Sequence[ShardTask]) -> list[ShardTask]:
    """Return tasks in starting order: large tasks first; tasks of about the same size keep their order."""
    return sorted(tasks, key=lambda task: -(task.size >> _ABOUT_EQUAL))


def _shares(shards: Sequence[InputShard], slots: Callable[[], int]) -> dict[int, int]:
    """Return the number of tasks of each shard that is too large for one task, by shard number."""
    large = [number for number, shard in enumerate(shards) if shard.size >= SPLIT_FROM_BYTES]
    if not large or (workers := slots()) == 1:
        return {}
    even = max(SPLIT_FROM_BYTES / 2, sum(shard.size for shard in shards) / workers)
    return {
        number: min(MOST_PIECES, int(shards[number].size / even))
        for number in large
        if shards[number].size >= _UNEVEN * even
    }


def _parts(
    whole: ShardTask, form: str, pieces: int, rows: int | None, rows_per_byte: list[float]
) -> Iterator[ShardTask]:
    """Yield the tasks of a shard: ``pieces`` of about the same size, or of these ``rows``; the last has the rest."""
    about = 0.0
    if pieces != 1 and (rows or len(rows_per_byte) < _SHARDS_LOOKED_AT):
        with contextlib.suppress(DataError):  # its task refuses a damaged shard
            about = about_rows(whole.url, form)
            rows_per_byte.append(about / max(1, whole.size))
    elif pieces != 1:
        about = whole.size * fmean(rows_per_byte)
    rows = rows or math.ceil(about / pieces / BLOCK_ROWS) * BLOCK_ROWS
    pieces = pieces or math.ceil(about / rows)
    if not rows or pieces < 2:
        yield whole
        return
    for piece in range(pieces):
        stop = None if piece == pieces - 1 else (piece + 1) * rows
        yield replace(whole, start=piece * rows, stop=stop, piece=piece)


def about_rows(url: str, form: str) -> int:
    """Return the number of rows of a file: as declared, or estimated from the lines at its beginning."""
    with files.open_read(url) as file:
        if (rows := formats.find(form).count_rows(file, url)) is not None:
            return rows
        size, lines = files.size(url) or 0, 0
        for seen, chunk in enumerate(compression.chunks(file, url, compression.codec_of(form)), 1):
            lines += chunk.count(b"\n")
            if seen == _LOOKED_AT:
                return int(lines * max(1.0, size / file.tell()))
        return lines


class KeyedReader(compression.CountingReader):
    """A file that computes a keyed BLAKE2b of everything read from it."""

    def __init__(self, file: IO[bytes], key: bytes) -> None:
        super().__init__(file)
        self._state = hashlib.blake2b(digest_size=16, key=key)
        self._ended = False

    def read(self, size: int = -1, /) -> bytes:
        data = super().read(size)
        self._state.update(data)
        return data

    def share(self, size: int) -> float:
        """Return how much of a file of ``size`` bytes was read; 0 if all of it was, to seek in it."""
        return 0.0 if self._ended or not size else min(1.0, self.taken / size)

    def digest(self) -> str:
        """Read the rest, and return the digest of the whole file, hexadecimal. Raises WorkError if it has changed."""
        while not self._ended and self.read(compression.CHUNK_BYTES):
            pass
        if (raw := getattr(self._file, "raw", None)) is not None:
            raw.refuse_changed()
        return self._state.hexdigest()

    def whole(self) -> IO[bytes]:
        """Read everything, and return the file itself at its beginning, for formats that need to seek."""
        self.digest()
        self._ended = True
        self._file.seek(0)
        return self._file


def keyed_digest(url: str, key: bytes) -> str:
    """Return the keyed digest of a stored file."""
    with files.open_read(url) as file:
        return KeyedReader(file, key).digest()


def plain_digest(url: str) -> str:
    """Return the SHA-256 of a stored file, hexadecimal; for output only, which is public."""
    with files.open_read(url) as file:
        return hashlib.file_digest(cast("Any", file), "sha256").hexdigest()
