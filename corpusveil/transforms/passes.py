"""A pass over the shard tasks of a corpus before the work: it notes something of each among the private records."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from corpusveil.errors import CorpusveilError, UserError, WorkError
from corpusveil.storage import files, formats
from corpusveil.storage.records import Records
from corpusveil.storage.rows import Batch, Columns
from corpusveil.storage.tasks import KeyedReader, ShardTask


@dataclass(frozen=True, slots=True)
class Pass(abc.ABC):
    """What an engine maps over shard tasks; safe to repeat. ``skip_bad`` leaves rows out that can't be read."""

    columns: Columns
    records: Records
    record_key: bytes = field(repr=False)
    skip_bad: bool = False

    @abc.abstractmethod
    def note(self, task: ShardTask, batches: Iterator[Batch]) -> None:
        """Read the batches of one task to their end and write what is to be known of them."""

    def __call__(self, task: ShardTask) -> None:
        """Do one task. A wrong input is recorded, not raised, as in the work itself."""
        try:
            self._read(task)
        except UserError as error:
            self.records.write(f"failed/{task.record_name}", {"sentence": str(error)})
        except CorpusveilError:
            raise
        except (OSError, MemoryError) as error:
            raise WorkError(f"Shard {task.shard} could not be looked at: {type(error).__name__}.") from None
        except Exception as error:  # noqa: BLE001 - whose text could quote a document
            raise WorkError(f"Shard {task.shard} could not be looked at: {type(error).__name__}.") from None

    def _read(self, task: ShardTask) -> None:
        form = formats.find(formats.form_of(task.url))
        with files.open_read(task.url) as raw:
            source: Any = KeyedReader(raw, self.record_key)
            file = source.whole() if form.seeks else source
            self.note(task, self._sound(task, form.batches(file, task.url, self.columns, task.start, task.stop)))
            digest = source.digest()
        self.records.write(f"seen/{task.record_name}", {"input": digest})

    def _sound(self, task: ShardTask, batches: Iterator[Batch]) -> Iterator[Batch]:
        for batch in batches:
            for bad in batch.bad:
                if not self.skip_bad:
                    raise UserError(f"{task.url}, row {bad.number + 1}: {bad.why}")
            if batch.numbers:
                yield batch

    def seen(self, tasks: Sequence[ShardTask]) -> dict[str, str]:
        """Return the keyed digest of each task's input, by the name of its record. Raises WorkError for a gap."""
        digests = {}
        for task in tasks:
            noted = self.records.read(f"seen/{task.record_name}")
            if noted is None:
                raise WorkError(f"{self.records.url}: shard {task.shard} was not looked at; run again.")
            digests[task.record_name] = str(noted["input"])
        return digests


Run = Callable[[Pass, Sequence[ShardTask]], None]
"""Maps a pass over tasks on a release's engine and raises UserError for what is wrong with the input."""
