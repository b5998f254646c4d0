"""A release and a ledger: what it would spend is known, within the caps, and written down before anything is drawn.

A pass over the corpus, on the release's own engine, notes for each task what its documents would spend, in the private
records. The entries go into the ledger when no cap forbids it, and only then does the work begin: after a crash they
stand, so that what may have been drawn counts as spent.

*Everything that makes noise fresh makes an entry.* The noise of a document is fresh when the release, its key, the
text column, the identity or the text is another one; a row holds a fingerprint of exactly these
(``Kernel.noise_tags``). What a document spent is the sum over different noise of rows with its content, and over
different noise of rows with its identity: the larger sum counts. Equal noise was spent once, wherever the file lies and
however often it was made.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.budget.accounting import added
from corpusveil.budget.budget import written
from corpusveil.errors import BadValueError, CapError, NotMadeError, UnsetError, UserError, VersionError
from corpusveil.storage.engine import Engine
from corpusveil.storage.inputs import InputShard, folder_of
from corpusveil.storage.ledger import FINGERPRINT, ROWS, VERSION, Entry, Ledger, Refuse, read_entry
from corpusveil.storage.records import RUN_VERSION, Records, Run, Shard
from corpusveil.storage.rows import Batch, Columns
from corpusveil.storage.tasks import ShardTask
from corpusveil.transforms.copies import Drops
from corpusveil.transforms.kernel import Kernel
from corpusveil.transforms.release import Release
from corpusveil.transforms.shard_notes import Pass, look

READINGS = ("total", "largest", "ldp")
CAPS = {"total": "cap", "largest": "cap_token", "ldp": "cap_ldp"}


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
                raise BadValueError(f"{option} {cap}: it has to be a number above 0.")


@dataclass(frozen=True, slots=True)
class Spending:
    """A ledger and the caps."""

    ledger: str
    caps: Caps = field(default_factory=Caps)


def name_of_corpus(name: str | None, shards: Sequence[InputShard], columns: Columns, spending: Spending | None) -> str:
    """Return the name of a corpus, by default its folder: it is in the identities of documents and in the ledger.

    Raises UserError for an empty one, and where a ledger could not tell documents by an id without one.
    """
    if name == "":
        raise UnsetError("The corpus' name is empty; give another, or none for the folder of the corpus.")
    if name is None and columns.id is not None and spending is not None:
        raise UnsetError(
            f"A ledger, and documents known by their {columns.id}: name the corpus, since in a folder of another date "
            "an edited document would count as a new one."
        )
    return name or folder_of(shards)


@dataclass(frozen=True, slots=True)
class SpendingPass(Pass):
    """Notes what the documents of tasks would spend."""

    name: ClassVar[str] = "spending"
    suffix: ClassVar[str] = ".parquet"

    kernel: Kernel = field(kw_only=True)
    corpus: str = field(kw_only=True)
    about: Mapping[str, Any] = field(kw_only=True)
    secret: bytes = field(kw_only=True, repr=False)
    drops: Drops | None = None

    @classmethod
    def of(
        cls,
        release: Release,
        columns: Columns,
        records: Records,
        corpus: str,
        secret: bytes,
        *,
        skip_bad: bool = False,
        drops: Drops | None = None,
    ) -> SpendingPass:
        """Return the pass for a release; what it notes is the same for a run and for a plan of it."""
        return cls(
            columns, records, release.key.derive("records"), skip_bad, drops=drops, secret=secret, corpus=corpus,
            kernel=release.kernel(whole_corpus=True), about=_about(release, corpus, columns.text),
        )  # fmt: skip

    def noted(self, task: ShardTask, batches: Iterator[Batch]) -> bytes:
        tables = [ROWS.empty_table()]
        left_out = None if self.drops is None else self.drops.rows(task)
        for batch in batches:
            if left_out is not None:
                batch.leave_out(left_out)
            if batch.numbers:
                ids = batch.identities(self.corpus, task.relative)
                tables.append(_rows(self.kernel, batch.texts, ids, self.columns.text, self.corpus, self.secret))
        about = {**self.about, "shard": task.relative, "rows": [task.start, task.stop]}
        return Entry(about, pa.concat_tables(tables).combine_chunks()).data()

    def decides(self) -> Mapping[str, Any]:
        drops = None if self.drops is None else {str(shard): at for shard, at in self.drops.digests.items()}
        return {"about": dict(self.about), "secret": self.secret.hex(), "drops": drops}


def _about(release: Release, corpus: str, column: str) -> dict[str, Any]:
    return {
        "version": VERSION,
        "corpus": corpus,
        "column": column,
        "release": release.name,
        "metric": metric_of(release),
        "mechanism": release.mechanism.name,
        "space": release.mechanism.space.digest,
        "budget": release.budget.as_dict(),
    }


def _rows(kernel: Kernel, texts: pa.Array, ids: Sequence[Any], column: str, corpus: str, secret: bytes) -> pa.Table:
    """Return what documents would spend, a row each; missing texts are none."""
    known, readings = kernel.account(texts, ids, column, corpus, secret)
    tags = map(_binary, (known.noise, known.content, known.identity))
    columns = (*tags, readings.tokens, readings.total, readings.largest, readings.ldp)
    table = pa.table(dict(zip(ROWS.names, map(pa.array, columns), strict=True)), schema=ROWS)
    return table.filter(texts.is_valid()) if texts.null_count else table


def _binary(tags: npt.NDArray[np.uint64]) -> pa.Array:
    data = pa.py_buffer(np.ascontiguousarray(tags).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(FINGERPRINT, len(tags), [None, data])


def metric_of(release: Release) -> str:
    """Return what names the metric of a release: within it readings add up."""
    mechanism = release.mechanism
    what = [mechanism.name, mechanism.parameters(), mechanism.space.digest]
    return sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Reserved:
    """What was looked at and entered: of each task, by its record's name, the digests of its input and its entry."""

    inputs: dict[str, str]
    entries: dict[str, str]


