"""A ledger for callers: its address and caps, what units have spent, and a check of its entries."""

from __future__ import annotations

import contextlib
import os
import tempfile
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import pyarrow as pa

from corpusveil.budget.accounting import as_float
from corpusveil.choices import OVER_CAP, OverCap
from corpusveil.display import Card, Shown, Table, figure, several
from corpusveil.errors import (
    ArtifactError,
    MissingError,
    SettingError,
    UserError,
    VersionError,
    either,
    not_a_choice,
    of_other_type,
)
from corpusveil.ledger.caps import Spending
from corpusveil.ledger.entries import About, Entry, EntryStore
from corpusveil.ledger.questions import Books, ReleaseLine, connected
from corpusveil.ledger.units import CONTENT, Unit, fingerprints, units_of
from corpusveil.storage import files
from corpusveil.storage.corpus import Claim
from corpusveil.storage.inputs import Address, addresses
from corpusveil.storage.records import RUN_VERSION, Records, Shard


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger at ``url``, a folder at any fsspec URL, made by its first release; as confidential as the input.

    ``cap`` is the most that a privacy unit, such as a customer, may spend over all releases, in nats of plain LDP.
    Words, passages and spaces add up. A release that would exceed it for any unit is refused before anything is drawn;
    with ``over_cap="drop"``, a release of files leaves out the documents of such units instead. Raises UserError for a
    cap that is not above 0.

    >>> import pyarrow
    >>> ledger = cv.Ledger("ledger", cap=500.0)
    >>> table = pyarrow.table({"customer_id": ["c-7", "c-9"], "text": texts})
    >>> table = cv.privatize(table, release, ["r-1", "r-2"], keep="customer_id", ledger=ledger, unit="customer_id")
    >>> ledger.spent_on("c-7").most <= ledger.spent().most <= 500.0
    True
    """

    url: str
    cap: float | None = field(default=None, kw_only=True)
    over_cap: OverCap = field(default="refuse", kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.url, (str, os.PathLike)) or not str(self.url):
            raise SettingError("url: a ledger is a folder; give its path or URL, as in cv.Ledger('ledger').")
        object.__setattr__(self, "url", files.as_text(self.url))
        if self.cap is not None and (isinstance(self.cap, bool) or not (isinstance(self.cap, Real) and self.cap > 0)):
            raise SettingError(f"cap {self.cap!r}: give a number of nats above 0.")
        if self.over_cap not in OVER_CAP:
            raise not_a_choice("over_cap", self.over_cap, OVER_CAP)

    def spending(self, unit: str | Sequence[str] | Mapping[str, str] | None, namespace: str | None) -> Spending:
        """Return the ledger, its cap and the units in the form that a release uses."""
        cap = self.cap if isinstance(self.cap, int | None) else float(self.cap)  # as JSON has it
        return Spending(self.url, cap, units_of(unit), namespace or "", self.over_cap)

    def spent(self) -> LedgerSummary:
        """Return the spending, release by release, and the most that any unit has spent.

        Raises UserError if there is no ledger, or if an entry is damaged.
        """
        with self._books() as (store, books, entries):
            most, _ = books.most()
            lines = tuple(_line(store, entries, line) for line in books.lines())
            return LedgerSummary(self.url, tuple(store.units()), lines, as_float(most))

    def spent_on(self, value: str | int, unit: str | None = None) -> LedgerSummary:
        """Return the spending of one unit, given by its ``value`` (for the unit content, by the text).

        ``unit`` is its name, required if the ledger has several units; ``"visit=17"`` names it, too. The same value in
        several corpora (``corpus``) is several units, and ``most`` is the largest of theirs. The ledger holds keyed
        fingerprints, so the question needs its secret and the value; anyone with both could check a guess. Raises
        UserError if no such unit is in the ledger, and as ``spent`` does.
        """
        with self._books() as (store, books, entries):
            names = store.units()
            name, equals, rest = str(value).partition("=")
            if unit is None and equals and name in names and names != [CONTENT]:
                unit, value = name, rest
            if not names:
                raise SettingError(f"{self.url}: no release has spent anything in this ledger.")
            if unit not in names and (unit is not None or len(names) > 1):
                raise SettingError(f"unit: name a unit of this ledger, {either(names)}.")
            asked = Unit.parse(unit or names[0])
            if not isinstance(value, (str, int)) or isinstance(value, bool):
                raise of_other_type("value", value, "the value of the unit, a text or a whole number")
            texts, lines, most = pa.array([str(value)], pa.large_string()), list[dict[str, Any]](), 0
            for space in sorted({entry.about.namespace for entry in entries}):
                tag = uuid.UUID(bytes=fingerprints(store.secret, asked, space, texts).tobytes())
                mine = [line for line in books.lines(tag) if line.about.namespace == space]
                lines += [_line(store, entries, line) for line in mine]
                most = max(most, books.spent_by(tag) if mine else 0)
            if not lines:
                raise SettingError(f"{self.url}: no release in this ledger spent anything on this {asked.noun}.")
            return LedgerSummary(self.url, (asked.name,), tuple(lines), as_float(most), of_one_unit=True)

    def verify(self, records: Address | Sequence[Address] = ()) -> LedgerCheck:
        """Check that entries match their names, and that they cover the private ``records`` of releases.

        Raises UserError if there is no ledger, if it is of another version, or if records belong to no run.
        """
        store = EntryStore.existing(self.url)
        folders = [run for folder in addresses(records) for run in _runs(Records(folder))]
        return LedgerCheck(self.url, len(store.names()), tuple(_differences(store, folders)), len(folders))

    @contextlib.contextmanager
    def _books(self) -> Iterator[tuple[EntryStore, Books, list[Entry]]]:
        store = EntryStore.existing(self.url)
        with connected() as (folder, connection):
            entries = list(store.entries(folder))
            yield store, Books(connection, entries), entries


def _line(store: EntryStore, entries: Sequence[Entry], line: ReleaseLine) -> dict[str, Any]:
    """Return a line of a listing: a release of one data set and text column, with the day of its first entry."""
    about = line.about
    days = [store.written_on(entry.name) for entry in entries if entry.about.kind == about.kind]
    return {
        **{name: getattr(about, name) for name in ("namespace", "release", "column", "mechanism", "space")},
        "documents": line.documents, "tokens": line.tokens, "nats": as_float(line.nats),
        "date": min(filter(None, days), default=""),
    }  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class LedgerSummary(Shown):
    """The spending in a ledger, of all ``units`` or of one, by release.

    ``releases`` has a line per data set, release and text column: ``documents`` counts a document once for each noise
    that was drawn for it, ``tokens`` its replaced tokens or passages; ``nats`` are those of the costliest document, or
    the sum of one unit. ``most`` is the most that any unit has spent, in nats of plain LDP over all releases. Numbers
    are shown rounded up to three digits.

    >>> cv.Ledger("ledger").spent().units
    ('customer_id',)
    """

    url: str
    units: tuple[str, ...]
    releases: tuple[dict[str, Any], ...]
    most: float
    of_one_unit: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, for JSON."""
        return {"ledger": self.url, "units": list(self.units), "releases": list(self.releases), "most": self.most}

    def card(self) -> Card:
        units = " or ".join(Unit.parse(name).noun for name in self.units)
        title, of_what = (
            (f"One {units} in", "it has spent")
            if self.of_one_unit
            else (f"All units ({units}) of", f"the {units} that has spent most")
        )
        heads = {
            "documents": "documents drawn", "tokens": "replaced tokens or passages",
            "nats": "nats" if self.of_one_unit else "nats of a document",
        }  # fmt: skip
        columns = ("date", "namespace", "release", "column", "mechanism", "documents", "tokens", "nats")
        lines = [{**line, "mechanism": f"{line['mechanism']} ({line['space'][:8]})"} for line in self.releases]
        table = Table(
            [heads.get(name, name) for name in columns], [[_cell(line[name]) for name in columns] for line in lines]
        )
        most = f"{figure(self.most)} nats of plain LDP over all releases" if self.releases else "nothing"
        return Card(f"{title} ledger {self.url} (confidential)", [(of_what, most)], [table])


