"""Reading the shards of a corpus in a stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from corpusveil.errors import ChangedError
from corpusveil.storage import files
from corpusveil.storage.durable import Done, Stage
from corpusveil.storage.reading import reading
from corpusveil.storage.rows import Columns
from corpusveil.storage.tasks import ShardTask, keyed_digest


class Read(Done):
    """A shard that was read: the digest of its file, and how many documents it has."""

    digest: str
    documents: int


S = TypeVar("S", bound=Read)


@dataclass(frozen=True, slots=True)
class ShardStage(Stage[S]):
    """A stage that reads column ``text`` of the corpus."""

    text: str

    def fingerprint(self, task: ShardTask) -> str:
        fs, path = files.resolve(task.url)
        return str(fs.ukey(path))

    def texts(self, task: ShardTask, told: dict[str, Any]) -> Iterator[pa.Array]:
        """Yield the shard's texts, some at a time; then ``told`` has its digest and its documents.

        Raises UserError for a row that is not sound.
        """
        told["documents"] = 0
        with reading(task, Columns(self.text)) as (batches, digest):
            for batch in batches:
                told["documents"] += len(batch.texts)
                yield batch.texts
            told["digest"] = digest()


def inputs_of(tasks: Sequence[ShardTask], records: Sequence[Read]) -> list[dict[str, str]]:
    """Return what an artefact says of the shards that it was made of: path and digest of each."""
    return [{"path": task.relative, "digest": record.digest} for task, record in zip(tasks, records, strict=True)]


def refuse_changed(output: str, tasks: Sequence[ShardTask], inputs: Sequence[dict[str, str]]) -> None:
    """Raise UserError when a shard is not what the finished artefact ``output`` was made of."""
    for task, told in zip(tasks, inputs, strict=True):
        if keyed_digest(task.url, b"") != told["digest"]:
            raise ChangedError(
                f"{task.url}: this input changed after {output} was made from it; choose another output."
            )