def reserve(
    spending: Spending,
    release: Release,
    columns: Columns,
    records: Records,
    tasks: Sequence[ShardTask],
    engine: Engine,
    *,
    corpus: str,
    skip_bad: bool = False,
    drops: Drops | None = None,
) -> Reserved:
    """Enter what the tasks would spend in the ledger.

    Raises BadShardsError for what is wrong with the input and UserError when a document would have spent more than a
    cap; then the ledger is as it was.
    """
    ledger = Ledger.open(spending.ledger)
    job = SpendingPass.of(release, columns, records, corpus, ledger.secret, skip_bad=skip_bad, drops=drops)
    inputs = look(job, tasks, engine)
    planned = [read_entry(job.note_of(task)) for task in tasks]
    digests = ledger.enter(planned, refusing(spending.caps, planned))
    names = [task.record_name for task in tasks]
    return Reserved(inputs, dict(zip(names, digests, strict=True)))


def reserve_table(
    spending: Spending, release: Release, column: str, chunks: Sequence[pa.Array], ids: Sequence[Any], corpus: str
) -> None:
    """Enter what the texts of one column would spend, Arrow strings in chunks, [D] in all; then they may be drawn.

    ``ids`` are identities [D], ``corpus`` names the data set, within which an identity is known again. Raises
    UserError, and leaves the ledger as it was, when a document would have spent more than a cap.
    """
    ledger, kernel, about = Ledger.open(spending.ledger), release.kernel(), _about(release, corpus, column)
    planned: list[Entry] = []
    first = 0
    for chunk in chunks:
        last = first + len(chunk)
        rows = _rows(kernel, chunk, ids[first:last], column, corpus, ledger.secret)
        planned.append(Entry({**about, "shard": "", "rows": [first, last]}, rows))
        first = last
    ledger.enter(planned, refusing(spending.caps, planned))


