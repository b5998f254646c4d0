"""The input and output of a run, made once from settings or a call, and shared by run, job and claim."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field
from pydantic_core import to_jsonable_python

from corpusveil.choices import OnBadRows
from corpusveil.storage import files
from corpusveil.storage.records import RUN_VERSION, Line, Record, Records
from corpusveil.storage.rows import Columns
from corpusveil.storage.tasks import ShardTask


def another(words: str) -> dict[str, str]:
    """Return the metadata of a setting that is the same for all starts of a run; the words are for another run's."""
    return {"another": words}


MAY_DIFFER = another("")


def words_of(*kinds: Any) -> dict[str, str]:
    """Return the words for another run by the name of a setting. Raises KeyError for one that says neither."""
    words = {each.name: each.metadata["another"] for kind in kinds for each in dataclasses.fields(kind)}
    return {name: said for name, said in words.items() if said}


@dataclass(frozen=True, slots=True)
class CorpusIn:
    """The files that a run reads, and how.

    ``root`` is the folder at which the paths in documents' identities begin; by default the lowest folder that all
    inputs share. ``name`` names the corpus; by default it is the name of that folder. Without an id column it is part
    of documents' identities. ``on_bad_rows`` says whether an unreadable row stops the run, or is left out and
    counted.
    """

    inputs: Sequence[str] = field(metadata=another("other input shards"))
    columns: Columns = field(
        default_factory=Columns, metadata=another("other columns, or with CSV cells written in another way")
    )
    root: str | None = field(default=None, metadata=MAY_DIFFER)  # part of the paths of inputs in a claim
    name: str | None = field(default=None, metadata=another("another name of the corpus (by default its folder)"))
    on_bad_rows: OnBadRows = field(default="refuse", metadata=another("another treatment of bad rows (on_bad_rows)"))


@dataclass(frozen=True, slots=True)
class CorpusOut:
    """The folder that a run writes, and in which form.

    ``records`` (default ``<url>.records``) receives the private files. ``format`` is a suffix, or ``same`` as the
    input. ``rows_per_task`` parts shards among workers, and changes no bytes.
    """

    url: str = field(metadata=another("another output folder"))
    records: str | None = field(default=None, metadata=MAY_DIFFER)
    format: str = field(default="same", metadata=another("another output format"))
    rows_per_task: int | None = field(default=None, metadata=MAY_DIFFER)

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
    def of_run(cls, release: Any, *parts: Any, by: str) -> Claim:
        """Return the claim of a run by a keyed ``release`` with these settings, their names and addresses settled."""
        claimed: dict[str, Any] = {"release": release.digest, "key": release.key.fingerprint()}
        for part in parts:
            claimed |= {name: getattr(part, name) for name in words_of(type(part))}
        claimed["columns"] = claimed["columns"].as_dict()
        claimed = to_jsonable_python(claimed, inf_nan_mode="null")  # as it comes back
        return cls(version=RUN_VERSION, by=by, claimed=claimed, configuration=release.configuration())
