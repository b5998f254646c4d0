"""The ledger: the spending of documents, one Parquet file per entry, at any fsspec URL.

An entry holds the spending of one task of one release for each document of its rows. Its digest covers everything,
under a secret in the ledger, and keyed fingerprints recognize documents under any release key. The ledger is as
confidential as the input: anyone who reads its secret can check guesses of documents.

A run enters its spending (``entering``) on any store that can list and remove files, and create a file only if it does
not exist. It writes entries under names that contain the run, reads all entries, and withdraws its own if a cap refuses
them. If two runs do not fit together, the later reader sees the entries of both, since an admitted run never withdraws
its entries. So no cap is exceeded; runs that start at the same moment may all be refused. A run relies on another run's
entry only if it was *kept* (``RUN.kept`` beside the entries); nobody removes it after that.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import re
import secrets
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from corpusveil.errors import (
    BadRecordError,
    CorpusveilError,
    InUseError,
    NotMadeError,
    SecretError,
    UserError,
    VersionError,
)
from corpusveil.storage import files
from corpusveil.storage.parquet import read_batches, read_rows, read_whole, sound
from corpusveil.storage.records import Record

VERSION = 2
"""The format of entries; version 1 did not distinguish noise that was drawn under different columns."""
WITH_LENGTH = 3
"""The format of entries of releases with noisy lengths: a reader of version 2 alone would compose too little."""
SECRET = "secret.key"  # noqa: S105 - a file name
SECRET_BYTES = 32
ENTRIES = "entries"
FINGERPRINT = pa.binary(16)
ROWS = pa.schema(
    [
        ("noise", FINGERPRINT),
        ("content", FINGERPRINT),
        ("identity", FINGERPRINT),
        ("tokens", pa.int64()),
        ("total", pa.float64()),
        ("largest", pa.float64()),
        ("ldp", pa.float64()),
    ]
)
READINGS = ("total", "largest", "ldp")
"""The fingerprints that identify documents."""
_ROWS_AT_ONCE = 1 << 13
_GROUP_ROWS = 1 << 20
"""The rows of a row group, as in the files of earlier versions, so that an entry's bytes are the same."""
_ABOUT = b"corpusveil.ledger"
_NAME = re.compile(r"([0-9a-f]{32})\.([0-9a-f]{16})\.parquet")
_MARK = re.compile(r"([0-9a-f]{16})\.kept")

T = TypeVar("T")


class Versioned(Record):
    """The fields that identify an entry of any version."""

    version: int = 1


class About(Versioned):
    """The origin of an entry: corpus, text column, rows of a shard, release, metric, mechanism and budget.

    ``length_epsilon`` is the part of each total for the noise of a document's length, if any.
    """

    corpus: str
    column: str
    shard: str
    rows: tuple[int, int | None]
    release: str
    metric: str
    mechanism: str
    space: str
    budget: dict[str, Any]
    length_epsilon: float = 0.0


