"""A release and a ledger: what it would spend is known, within the caps, and written down before anything is drawn.

A pass over the corpus, on the release's own engine, notes for each task what its documents would spend, in the private
records. The entries go into the ledger when no cap forbids it, and only then does the work begin: after a crash they
stand, so that what may have been drawn counts as spent. The same release under the same key has the same entries, and
spends nothing new.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.budget.accounting import added
from corpusveil.budget.budget import written
from corpusveil.errors import UserError
from corpusveil.storage import files
from corpusveil.storage.ledger import FINGERPRINT, ROWS, Entry, Ledger, read_entry
from corpusveil.storage.records import Records
from corpusveil.storage.rows import Batch, Columns
from corpusveil.storage.tasks import ShardTask
from corpusveil.transforms.copies import Drops
from corpusveil.transforms.kernel import Kernel
from corpusveil.transforms.passes import Pass, Run
from corpusveil.transforms.release import Release

READINGS = ("total", "largest", "ldp")
CAPS = {"total": "--cap", "largest": "--cap-token", "ldp": "--cap-ldp"}


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that a document may have spent: ``total`` and ``largest`` in one metric, ``ldp`` over all metrics."""

    total: float | None = None
    largest: float | None = None
    ldp: float | None = None

    def __post_init__(self) -> None:
        for name, option in CAPS.items():
            cap = getattr(self, name)
            if cap is not None and not cap > 0:
                raise UserError(f"{option} {cap}: it has to be a number above 0.")


@dataclass(frozen=True, slots=True)
class Spending:
    """A ledger, the caps, and the name under which the corpus stands in it."""

    ledger: str
    corpus: str | None = None
    caps: Caps = field(default_factory=Caps)


@dataclass(frozen=True, slots=True)
class SpendingPass(Pass):
    """Notes what the documents of tasks would spend."""

    kernel: Kernel = field(kw_only=True)
    corpus: str = field(kw_only=True)
    about: str = field(kw_only=True)
    secret: bytes = field(kw_only=True, repr=False)
    drops: Drops | None = None

    def note(self, task: ShardTask, batches: Iterator[Batch]) -> None:
        tables = [ROWS.empty_table()]
        left_out = None if self.drops is None else self.drops.rows(task)
        for batch in batches:
            if left_out is not None:
                batch.leave_out(left_out)
            if batch.numbers:
                ids = batch.ids if batch.ids is not None else [(task.relative, row) for row in batch.numbers]
                tables.append(self._rows(batch.texts, ids))
        about = {**json.loads(self.about), "shard": task.relative, "rows": [task.start, task.stop]}
        entry = Entry(about, pa.concat_tables(tables).combine_chunks())
        files.write_bytes(self.records.address(name_of(task)), entry.data(), private=True)

    def _rows(self, texts: pa.Array, ids: Sequence[Any]) -> pa.Table:
        content, identity, readings = self.kernel.account(texts, ids, self.corpus, self.secret)
        columns = (_binary(content), _binary(identity), readings.tokens, readings.total, readings.largest, readings.ldp)
        table = pa.table(dict(zip(ROWS.names, map(pa.array, columns), strict=True)), schema=ROWS)
        return table.filter(texts.is_valid()) if texts.null_count else table


def _binary(tags: npt.NDArray[np.uint64]) -> pa.Array:
    data = pa.py_buffer(np.ascontiguousarray(tags).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(FINGERPRINT, len(tags), [None, data])


def name_of(task: ShardTask) -> str:
    """Return the file name of what a task would spend, among the records."""
    return f"{task.record_name.removesuffix('.json')}.parquet"


def metric_of(release: Release) -> str:
    """Return what names the metric of a release: within it readings add up."""
    mechanism = release.mechanism
    what = [mechanism.name, mechanism.parameters(), mechanism.space.digest]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]


