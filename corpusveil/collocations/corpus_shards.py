"""Reading the shards of a corpus in a stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from corpusveil.errors import ChangedError
from corpusveil.storage import files
from corpusveil.storage.durable import Done, Stage
from corpusveil.storage.inputs import InputShard
from corpusveil.storage.reading import reading
from corpusveil.storage.rows import Columns
from corpusveil.storage.tasks import ShardTask, keyed_digest, largest_first


class Read(Done):
    """A shard that was read: the digest of its file, and its number of documents."""

    digest: str
    documents: int


S = TypeVar("S", bound=Read)


@dataclass(frozen=True, slots=True)
class ShardStage(Stage[S]):
    """A stage that reads column ``text`` of the corpus."""

    text: str

    def fingerprint(self, task: ShardTask) -> str:
        fs, path = files.resolve(task.url)
        file = str(fs.ukey(path))
        return file if task.piece is None else f"{file} {task.start} {task.stop}"

    def left(self, tasks: Sequence[ShardTask]) -> Sequence[ShardTask]:
        return largest_first(super(ShardStage, self).left(tasks))

    def texts(self, task: ShardTask, read: dict[str, Any]) -> Iterator[pa.Array]:
        """Yield the shard's texts in batches, without nulls; then ``read`` has its digest. Raises UserError."""
        read["documents"] = 0
        with reading(task, Columns(self.text)) as shard:
            for batch in shard.batches:
                texts = batch.texts.drop_null()
                read["documents"] += len(texts)
                yield texts
            read["digest"] = shard.file.digest()


def inputs_of(tasks: Sequence[ShardTask], records: Sequence[Read]) -> list[dict[str, str]]:
    """Return path and digest of each source shard. Raises ChangedError if its pieces were read from different files."""
    inputs: dict[int, dict[str, str]] = {}
    for task, record in zip(tasks, records, strict=True):
        known = inputs.setdefault(task.shard, {"path": task.relative, "digest": record.digest})
        if known["digest"] != record.digest:
            raise ChangedError(f"{task.url}: this input changed while it was read; run again.")
    return list(inputs.values())


def refuse_changed(output: str, shards: Sequence[InputShard], inputs: Sequence[dict[str, str]]) -> None:
    """Raise UserError if a shard differs from those from which the finished artifact ``output`` was made."""
    for shard, entry in zip(shards, inputs, strict=True):
        if keyed_digest(shard.url, b"") != entry["digest"]:
            raise ChangedError(
                f"{shard.url}: this input changed after {output} was made from it; choose another output."
            )