@dataclass(frozen=True, slots=True)
class Entry:
    """The spending of one task of one release.

    ``about`` is its origin: corpus, text column, shard, rows, release (its digest and its key's fingerprint), metric
    (mechanism and space, within which readings add up), budget. ``table`` has a row for each document, ``ROWS``: equal
    noise within a release is spent once. ``name`` is that of its file, if it was read from a file.
    """

    about: Mapping[str, Any]
    table: pa.Table = field(repr=False)
    name: str = field(default="", compare=False)

    @property
    def rows(self) -> int:
        """The number of documents in the entry."""
        return int(self.table.num_rows)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows, a few thousand at a time."""
        for first in range(0, self.rows, _ROWS_AT_ONCE):
            yield self.table.slice(first, _ROWS_AT_ONCE)

    def digest(self, secret: bytes) -> str:
        """Return the keyed digest of the whole entry, which names its file and is in private records."""
        state = _digesting(secret, self.about)
        for name in ROWS.names:
            for chunk in self.table[name].chunks:
                if len(chunk):
                    state.update(_values(chunk))
        return state.hexdigest()

    def data(self) -> bytes:
        """Return the entry as a Parquet file."""
        sink = io.BytesIO()
        pq.write_table(self.table.cast(_of(self.about)), sink, compression="zstd")
        return sink.getvalue()


@dataclass(frozen=True, slots=True)
class Held:
    """An entry that stays in its file: its origin and number of documents; ``name`` is that of its file."""

    address: str
    about: Mapping[str, Any] = field(repr=False)
    rows: int
    name: str = ""
    known: str = ""
    """Its digest, if known."""

    @property
    def table(self) -> pa.Table:
        """All its rows, read now."""
        return read_entry(self.address).table

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows, a few thousand at a time. Raises UserError if the entry is damaged."""
        damaged = _damaged(self.address)
        for schema, batch in read_batches(self.address, damaged, lambda _: ROWS.names):
            if batch is None:
                _about_of(self.address, schema)
            else:
                yield _checked(pa.Table.from_batches([batch]), damaged)

    def digest(self, secret: bytes) -> str:
        """Return the keyed digest of the whole entry."""
        return self.known or read_entry(self.address).digest(secret)


AnEntry = Entry | Held
Refuse = Callable[[Sequence[AnEntry]], None]
"""Raises UserError if the ledger leaves no room for the planned spending."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of a run on the ledger's store: to ``list`` all names, or on one file."""

    what: Literal["list", "read", "create", "remove"]
    name: str = ""
    data: AnEntry | None = None


Steps = Generator[Step, Any, T]
"""Yields steps and receives their outcomes: names, an entry or None, nothing."""


def entering(planned: Mapping[str, AnEntry], run: str, refuse: Refuse | None) -> Steps[None]:
    """Yield the steps by which a run enters its spending: entries by their digests.

    ``refuse`` is None for a run without caps, which never withdraws an entry. It is called again only if the second
    reading finds an entry of another run that the first did not, since fewer entries mean less spending. Raises
    UserError if a cap refuses the run; then its entries are removed.
    """
    seen: dict[str, AnEntry] = {}
    if refuse is not None:
        refuse((yield from _look(seen, ())))
    names = yield Step("list")
    kept = {found[1] for name in names if (found := _MARK.fullmatch(name))}
    there = {found[1] for name in names if (found := _NAME.fullmatch(name)) and found[2] in kept}
    mine = {f"{digest}.{run}.parquet": entry for digest, entry in planned.items() if digest not in there}
    for name, entry in mine.items():
        yield Step("create", name, entry)
    if refuse is not None:
        before = len(seen)
        try:
            entries = yield from _look(seen, mine)
            if len(seen) > before:
                refuse(entries)
        except UserError:
            for name in mine:
                yield Step("remove", name)
            raise
    if mine:
        yield Step("create", f"{run}.kept")


def _look(seen: dict[str, AnEntry], mine: Container[str]) -> Steps[list[AnEntry]]:
    """Return all entries except ``mine``, and read those not ``seen``; entries withdrawn meanwhile are left out."""
    names = [name for name in (yield Step("list")) if name.endswith(".parquet") and name not in mine]
    for name in names:
        if name not in seen and (entry := (yield Step("read", name))) is not None:
            seen[name] = entry
    return [seen[name] for name in names if name in seen]