def reserve(
    spending: Spending,
    release: Release,
    columns: Columns,
    records: Records,
    tasks: Sequence[ShardTask],
    run: Run,
    *,
    skip_bad: bool = False,
    drops: Drops | None = None,
) -> dict[str, str]:
    """Write what the tasks would spend into the ledger; return the input digest of each task by its record's name.

    ``run`` maps a job over tasks on the release's engine and raises what is wrong with the input. Raises UserError, and
    leaves the ledger as it was, when a document would have spent more than a cap.
    """
    ledger = Ledger.open(spending.ledger)
    corpus = spending.corpus or _root(tasks[0])
    about = {
        "corpus": corpus,
        "release": release.name,
        "metric": metric_of(release),
        "mechanism": release.mechanism.name,
        "space": release.mechanism.space.digest,
        "budget": release.budget.as_dict(),
    }
    job = SpendingPass(
        columns, records, release.key.derive("records"), skip_bad, drops=drops,
        kernel=release.kernel(whole_corpus=True), corpus=corpus, about=json.dumps(about), secret=ledger.secret,
    )  # fmt: skip
    run(job, tasks)
    planned = [read_entry(records.address(name_of(task))) for task in tasks]
    refuse_over(spending.caps, ledger.entries(), planned)
    made = [name for entry in planned if (name := ledger.add(entry)) is not None]
    try:
        if made and spending.caps != Caps():  # another release may have been written at the same time
            mine = {entry.name(ledger.secret) for entry in planned}
            refuse_over(spending.caps, ledger.entries(but=mine), planned)
    except UserError:
        for name in made:
            ledger.withdraw(name)
        raise
    return job.seen(tasks)


def _root(task: ShardTask) -> str:
    return task.url.removesuffix(task.relative).rstrip("/")


@dataclass(frozen=True, slots=True)
class Spent:
    """The most that any document has spent: ``by`` reading (in its metric, "" for plain LDP) and who spent it."""

    reading: str
    metric: str
    value: float
    releases: dict[str, float]


def refuse_over(caps: Caps, entries: Iterable[Entry], planned: Sequence[Entry]) -> None:
    """Raise UserError when a document of ``planned`` would have spent more than a cap, with what is in the ledger."""
    wanted = [name for name in READINGS if getattr(caps, name) is not None]
    if not wanted:
        return
    mine = {str(entry.about["release"]) for entry in planned}
    for spent in worst([*entries, *planned], wanted, planned):
        cap = getattr(caps, spent.reading)
        if spent.value > cap:
            before = {name: value for name, value in spent.releases.items() if name not in mine}
            told = ", ".join(f"{written(value)} by release {name}" for name, value in sorted(before.items())) or "none"
            now = written(added(value for name, value in spent.releases.items() if name in mine))
            unit = "nats of plain LDP" if spent.reading == "ldp" else f"in metric {spent.metric}"
            raise UserError(
                f"{CAPS[spent.reading]} {written(cap)}: a document would have spent {written(spent.value)} {unit}; "
                f"spent so far: {told}; this release: {now}. Raise the cap, lower the budget or leave documents out."
            )


def worst(entries: Iterable[Entry], readings: Sequence[str], among: Sequence[Entry] | None = None) -> Iterator[Spent]:
    """Yield the largest sum of each reading over releases, by metric, that any document has; exact, rounded up.

    A document is told by its content, and by its identity in its corpus: the larger sum counts. One release that did
    the same document (content and identity) in several tasks or runs spent it once. ``among`` restricts it to the
    documents of these entries.
    """
    table = _joined(entries)
    for key in ("content", "identity"):
        rows = table
        if among is not None:
            asked = pa.concat_arrays([chunk for one in among for chunk in one.table[key].chunks] or [_none()])
            rows = table.filter(pc.is_in(table[key], value_set=asked))
        for reading in readings:
            metrics = [""] if reading == "ldp" else pc.unique(rows["metric"]).to_pylist()
            for metric in metrics:
                part = rows if reading == "ldp" else rows.filter(pc.equal(rows["metric"], metric))
                if part.num_rows:
                    yield _largest(part, key, reading, str(metric))


def _none() -> pa.Array:
    return pa.array([], FINGERPRINT)


