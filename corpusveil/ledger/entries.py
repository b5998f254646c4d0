"""The ledger's files: an entry is an immutable Parquet file, named by a keyed digest that is checked when it is read.

An entry holds what one release of one corpus spends, for one kind of unit: a row for each unit and noise, sorted, so
that equal spending makes equal files, whatever the engine, its workers and the shards of the input.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pydantic import Field

from corpusveil.errors import (
    AddressError,
    ArtifactError,
    CorpusveilError,
    DataError,
    MissingError,
    SettingError,
    VersionError,
)
from corpusveil.ledger.protocol import Refuse, enter, entries_of, kept_of, lost_of
from corpusveil.ledger.units import Unit, part
from corpusveil.storage import files
from corpusveil.storage.parquet import opened, sound
from corpusveil.storage.records import Line, Record, record_at
from corpusveil.storage.tasks import keyed_digest

VERSION = 2
"""The format of a ledger."""
SECRET = "secret.key"  # noqa: S105 - a file name
SECRET_BYTES = 32
UNITS = "ledger.json"
ENTRIES = "entries"
ABOUT = b"corpusveil.ledger"
_RESTORE = "restore this file alone from a copy, since a copy of the whole ledger lacks the entries made since then."
NUMBERS = ("tokens", "nats")
ROWS = pa.schema([("unit", pa.uuid()), ("noise", pa.uuid()), *((name, pa.int64()) for name in NUMBERS)])
"""A row for each unit and noise; fingerprints are keyed, and nats are in parts of 1e-9 (``budget.accounting``)."""


class Header(Record):
    """``ledger.json``: the format, and the names of the units that every entry accounts for."""

    version: int
    units: list[Line]


class Versioned(Record):
    """The field that identifies an entry of any version."""

    version: int = 1


class About(Versioned):
    """The origin of an entry. ``documents`` and ``tokens`` count all documents that were accounted, copies too."""

    unit: Line
    namespace: Line
    column: Line
    release: Line
    mechanism: Line
    space: Line
    budget: dict[str, Any]
    documents: int = Field(ge=0)
    tokens: int = Field(ge=0)

    @property
    def kind(self) -> tuple[str, ...]:
        """The fields that are equal in all entries of one line of a listing."""
        return self.unit, self.namespace, self.release, self.column


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry in a local file: ``path``, what it is about, and its name in the ledger, if any."""

    path: str
    about: About = field(repr=False)
    name: str = ""