def refusing(caps: Caps, planned: Sequence[Entry]) -> Refuse | None:
    """Return what refuses planned entries beside those of a ledger; None where no cap is set."""
    return None if caps == Caps() else lambda entries: refuse_over(caps, entries, planned)


@dataclass(frozen=True, slots=True)
class Spent:
    """The most that any document has spent: by reading (in its metric, "" for plain LDP), and in which releases.

    ``before`` is what releases spent by noise that is not planned, ``now`` what the planned noise spends.
    """

    reading: str
    metric: str
    value: float
    before: dict[str, float]
    now: float


def refuse_over(caps: Caps, entries: Iterable[Entry], planned: Sequence[Entry]) -> None:
    """Raise UserError when a document of ``planned`` would have spent more than a cap, with what is in the ledger."""
    wanted = [name for name in READINGS if getattr(caps, name) is not None]
    for spent in worst(entries, wanted, planned):
        cap = getattr(caps, spent.reading)
        if spent.value > cap:
            before = sorted(spent.before.items())
            told = ", ".join(f"{written(value)} by release {name}" for name, value in before) or "none"
            unit = "nats of plain LDP" if spent.reading == "ldp" else f"in metric {spent.metric}"
            raise CapError(
                f"{CAPS[spent.reading]} {written(cap)}: a document would have spent {written(spent.value)} {unit}; "
                f"spent so far: {told}; this run: {written(spent.now)}. Raise the cap, lower the budget or leave "
                "documents out."
            )


def worst(entries: Iterable[Entry], readings: Sequence[str], planned: Sequence[Entry] | None = None) -> Iterator[Spent]:
    """Yield the largest sum of each reading over different noise, by metric, that any document has; rounded up.

    A document is told by its content, and by its identity in its corpus. With ``planned`` entries these count too, and
    only their documents are looked at.
    """
    table = _joined(entries, planned or ())
    asked = table if planned is None else table.filter(table["planned"])
    for key in ("content", "identity"):
        rows = table.filter(pc.is_in(table[key], value_set=pc.unique(asked[key])))
        kinds = [(name, "max") for name in (*READINGS, "planned")]
        rows = rows.group_by(["release", "metric", "noise", key]).aggregate(kinds)
        rows = rows.rename_columns([name.removesuffix("_max") for name in rows.column_names])
        for reading in readings:
            metrics = [""] if reading == "ldp" else pc.unique(rows["metric"]).to_pylist()
            for metric in metrics:
                part = rows if reading == "ldp" else rows.filter(pc.equal(rows["metric"], metric))
                if part.num_rows:
                    yield _largest(part, key, reading, str(metric))


def _joined(entries: Iterable[Entry], planned: Iterable[Entry]) -> pa.Table:
    schema = ROWS.append(pa.field("release", pa.string())).append(pa.field("metric", pa.string()))
    tables = [schema.append(pa.field("planned", pa.bool_())).empty_table()]
    for group, flag in ((entries, False), (planned, True)):
        for entry in group:
            table = entry.table
            for name, value in (("release", entry.about["release"]), ("metric", entry.about["metric"])):
                table = table.append_column(name, pa.repeat(pa.scalar(str(value)), table.num_rows))
            tables.append(table.append_column("planned", pa.repeat(pa.scalar(flag), table.num_rows)))
    return pa.concat_tables(tables)