def _cell(value: Any) -> str:
    return figure(value) if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _differences(ledger: EntryStore, records: Sequence[Records]) -> Iterator[str]:
    """Yield sentences on entries that do not match their names, and on runs that their entries do not cover.

    Raises UserError for records that belong to no run, or to a run of another version.
    """
    secret = ledger.secret
    held: dict[str, About] = {}
    try:
        ledger.units()
    except ArtifactError as error:
        yield str(error)
    for name in ledger.names():
        with tempfile.TemporaryDirectory(prefix="corpusveil-ledger-") as place:  # one entry at a time
            try:
                entry = ledger.fetched(name, place, secret)
            except VersionError:
                raise
            except UserError as error:
                yield str(error)
                continue
        if entry is not None:
            held[name.split(".")[0]] = entry.about
    for folder in records:
        run = folder.read("run.json", Claim)
        if run is None:
            raise MissingError(
                f"{folder.url}: there are no records of a run here (no run.json); give the folder of private records "
                "that 'privatize' named at its end, by default OUTPUT.records."
            )
        if run.version != RUN_VERSION:
            raise VersionError(
                f"{folder.url}: these records were written by another version of corpusveil; verify them with "
                "that version."
            )
        yield from _uncovered(folder, held)


def _runs(folder: Records) -> list[Records]:
    """Return the records of a run, or those of each run of a schedule; one that was refused has none."""
    there = [name for name in files.listing(folder.url, folders=True) if name.startswith("run-")]
    runs = [Records(folder.address(name)) for name in there]
    return [run for run in runs if {"run.json", "shards"} & {*files.listing(run.url, folders=True)}] or [folder]


