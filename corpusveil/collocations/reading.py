"""Reading the shards of a corpus in a stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from corpusveil.collocations.stages import Stage
from corpusveil.errors import UserError
from corpusveil.storage import files, formats
from corpusveil.storage.rows import Columns
from corpusveil.storage.tasks import KeyedReader, ShardTask


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
