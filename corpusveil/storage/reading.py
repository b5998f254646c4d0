"""Reading the shard of a task: its rows in batches, what becomes of bad ones, and the digest of all that was read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from corpusveil.errors import BadFileError
from corpusveil.storage import files, formats
from corpusveil.storage.rows import BadRow, Batch, Columns
from corpusveil.storage.tasks import KeyedReader, ShardTask

Aside = Callable[[BadRow, str], None]
"""What becomes of a row that can't be read, and of the sentence that says why."""


def refuse(_: BadRow, sentence: str) -> None:
    """Raise UserError for a row that can't be read."""
    raise BadFileError(sentence)


def skip(_: BadRow, __: str) -> None:
    """Leave a row out that can't be read."""


@contextlib.contextmanager
def reading(
    task: ShardTask, columns: Columns, key: bytes = b"", aside: Aside = refuse
) -> Iterator[tuple[Iterator[Batch], Callable[[], str]]]:
    """Open the shard of a task: its rows, to be read once, and what then returns the whole shard's keyed digest."""
    form = formats.find(formats.form_of(task.url))
    with files.open_read(task.url) as raw:
        source: Any = KeyedReader(raw, key)
        file = source.whole() if form.seeks else source
        yield _sound(form.batches(file, task.url, columns, task.start, task.stop), task, aside), source.digest


def _sound(batches: Iterator[Batch], task: ShardTask, aside: Aside) -> Iterator[Batch]:
    for batch in batches:
        for bad in batch.bad:
            aside(bad, f"{task.url}, row {bad.number + 1}: {bad.why}")
        yield batch
