"""What a run reads and where it writes: made of settings or of a call once, and held whole by run, job and claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from corpusveil.choices import OnBadRows
from corpusveil.storage import files
from corpusveil.storage.records import Records
from corpusveil.storage.rows import Columns
from corpusveil.storage.tasks import ShardTask


@dataclass(frozen=True, slots=True)
class CorpusIn:
    """The files that a run reads, and how.

    ``root`` is the folder at which the paths in documents' identities begin; by default the lowest folder that all
    inputs share. ``name`` names the corpus; by default it is the name of that folder. Without an id column it is part
    of documents' identities. ``on_bad_rows`` says whether an unreadable row stops the run or is set aside among the
    records.
    """

    inputs: Sequence[str]
    columns: Columns = field(default_factory=Columns)
    root: str | None = None
    name: str | None = None
    on_bad_rows: OnBadRows = "fail"


@dataclass(frozen=True, slots=True)
class CorpusOut:
    """The folder that a run writes, and in which form.

    ``records`` (default ``<url>.records``) receives the private files. ``format`` is a suffix, or ``same`` as the
    input. ``rows_per_task`` parts shards among workers, and changes no bytes.
    """

    url: str
    records: str | None = None
    format: str = "same"
    rows_per_task: int | None = None

    @property
    def private(self) -> Records:
        """The private records."""
        return Records(files.absolute(self.records or self.url.rstrip("/") + ".records"))

    def target(self, task: ShardTask) -> str:
        """Return the address of a task's output: the shard in the release, or a piece of it among the records."""
        if task.piece is None:
            return files.join(self.url, "data", task.shard_name)
        return self.private.address("pieces", f"{task.record_name.removesuffix('.json')}{task.suffix}")
