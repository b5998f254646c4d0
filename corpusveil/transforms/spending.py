"""A release and a ledger: spending is computed, compared with the caps, and recorded before anything is drawn.

A pass over the corpus, on the release's own engine, writes the spending of each task's documents to the private
records. The entries go into the ledger if no cap forbids it, and only then does the work begin. After a crash they
remain, so that everything that may have been drawn counts as spent.

*Everything that makes noise fresh makes an entry.* The noise of a document is fresh if the release, its key, the text
column, the identity or the text differs; a row holds a fingerprint of exactly these (``Kernel.noise_tags``). The
spending of a document is the sum over different noise of rows with its content, or over different noise of rows with
its identity, whichever is larger. Equal noise is spent once, wherever the file is and however often it was made.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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
    AnEntry,
    Entry,
    Held,
    Ledger,
    Refuse,
    digest_of,
    write_entry,
)
from corpusveil.storage.records import Records
from corpusveil.storage.rows import Batch, Columns
from corpusveil.storage.tasks import ShardTask
from corpusveil.transforms.composed_spending import Composed
from corpusveil.transforms.copies import Drops
from corpusveil.transforms.kernel import Kernel
from corpusveil.transforms.ledger_passes import Where, ask
from corpusveil.transforms.ledger_summary import Names
from corpusveil.transforms.lengths import length_epsilon
from corpusveil.transforms.release import Release
from corpusveil.transforms.shard_notes import Pass, Seen, look
from corpusveil.transforms.spent_documents import Question, Spent

CAPS = {"total": "cap", "largest": "cap_token", "ldp": "cap_ldp"}
_COMPOSED = ("total", False)
"""The reading that is composed instead, if a cap has a delta."""


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
                raise BadValueError(f"{option} {cap}: give a number above 0.")
        if self.delta is not None:
            check_delta(self.delta, "cap_delta")
            if self.total is None:
                raise UnsetError("cap_delta: this is the delta at which the cap holds; give a cap, too.")


@dataclass(frozen=True, slots=True)
class Spending:
    """A ledger and the caps."""

    ledger: str
    caps: Caps = field(default_factory=Caps)


def name_of_corpus(name: str | None, shards: Sequence[InputShard], columns: Columns, spending: Spending | None) -> str:
    """Return the name of a corpus, by default its folder, as in the identities of documents and the ledger.

    Raises UserError for an empty name, and if a ledger needs a name to identify documents by an id.
    """
    if name == "":
        raise UnsetError("The name of the corpus is empty; give a name, or leave it out for the name of the folder.")
    if name is None and columns.id is not None and spending is not None:
        raise UnsetError(
            f"A ledger is given, and documents are identified by {columns.id}: name the corpus. Otherwise an edited "
            "document in a folder of another date would count as a new document."
        )
    return name or folder_of(shards)


@dataclass(frozen=True, slots=True)
class SpendingPass(Pass):
    """Records what the documents of tasks would spend."""

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
        """Return the pass for a release; its notes are the same for a run and for a plan of the run."""
        return cls(
            columns, records, release.key.derive("records"), skip_bad, drops=drops, secret=secret, corpus=corpus,
            kernel=release.kernel(whole_corpus=True), about=_about(release, corpus, columns.text),
        )  # fmt: skip

    def write_note(self, task: ShardTask, batches: Iterator[Batch], address: str) -> dict[str, Any]:
        held = write_entry(address, self._about_of(task), self._tables(task, batches))
        digest, rows = digest_of(address, self.secret) if held is None else (held.digest(self.secret), held.rows)
        return {"entry": digest, "rows": rows}

    def _tables(self, task: ShardTask, batches: Iterator[Batch]) -> Iterator[pa.Table]:
        left_out = None if self.drops is None else self.drops.rows(task)
        for batch in batches:
            if left_out is not None:
                batch.leave_out(left_out)
            if batch.numbers:
                ids = batch.identities(self.corpus, task.relative)
                yield _rows(self.kernel, batch.texts, ids, self.columns.text, self.corpus, self.secret)

    def _about_of(self, task: ShardTask) -> dict[str, Any]:
        return {**self.about, "shard": task.relative, "rows": [task.start, task.stop]}

    def entry_of(self, task: ShardTask, seen: Seen) -> Held:
        """Return the recorded entry of a task."""
        return Held(self.note_of(task), self._about_of(task), seen.rows, known=seen.entry)

    def decides(self) -> Mapping[str, Any]:
        drops = None if self.drops is None else {str(shard): at for shard, at in self.drops.digests.items()}
        return {"about": dict(self.about), "secret": self.secret.hex(), "drops": drops, "form": 2}


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
    """Return what documents would spend, a row for each; missing texts have no row."""
    known, readings = kernel.account(texts, ids, column, corpus, secret)
    tags = map(_binary, (known.noise, known.content, known.identity))
    columns = (*tags, readings.tokens, readings.total, readings.largest, readings.ldp)
    table = pa.table(dict(zip(ROWS.names, map(pa.array, columns), strict=True)), schema=ROWS)
    return table.filter(texts.is_valid()) if texts.null_count else table


def _binary(tags: npt.NDArray[np.uint64]) -> pa.Array:
    data = pa.py_buffer(np.ascontiguousarray(tags).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(FINGERPRINT, len(tags), [None, data])


def metric_of(release: Release) -> str:
    """Return the name of a release's metric, within which readings add up."""
    mechanism = release.mechanism
    what = [mechanism.name, mechanism.parameters(), mechanism.space.digest]
    return sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Reserved:
    """The tasks that were read and entered: by the record's name, the digests of the input and the entry."""

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
    """Enter what the tasks would spend in the ledger; caps are decided on the engine.

    Raises BadShardsError if the input has faults, and UserError if a document would have spent more than a cap; then
    the ledger stays as it was.
    """
    ledger = Ledger.open(spending.ledger)
    job = SpendingPass.of(release, columns, records, corpus, ledger.secret, skip_bad=skip_bad, drops=drops)
    seen = look(job, tasks, engine)
    planned = [job.entry_of(task, seen[task.record_name]) for task in tasks]
    digests = ledger.enter(planned, refusing(spending.caps, planned, Where(engine, records.url)))
    inputs = {name: one.input for name, one in seen.items()}
    names = [task.record_name for task in tasks]
    return Reserved(inputs, dict(zip(names, digests, strict=True)))


