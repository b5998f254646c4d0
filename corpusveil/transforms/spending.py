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
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.budget.accounting import added
from corpusveil.budget.budget import written
from corpusveil.budget.composition import check_delta
from corpusveil.display import figure
from corpusveil.errors import BadValueError, CapError, UnsetError
from corpusveil.storage.engine import Engine
from corpusveil.storage.inputs import InputShard, folder_of
from corpusveil.storage.ledger import (
    FINGERPRINT,
    READINGS,
    ROWS,
    VERSION,
    WITH_LENGTH,
    Entry,
    Ledger,
    Refuse,
    read_entry,
)
from corpusveil.storage.records import Records
from corpusveil.storage.rows import Batch, Columns
from corpusveil.storage.tasks import ShardTask
from corpusveil.transforms.composed_spending import Composed, Told, largest_composed
from corpusveil.transforms.copies import Drops
from corpusveil.transforms.kernel import Kernel
from corpusveil.transforms.ledger_summary import Names
from corpusveil.transforms.lengths import length_epsilon
from corpusveil.transforms.release import Release
from corpusveil.transforms.shard_notes import Pass, look

PART_ROWS = 1 << 20
"""Documents are compared in parts of about so many rows: beyond the entries themselves memory does not grow."""
CAPS = {"total": "cap", "largest": "cap_token", "ldp": "cap_ldp"}
_COMPOSED = ("total", False)
"""The reading that is composed instead, where a cap has a delta."""


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that a document may have spent: ``total`` and ``largest`` in one metric, ``ldp`` over all metrics.

    With ``delta`` the ``total`` is an epsilon at this delta, over all metrics (``composed_spending.py``).
    """

    total: float | None = None
    largest: float | None = None
    ldp: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        for name, option in CAPS.items():
            cap = getattr(self, name)
            if cap is not None and not cap > 0:
                raise BadValueError(f"{option} {cap}: it has to be a number above 0.")
        if self.delta is not None:
            check_delta(self.delta, "cap_delta")
            if self.total is None:
                raise UnsetError("cap_delta: it says at which delta the cap holds; give a cap, too.")


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
    of_length = length_epsilon(release.length)
    return {
        "version": WITH_LENGTH if of_length else VERSION,
        "corpus": corpus,
        "column": column,
        "release": release.name,
        "metric": metric_of(release),
        "mechanism": release.mechanism.name,
        "space": release.mechanism.space.digest,
        "budget": release.budget.as_dict(),
        **({"length_epsilon": of_length} if of_length else {}),
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
    wanted = [name for name in READINGS if getattr(caps, name) is not None and (name, caps.delta is None) != _COMPOSED]
    entries = list(entries)
    for spent in worst(entries, wanted, planned):
        cap = getattr(caps, spent.reading)
        if spent.value > cap:
            called = Names([*entries, *planned])
            unit = "nats of plain LDP" if spent.reading == "ldp" else f"in {called.metric(spent.metric)}"
            _refuse(CAPS[spent.reading], cap, unit, spent.value, spent.before, spent.now)
    if caps.delta is not None and caps.total is not None:
        found = worst_composed(entries, caps.delta, planned, above=caps.total)
        if found is not None:
            over = "" if found.metrics == 1 else f", over {found.metrics} metrics"
            unit = f"at delta = {caps.delta:g}{over}"
            _refuse("cap", caps.total, unit, found.epsilon, found.before, found.now)


def _refuse(option: str, cap: float, unit: str, spent: float, before: Mapping[str, float], now: float) -> NoReturn:
    told = ", ".join(f"{figure(value)} by release {name}" for name, value in sorted(before.items())) or "none"
    raise CapError(
        f"{option} {written(cap)}: a document would have spent {figure(spent)} {unit}; spent so far: {told}; this run: "
        f"{figure(now)}. Raise the cap, lower the budget or leave documents out."
    )


def worst_composed(
    entries: Iterable[Entry], delta: float, planned: Sequence[Entry] | None = None, above: float = 0.0
) -> Composed | None:
    """Return the document that has spent most at δ, by content or by identity; None where none is ``above``."""
    best: Composed | None = None
    for key, rows, tolds in _documents(entries, planned):
        found = largest_composed(rows, tolds, key, delta, above if best is None else best.epsilon)
        best = best if found is None else found
    return best


def worst(entries: Iterable[Entry], readings: Sequence[str], planned: Sequence[Entry] | None = None) -> Iterator[Spent]:
    """Yield the largest sum of each reading over different noise, by metric, that any document has; rounded up.

    A document is told by its content, and by its identity in its corpus. With ``planned`` entries these count too, and
    only their documents are looked at.
    """
    for key, rows, tolds in _documents(entries, planned):
        metrics = np.array([told.metric for told in tolds])[rows["told"].to_numpy()]
        for reading in readings:
            for metric in [""] if reading == "ldp" else sorted(set(metrics.tolist())):
                part = rows if reading == "ldp" else rows.filter(pa.array(metrics == metric))
                if part.num_rows:
                    yield _largest(part, tolds, key, reading, metric)


def _documents(
    entries: Iterable[Entry], planned: Sequence[Entry] | None
) -> Iterator[tuple[str, pa.Table, Sequence[Told]]]:
    """Yield what tells documents, and a row for each noise and document: what it spent, and whether it is planned.

    Its column ``told`` says which of the releases that are yielded, too, a row is of.
    """
    table, tolds = _joined(entries, planned or ())
    asked = table if planned is None else table.filter(table["planned"])
    kinds = [(name, "max") for name in ("tokens", *READINGS, "planned")]
    parts = -(-table.num_rows // PART_ROWS)
    for key in ("content", "identity"):
        by_key = table.drop_columns("identity" if key == "content" else "content")
        wanted = pc.unique(asked[key])
        for part in range(parts):
            rows = by_key.filter(pa.array(_first_bytes(table[key]) % parts == part)) if parts > 1 else by_key
            rows = rows if planned is None else rows.filter(pc.is_in(rows[key], value_set=wanted))
            rows = rows.group_by(["told", "noise", key], use_threads=False).aggregate(kinds)
            yield key, rows.rename_columns([name.removesuffix("_max") for name in rows.column_names]), tolds


def _first_bytes(tags: pa.ChunkedArray) -> npt.NDArray[np.uint16]:
    """Return two bytes of each fingerprint, which are as good as random; uint16 [N]."""
    chunks = [np.frombuffer(one.buffers()[1], dtype=np.uint16).reshape(-1, 8)[one.offset :][: len(one), 0]
              for one in tags.chunks if len(one)]  # fmt: skip
    return np.concatenate(chunks)


def _joined(entries: Iterable[Entry], planned: Iterable[Entry]) -> tuple[pa.Table, list[Told]]:
    more = (("told", pa.int32()), ("planned", pa.bool_()))
    tables = [pa.schema([*ROWS, *more]).empty_table()]
    tolds: dict[Told, int] = {}
    for group, flag in ((entries, False), (planned, True)):
        for entry in group:
            about = entry.about
            release, metric, mechanism = (str(about[name]) for name in ("release", "metric", "mechanism"))
            told = Told(release, metric, mechanism, float(about.get("length_epsilon", 0.0)))
            table, values = entry.table, (tolds.setdefault(told, len(tolds)), flag)
            for (name, kind), value in zip(more, values, strict=True):
                table = table.append_column(name, pa.repeat(pa.scalar(value, kind), table.num_rows))
            tables.append(table)
    return pa.concat_tables(tables), list(tolds)


def _largest(rows: pa.Table, tolds: Sequence[Told], key: str, reading: str, metric: str) -> Spent:
    sums = rows.group_by(key).aggregate([(reading, "sum")])
    values = sums[f"{reading}_sum"].to_numpy()
    near = sums[key].filter(pa.array(values >= values.max() * (1 - 1e-9))).combine_chunks()[:1000]
    found = rows.filter(pc.is_in(rows[key], value_set=near))
    by_document: dict[bytes, dict[tuple[bool, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in found.select([key, "planned", "told", reading]).to_pylist():
        by_document[one[key]][one["planned"], tolds[one["told"]].release].append(one[reading])
    exact = {
        document: added(value for values in spent.values() for value in values)
        for document, spent in by_document.items()
    }
    document = max(exact, key=lambda one: (exact[one], one))
    spent = by_document[document]
    before = {release: added(values) for (is_planned, release), values in spent.items() if not is_planned}
    now = added(value for (is_planned, _), values in spent.items() if is_planned for value in values)
    return Spent(reading, metric, exact[document], before, now)
