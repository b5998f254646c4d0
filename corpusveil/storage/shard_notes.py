"""A pass over the shard tasks of a corpus before the work: it writes notes on each task to the private records."""

from __future__ import annotations

import abc
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from corpusveil.storage import files
from corpusveil.storage.durable import Work, run, stem
from corpusveil.storage.engine import Engine
from corpusveil.storage.reading import BadRows, reading
from corpusveil.storage.records import Record, Records
from corpusveil.storage.rows import Batch, Columns
from corpusveil.storage.tasks import ShardTask, keyed_digest, plain_digest


class Seen(Record):
    """``seen/*``: a task that a pass has read, with a mark of the pass, and the digests of its input and its note."""

    mark: str = ""
    input: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Pass(Work[Seen]):
    """The function that an engine maps over shard tasks. ``skip_bad`` leaves out unreadable rows."""

    folder: ClassVar[str] = "seen"
    suffix: ClassVar[str]
    """The suffix of the files with its notes."""

    columns: Columns
    records: Records
    record_key: bytes = field(repr=False)
    skip_bad: bool = False

    @abc.abstractmethod
    def write_note(self, task: ShardTask, batches: Iterator[Batch], address: str) -> None:
        """Read all batches of one task, and write private notes on them to an address."""

    @abc.abstractmethod
    def decides(self) -> Mapping[str, Any]:
        """Return the settings that decide the notes, in addition to rows and columns."""

    def note_of(self, task: ShardTask) -> str:
        """Return the address of a task's note among the records."""
        return self.records.address(f"{stem(task)}{self.suffix}")

    def place(self) -> Records:
        return self.records

    def left(self, tasks: Sequence[ShardTask]) -> Sequence[ShardTask]:
        return tasks  # only reading an input, which is the engine's work, shows whether it changed

    def do(self, task: ShardTask) -> Seen:
        with reading(task, self.columns, self.record_key, BadRows() if self.skip_bad else None) as shard:
            address = self.note_of(task)
            self.write_note(task, (batch for batch in shard.batches if batch.numbers), address)
            digest = shard.file.digest()
        return Seen(mark=self._mark(task), input=digest, note=plain_digest(address))

    def is_mine(self, record: Seen, task: ShardTask) -> bool:
        return record.mark == self._mark(task)

    def still_holds(self, record: Seen, task: ShardTask) -> bool:
        address = self.note_of(task)
        if not files.exists(address) or plain_digest(address) != record.note:
            return False
        return keyed_digest(task.url, self.record_key) == record.input

    def _mark(self, task: ShardTask) -> str:
        what = [task.relative, task.start, task.stop, self.columns.as_dict(), self.skip_bad, self.decides()]
        what += [] if self.columns.needs is None else self.columns.needs.columns
        text = json.dumps(what, sort_keys=True).encode()
        return hashlib.blake2b(text, digest_size=16, key=self.record_key).hexdigest()


def look(job: Pass, tasks: Sequence[ShardTask], engine: Engine) -> dict[str, Seen]:
    """Run a pass over all tasks; return the record of each task, by name.

    Raises BadShardsError if the input has faults.
    """
    seen = run(job, tasks, engine)
    return {task.record_name: record for task, record in zip(tasks, seen, strict=True)}