def reserve_table(
    spending: Spending, release: Release, column: str, chunks: Sequence[pa.Array], ids: Sequence[Any], corpus: str
) -> None:
    """Enter what the texts of one column would spend, Arrow strings in chunks, [D] in all; then they may be drawn.

    ``ids`` are identities [D], ``corpus`` names the data set, within which an identity is recognized. Raises UserError,
    and leaves the ledger as it was, when a document would have spent more than a cap.
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


def refusing(caps: Caps, planned: Sequence[AnEntry], where: Where | None = None) -> Refuse | None:
    """Return the function that refuses planned entries, given those of a ledger; None if no cap is set."""
    return None if caps == Caps() else lambda entries: refuse_over(caps, entries, planned, where)


def refuse_over(caps: Caps, entries: Sequence[AnEntry], planned: Sequence[AnEntry], where: Where | None = None) -> None:
    """Raise UserError if a document of ``planned`` would exceed a cap, including its spending in the ledger."""
    wanted = [name for name in READINGS if getattr(caps, name) is not None and (name, caps.delta is None) != _COMPOSED]
    question = Question(tuple(wanted), caps.delta, caps.total or 0.0, planned=True)
    answer = ask(question, entries, planned, where)
    for spent in answer.in_order():
        cap = getattr(caps, spent.reading)
        if spent.value > cap:
            called = Names([*entries, *planned])
            unit = "nats of plain LDP" if spent.reading == "ldp" else f"in {called.metric(spent.metric)}"
            _refuse(CAPS[spent.reading], cap, unit, spent.value, spent.before, spent.now)
    found = answer.composed
    if found is not None and caps.total is not None:
        over = "" if found.metrics == 1 else f", over {found.metrics} metrics"
        unit = f"at delta = {caps.delta:g}{over}"
        _refuse("cap", caps.total, unit, found.epsilon, found.before, found.now)


def _refuse(option: str, cap: float, unit: str, spent: float, before: Mapping[str, float], now: float) -> NoReturn:
    told = ", ".join(f"{figure(value)} by release {name}" for name, value in sorted(before.items())) or "none"
    raise CapError(
        f"{option} {written(cap)}: a document would have spent {figure(spent)} {unit}; spent so far: {told}; this "
        f"run: {figure(now)}. Raise the cap, lower the budget or leave documents out."
    )


def worst_composed(
    entries: Iterable[AnEntry], delta: float, planned: Sequence[AnEntry] | None = None, above: float = 0.0
) -> Composed | None:
    """Return the document that has spent most at δ, by content or by identity; None where none is ``above``."""
    return ask(Question((), delta, above, planned is not None), list(entries), planned or ()).composed


def worst(
    entries: Iterable[AnEntry], readings: Sequence[str], planned: Sequence[AnEntry] | None = None
) -> Iterator[Spent]:
    """Yield the largest sum of each reading over different noise, by metric, that any document has; rounded up.

    A document is identified by its content, and by its identity in its corpus. ``planned`` entries count too; with
    them, only their documents are considered.
    """
    question = Question(tuple(readings), planned=planned is not None)
    yield from ask(question, list(entries), planned or ()).in_order()
