"""The input and output of a run, made once from settings or a call, and shared by run, job and claim."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from corpusveil.choices import OnBadRows
from corpusveil.storage import files
from corpusveil.storage.records import RUN_VERSION, Line, Record, Records
from corpusveil.storage.rows import Columns
from corpusveil.storage.tasks import ShardTask

WORDS = {
    "release": "another configuration (mechanism, budget, text policy, space or version)",
    "key": "another key",
    "ledger": "another ledger, or none",
    "inputs": "other input shards",
    "columns": "other columns, or with CSV cells written in another way",
    "name": "another name of the corpus (by default its folder)",
    "on_bad_rows": "another treatment of bad rows (on_bad_rows)",
    "url": "another output folder",
    "format": "another output format",
}
"""What is the same for all starts of a run, and the words for another run, by the field of a claim."""


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
    on_bad_rows: OnBadRows = "refuse"


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


class Claim(Record):
    """``run.json``: what a run claims its folders for. A repeated call goes on only if all it ``claimed`` is equal.

    ``configuration`` is what the digest of the release is of, so that a refusal can name what differs; ``by`` is the
    version and the code of corpusveil that began the run.
    """

    version: int
    by: Line = ""
    claimed: dict[str, Any] = Field(default_factory=dict)
    configuration: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def of_run(cls, reads: CorpusIn, writes: CorpusOut, release: Any, *, ledger: str | None, by: str) -> Claim:
        """Return the claim of a run that reads and writes this, names and addresses settled, by a keyed ``release``."""
        values: dict[str, Any] = {"release": release.digest, "key": release.key.fingerprint(), "ledger": ledger}
        for part in (reads, writes):
            values |= {each.name: getattr(part, each.name) for each in dataclasses.fields(part)}
        values["columns"] = reads.columns.as_dict()
        claimed = {name: values[name] for name in WORDS}
        return cls(version=RUN_VERSION, by=by, claimed=claimed, configuration=release.configuration())

    def other(self, mine: Claim) -> str | None:
        """Return the first name by which this is the claim of another run; None if it is mine."""
        return next((name for name in WORDS if self.claimed.get(name) != mine.claimed[name]), None)