@dataclass(frozen=True, slots=True)
class EntryStore:
    """A ledger at an address. Its secret is made by its first use, and its units are set by its first reservation."""

    url: str

    @classmethod
    def open(cls, url: str, units: Sequence[Unit]) -> EntryStore:
        """Return the ledger at an address, which is made if it does not exist.

        Raises UserError for a ledger that accounts for other units.
        """
        ledger = cls._at(url)
        if files.exists(ledger.address("manifest.json")):
            raise AddressError(
                f"{ledger.url}: this folder has a release, and a ledger needs a separate folder; choose another folder."
            )
        for folder in ("", ENTRIES):
            files.sweep(ledger.address(folder))
        if not files.exists(ledger.address(SECRET)):
            if files.listing(ledger.address(ENTRIES)):
                raise MissingError(
                    f"{ledger.url}: the {SECRET} of the ledger is missing, and units cannot be recognized without it; "
                    f"{_RESTORE}"
                )
            files.create_bytes(ledger.address(SECRET), secrets.token_bytes(SECRET_BYTES), private=True)
        ledger.check(units)
        return ledger

    def check(self, units: Sequence[Unit], *, begin: bool = False) -> None:
        """Raise UserError if the ledger accounts for other units; ``begin`` one without entries with these."""
        names = [unit.name for unit in units]
        if begin and not files.listing(self.address(ENTRIES)):
            files.create_bytes(self.address(UNITS), Header(version=VERSION, units=names).data(), private=True)
        there = self.units()
        if there != names and (there or begin):
            raise SettingError(
                f"{self.url}: this ledger accounts for the unit {' and '.join(there)}, and this release for "
                f"{' and '.join(names)}. Name the ledger's (NAME=COLUMN for a column of another name) or start another "
                "ledger."
            )
        if (kept := self.kept()) and (of := self._unit_of(kept[0])) not in (*names, ""):
            raise ArtifactError(
                f"{self.address(UNITS)}: this file names other units than the entries, which are about {of}; {_RESTORE}"
            )

    @classmethod
    def existing(cls, url: str) -> EntryStore:
        """Return the ledger at an address. Raises UserError if there is none."""
        ledger = cls._at(url)
        if not files.exists(ledger.address(SECRET)):
            raise MissingError(f"{url}: there is no ledger here (no {SECRET}); check the address.")
        return ledger

    @classmethod
    def _at(cls, url: str) -> EntryStore:
        ledger = cls(files.absolute(url))
        files.refuse_links(ledger.address(ENTRIES))
        return ledger

    def address(self, *parts: str) -> str:
        return files.join(self.url, *parts)

    @property
    def secret(self) -> bytes:
        secret = files.read_bytes(self.address(SECRET))
        if len(secret) != SECRET_BYTES:
            raise SettingError(
                f"{self.address(SECRET)}: this secret has {len(secret)} bytes instead of {SECRET_BYTES}; {_RESTORE}"
            )
        return secret

    def units(self) -> list[str]:
        """Return the names of the units that all entries account for, none before the first.

        Raises UserError if they are damaged.
        """
        address = self.address(UNITS)
        damaged = f"{address}: this file of the ledger is damaged or missing; {_RESTORE}"
        header = record_at(address, Header, damaged)
        if header is None:
            if not (names := self.names()):
                return []
            about_of(self.address(ENTRIES, names[0]))  # says so if the ledger is of another version
        if header is None or not header.units:
            raise ArtifactError(damaged)
        if header.version != VERSION:
            raise _of_other_version(address, header.version)
        return header.units

    def names(self) -> list[str]:
        return entries_of(self.listed())

    def listed(self) -> list[str]:
        """Return the names of all files. Raises UserError for an entry that is gone or under another name.

        No sum would have it.
        """
        names = files.listing(self.address(ENTRIES))
        if lost_of(names):
            names = files.listing(self.address(ENTRIES))  # a run can enter and be kept while another lists
        for run in lost_of(names):
            raise ArtifactError(
                f"{self.address(ENTRIES, f'{run}.kept')}: the entries of this run are gone, and spending would be "
                "counted too low without them; restore them from a copy."
            )
        for name in sorted({name for name in names if name.endswith(".parquet")} - set(entries_of(names))):
            raise ArtifactError(
                f"{self.address(ENTRIES, name)}: this is not the name of an entry, as the ledger wrote it; give the "
                "file its former name, or remove it if the ledger has it under that name, too."
            )
        return names

    def kept(self) -> list[str]:
        """Return the names of the entries that nobody removes any more."""
        return kept_of(files.listing(self.address(ENTRIES)))

    def _unit_of(self, name: str) -> str:
        """Return the unit of an entry, empty if it is damaged, which only matters to those who read all of it."""
        with contextlib.suppress(DataError, ArtifactError):
            return about_of(self.address(ENTRIES, name)).unit
        return ""

    def fetched(self, name: str, folder: str, secret: bytes) -> Entry | None:
        """Return an entry as a file in a local folder, None if it was withdrawn.

        Raises UserError if the entry is not the one that its name says.
        """
        address, path = self.address(ENTRIES, name), os.path.join(folder, name)
        try:
            if not os.path.exists(path):
                snapshot(address, path)
            if not name.startswith(f"{digest_of(path, secret)}."):
                with contextlib.suppress(DataError, ArtifactError):  # but not that it is of another version
                    about_of(path, address)
                raise ArtifactError(_damaged(address))
            about = about_of(path, address)
        except (CorpusveilError, OSError):
            if files.exists(address):
                raise
            return None
        return Entry(path, about, name)

    def entries(self, folder: str) -> Iterator[Entry]:
        """Yield all entries as files in a local folder; entries withdrawn meanwhile are left out."""
        secret = self.secret
        for name in self.names():
            if (entry := self.fetched(name, folder, secret)) is not None:
                yield entry

    def enter(self, planned: Mapping[str, str], refuse: Refuse | None, folder: str) -> None:
        """Enter the spending of a run, under a name of its own: local files of entries, by their digests.

        Entries are fetched into the local ``folder``. Raises UserError, after removing the run's entries, if ``refuse``
        does.
        """
        enter(_Files(self, folder, self.secret), planned, secrets.token_hex(8), refuse)

    def written_on(self, name: str) -> str:
        """Return the day on which an entry was written, by its store, in UTC, as 2026-11-22; empty if unknown."""
        with contextlib.suppress(ValueError, OverflowError, OSError):  # a time that no calendar has
            if (when := files.written(files.info(self.address(ENTRIES, name)) or {})) is not None:
                return datetime.fromtimestamp(when, UTC).date().isoformat()
        return ""


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a ledger as a run's protocol has them; entries are fetched into a local ``folder``."""

    ledger: EntryStore
    folder: str
    secret: bytes = field(repr=False)

    def listed(self) -> list[str]:
        return self.ledger.listed()

    def read(self, name: str) -> Entry | None:
        return self.ledger.fetched(name, self.folder, self.secret)

    def create(self, name: str, path: str | None = None) -> None:
        address = self.ledger.address(ENTRIES, name)
        if path is None:
            files.create_bytes(address, b"", private=True)
        else:
            files.copy_file(path, address, private=True)

    def remove(self, name: str) -> None:
        files.remove(self.ledger.address(ENTRIES, name))


