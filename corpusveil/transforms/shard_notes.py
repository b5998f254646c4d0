"""A pass over the shard tasks of a corpus before the work: it notes something of each among the private records."""

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
from corpusveil.storage.reading import reading, refuse, skip
from corpusveil.storage.records import Record, Records
from corpusveil.storage.rows import Batch, Columns
from corpusveil.storage.tasks import ShardTask, keyed_digest, plain_digest


class Seen(Record):
    """``seen/*``: a task that a pass has read: a mark of the pass, and the digests of its input and its note.

    Where the note is an entry for a ledger: its digest under the ledger's secret, and how many documents it has.
    """

    mark: str = ""
    input: str
    note: str = ""
    entry: str = ""
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Pass(Work[Seen]):
    """What an engine maps over shard tasks. ``skip_bad`` leaves rows out that can't be read."""

    folder: ClassVar[str] = "seen"
    suffix: ClassVar[str]
    """Of the files with its notes."""

    columns: Columns
    records: Records
    record_key: bytes = field(repr=False)
    skip_bad: bool = False

    @abc.abstractmethod
    def write_note(self, task: ShardTask, batches: Iterator[Batch], address: str) -> dict[str, Any]:
        """Read the batches of one task to their end and write what is to be noted of them, privately, to an address.

        Returns what else its record says.
        """

    @abc.abstractmethod
    def decides(self) -> Mapping[str, Any]:
        """Return what decides the notes beside rows and columns."""

    def note_of(self, task: ShardTask) -> str:
        """Return where a task's note lies, among the records."""
        return self.records.address(f"{stem(task)}{self.suffix}")

    def place(self) -> Records:
        return self.records

    def left(self, tasks: Sequence[ShardTask]) -> Sequence[ShardTask]:
        return tasks  # whether an input changed is seen by reading it, which is the engine's work

    def do(self, task: ShardTask) -> Seen:
        with reading(task, self.columns, self.record_key, skip if self.skip_bad else refuse) as (batches, read):
            address = self.note_of(task)
            told = self.write_note(task, (batch for batch in batches if batch.numbers), address)
            digest = read()
        return Seen(mark=self._mark(task), input=digest, note=plain_digest(address), **told)

    def is_mine(self, record: Seen, task: ShardTask) -> bool:
        return record.mark == self._mark(task)

    def still_holds(self, record: Seen, task: ShardTask) -> bool:
        address = self.note_of(task)
        if not files.exists(address) or plain_digest(address) != record.note:
            return False
        return keyed_digest(task.url, self.record_key) == record.input

    def _mark(self, task: ShardTask) -> str:
        what = [task.relative, task.start, task.stop, self.columns.as_dict(), self.skip_bad, self.decides()]
        text = json.dumps(what, sort_keys=True).encode()
        return hashlib.blake2b(text, digest_size=16, key=self.record_key).hexdigest()


def look(job: Pass, tasks: Sequence[ShardTask], engine: Engine) -> dict[str, Seen]:
    """Run a pass over all tasks; return what each one's record says, by its name.

    Raises BadShardsError for what is wrong with the input.
    """
    seen = run(job, tasks, engine)
    return {task.record_name: record for task, record in zip(tasks, seen, strict=True)}