def _joined(entries: Iterable[Entry]) -> pa.Table:
    tables = [ROWS.empty_table().append_column("release", pa.array([], pa.string()))]
    tables[0] = tables[0].append_column("metric", pa.array([], pa.string()))
    for entry in entries:
        size = entry.table.num_rows
        named = entry.table.append_column("release", pa.repeat(pa.scalar(str(entry.about["release"])), size))
        tables.append(named.append_column("metric", pa.repeat(pa.scalar(str(entry.about["metric"])), size)))
    joined = pa.concat_tables(tables)
    keys = ["release", "metric", "content", "identity"]
    grouped = joined.group_by(keys).aggregate([(name, "max") for name in READINGS])
    return grouped.rename_columns([name.removesuffix("_max") for name in grouped.column_names])


def _largest(rows: pa.Table, key: str, reading: str, metric: str) -> Spent:
    sums = rows.group_by(key).aggregate([(reading, "sum")])
    values = sums[f"{reading}_sum"].to_numpy()
    near = sums[key].filter(pa.array(values >= values.max() * (1 - 1e-9))).combine_chunks()[:1000]
    found = rows.filter(pc.is_in(rows[key], value_set=near))
    by_document: dict[bytes, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in found.select([key, "release", reading]).to_pylist():
        by_document[one[key]][one["release"]].append(one[reading])
    exact = {
        document: added(value for values in releases.values() for value in values)
        for document, releases in by_document.items()
    }
    document = max(exact, key=lambda one: (exact[one], one))
    releases = {release: added(values) for release, values in by_document[document].items()}
    return Spent(reading, metric, exact[document], releases)


def summary(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Return for each corpus and release: documents, tokens, and the largest readings of one document."""
    groups: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[str(entry.about["corpus"]), str(entry.about["release"])].append(entry)
    lines = []
    for (corpus, release), group in sorted(groups.items()):
        rows = distinct(group)
        about = group[0].about
        line = {"corpus": corpus, "release": release, "mechanism": about["mechanism"], "metric": about["metric"]}
        line |= {"documents": rows.num_rows, "tokens": pc.sum(rows["tokens"]).as_py() or 0}
        lines.append(line | {name: written(pc.max(rows[name]).as_py() or 0.0) for name in READINGS})
    return lines


def distinct(entries: Sequence[Entry]) -> pa.Table:
    """Return the rows of one release's entries, each document (content and identity) once."""
    rows = pa.concat_tables([entry.table for entry in entries] or [ROWS.empty_table()])
    grouped = rows.group_by(["content", "identity"]).aggregate([(name, "max") for name in ("tokens", *READINGS)])
    return grouped.rename_columns([name.removesuffix("_max") for name in grouped.column_names])


@dataclass(frozen=True, slots=True)
class Difference:
    """What a ledger and records say otherwise; ``too_low`` when more may have been spent than the ledger says."""

    sentence: str
    too_low: bool


def differences(ledger: Ledger, records: Sequence[Records]) -> Iterator[Difference]:
    """Yield entries that are not what their names say, and shards whose records do not agree with the entries."""
    entries: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for name in ledger.names():
        try:
            entry = ledger.read(name)
        except UserError as error:
            yield Difference(str(error), too_low=True)
            continue
        if entry.name(ledger.secret) != name:
            yield Difference(f"Entry {name} was changed, or is another ledger's.", too_low=True)
        entries[str(entry.about["release"]), str(entry.about["shard"])].append(entry)
    for folder in records:
        run = folder.read("run.json")
        if run is None:
            raise UserError(f"{folder.url}: there are no records of a run here (no run.json).")
        release = f"{run['release'][:16]}-{run['key'][:16]}"
        for name in folder.names("shards"):
            record = folder.read(f"shards/{name}")
            if record is None or ".piece-" in name:
                continue
            shard, counts = record["input"]["path"], record["counts"]
            rows = distinct(entries[release, shard])
            found = rows.num_rows, int(pc.sum(rows["tokens"]).as_py() or 0)
            expected = counts["documents"], counts["privatized"]
            if found != expected:
                yield Difference(
                    f"{folder.url}, shard {shard}: {expected[0]:,} documents, {expected[1]:,} tokens were privatized, "
                    f"the ledger has {found[0]:,} and {found[1]:,}.",
                    too_low=found[0] < expected[0] or found[1] < expected[1],
                )
