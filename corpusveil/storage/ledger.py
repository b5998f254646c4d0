"""The ledger: what was spent on which documents, one Parquet file an entry, at any fsspec URL.

An entry holds what one task of one release spends on each document of its rows. Its name is a digest of its content
keyed by a secret that lies in the ledger, so writing it again changes nothing, and documents are recognised by keyed
fingerprints under any release key. Entries are only ever created. The ledger is as confidential as the input: whoever
reads its secret can check guesses of documents.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpusveil.errors import CorpusveilError, UserError
from corpusveil.storage import files
from corpusveil.storage.parquet import read_whole, sound
from corpusveil.storage.shapes import parsed

SECRET = "secret.key"  # noqa: S105 - a file name
SECRET_BYTES = 32
ENTRIES = "entries"
FINGERPRINT = pa.binary(16)
ROWS = pa.schema(
    [
        ("content", FINGERPRINT),
        ("identity", FINGERPRINT),
        ("tokens", pa.int64()),
        ("total", pa.float64()),
        ("largest", pa.float64()),
        ("ldp", pa.float64()),
    ]
)
_ABOUT = b"corpusveil.ledger"
FIELDS = ("corpus", "shard", "rows", "release", "metric", "mechanism", "space", "budget")


@dataclass(frozen=True, slots=True)
class Entry:
    """What one task of one release spends.

    ``about`` says of what: corpus, shard, rows, release (its digest and its key's fingerprint), metric (mechanism and
    space, within which readings add up), budget. ``table`` has a row a document, ``ROWS``.
    """

    about: Mapping[str, Any]
    table: pa.Table = field(repr=False)

    def name(self, secret: bytes) -> str:
        """Return the entry's file name, which its content decides."""
        state = hashlib.blake2b(digest_size=16, key=secret, person=b"ledger entry")
        state.update(json.dumps(dict(self.about), sort_keys=True).encode() + b"\0")
        for name in ROWS.names:
            whole = pa.concat_arrays(self.table[name].chunks) if self.table.num_rows else pa.array([], pa.int8())
            width = whole.type.bit_width // 8
            state.update(memoryview(whole.buffers()[1])[whole.offset * width : (whole.offset + len(whole)) * width])
        return f"{state.hexdigest()}.parquet"

    def data(self) -> bytes:
        """Return the entry as a Parquet file."""
        sink = io.BytesIO()
        schema = ROWS.with_metadata({_ABOUT: json.dumps(dict(self.about), sort_keys=True).encode()})
        pq.write_table(self.table.cast(ROWS).replace_schema_metadata(schema.metadata), sink, compression="zstd")
        return sink.getvalue()


@dataclass(frozen=True, slots=True)
class Ledger:
    """A ledger at an address. Its secret is made with its first use; of several at once, all use one."""

    url: str

    @classmethod
    def open(cls, url: str) -> Ledger:
        """Return the ledger at an address, which is made there when there is none."""
        ledger = cls(files.absolute(url))
        for part in ("", ENTRIES):
            files.sweep(ledger._address(part))
        if not files.exists(ledger._address(SECRET)):
            if files.listing(ledger._address(ENTRIES)):
                raise UserError(
                    f"{ledger.url}: the ledger's {SECRET} is missing, without which documents can't be recognised; "
                    "put it back."
                )
            files.create_bytes(ledger._address(SECRET), secrets.token_bytes(SECRET_BYTES), private=True)
        return ledger

    @classmethod
    def existing(cls, url: str) -> Ledger:
        """Return the ledger at an address. Raises UserError when none is there."""
        ledger = cls(files.absolute(url))
        if not files.exists(ledger._address(SECRET)):
            raise UserError(f"{url}: there is no ledger here (no {SECRET}).")
        return ledger

    def _address(self, *parts: str) -> str:
        return files.join(self.url, *parts)

    @property
    def secret(self) -> bytes:
        """The key of the fingerprints."""
        secret = files.read_bytes(self._address(SECRET))
        if len(secret) != SECRET_BYTES:
            raise UserError(f"{self._address(SECRET)}: this secret has {len(secret)} bytes, not {SECRET_BYTES}.")
        return secret

    def add(self, entry: Entry) -> str | None:
        """Add an entry; return its name, None when it is there already."""
        name = entry.name(self.secret)
        made = files.create_bytes(self._address(ENTRIES, name), entry.data(), private=True)
        return name if made else None

    def withdraw(self, name: str) -> None:
        """Take back an entry that this process added, before anything of it was drawn."""
        files.remove(self._address(ENTRIES, name))

    def names(self) -> list[str]:
        """Return the names of all entries."""
        return [name for name in files.listing(self._address(ENTRIES)) if name.endswith(".parquet")]

    def read(self, name: str) -> Entry:
        """Return one entry. Raises UserError when it is damaged."""
        return read_entry(self._address(ENTRIES, name))

    def is_named_rightly(self, name: str) -> bool:
        """Say whether an entry is what its name says; only who has the secret can make one that is."""
        return self.read(name).name(self.secret) == name

    def entries(self, but: Collection[str] = ()) -> Iterator[Entry]:
        """Yield all entries but those named; one that is withdrawn meanwhile is none."""
        for name in self.names():
            if name in but:
                continue
            try:
                entry = self.read(name)
            except (CorpusveilError, OSError):
                if files.exists(self._address(ENTRIES, name)):
                    raise
                continue
            yield entry


def read_entry(address: str) -> Entry:
    """Return the entry at an address. Raises UserError when it is damaged."""
    damaged = (
        f"{address}: this entry of the ledger is damaged; restore it from a copy: without it, what was spent would be "
        "counted too low."
    )
    table = read_whole(address, damaged, lambda _: ROWS.names)
    with sound(damaged):
        about = parsed(table.schema.metadata[_ABOUT])
        entry = Entry({name: about[name] for name in FIELDS}, table.replace_schema_metadata(None).cast(ROWS))
        numbers = [entry.table[name].to_numpy() for name in ("tokens", "total", "largest", "ldp")]
    if any(column.null_count for column in entry.table.columns) or not all((one >= 0).all() for one in numbers):
        raise UserError(damaged)
    return entry
