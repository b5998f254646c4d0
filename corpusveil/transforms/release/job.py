"""The work of a release: a shard task is read, privatized, written and recorded."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from corpusveil.display import several
from corpusveil.errors import BadRowError, ChangedError, ChangedMeanwhileError, ColumnError, changed_during_run
from corpusveil.kernel.transform import Transform
from corpusveil.ledger.units import documents_of
from corpusveil.storage import files, formats
from corpusveil.storage.corpus import CorpusIn, CorpusOut
from corpusveil.storage.documents import Documents
from corpusveil.storage.durable import Work, stem
from corpusveil.storage.engine import Measured
from corpusveil.storage.reading import Quarantine, kept_types, reading, refuse, type_names
from corpusveil.storage.records import Beat, Made, Records, Shard, Source
from corpusveil.storage.rows import BLOCK_ROWS, PUBLIC
from corpusveil.storage.tasks import CountingFile, KeyedReader, ShardTask, keyed_digest, plain_digest
from corpusveil.text.counts import Counts
from corpusveil.transforms.release.left_out import Drops

HEARTBEAT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ShardJob(Work[Shard]):
    """What an engine maps over shard tasks."""

    name: ClassVar[str] = "privatize"
    folder: ClassVar[str] = "shards"
    kept: ClassVar[Measured | None] = {"shards_kept": 1}
    refused: ClassVar[Measured | None] = {"shards_failed": 1}

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
    """Which rows are left out as copies of others."""
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

    @property
    def by_place(self) -> bool:
        """Whether noise depends on the places of documents."""
        return self.reads.columns.id is None and not self.kernel.same_noise

    def place(self) -> Records:
        return self.records

    def is_mine(self, record: Shard, task: ShardTask) -> bool:
        if self.drops is not None and record.dropped != self.drops.digests[task.shard]:
            return False
        return record.release == self.release and record.task == self._mark(task)

    def still_holds(self, record: Shard, task: ShardTask) -> bool:
        target = self.target(task)
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

    def ended(self, record: Shard, task: ShardTask) -> Measured | None:
        if task.pieces:  # which were counted
            return None
        counts = Counts.of(record.counts, self.records.url)
        return {"shards_done": 1, **counts.measured()}

    def _mark(self, task: ShardTask) -> tuple[Any, ...]:
        """Return the values that a record of this task must have: key, rows and columns (the claim has the unit)."""
        columns = dataclasses.replace(self.reads.columns.written, unit=None)
        return (self.key, task.start, task.stop, *columns.as_dict().values())

    def target(self, task: ShardTask) -> str:
        """Return the address of the task's output: the shard in the release, or a piece of it among the records."""
        if task.piece is None:
            return files.join(self.writes.url, "data", task.shard_name)
        return self.records.address("pieces", f"{stem(task)}{task.suffix}")

    def do(self, task: ShardTask) -> Shard:
        if self.is_finished:
            record = self.records.read(f"shards/{task.record_name}", Shard)
            documents = 0 if record is None else Counts.of(record.counts, self.records.url).documents
            again = f" Without an id, up to {several(documents, 'document')} get other noise then, and spend again."
            raise ChangedError(
                f"{task.url}: this input or its output shard changed after the release was finished; privatize the "
                f"input into another output, as a further release.{again if self.by_place else ''}"
            )
        if task.pieces:
            return self._join(task)
        began = beat = time.monotonic()
        form, target = formats.find(task.suffix), self.target(task)
        columns, drawn = self.reads.columns, self.reads.columns.drawn
        types = kept_types(task.url, columns)
        self._refuse_types(task, types)
        types = [*types, *[pa.string()] * columns.marked]
        counts, content = Counts(), hashlib.sha256()
        quarantine = Quarantine(self.records, task.record_name)
        left_out = None if self.drops is None else self.drops.rows(task.shard)
        aside = refuse if self.reads.on_bad_rows == "fail" else quarantine.add
        with (
            reading(task, drawn, self.record_key, aside) as (batches, source),
            files.open_write(target, private=task.piece is not None) as sink,
            quarantine,
        ):
            counting = CountingFile(sink)
            writer = form.writer(counting, columns.written, content, types, first=not task.start)
            row, share = task.start, 0.0
            # Memory holds one batch: each is written before the next is read.
            for batch in batches:
                if left_out is not None:
                    counts.dropped += batch.leave_out(left_out)
                if batch.numbers:
                    given = documents_of(batch, columns, self.corpus, task)
                    kept = batch.kept if drawn.keep == columns.keep else batch.kept[: len(columns.keep)]
                    before, share = share, _share(task, batch.stop, source)
                    beat_within = functools.partial(self._beat, task, counts, before, share)
                    batch.texts, counted = self.made(given, beat_within)
                    texts = batch.whole(batch.texts)
                    form.refuse_unsaid(kept if columns.path is None else [texts, *kept], columns, task.url)
                    source_of = [pa.repeat(pa.scalar(PUBLIC, pa.string()), len(texts))] * columns.marked
                    writer.write(texts, [*kept, *source_of])
                    counts += counted
                    counts.without_text += batch.texts.null_count
                row = batch.stop
                # A block ends by the number of its rows in the input, so bad and dropped rows move no later block.
                if row % BLOCK_ROWS == 0:
                    writer.end_block()
                if time.monotonic() - beat > HEARTBEAT_SECONDS:
                    beat = time.monotonic()
                    self._beat(task, counts, share, _share(task, row, source))
            if row % BLOCK_ROWS:
                writer.end_block()
            writer.close()
            counts.quarantined = quarantine.rows
            if task.piece is None:
                _refuse_nothing(task, counts, quarantine.first)
                counting.end_shard(task.suffix)
            # Inside the context: an error here leaves no output, since a file appears when its context ends.
            input_digest = source.digest()
            if self.seen is not None and self.seen.get(task.record_name) != input_digest:
                raise changed_during_run(task.url)
        return self._record(task, target, counts, (content, counting), input_digest, time.monotonic() - began)

    def _refuse_types(self, task: ShardTask, types: Sequence[pa.DataType]) -> None:
        """Raise UserError for types that are not those of the first shard: nothing would read the shards together."""
        for name, kind, other in zip(self.reads.columns.whole, type_names(types), self.kept_types, strict=False):
            if kind != other:
                raise ColumnError(
                    f"{task.url}: column {name!r} is {kind}, and {other} in the first shard, so that nothing would "
                    "read the release as one table; write all shards with one type."
                )

    def made(self, documents: Documents, beat: Callable[[float], None]) -> tuple[pa.Array, Counts]:  # noqa: ARG002
        """Return what documents become; ``beat`` tells how much of it is done, 0 to 1, where drawing takes long."""
        return self.kernel.privatize(documents)

    def _beat(self, task: ShardTask, counts: Counts, before: float, after: float, part: float = 1.0) -> None:
        """Note the share of a task that is done, when a ``part`` of a batch between two shares is."""
        if files.is_local(self.records.url):
            share = before + part * (after - before)
            self.records.write(f"progress/{task.record_name}", Beat(**counts.measured(), share=round(share, 4)))

    def _record(
        self, task: ShardTask, target: str, counts: Counts, written: tuple[Any, CountingFile], read: str, seconds: float
    ) -> Shard:
        """Return the record of a task that has ``written`` content and a file, and ``read`` input of this digest."""
        content, file = written
        return Shard(
            release=self.release,
            task=self._mark(task),
            **({} if self.drops is None else {"dropped": self.drops.digests[task.shard]}),
            input=Source(path=task.relative, bytes=task.size, digest=read),
            output=Made(
                name=task.shard_name, sha256=content.hexdigest(), file_sha256=file.digest(), bytes=files.size(target)
            ),
            counts=counts.private(),
            seconds=round(seconds, 3),
            ledger=None if self.entries is None else list(self.entries),
        )

    def _join(self, task: ShardTask) -> Shard:
        """Join the pieces of a shard into its output file; they stay, as another attempt may be reading them."""
        counts, content, seconds, sources = Counts(), hashlib.sha256(), 0.0, set()
        for piece in task.pieces:
            record = self.records.read(f"shards/{piece.record_name}", Shard)
            if record is None or record.task != self._mark(piece):
                raise ChangedMeanwhileError(
                    f"{self.records.url}: a piece of shard {piece.shard} belongs to another run; run the same "
                    "command again."
                )
            counts += Counts.of(record.counts, self.records.url)
            seconds += record.seconds
            sources.add(record.input.digest)
        if len(sources) > 1:
            raise ChangedError(f"{task.url}: the input changed while it was read; run again.")
        _refuse_nothing(task, counts, "Check the names of the columns.")
        target = self.target(task)
        with files.open_write(target) as sink:
            counting = CountingFile(sink)
            formats.find(task.suffix).join(
                list(map(self.target, task.pieces)), counting, self.reads.columns.written, content
            )
            counting.end_shard(task.suffix)
        Quarantine.join(self.records, [piece.record_name for piece in task.pieces], task.record_name)
        return self._record(task, target, counts, (content, counting), sources.pop(), seconds)


def _share(task: ShardTask, row: int, source: KeyedReader) -> float:
    """Return how much of a task is done before ``row``: by rows where it ends at one, otherwise by bytes, if it can."""
    if task.stop is not None:
        return (row - task.start) / (task.stop - task.start)
    return 0.0 if task.start else source.share(task.size)


def _refuse_nothing(task: ShardTask, counts: Counts, why: str) -> None:
    """Raise UserError if every row was set aside: then the call is wrong, not the rows."""
    if counts.quarantined and not (counts.documents or counts.dropped or counts.without_text):
        raise BadRowError(f"{task.url}: no row can be read, so none is set aside. {why}")
