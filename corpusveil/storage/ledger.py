"""The ledger: what was spent on which documents, one Parquet file an entry, at any fsspec URL.

An entry holds what one task of one release spends on each document of its rows. Its digest covers all of it, under a
secret that lies in the ledger, and documents are recognised by keyed fingerprints under any release key. The ledger is
as confidential as the input: whoever reads its secret can check guesses of documents.

How a run enters what it will spend (``entering``), on a store that creates a file only where none is, lists and
removes: it writes entries of its own, under names that hold the run, looks at all entries, and takes its own back when
a cap refuses them. Of two runs that fit only one at a time, whichever looks last sees the entries of both: an admitted
run never takes its entries back. So no cap is exceeded; runs that start at the same moment may all be refused. A run
relies on an entry of another only where that one was *kept* (``RUN.kept`` beside the entries), after which nobody
removes it.
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
"""The form of entries; version 1 did not tell apart noise that was drawn under different columns."""
WITH_LENGTH = 3
"""The form of entries of releases whose lengths cost something: who reads version 2 alone would compose too little."""
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
"""What documents are compared by."""
_ROWS_AT_ONCE = 1 << 13
_GROUP_ROWS = 1 << 20
"""Of a row group; the files of earlier versions have as many, so an entry's bytes are the same."""
_ABOUT = b"corpusveil.ledger"
_NAME = re.compile(r"([0-9a-f]{32})\.([0-9a-f]{16})\.parquet")
_MARK = re.compile(r"([0-9a-f]{16})\.kept")

T = TypeVar("T")


class Versioned(Record):
    """What tells an entry of any version."""

    version: int = 1


