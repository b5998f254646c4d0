"""The spending of documents: a row for each, for the ledger's entries, computed on the engine of a run.

The noise of a document is fresh if the release, its key, the text column, the document's id or its text differs. Its
fingerprint covers exactly these (``Kernel.noise_tags``), so equal noise is recognized wherever the document is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from corpusveil.kernel.transform import Transform
from corpusveil.ledger.entries import NUMBERS
from corpusveil.ledger.units import Unit, documents_of, fingerprints, part, texts_of
from corpusveil.storage import files
from corpusveil.storage.documents import Documents
from corpusveil.storage.durable import Work, stem
from corpusveil.storage.parquet import read_table, sound
from corpusveil.storage.reading import BadRows, reading
from corpusveil.storage.records import Record, Records
from corpusveil.storage.rows import Columns
from corpusveil.storage.tasks import ShardTask, keyed_digest, plain_digest


@dataclass(frozen=True, slots=True)
class Drops:
    """Which rows a run leaves out, by shard and row, in files among the records."""

    records: Records
    digests: Mapping[int, str]
    """The digest of the rows that a shard leaves out, by the shard's number."""

    def left_out_rows(self, shard: int) -> npt.NDArray[np.int64]:
        """Return the rows that a shard leaves out, ascending."""
        return np.frombuffer(files.read_bytes(self.records.address(f"{shard:05d}.rows")), dtype="<i8")

    @classmethod
    def written(cls, records: Records, rows: Iterable[tuple[int, npt.NDArray[np.int64]]], key: bytes) -> Drops:
        """Write the rows that each shard leaves out, ascending, and return them, with digests under a key."""
        digests = {}
        for shard, left_out in rows:
            data = left_out.astype("<i8").tobytes()
            files.write_bytes(records.address(f"{shard:05d}.rows"), data, private=True)
            digests[shard] = hashlib.blake2b(data, digest_size=16, key=key).hexdigest()
        return cls(records, digests)


def schema(units: Sequence[Unit]) -> pa.Schema:
    """Return the columns of an account: the units' fingerprints, those of noise, readings, and the row."""
    tags = [*(f"unit_{number}" for number in range(len(units))), "noise"]
    return pa.schema([*((name, pa.uuid()) for name in tags), *((name, pa.int64()) for name in (*NUMBERS, "row"))])


@dataclass(frozen=True, slots=True)
class Account:
    """Accounts for the documents of one release and text column, by its units; for a ledger with this secret.

    ``about`` are the fields of an entry that the release decides.
    """

    kernel: Transform
    about: Mapping[str, Any]
    release: str
    """The digests of the release's configuration and key: noise is fresh if either differs."""
    column: str
    units: tuple[Unit, ...] = ()
    namespace: str = ""
    secret: bytes = field(default=b"", repr=False)

    def spending(self, documents: Documents) -> pa.Table:
        """Return the spending of D documents: a row for each that has a text (``schema``).

        Raises DataError for one without a unit.
        """
        documents = documents.with_text()
        texts, rows, place = documents.texts, documents.rows, documents.place
        noise, readings = self.kernel.account(documents, part(self.secret, b"noise " + self.release.encode()))
        tags = [
            fingerprints(
                self.secret, unit, self.namespace,
                texts if unit.column is None else texts_of(documents.values[unit.column], unit, rows, place),
            )
            for unit in self.units
        ]  # fmt: skip
        columns = [*map(_uuids, (*tags, noise)), *(getattr(readings, name) for name in NUMBERS), rows]
        return pa.table(columns, schema=schema(self.units))


def packed(tables: Sequence[pa.Table]) -> bytes:
    """Return rows of an account as a stream of Arrow's format, to travel to where the ledger is written."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, tables[0].schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        for table in tables:
            writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _uuids(tags: npt.NDArray[np.uint64]) -> pa.Array:
    data = pa.py_buffer(np.ascontiguousarray(tags).tobytes())
    return pa.ExtensionArray.from_storage(
        pa.uuid(), pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(tags), [None, data])
    )


class Seen(Record):
    """``seen/*``: a task that was read, with a mark of the pass, and the digests of its input and its account."""

    mark: str = ""
    input: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class AccountPass(Work[Seen]):
    """A pass over the shard tasks of a corpus before the work: it accounts for each task's documents in the records.

    ``columns`` keep the units'. ``skip_bad`` leaves out bad rows; then the columns of drawing need the units, too, so
    that drawing leaves out the same rows.
    """

    name: ClassVar[str] = "spending"
    folder: ClassVar[str] = "seen"

    columns: Columns
    records: Records
    record_key: bytes = field(repr=False)
    skip_bad: bool
    account: Account
    corpus: str
    drops: Drops | None = None

    def note_of(self, task: ShardTask) -> str:
        """Return the address of a task's account among the records."""
        return self.records.address(f"{stem(task)}.parquet")

    def noted(self, task: ShardTask) -> pa.Table:
        """Return the account of a task's documents."""
        address = self.note_of(task)
        with sound(f"{address}: this record is damaged; run again."):
            return read_table(address)

    def work_folder(self) -> Records:
        return self.records

    def left(self, tasks: Sequence[ShardTask]) -> Sequence[ShardTask]:
        return tasks  # only reading an input, which is the engine's work, shows whether it changed

    def do(self, task: ShardTask) -> Seen:
        address, kind = self.note_of(task), schema(self.account.units)
        left_out = None if self.drops is None else self.drops.left_out_rows(task.shard)
        with (
            reading(task, self.columns, self.record_key, BadRows() if self.skip_bad else None) as shard,
            files.open_write(address, private=True) as file,
            pq.ParquetWriter(file, kind, compression="zstd") as writer,
        ):
            for batch in shard.batches:
                if left_out is not None:
                    batch.leave_out(left_out)
                if batch.numbers:
                    writer.write_table(self.account.spending(documents_of(batch, self.columns, self.corpus, task)))
            digest = shard.file.digest()
        return Seen(mark=self._mark(task), input=digest, note=plain_digest(address))

    def is_mine(self, record: Seen, task: ShardTask) -> bool:
        return record.mark == self._mark(task)

    def still_holds(self, record: Seen, task: ShardTask) -> bool:
        address = self.note_of(task)
        if not files.exists(address) or plain_digest(address) != record.note:
            return False
        return keyed_digest(task.url, self.record_key) == record.input

    def _mark(self, task: ShardTask) -> str:
        """Return a keyed digest of everything that decides a task's account."""
        account = self.account
        what = {
            "rows": [task.relative, task.start, task.stop], "columns": self.columns.as_dict(),
            "needed": self.columns.units, "skip_bad": self.skip_bad, "corpus": self.corpus,
            "account": [account.release, account.column, account.namespace, account.secret.hex()],
            "units": [[unit.name, unit.column] for unit in account.units],
            "drops": None if self.drops is None else {str(shard): rows for shard, rows in self.drops.digests.items()},
            "form": 8,
        }  # fmt: skip
        text = json.dumps(what, sort_keys=True).encode()
        return hashlib.blake2b(text, digest_size=16, key=self.record_key).hexdigest()
