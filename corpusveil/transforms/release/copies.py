"""Copies: documents of equal bytes, recognized by keyed tags. They are counted or left out."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from corpusveil.ledger.questions import connected
from corpusveil.sampling.draws import keyed_tags
from corpusveil.storage import files
from corpusveil.storage.engine import Engine
from corpusveil.storage.parquet import read_table
from corpusveil.storage.records import Records
from corpusveil.storage.rows import Batch
from corpusveil.storage.shard_notes import Pass, look
from corpusveil.storage.tasks import ShardTask
from corpusveil.text.tokens import string_buffers

_TAGS = pa.schema([("low", pa.uint64()), ("high", pa.uint64()), ("row", pa.int64())])


def content_tags(secret: bytes, texts: pa.Array, rows: Sequence[int]) -> pa.Table:
    """Return the two halves of the tag, and the row, of every document that is not null: strings [D], rows [D]."""
    if texts.null_count:
        valid = texts.is_valid().to_numpy(zero_copy_only=False)
        texts, rows = texts.drop_null(), [row for row, there in zip(rows, valid, strict=True) if there]
    data, documents = string_buffers(texts)
    tags = keyed_tags(secret, "content", [b""] * len(texts), data[documents[0] :], documents - documents[0])
    return pa.table([tags[:, 0], tags[:, 1], rows], _TAGS)


@dataclass(frozen=True, slots=True)
class CopiesPass(Pass):
    """Notes the tags of all documents."""

    name: ClassVar[str] = "copies"
    suffix: ClassVar[str] = ".parquet"

    secret: bytes = field(default=b"", repr=False)

    def write_note(self, task: ShardTask, batches: Iterator[Batch], address: str) -> None:  # noqa: ARG002 - equal wherever they lie
        with files.open_write(address, private=True) as file, pq.ParquetWriter(file, _TAGS) as writer:
            for batch in batches:
                writer.write_table(content_tags(self.secret, batch.texts, batch.rows))

    def decides(self) -> Mapping[str, Any]:
        return {"secret": self.secret.hex()}


@dataclass(frozen=True, slots=True)
class Drops:
    """Which rows are left out: all copies of a document but the first, by shard and row, in files among the records."""

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


def find_drops(job: CopiesPass, tasks: Sequence[ShardTask], engine: Engine) -> tuple[Drops, dict[str, str]]:
    """Find all documents that have the bytes of an earlier one, by shard and row.

    Returns them, and the digest of each task's input. Tags lie in DuckDB, which spills them into a temporary folder,
    and the rows that one shard leaves out in memory (8 bytes each). Raises BadShardsError if the input has faults.
    """
    inputs = {name: seen.input for name, seen in look(job, tasks, engine).items()}
    with tempfile.TemporaryDirectory(prefix="corpusveil-copies-") as folder, connected(folder) as connection:
        connection.execute("CREATE TABLE tags (low UBIGINT, high UBIGINT, row BIGINT, shard INTEGER)")
        for task in tasks:
            connection.register("noted", read_table(job.note_of(task)))
            connection.execute("INSERT INTO tags SELECT *, ? FROM noted", [task.shard])
        connection.execute(
            "CREATE TABLE later AS SELECT shard, row FROM tags "
            "QUALIFY row_number() OVER (PARTITION BY low, high ORDER BY shard, row) > 1"
        )
        query = "SELECT row FROM later WHERE shard = ? ORDER BY row"
        shards = {task.shard for task in tasks}
        rows = ((shard, np.asarray(connection.execute(query, [shard]).fetchnumpy()["row"])) for shard in shards)
        drops = Drops.written(job.records, rows, job.record_key)
    for task in tasks:
        files.remove(job.note_of(task))
    return drops, inputs


@dataclass(frozen=True, slots=True)
class Copies:
    """Of ``documents``, ``copies`` repeat an earlier document; the most frequent text occurs ``most`` times."""

    documents: int
    copies: int
    most: int

    def sentence(self) -> str:
        """Return the counts in words."""
        return (
            f"{self.documents:,} documents, of which {self.copies:,} are copies of an earlier document; the most "
            f"frequent text occurs {self.most:,} times. With duplicates = independent, such a document spends "
            f"{self.most:,} times as much"
        )


def count(parts: Sequence[pa.Table]) -> Copies:
    """Count equal tags."""
    tags = pa.concat_tables([_TAGS.empty_table(), *parts])
    times = tags.group_by(["low", "high"]).aggregate([([], "count_all")])["count_all"].to_numpy()
    return Copies(len(tags), len(tags) - times.size, int(times.max(initial=0)))
