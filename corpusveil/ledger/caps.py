"""Caps on units, and a run's reservation: account, decide, enter, and only then draw.

Everything is entered before anything is drawn, so whatever a crash leaves counts as spent.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpusveil.budget.accounting import INFINITE, SCALE, as_float
from corpusveil.budget.budget import in_full
from corpusveil.choices import OverCap
from corpusveil.display import figure
from corpusveil.errors import AddressError, CapError, SettingError
from corpusveil.ledger.account import Account, schema
from corpusveil.ledger.entries import Entry, EntryStore, digest_of
from corpusveil.ledger.protocol import Refuse
from corpusveil.ledger.questions import Books, connected, write_entry
from corpusveil.ledger.units import CONTENT, Unit
from corpusveil.storage import files
from corpusveil.storage.corpus import MAY_DIFFER, another
from corpusveil.storage.remote import protocols
from corpusveil.storage.rows import Columns


@dataclass(frozen=True, slots=True)
class Spending:
    """The ledger of a run, its cap, and the units that it is about.

    ``cap`` is the most that a unit may have spent, in nats of plain LDP, over all releases in the ledger; None: they
    are counted only. Values of units are unique within a ``namespace``. ``over_cap`` says what becomes of units that
    would exceed the cap: the run is refused, or their documents are left out.
    """

    ledger: str = field(metadata=another("another ledger, or none"))
    cap: float | None = field(default=None, metadata=MAY_DIFFER)  # units that a start left out stay so
    units: tuple[Unit, ...] = field(default=(), metadata=another("other units"))
    namespace: str = field(default="", metadata=another("another namespace of units"))
    over_cap: OverCap = field(default="refuse", metadata=another("another treatment of units above the cap (over_cap)"))

    def __post_init__(self) -> None:
        if self.ledger and "memory" in protocols(files.resolve(self.ledger)[0]):
            raise AddressError(
                f"{self.ledger}: nothing persists here, and a ledger has to; choose a folder or a store."
            )
        if not self.units:
            if self.cap is not None:
                raise SettingError(
                    "unit: a cap limits what a privacy unit spends; name its column, such as customer_id, or content, "
                    "for which an edited text is another unit."
                )
            object.__setattr__(self, "units", (Unit(CONTENT, None),))
        if self.over_cap == "drop" and any(unit.column is None for unit in self.units):
            raise SettingError(
                "over_cap = drop: with the unit content, that a text is missing says that it was released before; name "
                "a column as the unit, or choose refuse."
            )
        _check_name("corpus", self.namespace)
        for unit in self.units:
            _check_name("unit", unit.name)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(unit.column for unit in self.units if unit.column is not None))

    def reading(self, columns: Columns) -> Columns:
        """Return the columns that an account reads: text, id and units. Raises UserError if a unit is the text."""
        self._refuse_text(columns.text)
        return dataclasses.replace(columns, keep=self.columns)

    def _refuse_text(self, column: str) -> None:
        if column in self.columns:
            raise SettingError(
                f"unit {column}: this column has the text; if each text is a unit, name content instead."
            )

    def stated(self) -> dict[str, Any]:
        """Return what a manifest says of the cap: the units, with their name space, and the most that one has spent."""
        if self.cap is None or math.isinf(self.cap):
            return {}
        inside = f" in {self.namespace}" if self.namespace else ""
        units = [f"{unit.name}{inside}" for unit in self.units]
        return {"cap": {"units": units, "nats": self.cap, "over": self.over_cap}}

    def doubts(self) -> list[str]:
        """Return a warning if nothing is limited."""
        if self.cap is None:
            return ["no cap: this release is counted, and nothing is refused; give a cap with every release."]
        return []

    def promises(self) -> list[str]:
        """Say what the cap promises about units, once the ledger has admitted a run."""
        return cap_sentences(self.stated().get("cap"))

    def accounting(self, account: Account) -> Account:
        """Return an account of the ledger, which is made if it does not exist, from that of a release."""
        return self.with_secret(account, EntryStore.open(self.ledger, self.units).secret)

    def with_secret(self, account: Account, secret: bytes) -> Account:
        """Return an account of a ledger with this secret, from that of a release."""
        self._refuse_text(account.column)
        _check_name("text column", account.column)
        about = {**account.about, "namespace": self.namespace}
        return dataclasses.replace(account, about=about, units=self.units, namespace=self.namespace, secret=secret)


def _check_name(what: str, name: str) -> None:
    if not name.isprintable():
        raise SettingError(f"{what} {name!r}: a name in a ledger is text on one line; choose another name.")


def reserve(spending: Spending, account: Account, tables: Iterable[pa.Table]) -> tuple[str, ...]:
    """Enter the spending of documents, and return the digests of the entries; then they may be drawn.

    ``tables`` are rows of their accounts. Raises CapError if a unit would have spent more than the cap; then the ledger
    stays as it was.
    """
    ledger = EntryStore.existing(spending.ledger)
    if ledger.secret != account.secret:  # a worker of Beam may resolve the address to another place
        raise SettingError(
            f"{ledger.url}: this is not the ledger for which the documents were accounted; give an address that leads "
            "every worker to the same ledger."
        )
    ledger.check(spending.units, begin=True)
    with connected() as (folder, connection):
        rows, given = f"{folder}/rows.parquet", 0
        with pq.ParquetWriter(rows, schema(account.units), compression="zstd") as writer:
            for given, table in enumerate(tables, 1):  # noqa: B007 - how many there were
                writer.write_table(table)
        if not given:
            return ()
        planned = [
            write_entry(connection, [rows], number, {**account.about, "unit": unit.name}, f"{folder}/planned-{number}")
            for number, unit in enumerate(spending.units)
        ]
        refuse: Refuse | None = None
        if spending.cap is not None:

            def refuse(entries: Sequence[Entry]) -> None:
                for entry in planned:
                    same = [other for other in entries if other.about.unit == entry.about.unit]
                    refuse_over(spending, Books(connection, same, [entry]), entry.about.unit)

        digests = {digest_of(entry.path, account.secret): entry.path for entry in planned}
        ledger.enter(digests, refuse, folder)
    return tuple(digests)


def reserve_table(spending: Spending, account: Account, tables: Iterable[pa.Table]) -> tuple[str, ...]:
    """Enter the spending of documents by the rows of their accounts, as ``reserve``."""
    if spending.over_cap == "drop":
        raise SettingError("over_cap = drop: this leaves out documents of files; of a frame, leave them out before.")
    return reserve(spending, account, tables)


def refuse_over(spending: Spending, books: Books, unit: str) -> None:
    """Raise CapError if a unit with planned noise would have spent more than the cap; ``unit`` is the units' name."""
    if spending.cap is None or math.isinf(spending.cap):
        return
    cap = int(min(Decimal(repr(float(spending.cap))) * SCALE, Decimal(INFINITE - 1)))  # below what nothing bounds
    nats, most = books.most()
    if most is None or nats <= cap:
        return
    over = books.over(cap)
    who, several_of = ("one text", "texts") if unit == CONTENT else (f"one value of {unit}", f"values of {unit}")
    many = f" {len(over):,} {several_of} exceed the cap." if len(over) > 1 else ""
    error = CapError(
        f"cap {in_full(spending.cap)}: {who} would have spent {figure(as_float(nats))} nats of plain LDP, "
        f"{figure(as_float(books.spent_by(most)))} of them before this run.{many} Nothing was drawn or entered; "
        "raise the cap, lower epsilon, or leave documents out."
    )
    error.over = over
    raise error


def cap_sentences(cap: Mapping[str, Any] | None) -> list[str]:
    """Return the promises of the ``cap`` of a manifest."""
    if cap is None:
        return []
    promised = [
        f"Cap: no {'text' if unit.partition(' in ')[0] == CONTENT else f'value of {unit}'} in this release has spent "
        f"more than {in_full(cap['nats'])} nats of plain LDP over all releases in this ledger."
        for unit in cap["units"]
    ]
    if cap["over"] == "drop":
        promised.append(
            "Documents of units that would have exceeded the cap are left out. Whether one is missing depends only on "
            "what its unit has spent and on the number of its tokens, and discloses something of these."
        )
    return promised
