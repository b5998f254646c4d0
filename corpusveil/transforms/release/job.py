"""The work of a release: a shard task is read, privatized, written and recorded."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from corpusveil.display import several
from corpusveil.errors import ChangedError, DataError, WorkError
from corpusveil.kernel.transform import Transform
from corpusveil.ledger.account import Drops
from corpusveil.ledger.units import documents_of
from corpusveil.storage import files
from corpusveil.storage.corpus import CorpusIn, CorpusOut
from corpusveil.storage.durable import Work
from corpusveil.storage.reading import MOST_PLACES, BadRows, OpenShard, reading, type_names
from corpusveil.storage.records import Beat, Made, Records, Shard, Source
from corpusveil.storage.tasks import KeyedReader, ShardTask, keyed_digest, plain_digest
from corpusveil.storage.writing import ShardFile
from corpusveil.text.counts import Counts

HEARTBEAT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ShardJob(Work[Shard]):
    """What an engine maps over shard tasks."""

    name: ClassVar[str] = "privatize"
    folder: ClassVar[str] = "shards"

    kernel: Transform
    reads: CorpusIn
    writes: CorpusOut
    release: str
    key: str
    record_key: bytes = field(repr=False)
    debug: bool = False
    """Let errors keep their text and traceback, which can quote documents."""
    seen: Mapping[str, str] | None = None
    """The input digest of each task, by its record's name, if a pass before the work read it; otherwise None."""
    drops: Drops | None = None
    """Which rows are left out, of units above a cap."""
    entries: tuple[str, ...] | None = None
    """The digests of the ledger's entries for this run; None without a ledger."""
    kept_types: Sequence[str] = ()
    """The types of columns that are written whole, which all shards of a table must have."""
    is_finished: bool = False
    """Whether nothing is left to do, so that each task is only compared with its record."""

    @property
    def corpus(self) -> str:
        """The name of the corpus, which is part of the identity of documents without an id."""
        return self.reads.name or ""

    @property
    def records(self) -> Records:
        """The private records."""
        return self.writes.private

    def work_folder(self) -> Records:
        return self.records

    def is_mine(self, record: Shard, task: ShardTask) -> bool:
        if self.drops is not None and record.dropped != self.drops.digests[task.shard]:
            return False
        return record.release == self.release and record.task == self._mark(task)

    def still_holds(self, record: Shard, task: ShardTask) -> bool:
        target = self.writes.target(task)
        if files.size(target) != record.output.bytes or plain_digest(target) != record.output.file_sha256:
            return False
        return keyed_digest(task.url, self.record_key) == record.input.digest

    def is_done(self, task: ShardTask) -> bool:
        """Say the same of a piece whose shard has been joined."""
        is_done = super(ShardJob, self).is_done
        return is_done(task) or (task.piece is not None and is_done(task.whole))

    def note(self, record: Shard, task: ShardTask) -> None:
        super(ShardJob, self).note(record, task)
        self.records.remove(f"progress/{task.record_name}")

    def _mark(self, task: ShardTask) -> tuple[Any, ...]:
        """Return the values that a record of this task must have: key, rows and columns (the claim has the unit)."""
        columns = self.reads.columns.written
        return (self.key, task.start, task.stop, *columns.as_dict().values())

    def do(self, task: ShardTask) -> Shard:
        if self.is_finished:
            raise ChangedError(
                f"{task.url}: this input or its output shard changed after the release was finished; privatize the "
                "input into another output, as a further release. Documents without an id may spend again then."
            )
        if task.pieces:
            return self._join(task)
        began, counts = time.monotonic(), Counts()
        columns = self.reads.columns
        left_out = None if self.drops is None else self.drops.left_out_rows(task.shard)
        bad = BadRows()
        with (
            reading(task, columns, self.record_key, None if self.reads.on_bad_rows == "refuse" else bad) as shard,
            ShardFile(task, self.writes, columns, self._types(shard, task.url)) as file,
        ):
            progress = _Notes(self.records, task, shard.file)
            # Memory holds one batch: each is written before the next is read.
            for batch in shard.batches:
                if left_out is not None:
                    counts.dropped += batch.leave_out(left_out)
                if batch.numbers:
                    given = documents_of(batch, columns, self.corpus, task)
                    texts, counted = self.kernel.apply(given)
                    file.write(texts, batch.kept)
                    counts += counted
                    counts.without_text += texts.null_count
                file.reach(batch.stop)
                progress.note(batch.stop, counts)
            file.finish()
            counts.bad_rows = bad.rows
            if task.piece is None:
                _refuse_nothing(task, counts, bad.first)
            # Inside the context: an error here leaves no output, since a file appears when its context ends.
            read = shard.file.digest()
            if self.seen is not None and self.seen.get(task.record_name) != read:
                raise ChangedError(f"{task.url}: this input changed during the run; run the same command again.")
        return self._record(task, file.made(), counts, read, time.monotonic() - began, bad.places)

    def _types(self, shard: OpenShard, url: str) -> Sequence[pa.DataType]:
        """Return the types of the columns that are written whole.

        Raises UserError if they are not those of the first shard: nothing would read the shards together.
        """
        names = self.reads.columns.keep
        types = shard.types()[: len(names)]
        for name, kind, other in zip(names, type_names(types), self.kept_types, strict=False):
            if kind != other:
                raise DataError(
                    f"{url}: column {name!r} is {kind}, and {other} in the first shard, so that nothing would "
                    "read the release as one table; write all shards with one type."
                )
        return types

    def _record(
        self, task: ShardTask, output: Made, counts: Counts, read: str, seconds: float, bad: Sequence[int]
    ) -> Shard:
        """Return the record of a task that has ``read`` input of this digest."""
        return Shard(
            release=self.release,
            task=self._mark(task),
            dropped=None if self.drops is None else self.drops.digests[task.shard],
            input=Source(path=task.relative, bytes=task.size, digest=read),
            output=output,
            counts=counts.private(),
            seconds=round(seconds, 3),
            bad_places=list(bad),
            ledger=None if self.entries is None else list(self.entries),
        )

    def _join(self, task: ShardTask) -> Shard:
        """Join the pieces of a shard into its output file; they stay, as another attempt may be reading them."""
        counts, seconds, sources, bad = Counts(), 0.0, set(), list[int]()
        for piece in task.pieces:
            record = self.records.read(f"shards/{piece.record_name}", Shard)
            if record is None or record.task != self._mark(piece):
                raise WorkError(
                    f"{self.records.url}: a piece of shard {piece.shard} belongs to another run; run the same "
                    "command again."
                )
            counts += Counts.from_record(record.counts, self.records.url)
            seconds += record.seconds
            sources.add(record.input.digest)
            bad += record.bad_places
        if len(sources) > 1:
            raise ChangedError(f"{task.url}: the input changed while it was read; run again.")
        _refuse_nothing(task, counts, "Check the names of the columns.")
        with ShardFile(task, self.writes, self.reads.columns) as file:
            file.join()
        return self._record(task, file.made(), counts, sources.pop(), seconds, bad[:MOST_PLACES])