def snapshot(url: str, path: str) -> None:
    """Bring a file to a local path, where its removal at the address does not reach it."""
    if files.is_local(url):
        with contextlib.suppress(OSError):  # another disk, or a file system without links
            os.link(files.resolve(url)[1], path)
            return
    files.copy_file(url, path, private=True)


def digest_of(path: str, secret: bytes) -> str:
    """Return the keyed digest of a local file, which names an entry; only a holder of the secret can compute it."""
    return keyed_digest(path, part(secret, b"entry"))


def header_of(about: About) -> str:
    """Return the header of an entry as the text in its file."""
    return json.dumps(about.model_dump(mode="json"), sort_keys=True)


def about_of(path: str, address: str = "") -> About:
    """Return the header of the entry in a file. Raises UserError if it is not sound."""
    address = address or path
    damaged = _damaged(address)
    with files.open_read(path) as file, sound(damaged):
        parquet = opened(file)
        data = (parquet.metadata.metadata or {})[ABOUT]
        version = Versioned.parse(data)
        if version is not None and version.version != VERSION:
            raise _of_other_version(address, version.version)
        about = About.parse(data)
        groups = [parquet.metadata.row_group(number) for number in range(parquet.num_row_groups)]
        columns = [group.column(number).statistics for group in groups for number in range(group.num_columns)]
        wrong = [shown.null_count or (shown.physical_type == "INT64" and shown.min < 0) for shown in columns if shown]
        if about is None or not parquet.schema_arrow.equals(ROWS) or any(wrong):
            raise ArtifactError(damaged)
        return about


def _damaged(address: str) -> str:
    return (
        f"{address}: this entry of the ledger is damaged or belongs to another ledger, and spending would be counted "
        f"too low without it; {_RESTORE}"
    )


def _of_other_version(address: str, version: int) -> VersionError:
    return VersionError(
        f"{address}: this ledger has version {version}, and this corpusveil reads version {VERSION}. Start another "
        "ledger, and lower its caps by the spending that 'ledger show' reports with the corpusveil that wrote this one."
    )
