"""Caps on units, and a run's reservation: account, decide, enter, and only then draw.

Everything is entered before anything is drawn, so whatever a crash leaves counts as spent.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpusveil.budget.accounting import INFINITE, SCALE, as_float
from corpusveil.budget.budget import in_full
from corpusveil.choices import OVER_CAP, OverCap
from corpusveil.display import figure, several
from corpusveil.errors import (
    AddressError,
    BadValueError,
    CapError,
    ConflictError,
    MismatchError,
    UnsetError,
    not_a_choice,
)
from corpusveil.ledger.account import Account
from corpusveil.ledger.entries import About, Entry, EntryStore, digest_of, snapshot
from corpusveil.ledger.protocol import Refuse
from corpusveil.ledger.questions import Books, MakeUp, connected, joined, write_entry
from corpusveil.ledger.units import CONTENT, Unit
from corpusveil.storage import files
from corpusveil.storage.rows import Columns

CAPS = {"total": "cap", "largest": "cap_token", "ldp": "cap_ldp"}


def parts_of(cap: float) -> int:
    """Return a cap in parts of 1e-9, below the reading that nothing bounds."""
    return int(min(Decimal(repr(float(cap))) * SCALE, Decimal(INFINITE - 1)))


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that a unit may have spent: ``total`` and ``largest`` in one metric, ``ldp`` over all metrics."""

    total: float | None = None
    largest: float | None = None
    ldp: float | None = None

    def __post_init__(self) -> None:
        for name, option in CAPS.items():
            cap = getattr(self, name)
            if cap is not None and not cap > 0:
                raise BadValueError(f"{option} {cap}: give a number above 0.")

    def sums(self) -> dict[str, int]:
        """Return the caps that sums must not exceed, in parts of 1e-9; no infinite ones."""
        wanted = {name: getattr(self, name) for name in CAPS}
        # what nothing bounds is the reading INFINITE, and above every finite cap
        return {name: parts_of(cap) for name, cap in wanted.items() if cap is not None and cap < math.inf}