class Progress:
    """The tasks of a run so far, on any engine, from their records and notes, and its speed."""

    def __init__(self, records: Records, tasks: Sequence[ShardTask], unit: str) -> None:
        self._records, self._unit = records, unit
        self._left = {task.record_name for task in tasks}.difference(records.names("shards"))  # of earlier runs
        self._shards, self._tokens, self._total, self._began = 0, 0, len(self._left), time.monotonic()

    def look(self) -> tuple[float, int, str]:
        """Return how many shards are done, of how many, and their tokens and speed."""
        for name in self._left.intersection(self._records.names("shards")):
            if (record := self._records.read(f"shards/{name}", Shard)) is not None:
                self._left.remove(name)
                self._shards, self._tokens = self._shards + 1, self._tokens + record.counts.tokens_written
        shards, tokens = float(self._shards), self._tokens
        for name in self._left.intersection(self._records.names("progress")):
            if (beat := self._records.read(f"progress/{name}", Beat)) is not None:
                shards, tokens = shards + beat.share, tokens + beat.tokens
        seconds, failures = time.monotonic() - self._began, len(self._records.names("failed"))
        speed = f"{float(f'{tokens / max(seconds, 1e-9):.2g}'):,.0f} {self._unit}s/s"  # two digits
        failed = f", {failures} failed" if failures else ""
        return shards, self._total, f"{several(tokens, self._unit)}, {speed}{failed}"


class _Notes:
    """Notes among local records, about once a second, how much of a task is done."""

    def __init__(self, records: Records, task: ShardTask, source: KeyedReader) -> None:
        self._records, self._task, self._source = records, task, source
        self._noted = time.monotonic()

    def note(self, stop: int, counts: Counts) -> None:
        """Record the progress up to row ``stop``: by rows if the task ends at a row, otherwise by bytes."""
        if time.monotonic() - self._noted <= HEARTBEAT_SECONDS or not files.is_local(self._records.url):
            return
        self._noted, task, share = time.monotonic(), self._task, 0.0
        if task.stop is not None:
            share = (stop - task.start) / (task.stop - task.start)
        elif not task.start:
            share = self._source.share(task.size)
        self._records.write(f"progress/{task.record_name}", Beat(tokens=counts.tokens_written, share=round(share, 4)))


def _refuse_nothing(task: ShardTask, counts: Counts, why: str) -> None:
    """Raise UserError if every row was left out as bad: then the call is wrong, not the rows."""
    if counts.bad_rows and not (counts.documents or counts.dropped or counts.without_text):
        raise DataError(f"{task.url}: no row can be read, so none is dropped. {why}")
