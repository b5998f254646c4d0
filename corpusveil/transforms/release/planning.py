"""The reading, writing, time and spending of a release, measured on some of its shards before anything is released.

Sampled shards go through the real work, under a throwaway key, into a folder that is deleted.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from corpusveil.budget.accounting import SCALE, as_float
from corpusveil.display import Card, Shown, figure, rounded_up, several
from corpusveil.errors import CapError, MissingError
from corpusveil.ledger.account import Account, AccountPass
from corpusveil.ledger.caps import Spending, refuse_over
from corpusveil.ledger.entries import SECRET, EntryStore
from corpusveil.ledger.questions import Books, connected, write_entry
from corpusveil.sampling.keys import Key
from corpusveil.storage import files, formats
from corpusveil.storage.documents import Documents
from corpusveil.storage.durable import refuse_failed
from corpusveil.storage.parquet import read_table
from corpusveil.storage.reading import BadRows, first_rows
from corpusveil.storage.records import Shard
from corpusveil.storage.rows import BLOCK_ROWS
from corpusveil.storage.tasks import ShardTask, about_rows, plan
from corpusveil.text.counts import MANY_UNKNOWN, Counts
from corpusveil.transforms.release.corpus import Run

SAMPLED = 3
"""The number of sampled shards, spread over all shards."""
WHOLE_BYTES = 16 << 20
"""Of a shard with more bytes, only four blocks of rows are sampled."""
ROWS = 4 * BLOCK_ROWS
MIB = 1 << 20
QUANTILES = (0.5, 0.9, 0.99, 1.0)


@dataclass(frozen=True, slots=True, repr=False)
class Forecast(Shown):
    """The cost of a release, as ``cv.plan`` forecasts it. Figures of the corpus are scaled up from ``sampled`` shards.

    ``nats``: the mean and the largest spending of the sampled documents; ``refused``: why the ledger's cap refuses the
    release; ``spent``: the most that a unit in the ledger has spent, in nats. ``memory`` is in bytes.

    >>> cv.plan("reviews.csv", release, id="id").refused is None
    True
    """

    shards: int
    sampled: int
    bytes_read: int
    documents: int
    tokens: int
    bytes_written: int
    cpu_seconds: float
    memory: int
    nats: tuple[float, float]
    refused: str | None
    spent: float | None
    unknown_share: float = 0.0
    """The share of the words of the sample that the space does not have."""
    by_unit: tuple[float, ...] = ()
    """The nats that units of the sample would have spent, at ``QUANTILES``, with what they have spent before."""
    counted: str = "token"
    choices: tuple[str, ...] = ()
    """What each number of neighbors would bring a release by passages, in words."""
    partial: bool = False
    """Whether a part of the corpus was sampled, so that units may have further documents."""

    def lines(self, workers: int) -> list[str]:
        """Return the forecast in words, for this many processes."""
        read, written = (f"{size / MIB:,.1f} MiB" for size in (self.bytes_read, self.bytes_written))
        lines = [
            f"{several(self.shards, 'shard')}, {read}; {several(self.sampled, 'was', 'were')} sampled",
            f"about {several(self.documents, 'document')}, {several(self.tokens, self.counted)}, {written} written",
        ]
        processes = several(workers, "process", "processes")
        each = f"{self.cpu_seconds / workers:,.1f} s on {processes} of {self.memory / MIB:,.0f} MiB"
        lines.append(f"about {self.cpu_seconds:,.1f} CPU seconds: {each}")
        mean, most = f"{self.nats[0]:.4g}", rounded_up(self.nats[1])
        lines.append(f"a document spends {mean} nats of plain LDP on average, {most} at most in the sample")
        if self.spent is not None:
            lines.append(f"the most that a unit in the ledger has spent: {figure(self.spent)} nats of plain LDP")
        if self.unknown_share > MANY_UNKNOWN:
            lines.append(
                f"{self.unknown_share:.0%} of the words are not in the space, and are replaced regardless of their "
                "meaning"
            )
        if self.by_unit:
            *shares, most = (figure(total) for total in self.by_unit)
            lines.append(
                f"with this release, 50, 90 and 99 % of units would have spent at most {', '.join(shares)} nats; "
                f"the smallest cap that passes is {most}" + (", by the sample" if self.partial else "")
            )
        if self.refused is not None:
            lines.append(f"the ledger would refuse this release, by the sample alone: {self.refused}")
        return [*lines, *self.choices]

    def card(self) -> Card:
        return Card("Plan of a release (private: figures of the corpus)", [("", self.lines(1))])


def forecast(run: Run) -> Forecast:
    """Measure the cost of a run on up to ``SAMPLED`` shards.

    With ``spending``, the cost includes the ledger's pass, and the ledger's cap is checked for the sample of this
    release, under its own key, so earlier spending of this release is not counted again. Raises UserError if the
    sampled shards have faults.
    """
    release, spending, (shards, reads) = run.release, run.spending, run.source()
    columns = reads.columns
    asked = spending or Spending("")
    tasks = plan(shards, formats.suffix_of(run.writes.format), None)
    for batch in first_rows(tasks[0], columns, BadRows())[:1]:
        release.refuse(batch.texts)
    chosen = sorted({round(at) for at in np.linspace(0, len(tasks) - 1, min(SAMPLED, len(tasks)))})
    passing = dataclasses.replace(release, key=Key.generate())
    counts, taken, seconds, written = Counts(), 0.0, 0.0, 0
    notes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="corpusveil-plan-") as folder:
        writes = dataclasses.replace(run.writes, url=f"{folder}/out", records=f"{folder}/records")
        job = dataclasses.replace(run, release=passing).job(shards, reads, writes)
        records = job.records
        secret = bytes(32)  # of a ledger that there is not; none is made
        with contextlib.suppress(MissingError):
            secret = secret if spending is None else EntryStore.existing(spending.ledger).secret
        account = asked.with_secret(release.account(columns.text), secret)
        noting = AccountPass(
            asked.reading(columns), records, job.record_key, run.reads.on_bad_rows == "drop", account=account,
            corpus=job.corpus,
        )  # fmt: skip
        # machine code and tables are loaded before anything is timed
        job.kernel.apply(Documents(pa.array(["a b c, 1"], pa.large_string()), [b""]))
        for number in chosen:
            task, share = _part(tasks[number])
            for work in (job, noting):
                began = time.process_time()
                work(task)
                seconds += time.process_time() - began if work is job or spending is not None else 0.0
                refuse_failed(records)
            notes.append(noting.note_of(task))
            record = records.read(f"shards/{task.record_name}", Shard)
            counts += Counts.from_record(record.counts, records.url) if record is not None else Counts()
            written += files.size(job.writes.target(task)) or 0
            taken += task.size * share
        nats = pa.concat_tables([read_table(note, ["nats"]) for note in notes])["nats"].to_numpy()
        most = as_float(int(nats.max(initial=0)))
        mean = float(nats.mean()) / SCALE if nats.size and not math.isinf(most) else most
        refused, spent, by_unit = (None, None, ()) if spending is None else _decided(spending, account, notes)
    scale = sum(task.size for task in tasks) / taken if taken else 1.0
    return Forecast(
        len(shards), len(chosen), sum(shard.size for shard in shards), round(counts.documents * scale),
        round(counts.tokens_written * scale), round(written * scale), seconds * scale,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, (mean, most), refused, spent,
        unknown_share=counts.unknown_share, by_unit=by_unit, partial=scale > 1,
        counted=release.counted, choices=tuple(release.choices()),
    )  # fmt: skip


def _part(task: ShardTask) -> tuple[ShardTask, float]:
    """Return the part of a task that is sampled, and its share of the shard."""
    if task.size <= WHOLE_BYTES:
        return task, 1.0
    rows = about_rows(task.url, formats.suffix_of_file(task.url))
    return (dataclasses.replace(task, stop=ROWS), ROWS / rows) if rows > ROWS else (task, 1.0)


def _decided(
    spending: Spending, account: Account, notes: Sequence[str]
) -> tuple[str | None, float | None, tuple[float, ...]]:
    """Return why the sample would be refused, the most that a unit has spent, and what units would have spent."""
    refused, totals = None, list[int]()
    with connected() as (folder, connection):
        before = []
        if files.exists(files.join(spending.ledger, SECRET)):
            before = list(EntryStore.open(spending.ledger, spending.units).entries(folder))
        for number, unit in enumerate(spending.units):
            about = {**account.about, "unit": unit.name}
            planned = write_entry(connection, notes, number, about, f"{folder}/planned-{number}")
            books = Books(connection, [entry for entry in before if entry.about.unit == unit.name], [planned])
            totals += books.totals()
            try:
                refuse_over(spending, books, unit.name)
            except CapError as error:
                refused = str(error)
        totals.sort()
        places = [min(len(totals) - 1, int(share * len(totals))) for share in QUANTILES if totals]
        most, unit_of_most = Books(connection, before).most()
        spent = None if unit_of_most is None else as_float(most)
        return refused, spent, tuple(as_float(totals[place]) for place in places)
