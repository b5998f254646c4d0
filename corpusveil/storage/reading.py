"""Reading shards: the columns of a run; a task's rows in batches, what becomes of bad ones, and the digest of all."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.choices import Separator
from corpusveil.errors import CorpusveilError, DataError, SettingError, UserError, bad_shards
from corpusveil.storage import compression, files, formats
from corpusveil.storage.inputs import InputShard
from corpusveil.storage.rows import BadRow, Batch, Columns
from corpusveil.storage.tasks import KeyedReader, ShardTask
from corpusveil.storage.values import unit_texts

MOST_PLACES = 100
"""Of rows that a shard leaves out, their places in the records."""
_FIRST_ROWS = 200


@dataclass(slots=True)
class BadRows:
    """The rows that a task leaves out: how many, the places of the first ones, and why the first one is bad."""

    rows: int = 0
    places: list[int] = field(default_factory=list)
    first: str = ""

    def add(self, bad: BadRow, sentence: str) -> None:
        self.rows += 1
        self.first = self.first or sentence
        if len(self.places) < MOST_PLACES:
            self.places.append(bad.number + 1)


def names_of(shard: InputShard, separator: Separator) -> list[str]:
    with files.open_read(shard.url) as file:
        return formats.form_of(shard.url).names(file, shard.url, separator)


def _have_names(shards: Sequence[InputShard], separator: Separator) -> bool:
    """Say whether a file has names, as workers write empty ones, too; its task refuses one that is damaged."""
    try:
        return any(names_of(shard, separator) for shard in shards)
    except DataError:
        return True


def type_names(types: Sequence[pa.DataType]) -> list[str]:
    """Return names of types, one for those that differ in memory only."""
    return [str(kind).replace("large_", "").replace("_view", "") for kind in types]


def first_types(shards: Sequence[InputShard], columns: Columns) -> list[str]:
    """Return the types of the first shard that can be read."""
    for shard in shards:
        with contextlib.suppress(DataError), files.open_read(shard.url) as file:  # its task refuses a damaged shard
            return type_names(formats.form_of(shard.url).kept_types(file, shard.url, columns))
    return []


def checked_columns(columns: Columns, shards: Sequence[InputShard], suffix: str | None) -> Columns:
    """Return the columns of a run over shards.

    ``suffix`` is that of the output, None for that of the input. Raises UserError if the forms of input or output can't
    hold the columns.
    """
    source = formats.form_of(shards[0].url)
    target = formats.find(suffix) if suffix else source
    if source.has_separator and not _have_names(shards, columns.separator):
        why = "this file is empty, and no line names columns; export again, or leave it out if there are no rows."
        raise bad_shards({number: f"{shard.url}: {why}" for number, shard in enumerate(shards)})
    if columns.separator != "comma" and not (source.has_separator or target.has_separator):
        raise SettingError(f"separator {columns.separator}: neither input nor output is CSV; leave separator out.")
    source.check(columns)
    target.check(columns.written)
    return columns


def first_rows(task: ShardTask, columns: Columns, bad: BadRows | None) -> list[Batch]:
    """Return the first rows of the first shard. Raises DataError if they cannot be used."""
    try:
        with files.open_read(task.url) as file:
            batches = formats.form_of(task.url).batches(file, task.url, columns, 0, _FIRST_ROWS)
            return list(_sound(batches, task, columns.id, bad))
    except DataError as error:
        raise bad_shards({task.shard: str(error)}) from None
    except CorpusveilError:
        raise
    except Exception:  # noqa: BLE001 - the task itself fails, and hides its text, which can quote a document
        return []


@dataclass(frozen=True, slots=True)
class OpenShard:
    """The rows of a task, in ``batches`` to be read once, of the ``file``, which has the keyed digest of the shard.

    ``types`` returns those of the columns that are written whole, before a batch is read.
    """

    batches: Iterator[Batch]
    file: KeyedReader
    types: Callable[[], Sequence[pa.DataType]]


@contextlib.contextmanager
def reading(task: ShardTask, columns: Columns, key: bytes = b"", bad: BadRows | None = None) -> Iterator[OpenShard]:
    """Open the shard of a task, with its digest under ``key``; ``bad`` takes rows that are, which raise without it."""
    form = formats.form_of(task.url)
    with files.open_read(task.url) as raw:
        keyed = KeyedReader(raw, key)
        file: Any = keyed.whole() if form.seeks else keyed
        batches = _sound(
            form.batches(file, task.url, columns, task.start, task.stop), task, columns.id, bad, _lacking(task, columns)
        )
        yield OpenShard(batches, keyed, functools.partial(form.kept_types, file, task.url, columns))


def _lacking(task: ShardTask, columns: Columns) -> list[BadRow]:
    """Return the rows of a task that have a text and no unit, ascending; they are read for that alone."""
    if not columns.units:
        return []
    lacking: dict[int, BadRow] = {}
    with reading(task, dataclasses.replace(columns, keep=columns.units, units=()), bad=BadRows()) as shard:
        for batch in shard.batches:
            lacking |= {bad.number: bad for bad in batch.bad}
            for name, values in zip(columns.units, batch.kept, strict=True):
                why = f"the unit {name} is no string or whole number; add it."
                lacks = pc.and_(batch.texts.is_valid(), unit_texts(values).is_null())
                lacking |= {batch.numbers[at]: BadRow(batch.numbers[at], why) for at in np.flatnonzero(lacks).tolist()}
    return [lacking[number] for number in sorted(lacking)]


def _sound(
    batches: Iterator[Batch], task: ShardTask, column: str | None, aside: BadRows | None, lacking: Sequence[BadRow] = ()
) -> Iterator[Batch]:
    """Yield batches, and raise, or set ``aside``, bad rows, also those without an id in its ``column``.

    A compressed file that is damaged is refused as that: its rows can look bad long before its checksum, which comes
    last, shows the damage.
    """
    try:
        for batch in batches:
            numbers, why = set(batch.numbers), f"the id column {column!r} is empty; give every row an id."
            named = zip(batch.numbers, batch.ids or (), strict=False)
            here = {bad.number: bad for bad in lacking if bad.number in numbers}
            here |= {number: BadRow(number, why) for number, identity in named if identity is None or identity == ""}
            if here:
                batch.leave_out([*here])
                batch.bad = sorted((*batch.bad, *here.values()), key=lambda bad: bad.number)
            for bad in batch.bad:
                sentence = f"{task.url}, row {bad.number + 1}: {bad.why}"
                if aside is None:
                    raise DataError(sentence)
                aside.add(bad, sentence)
            yield batch
    except UserError:
        if codec := formats.form_of(task.url).codec:
            with files.open_read(task.url) as file:
                for _ in compression.chunks(file, task.url, codec):
                    pass
        raise