def _uncovered(folder: Records, held: Mapping[str, About]) -> Iterator[str]:
    """Yield the shards and documents in the records of a run that the entries do not cover."""
    documents = words = 0
    covering: set[str] = set()
    for name in folder.names("shards"):
        record = folder.read(f"shards/{name}", Shard)
        if record is None or ".piece-" in name:
            continue
        where = f"{folder.url}, shard {record.input.path}"
        if record.ledger is None:
            yield f"{where}: this shard was privatized without a ledger."
            return
        missing = sorted(set(record.ledger) - set(held))
        if missing:
            yield f"{where}: the entry {missing[0]} of the ledger, which covers it, is missing."
            return
        covering |= set(record.ledger)
        documents += record.counts.documents
        words += record.counts.privatized
    for name in sorted(covering):
        about = held[name]
        if documents > about.documents or words > about.tokens:
            yield (
                f"{folder.url}: {documents:,} documents were privatized, and {words:,} of their words replaced; entry "
                f"{name} of the ledger has {about.documents:,} and {about.tokens:,}."
            )


@dataclass(frozen=True, slots=True, repr=False)
class LedgerCheck(Shown):
    """The result of ``Ledger.verify``.

    ``differences`` says where more may have been spent than the ledger records. ``entries`` is the number of its
    entries, and ``records`` the number of folders of records that were compared.

    >>> cv.Ledger("ledger").verify().differences
    ()
    """

    url: str
    entries: int
    differences: tuple[str, ...]
    records: int

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        if self.differences:
            differences = several(len(self.differences), "difference")
            return f"{self.url}: {differences}; it is damaged, or more was spent than it says."
        compared = ", and no difference to the records" if self.records else "; no records were named to compare with"
        return f"{self.url}: {several(self.entries, 'entry', 'entries')}, undamaged{compared}."

    def card(self) -> Card:
        return Card(self.verdict, [("difference", sentence) for sentence in self.differences])


def require_ledger(
    value: Ledger | None, unit: str | Sequence[str] | Mapping[str, str] | None, namespace: str | None
) -> Spending | None:
    """Return the form of a ledger that a release uses. Raises UserError for a value that is not a ledger."""
    if value is None:
        if unit is not None:
            raise SettingError("unit: this is the unit whose spending a ledger counts; give a ledger, too.")
        return None
    if not isinstance(value, Ledger):
        raise of_other_type("ledger", value, "cv.Ledger(URL, cap=...)")
    spending = value.spending(unit, namespace)
    for sentence in spending.doubts():
        warnings.warn(sentence, stacklevel=3)
    return spending
