"""The spending of documents: a row for each, for the ledger's entries, computed on the engine of a run.

The noise of a document is fresh if the release, its key, the text column, the document's id or its text differs. Its
fingerprint covers exactly these (``Kernel.noise_tags``), so equal noise is recognized wherever the document is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from corpusveil.storage.parquet import read_table, sound
from corpusveil.storage.records import Records
from corpusveil.storage.rows import Batch
from corpusveil.storage.shard_notes import Pass
from corpusveil.storage.tasks import ShardTask


@dataclass(frozen=True, slots=True)
class Drops:
    """Which rows a run leaves out, by shard and row, in files among the records."""

    records: Records
    digests: Mapping[int, str]
    """The digest of the rows that a shard leaves out, by the shard's number."""

    def rows(self, shard: int) -> npt.NDArray[np.int64]:
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

    def rows(self, documents: Documents) -> pa.Table:
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


@dataclass(frozen=True, slots=True)
class AccountPass(Pass):
    """Records the account of each task's documents; ``columns`` keep the units'.

    If bad rows are left out, the columns of drawing need the units, too, so that drawing leaves out the same rows.
    """

    name: ClassVar[str] = "spending"
    suffix: ClassVar[str] = ".parquet"

    account: Account = field(kw_only=True)
    corpus: str = field(kw_only=True)
    drops: Drops | None = None

    def write_note(self, task: ShardTask, batches: Iterator[Batch], address: str) -> None:
        left_out = None if self.drops is None else self.drops.rows(task.shard)
        kind = schema(self.account.units)
        with (
            files.open_write(address, private=True) as file,
            pq.ParquetWriter(file, kind, compression="zstd") as writer,
        ):
            for batch in batches:
                if left_out is not None:
                    batch.leave_out(left_out)
                if batch.numbers:
                    documents = documents_of(batch, self.columns, self.corpus, task)
                    writer.write_table(self.account.rows(documents))

    def noted(self, task: ShardTask) -> pa.Table:
        """Return the account of a task's documents."""
        address = self.note_of(task)
        with sound(f"{address}: this record is damaged; run again."):
            return read_table(address)

    def decides(self) -> Mapping[str, Any]:
        drops = None if self.drops is None else {str(shard): rows for shard, rows in self.drops.digests.items()}
        account = self.account
        units = [[unit.name, unit.column] for unit in account.units]
        what = [account.release, account.column, units, account.namespace, account.secret.hex()]
        return {"account": what, "corpus": self.corpus, "drops": drops, "form": 7}
