"""The reading, writing, time and spending of a release, measured on some of its shards before anything is released.

Sampled shards go through the real work, under a throwaway key, into a folder that is deleted.
"""

from __future__ import annotations

import dataclasses
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.choices import OnBadRows
from corpusveil.display import Card, Shown, figure
from corpusveil.errors import UserError
from corpusveil.sampling.keys import Key
from corpusveil.storage import files, formats
from corpusveil.storage.durable import refuse_failed
from corpusveil.storage.inputs import InputShard, find_shards
from corpusveil.storage.ledger import READINGS, Entry, Held, Ledger, read_entry
from corpusveil.storage.reading import settled
from corpusveil.storage.records import Records, Shard
from corpusveil.storage.rows import BLOCK_ROWS, Columns
from corpusveil.storage.tasks import ShardTask, plan
from corpusveil.text.policy import DROP
from corpusveil.transforms.copies import Copies, content_tags, count
from corpusveil.transforms.counts import Counts
from corpusveil.transforms.document_figures import DocumentFigure, figure_of, sentences
from corpusveil.transforms.job import ShardJob
from corpusveil.transforms.ledger_summary import Names
from corpusveil.transforms.release import Release
from corpusveil.transforms.released import refuse_denoised
from corpusveil.transforms.spending import (
    Spending,
    SpendingPass,
    name_of_corpus,
    refuse_over,
    worst,
)

SAMPLED = 3
"""The number of sampled shards, spread over all shards."""
WHOLE_BYTES = 16 << 20
"""Of a shard with more bytes, only four blocks of rows are sampled."""
ROWS = 4 * BLOCK_ROWS
MIB = 1 << 20


@dataclass(frozen=True, slots=True, repr=False)
class Forecast(Shown):
    """The cost of a release. Figures of the corpus are scaled up from ``sampled`` shards by their bytes.

    ``readings`` has the mean and the largest value of each reading among the sampled documents. ``refused`` says why
    the ledger's caps refuse the release. ``spent`` is the most that a document in the ledger has spent, by metric.
    ``copies`` is known if all documents were compared.
    """

    shards: int
    sampled: int
    bytes_read: int
    documents: int
    tokens: int
    bytes_written: int
    cpu_seconds: float
    memory: int
    readings: dict[str, tuple[float, float]]
    refused: str | None
    spent: dict[str, float]
    copies: Copies | None = None
    composed: DocumentFigure | None = None
    """The largest spending of a sampled document in (epsilon, delta), if the release has a delta."""
    own_words: int | None = None
    """Words of the documents themselves, if a length policy releases another number of words."""

    def lines(self, workers: int) -> list[str]:
        """Return the forecast in words, for this many processes."""
        told = [
            f"{self.shards} shards, {self.bytes_read / MIB:,.1f} MiB; {self.sampled} were sampled",
            f"about {self.documents:,} documents, {self.tokens:,} tokens, {self.bytes_written / MIB:,.1f} MiB written",
        ]
        if self.own_words is not None:
            told.append(f"before documents are padded or cut, they have about {self.own_words:,} words")
        each = f"{self.cpu_seconds / workers:,.1f} s on {workers} processes of {self.memory / MIB:,.0f} MiB"
        told.append(f"about {self.cpu_seconds:,.1f} CPU seconds: {each}")
        names = {"total": "epsilons in total", "largest": "epsilon of a token", "ldp": "nats of plain LDP"}
        for name, (mean, largest) in self.readings.items():
            told.append(f"a document spends {mean:.4g} {names[name]} on average, {largest:.4g} at most in the sample")
        if self.composed is not None:
            told += sentences([self.composed], "of the costliest document in the sample")
        for place, value in self.spent.items():
            told.append(f"the most that a document in the ledger has spent: {figure(value)} {place}")
        if self.refused is not None:
            told.append(f"the ledger would refuse this release: {self.refused}")
        if self.copies is not None:
            told.append(self.copies.sentence())
        return told

    def card(self) -> Card:
        """Return the forecast in words, for one process."""
        return Card("Plan of a release (private: figures of the corpus)", [("", self.lines(1))])


