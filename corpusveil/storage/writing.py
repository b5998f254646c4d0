"""Writing shards: the output of a task, in blocks that end at the same rows however it is split; and its digests."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Sequence
from typing import Any, Self

import pyarrow as pa

from corpusveil.storage import compression, files, formats
from corpusveil.storage.corpus import CorpusOut
from corpusveil.storage.forms import Writer
from corpusveil.storage.records import Made
from corpusveil.storage.rows import BLOCK_ROWS, PUBLIC, Columns
from corpusveil.storage.tasks import ShardTask
from corpusveil.storage.values import refuse_unsaid


class ShardFile(contextlib.ExitStack):
    """A context in which the shard of a task, or a piece of it, is written; it appears, complete, without an error.

    ``types`` are those of the columns that are written whole, which its rows need.
    """

    def __init__(self, task: ShardTask, writes: CorpusOut, columns: Columns, types: Sequence[pa.DataType] = ()) -> None:
        super().__init__()
        self._task, self._writes, self._columns = task, writes, columns
        self._types = [*types, *[pa.string()] * columns.marked]
        self._form = formats.find(task.suffix)
        self._content = hashlib.sha256()
        self._row = task.start

    def __enter__(self) -> Self:
        self._file = _CountingFile(
            self.enter_context(files.open_write(self._writes.target(self._task), private=self._task.piece is not None))
        )
        return self

    @functools.cached_property
    def _writer(self) -> Writer:
        first = not self._task.start
        return self._form.writer(self._file, self._columns.written, self._content, self._types, first=first)

    def write(self, texts: pa.Array, kept: Sequence[pa.Array]) -> None:
        """Write rows: texts large_string [N], and kept arrays [N].

        Raises DataError for values that the form has no words for.
        """
        if self._form.lacks_nan:
            refuse_unsaid(self._columns.keep, kept, self._task.url)
        marks = [pa.repeat(pa.scalar(PUBLIC, pa.string()), len(texts))] * self._columns.marked
        self._writer.write(texts, [*kept, *marks])

    def reach(self, row: int) -> None:
        """Note that all rows of the input before this one are written, or left out.

        A block ends by the number of its rows in the input, so bad and dropped rows move no later block.
        """
        self._row = row
        if row % BLOCK_ROWS == 0:
            self._writer.end_block()

    def finish(self) -> None:
        if self._row % BLOCK_ROWS:
            self._writer.end_block()
        self._writer.close()
        if self._task.piece is None:
            self._end()

    def join(self) -> None:
        """Write the shard from its pieces, instead of rows."""
        pieces = list(map(self._writes.target, self._task.pieces))
        self._form.join(pieces, self._file, self._columns.written, self._content)
        self._end()

    def _end(self) -> None:
        if self._file.is_empty:
            blocks = compression.Blocks(self._file, self._form.codec)
            blocks.write(b"")
            blocks.end()

    def made(self) -> Made:
        """Return the digest and size of the file, after the context."""
        return Made(
            name=self._task.shard_name, sha256=self._content.hexdigest(), file_sha256=self._file.state.hexdigest(),
            bytes=files.size(self._writes.target(self._task)),
        )  # fmt: skip


class _CountingFile(compression.LeftOpen):
    """A file that computes the SHA-256 of everything written to it, and records whether anything was."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self.state = hashlib.sha256()
        self.is_empty = True

    def write(self, data: Any) -> Any:
        self.state.update(data)
        self.is_empty = self.is_empty and not len(data)
        return super().write(data)
