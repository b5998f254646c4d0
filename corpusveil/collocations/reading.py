"""Reading the shards of a corpus in a stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from corpusveil.collocations.stages import Stage
from corpusveil.errors import UserError
from corpusveil.storage import files, formats
from corpusveil.storage.rows import Columns
from corpusveil.storage.tasks import KeyedReader, ShardTask, keyed_digest


@dataclass(frozen=True, slots=True)
class ShardStage(Stage):
    """A stage that reads column ``text`` of the corpus."""

    text: str

    def fingerprint(self, task: ShardTask) -> str:
        fs, path = files.resolve(task.url)
        return str(fs.ukey(path))

    def texts(self, task: ShardTask, told: dict[str, Any]) -> Iterator[pa.Array]:
        """Yield the shard's texts, some at a time; then ``told`` has its digest and its documents.

        Raises UserError for a row that is not sound.
        """
        form = formats.find(formats.form_of(task.url))
        columns = Columns(self.text)
        told["documents"] = 0
        with files.open_read(task.url) as raw:
            source: Any = KeyedReader(raw, b"")
            file = source.whole() if form.seeks else source
            for batch in form.batches(file, task.url, columns):
                for bad in batch.bad:
                    raise UserError(f"{task.url}, row {bad.number + 1}: {bad.why}")
                told["documents"] += len(batch.texts)
                yield batch.texts
            told["digest"] = source.digest()


def inputs_of(tasks: Sequence[ShardTask], records: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """Return what an artefact says of the shards that it was made of: path and digest of each."""
    return [{"path": task.relative, "digest": told["digest"]} for task, told in zip(tasks, records, strict=True)]


def refuse_changed(output: str, tasks: Sequence[ShardTask], inputs: Sequence[dict[str, str]]) -> None:
    """Raise UserError when a shard is not what the finished artefact ``output`` was made of."""
    for task, told in zip(tasks, inputs, strict=True):
        if keyed_digest(task.url, b"") != told["digest"]:
            raise UserError(f"{task.url}: this input changed after {output} was made of it; choose another --output.")