def forecast(
    release: Release,
    inputs: Sequence[str],
    *,
    columns: Columns | None = None,
    root: str | None = None,
    corpus: str | None = None,
    format: str = "same",
    on_bad_rows: OnBadRows = "fail",
    spending: Spending | None = None,
) -> Forecast:
    """Measure the cost of a release of the inputs, on up to ``SAMPLED`` shards.

    With ``spending``, the cost includes the ledger's pass, and the ledger's caps are checked for the sample of this
    release, under its own key, so earlier spending of this release is not counted again. Raises UserError if the
    sampled shards have faults.
    """
    columns = columns or Columns()
    shards = find_shards(inputs, root)
    suffix = formats.suffix_of(format)
    columns = settled(columns, shards, suffix)
    if spending is not None:
        refuse_denoised(shards)
    corpus = name_of_corpus(corpus, shards, columns, spending)
    tasks = plan(shards, suffix, None)
    chosen = sorted({round(at) for at in np.linspace(0, len(tasks) - 1, min(SAMPLED, len(tasks)))})
    secret = b"\0" * 32 if spending is None else _secret(spending)
    passing = dataclasses.replace(release, key=Key.generate())
    counts, taken, seconds, written = Counts(), 0.0, 0.0, 0
    entries: list[Entry] = []
    with tempfile.TemporaryDirectory(prefix="corpusveil-plan-") as folder:
        records = Records(f"{folder}/records")
        record_key = passing.key.derive("records")
        job = ShardJob(
            passing.kernel(whole_corpus=True), columns, f"{folder}/out", records, passing.digest,
            passing.key.fingerprint(), record_key, on_bad_rows, corpus=corpus,
        )  # fmt: skip
        noting = SpendingPass.of(release, columns, records, corpus, secret, skip_bad=on_bad_rows == "quarantine")
        _warm(job)
        for number in chosen:
            task, share = _part(tasks[number])
            began = time.process_time()
            job(task)
            seconds += time.process_time() - began
            refuse_failed(records)
            began = time.process_time()
            noting(task)
            seconds += (time.process_time() - began) if spending is not None else 0.0
            entries.append(read_entry(noting.note_of(task)))
            record = records.read(f"shards/{task.record_name}", Shard)
            counts += Counts.of(record.counts, records.url) if record is not None else Counts()
            written += files.size(job.target(task)) or 0
            taken += task.size * share
    scale = sum(task.size for task in tasks) / taken if taken else 1.0
    refused, spent = _told(spending, entries)
    return Forecast(
        len(shards), len(chosen), sum(shard.size for shard in shards), round(counts.documents * scale),
        round(counts.tokens_written * scale), round(written * scale), seconds * scale,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, _readings(entries), refused, spent,
        composed=_dearest(release, entries),
        own_words=None if release.length is None else round(_own_words(release, counts) * scale),
    )  # fmt: skip


def _own_words(release: Release, counts: Counts) -> int:
    """Return the number of words before a length policy pads or cuts documents."""
    return int(counts.roles[release.policy.actions() != DROP].sum())


def _warm(job: ShardJob) -> None:
    """Load the machine code and the tables before anything is timed."""
    job.kernel.privatize(pa.array(["a b c, 1"], pa.large_string()), [b""], "text")


def _part(task: ShardTask) -> tuple[ShardTask, float]:
    """Return the part of a task that is sampled, and its share of the shard."""
    if task.size <= WHOLE_BYTES:
        return task, 1.0
    with files.open_read(task.url) as file:
        rows = formats.find(formats.form_of(task.url)).rows(file, task.url)
    return (dataclasses.replace(task, stop=ROWS), ROWS / rows) if rows > ROWS else (task, 1.0)


def _secret(spending: Spending) -> bytes:
    """Return the secret of an existing ledger; no secret is made."""
    try:
        return Ledger.existing(spending.ledger).secret
    except UserError:
        return b"\0" * 32


def _readings(entries: Sequence[Entry]) -> dict[str, tuple[float, float]]:
    found = {}
    for name in READINGS:
        values: npt.NDArray[np.float64] = np.concatenate([entry.table[name].to_numpy() for entry in entries])
        found[name] = (float(values.mean()), float(values.max())) if values.size else (0.0, 0.0)
    return found


def _dearest(release: Release, entries: Sequence[Entry]) -> DocumentFigure | None:
    """Return the largest spending of a document at the release's delta; None without a delta."""
    if release.delta is None or not release.mechanism.private:
        return None
    tokens: dict[float, int] = {}  # of equal shares more tokens spend more
    for entry in entries:
        spent = (entry.table[name].to_pylist() for name in ("largest", "tokens"))
        for largest, words in zip(*spent, strict=True):
            tokens[largest] = max(tokens.get(largest, 0), words)
    figures = [
        figure_of(release.mechanism, {largest: words}, release.delta, release.distance, release.length)
        for largest, words in tokens.items()
        if words
    ]
    return max(figures, key=lambda one: one.epsilon, default=None)


def _told(spending: Spending | None, planned: Sequence[Entry]) -> tuple[str | None, dict[str, float]]:
    """Return why the sample would be refused, and the most that a document in the ledger has spent, by metric."""
    if spending is None:
        return None, {}
    before: list[Held] = []
    if files.exists(files.join(spending.ledger, "secret.key")):
        before = list(Ledger.existing(spending.ledger).entries())
    refused = None
    try:
        refuse_over(spending.caps, before, planned)
    except UserError as error:
        refused = str(error)
    spent: dict[str, Any] = {}
    called = Names(before)
    for one in worst(before, ["total"]):
        place = f"in {called.metric(one.metric)}"
        spent[place] = max(spent.get(place, 0.0), one.value)
    return refused, spent


def count_duplicates(shards: Sequence[InputShard], columns: Columns) -> Copies:
    """Count the documents of a corpus that are copies of others.

    Equal means the same bytes. This holds 24 bytes per document, under a throwaway key.
    """
    secret = Key.generate().derive("copies")
    found = []
    for shard in shards:
        form = formats.find(formats.form_of(shard.url))
        with files.open_read(shard.url) as file:
            batches = form.batches(file, shard.url, columns)
            found += [content_tags(secret, batch.texts, batch.numbers) for batch in batches]
    return count(found)