def _largest(rows: pa.Table, key: str, reading: str, metric: str) -> Spent:
    sums = rows.group_by(key).aggregate([(reading, "sum")])
    values = sums[f"{reading}_sum"].to_numpy()
    near = sums[key].filter(pa.array(values >= values.max() * (1 - 1e-9))).combine_chunks()[:1000]
    found = rows.filter(pc.is_in(rows[key], value_set=near))
    by_document: dict[bytes, dict[tuple[bool, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in found.select([key, "planned", "release", reading]).to_pylist():
        by_document[one[key]][one["planned"], one["release"]].append(one[reading])
    exact = {
        document: added(value for values in spent.values() for value in values)
        for document, spent in by_document.items()
    }
    document = max(exact, key=lambda one: (exact[one], one))
    spent = by_document[document]
    before = {release: added(values) for (is_planned, release), values in spent.items() if not is_planned}
    now = added(value for (is_planned, _), values in spent.items() if is_planned for value in values)
    return Spent(reading, metric, exact[document], before, now)


def summary(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Return for each corpus, release and text column: documents, tokens, and the largest readings of one document."""
    groups: dict[tuple[str, str, str], list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[str(entry.about["corpus"]), str(entry.about["release"]), str(entry.about["column"])].append(entry)
    lines = []
    for (corpus, release, column), group in sorted(groups.items()):
        rows = distinct(group)
        about = group[0].about
        line = {"corpus": corpus, "release": release, "column": column, "mechanism": about["mechanism"]}
        line |= {"metric": about["metric"], "documents": rows.num_rows, "tokens": pc.sum(rows["tokens"]).as_py() or 0}
        lines.append(line | {name: written(pc.max(rows[name]).as_py() or 0.0) for name in READINGS})
    return lines


def distinct(entries: Sequence[Entry]) -> pa.Table:
    """Return the rows of one release's entries, each document (noise and identity) once."""
    rows = pa.concat_tables([entry.table for entry in entries] or [ROWS.empty_table()])
    grouped = rows.group_by(["noise", "identity"]).aggregate([(name, "max") for name in ("tokens", *READINGS)])
    return grouped.rename_columns([name.removesuffix("_max") for name in grouped.column_names])


@dataclass(frozen=True, slots=True)
class Difference:
    """What a ledger and records say otherwise; ``too_low`` when more may have been spent than the ledger says."""

    sentence: str
    too_low: bool


def differences(ledger: Ledger, records: Sequence[Records]) -> Iterator[Difference]:
    """Yield entries that are not what their names say, and shards that the entries named in their records don't cover.

    Raises UserError for records of no run, or of a run of another version.
    """
    secret = ledger.secret
    held: dict[str, tuple[int, int]] = {}
    for name in ledger.names():
        try:
            entry = ledger.read(name)
        except UserError as error:
            yield Difference(str(error), too_low=True)
            continue
        digest = entry.digest(secret)
        if not name.startswith(f"{digest}."):
            yield Difference(f"Entry {name} was changed, or is another ledger's.", too_low=True)
        held[digest] = entry.table.num_rows, int(pc.sum(entry.table["tokens"]).as_py() or 0)
    for folder in records:
        run = folder.read("run.json", Run)
        if run is None:
            raise NotMadeError(f"{folder.url}: there are no records of a run here (no run.json).")
        if run.version != RUN_VERSION:
            raise VersionError(
                f"{folder.url}: these records are of another version of corpusveil; verify them with that."
            )
        for name in folder.names("shards"):
            record = folder.read(f"shards/{name}", Shard)
            if record is not None and ".piece-" not in name:
                yield from _uncovered(f"{folder.url}, shard {record.input.path}", record, held)


def _uncovered(where: str, record: Shard, held: Mapping[str, tuple[int, int]]) -> Iterator[Difference]:
    """Yield what of a shard's record the entries do not cover."""
    names = record.ledger
    if names is None:
        yield Difference(f"{where}: this was privatized without a ledger.", too_low=True)
        return
    missing = [name for name in names if name not in held]
    for name in missing:
        yield Difference(f"{where}: the ledger's entry {name} is missing, which covers it.", too_low=True)
    if missing:
        return
    found = tuple(sum(held[name][place] for name in names) for place in (0, 1))
    expected = record.counts.documents, record.counts.privatized
    if found != expected:
        yield Difference(
            f"{where}: {expected[0]:,} documents, {expected[1]:,} tokens were privatized, the ledger has {found[0]:,} "
            f"and {found[1]:,}.",
            too_low=found[0] < expected[0] or found[1] < expected[1],
        )