@dataclass(frozen=True, slots=True)
class Ledger:
    """A ledger at an address. Its secret is made at the first use; parallel first uses share one secret."""

    url: str

    @classmethod
    def open(cls, url: str) -> Ledger:
        """Return the ledger at an address, which is made if it does not exist."""
        ledger = cls(files.absolute(url))
        if files.exists(ledger._address("manifest.json")):
            raise InUseError(
                f"{ledger.url}: this folder has a release, and a ledger needs a separate folder; choose another folder."
            )
        for part in ("", ENTRIES):
            files.sweep(ledger._address(part))
        if not files.exists(ledger._address(SECRET)):
            if files.listing(ledger._address(ENTRIES)):
                raise NotMadeError(
                    f"{ledger.url}: the {SECRET} of the ledger is missing, and documents cannot be recognized "
                    "without it; restore it."
                )
            files.create_bytes(ledger._address(SECRET), secrets.token_bytes(SECRET_BYTES), private=True)
        return ledger

    @classmethod
    def existing(cls, url: str) -> Ledger:
        """Return the ledger at an address. Raises UserError if there is none."""
        ledger = cls(files.absolute(url))
        if not files.exists(ledger._address(SECRET)):
            raise NotMadeError(f"{url}: there is no ledger here (no {SECRET}); check the address.")
        return ledger

    def _address(self, *parts: str) -> str:
        return files.join(self.url, *parts)

    @property
    def secret(self) -> bytes:
        """The key of the fingerprints."""
        secret = files.read_bytes(self._address(SECRET))
        if len(secret) != SECRET_BYTES:
            raise SecretError(
                f"{self._address(SECRET)}: this secret has {len(secret)} bytes instead of {SECRET_BYTES}; restore it "
                "from a copy."
            )
        return secret

    def enter(self, planned: Sequence[AnEntry], refuse: Refuse | None) -> list[str]:
        """Enter the spending of a run, under a unique name; return the entries' digests, in order.

        Raises UserError, after removing the run's entries, if ``refuse`` does.
        """
        secret = self.secret
        digests = [entry.digest(secret) for entry in planned]
        self._do(entering(dict(zip(digests, planned, strict=True)), secrets.token_hex(8), refuse))
        return digests

    def _do(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    outcome = self._step(step)
                except UserError as error:  # a damaged entry
                    step = steps.throw(error)
                else:
                    step = steps.send(outcome)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _step(self, step: Step) -> Any:
        address = self._address(ENTRIES, step.name)
        if step.what == "list":
            return files.listing(self._address(ENTRIES))
        if step.what == "read":
            return self._there(step.name)
        if isinstance(step.data, Held):
            return files.copy_file(step.data.address, address, private=True)
        if step.what == "create":
            return files.create_bytes(address, b"" if step.data is None else step.data.data(), private=True)
        return files.remove(address)

    def names(self) -> list[str]:
        """Return the names of all entries."""
        return [name for name in files.listing(self._address(ENTRIES)) if name.endswith(".parquet")]

    def read(self, name: str) -> Entry:
        """Return one entry. Raises UserError if it is damaged."""
        return read_entry(self._address(ENTRIES, name))

    def held(self, name: str) -> Held:
        """Return one entry, which stays in its file. Raises UserError if it is visibly damaged."""
        address = self._address(ENTRIES, name)
        schema, rows = read_rows(address, _damaged(address))
        return Held(address, _about_of(address, schema), rows, name)

    def _there(self, name: str) -> Held | None:
        """Return one entry, None if it is gone."""
        try:
            return self.held(name)
        except (CorpusveilError, OSError):
            if files.exists(self._address(ENTRIES, name)):
                raise
            return None

    def written_on(self, name: str) -> str:
        """Return the day on which an entry was written, by its store, in UTC, as 2026-11-22; empty if unknown."""
        told = files.info(self._address(ENTRIES, name)) or {}
        for key in ("mtime", "LastModified", "last_modified", "updated", "modified", "created"):
            try:
                when = told[key]
                when = datetime.fromtimestamp(when, UTC) if isinstance(when, (int, float)) else when
                when = datetime.fromisoformat(when) if isinstance(when, str) else when
                return when.astimezone(UTC).date().isoformat()
            except (LookupError, ValueError, TypeError, AttributeError, OSError, OverflowError):
                continue
        return ""

    def is_named_rightly(self, name: str) -> bool:
        """Say whether an entry matches its name; only a holder of the secret can make such an entry."""
        return name.startswith(f"{self.read(name).digest(self.secret)}.")

    def entries(self) -> Iterator[Held]:
        """Yield all entries, which stay in their files; entries withdrawn meanwhile are left out."""
        for name in self.names():
            if (entry := self._there(name)) is not None:
                yield entry


def read_entry(address: str) -> Entry:
    """Return the entry at an address. Raises UserError if it is damaged or has another version."""
    damaged = _damaged(address)

    def columns(schema: pa.Schema) -> list[str]:
        _about_of(address, schema)
        return list(ROWS.names)

    table = read_whole(address, damaged, columns)
    return Entry(_about_of(address, table.schema), _checked(table, damaged))


def write_entry(address: str, about: Mapping[str, Any], tables: Iterable[pa.Table]) -> Entry | None:
    """Write an entry whose rows come in several tables as one file; at most a row group is in memory.

    Returns the entry if it has no more rows than that.
    """
    schema, is_one = _of(about), True
    with files.open_write(address, private=True) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        waiting: list[pa.Table] = []
        for table in tables:
            waiting.append(table)
            while sum(one.num_rows for one in waiting) > _GROUP_ROWS:
                whole = pa.concat_tables(waiting)
                writer.write_table(whole.slice(0, _GROUP_ROWS).combine_chunks().cast(schema))
                waiting, is_one = [whole.slice(_GROUP_ROWS)], False
        rest = pa.concat_tables([ROWS.empty_table(), *waiting]).combine_chunks()
        writer.write_table(rest.cast(schema))
    return Entry(about, rest) if is_one else None


def _of(about: Mapping[str, Any]) -> pa.Schema:
    return ROWS.with_metadata({_ABOUT: json.dumps(dict(about), sort_keys=True).encode()})


def digest_of(address: str, secret: bytes) -> tuple[str, int]:
    """Return the digest and the number of documents of the entry at an address, without holding it in memory."""
    schema, rows = read_rows(address, _damaged(address))
    if rows <= _ROWS_AT_ONCE:
        return read_entry(address).digest(secret), rows
    state = _digesting(secret, _about_of(address, schema))
    for name in ROWS.names:
        for _, batch in read_batches(address, _damaged(address), functools.partial(_only, name)):
            if batch is not None:
                state.update(_values(batch.column(0).cast(ROWS.field(name).type)))
    return state.hexdigest(), rows


def _only(name: str, _: pa.Schema) -> list[str]:
    return [name]


def _digesting(secret: bytes, about: Mapping[str, Any]) -> hashlib.blake2b:
    state = hashlib.blake2b(digest_size=16, key=secret, person=b"ledger entry")
    state.update(json.dumps(dict(about), sort_keys=True).encode() + b"\0")
    return state


def _values(column: pa.Array) -> memoryview:
    width = column.type.bit_width // 8
    return memoryview(column.buffers()[1])[column.offset * width : (column.offset + len(column)) * width]


def _damaged(address: str) -> str:
    return (
        f"{address}: this entry of the ledger is damaged, and spending would be counted too low without it; restore "
        "it from a copy."
    )


def _about_of(address: str, schema: pa.Schema) -> dict[str, Any]:
    """Return the origin of an entry, from its file's schema."""
    damaged = _damaged(address)
    with sound(damaged):
        data = schema.metadata[_ABOUT]
        found = Versioned.of(data)
        if found is None:
            raise BadRecordError(damaged)
        if found.version not in (VERSION, WITH_LENGTH):
            raise VersionError(
                f"{address}: this entry has version {found.version} of the ledger, and this corpusveil reads versions "
                f"{VERSION} and {WITH_LENGTH}; start another ledger. Lower its caps by the spending "
                "that 'ledger show' reports with the corpusveil that wrote this entry."
            )
        about = About.of(data)
        if about is None:
            raise BadRecordError(damaged)
        return about.as_dict()


def _checked(table: pa.Table, damaged: str) -> pa.Table:
    """Return the rows of an entry in their required types."""
    with sound(damaged):
        rows = table.replace_schema_metadata(None).cast(ROWS)
        numbers = [rows[name].to_numpy() for name in ("tokens", *READINGS)]
    if any(column.null_count for column in rows.columns) or not all((one >= 0).all() for one in numbers):
        raise BadRecordError(damaged)
    return rows