@dataclass(frozen=True, slots=True)
class Spending:
    """The ledger of a run, its caps, and the units that they are about.

    Values of units are unique within a ``namespace``. A decision spills into a folder in ``spill`` (by default, the
    machine's temporary one). ``over_cap`` says what becomes of units that would exceed a cap: the run is refused, or
    their documents are left out.
    """

    ledger: str
    caps: Caps = field(default_factory=Caps)
    units: tuple[Unit, ...] = ()
    namespace: str = ""
    spill: str | None = None
    over_cap: OverCap = "refuse"

    def __post_init__(self) -> None:
        if self.ledger and not files.persists(self.ledger):
            raise AddressError(
                f"{self.ledger}: nothing persists here, and a ledger has to; choose a folder or a store."
            )
        if self.over_cap not in OVER_CAP:
            raise not_a_choice("over_cap", self.over_cap, OVER_CAP)
        if not self.units:
            if self.caps != Caps():
                raise UnsetError(
                    "unit: a cap limits what a privacy unit spends; name its column, such as customer_id, or content, "
                    "for which an edited text is another unit."
                )
            object.__setattr__(self, "units", (Unit(CONTENT, None),))
        _check_name("corpus", self.namespace)
        for unit in self.units:
            _check_name("unit", unit.name)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the units, each once."""
        return tuple(dict.fromkeys(unit.column for unit in self.units if unit.column is not None))

    def reading(self, columns: Columns) -> Columns:
        """Return the columns that an account reads: text, id and units. Raises UserError if a unit is the text."""
        self._refuse_text(columns.text)
        return dataclasses.replace(columns, keep=self.columns, others="drop")

    def _refuse_text(self, column: str) -> None:
        if column in self.columns:
            raise ConflictError(
                f"unit {column}: this column has the text; if each text is a unit, name content instead."
            )

    def stated(self) -> dict[str, Any]:
        """Return what a manifest says of caps: the units, with their name space, and the most that one has spent."""
        held, inside = self.caps.sums(), f" in {self.namespace}" if self.namespace else ""
        caps = {name: getattr(self.caps, name) for name in CAPS if name in held}
        return {"caps": {"units": [f"{unit.name}{inside}" for unit in self.units], **caps}} if caps else {}

    def doubts(self) -> list[str]:
        """Return warnings about caps that hold less than a caller may think."""
        if self.caps == Caps():
            return ["no cap: this release is counted, and nothing is refused; give caps with every release."]
        if self.caps.ldp is None:
            return ["cap and cap_token add up within one metric. Set cap_ldp as well, which holds over all metrics."]
        return []

    def promises(self) -> list[str]:
        """Say what the caps promise about units, once the ledger has admitted a run."""
        gone = (
            ["Documents of units that would have exceeded a cap are left out; that one is missing discloses this."]
            if self.over_cap == "drop" and self.caps != Caps()
            else []
        )
        return gone + cap_sentences(self.stated().get("caps", {}))

    def accounting(self, account: Account) -> Account:
        """Return an account of the ledger, which is made if it does not exist, from that of a release."""
        return self.with_secret(account, EntryStore.open(self.ledger, self.units).secret)

    def with_secret(self, account: Account, secret: bytes) -> Account:
        """Return an account of a ledger with this secret, from that of a release."""
        self._refuse_text(account.column)
        _check_name("text column", account.column)
        about = {**account.about, "namespace": self.namespace}
        return dataclasses.replace(account, about=about, units=self.units, namespace=self.namespace, secret=secret)

    @contextlib.contextmanager
    def folder(self) -> Iterator[str]:
        """Provide a local folder for entries and spilled rows, which is removed at the end."""
        try:
            made = tempfile.TemporaryDirectory(prefix="corpusveil-ledger-", dir=self.spill)
        except OSError as error:
            raise AddressError(
                f"spill {self.spill}: nothing can be written here ({error.strerror}); choose an existing local folder."
            ) from None
        with made as folder:
            yield folder


def _check_name(what: str, name: str) -> None:
    if not name.isprintable():
        raise BadValueError(f"{what} {name!r}: a name in a ledger is text on one line; choose another name.")


def reserve(
    spending: Spending, account: Account, notes: Iterable[str], tell: Callable[[str], Any] | None = None
) -> tuple[str, ...]:
    """Enter what documents would spend, and return the digests of the entries; then they may be drawn.

    ``notes`` are the addresses of their accounts. If these have no ids, ``tell`` receives a sentence about those that
    seem to have been drawn before under other noise. Raises CapError if a unit would have spent more than a cap; then
    the ledger stays as it was.
    """
    ledger = EntryStore.existing(spending.ledger)
    if ledger.secret != account.secret:  # a worker of Beam may resolve the address to another place
        raise MismatchError(
            f"{ledger.url}: this is not the ledger for which the documents were accounted; give an address that leads "
            "every worker to the same ledger."
        )
    ledger.check(spending.units, begin=True)
    with spending.folder() as folder, connected(folder) as connection:
        held: list[str] = []
        for number, url in enumerate(notes):
            held.append(os.path.join(folder, f"note-{number}.parquet"))
            snapshot(url, held[-1])
        held = joined(connection, held)
        planned = [
            write_entry(connection, held, number, {**account.about, "unit": unit.name}, f"{folder}/planned-{number}")
            for number, unit in enumerate(spending.units)
        ]
        refuse: Refuse | None = None
        if spending.caps != Caps() or tell is not None:

            def refuse(entries: Sequence[Entry]) -> None:
                books = Books(connection, entries, planned, held)
                if spending.caps != Caps():
                    refuse_over(spending, books)
                if tell is not None:
                    _tell_redrawn(books, tell)

        digests = {digest_of(entry.path, account.secret): entry.path for entry in planned}
        ledger.enter(digests, refuse, folder)
    return tuple(digests)


def _tell_redrawn(books: Books, tell: Callable[[str], Any]) -> None:
    unit, new, every = books.redrawn()
    if new:
        of = "texts" if unit == CONTENT else f"values of {unit}"
        tell(
            f"warning: {new:,} of {several(every, 'document')} get other noise than before, and spend again, although "
            f"this release has drawn {of} of theirs already: without an id, a document whose row or file changed is "
            "another one. Name the column that identifies documents (id)."
        )


def reserve_table(spending: Spending, account: Account, tables: Iterable[pa.Table]) -> tuple[str, ...]:
    """Enter what documents would spend by the rows of their accounts, as ``reserve``."""
    if spending.over_cap == "drop":
        raise ConflictError("over_cap = drop: this leaves out documents of files; of a frame, leave them out before.")
    with spending.folder() as folder:
        path = f"{folder}/rows.parquet"
        writer = None
        for table in tables:
            writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table)
        if writer is None:
            return ()
        writer.close()
        return reserve(spending, account, [path])


def refuse_over(spending: Spending, books: Books) -> None:
    """Raise CapError if a unit with planned noise would have spent more than a cap."""
    caps = spending.caps
    names = metric_names(books.kinds)
    for worst in books.worst(caps.sums(), of_planned=True):
        if worst.over:
            unit = "nats of plain LDP" if worst.reading == "ldp" else f"in {names[worst.metric]}"
            parts = [part for part in books.make_up(worst.unit) if worst.metric in ("", part.about.metric)]
            spent_by = [(part, as_float(part.sums[worst.reading])) for part in parts]
            error = _over(CAPS[worst.reading], caps, worst.reading, as_float(worst.value), unit, spent_by, worst.over)
            error.over = books.over(caps.sums())
            raise error


def _over(
    option: str, caps: Caps, reading: str, value: float, unit: str, spent_by: Sequence[tuple[MakeUp, float]], over: int
) -> CapError:
    """Return the refusal: what the worst unit spent, of what that consists, and what would help."""
    before = "; ".join(
        f"{figure(spent)} by release {part.about.release} ({several(part.noises, 'document')})"
        for part, spent in spent_by
        if not part.planned
    )
    now = [(part, spent) for part, spent in spent_by if part.planned]
    documents = sum(part.noises for part, _ in now)
    copies = documents - min(documents, sum(part.texts for part, _ in now)) if now and now[0][0].texts else 0
    of = several(documents, "document") + (
        f", {several(copies, 'copy', 'copies')} of its other texts" if copies else ""
    )
    name = now[0][0].about.unit if now else CONTENT
    who = "one text" if name == CONTENT else f"one value of {name}"
    many = f" {over:,} {'texts' if name == CONTENT else f'values of {name}'} exceed the cap." if over > 1 else ""
    advice = ["raise the cap", "lower epsilon"]
    if copies:
        advice.insert(0, "let copies have the same noise (duplicates = same-noise) or drop them (duplicates = drop)")
    return CapError(
        f"{option} {in_full(getattr(caps, reading))}: {who} would have spent {figure(value)} {unit}. Spent so far: "
        f"{before or 'nothing'}; this run: {figure(sum(spent for _, spent in now))} ({of}).{many} Nothing was drawn or "
        f"entered; {', '.join(advice)}, or leave documents out."
    )


def metric_names(kinds: Iterable[tuple[About, bool]]) -> dict[str, str]:
    """Return readable names of metrics: a mechanism and its space or store, and a number if two have the same name."""
    of = {"passage-exchange": "store"}
    names = {
        about.metric: f"{about.mechanism} on {of.get(about.mechanism, 'space')} {about.space[:8]}" for about, _ in kinds
    }
    times = Counter(names.values())
    return {metric: name if times[name] == 1 else f"{name}, metric {metric[:8]}" for metric, name in names.items()}


def cap_sentences(caps: Mapping[str, Any]) -> list[str]:
    """Return what caps promise, of the ``caps`` of a manifest."""
    what = {"total": "in one metric", "largest": "on a token, in one metric", "ldp": "nats of plain LDP"}
    return [
        f"Cap: no {'text' if unit.partition(' in ')[0] == CONTENT else f'value of {unit}'} in this release has spent "
        f"more than {in_full(caps[name])} {words} over all releases in this ledger."
        for unit in caps.get("units", ())
        for name, words in what.items()
        if name in caps
    ]