class About(Versioned):
    """Of what an entry is: corpus, text column, rows of a shard, release, metric, and by which mechanism and budget.

    ``length_epsilon`` is what each total includes for the noise of a document's length, where that is released so.
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
    """What one task of one release spends.

    ``about`` says of what: corpus, text column, shard, rows, release (its digest and its key's fingerprint), metric
    (mechanism and space, within which readings add up), budget. ``table`` has a row a document, ``ROWS``: noise that is
    equal within a release was spent once. ``name`` is that of its file, where it was read from one.
    """

    about: Mapping[str, Any]
    table: pa.Table = field(repr=False)
    name: str = field(default="", compare=False)

    @property
    def rows(self) -> int:
        """How many documents the entry has."""
        return int(self.table.num_rows)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows, a few thousand at a time."""
        for first in range(0, self.rows, _ROWS_AT_ONCE):
            yield self.table.slice(first, _ROWS_AT_ONCE)

    def digest(self, secret: bytes) -> str:
        """Return the keyed digest of all that the entry says: what its file is called by, and private records."""
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
    """An entry that stays in its file: of what it is, and how many documents it has; ``name`` is that of its file."""

    address: str
    about: Mapping[str, Any] = field(repr=False)
    rows: int
    name: str = ""
    known: str = ""
    """Its digest, where that is known."""

    @property
    def table(self) -> pa.Table:
        """All its rows, read now."""
        return read_entry(self.address).table

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows, a few thousand at a time. Raises UserError when the entry is damaged."""
        damaged = _damaged(self.address)
        for schema, batch in read_batches(self.address, damaged, lambda _: ROWS.names):
            if batch is None:
                _about_of(self.address, schema)
            else:
                yield _checked(pa.Table.from_batches([batch]), damaged)

    def digest(self, secret: bytes) -> str:
        """Return the keyed digest of all that the entry says."""
        return self.known or read_entry(self.address).digest(secret)


AnEntry = Entry | Held
Refuse = Callable[[Sequence[AnEntry]], None]
"""Raises UserError when what is in the ledger leaves no room for what is planned."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a run does at the ledger's store: to ``list`` all names, or to one file."""

    what: Literal["list", "read", "create", "remove"]
    name: str = ""
    data: AnEntry | None = None


Steps = Generator[Step, Any, T]
"""Yields steps and is sent their outcomes: names, an entry or None, nothing."""


def entering(planned: Mapping[str, AnEntry], run: str, refuse: Refuse | None) -> Steps[None]:
    """Yield the steps by which a run enters what it will spend: entries by their digests.

    ``refuse`` None stands for a run without caps, which never takes anything back. It is asked again only where the
    second look finds an entry of another run that the first did not: of fewer entries no document spends more. Raises
    UserError when a cap refuses the run; then nothing of its own is left.
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
    """Return all entries but ``mine``, and read those not ``seen``; one that is taken back meanwhile is none."""
    names = [name for name in (yield Step("list")) if name.endswith(".parquet") and name not in mine]
    for name in names:
        if name not in seen and (entry := (yield Step("read", name))) is not None:
            seen[name] = entry
    return [seen[name] for name in names if name in seen]


@dataclass(frozen=True, slots=True)
class Ledger:
    """A ledger at an address. Its secret is made with its first use; of several at once, all use one."""

    url: str

    @classmethod
    def open(cls, url: str) -> Ledger:
        """Return the ledger at an address, which is made there when there is none."""
        ledger = cls(files.absolute(url))
        if files.exists(ledger._address("manifest.json")):
            raise InUseError(
                f"{ledger.url}: this folder has a release, and a ledger needs a folder of its own; choose "
                "another folder."
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
        """Return the ledger at an address. Raises UserError when none is there."""
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
        """Enter what a run will spend, under a name of its own; return the entries' digests, in their order.

        Raises UserError, with nothing of it left, when ``refuse`` does.
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
        """Return one entry. Raises UserError when it is damaged."""
        return read_entry(self._address(ENTRIES, name))

    def held(self, name: str) -> Held:
        """Return one entry, which stays in its file. Raises UserError when it can be seen to be damaged."""
        address = self._address(ENTRIES, name)
        schema, rows = read_rows(address, _damaged(address))
        return Held(address, _about_of(address, schema), rows, name)

    def _there(self, name: str) -> Held | None:
        """Return one entry, None when it is gone."""
        try:
            return self.held(name)
        except (CorpusveilError, OSError):
            if files.exists(self._address(ENTRIES, name)):
                raise
            return None

    def written_on(self, name: str) -> str:
        """Return the day that an entry was written, by its store, in UTC, as 2026-11-22; empty where unknown."""
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
        """Say whether an entry is what its name says; only who has the secret can make one that is."""
        return name.startswith(f"{self.read(name).digest(self.secret)}.")

    def entries(self) -> Iterator[Held]:
        """Yield all entries, which stay in their files; one that is taken back meanwhile is none."""
        for name in self.names():
            if (entry := self._there(name)) is not None:
                yield entry


def read_entry(address: str) -> Entry:
    """Return the entry at an address. Raises UserError when it is damaged or of another version."""
    damaged = _damaged(address)

    def columns(schema: pa.Schema) -> list[str]:
        _about_of(address, schema)
        return list(ROWS.names)

    table = read_whole(address, damaged, columns)
    return Entry(_about_of(address, table.schema), _checked(table, damaged))


def write_entry(address: str, about: Mapping[str, Any], tables: Iterable[pa.Table]) -> Entry | None:
    """Write an entry whose rows come in several tables, as one file; no more than a row group is held.

    Returns the entry where it has no more rows than that.
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
    """Return the digest of the entry at an address, and how many documents it has, without holding it whole."""
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
    """Return of what an entry is, by its file's schema."""
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
    """Return the rows of an entry as they have to be."""
    with sound(damaged):
        rows = table.replace_schema_metadata(None).cast(ROWS)
        numbers = [rows[name].to_numpy() for name in ("tokens", *READINGS)]
    if any(column.null_count for column in rows.columns) or not all((one >= 0).all() for one in numbers):
        raise BadRecordError(damaged)
    return rows
