"""The index of a schedule's releases, in their folder: which shard is of which run, and what replaced it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from corpusveil.storage.records import Line, Record

INDEX = "index.json"


class Released(Record):
    """A shard of a run; ``replaced_by`` is ``RUN/SHARD`` of the same input after a change, empty without one."""

    run: Line
    shard: Line
    replaced_by: Line = ""


class Index(Record):
    """``index.json``: the SHA-256 of the manifest of each run, and all shards of all runs. It is public."""

    runs: dict[Line, Line] = Field(default_factory=dict)
    shards: list[Released] = Field(default_factory=list)

    def after(self, run: str, manifest: str, shards: Mapping[str, str]) -> Index:
        """Return the index with a further run: its shards, as ``RUN/SHARD``, and those that they replace, or ``""``."""
        by = {earlier: place for place, earlier in shards.items()}
        before = [
            Released(run=at.run, shard=at.shard, replaced_by=by.get(f"{at.run}/{at.shard}", at.replaced_by))
            for at in self.shards
        ]
        added = [Released(run=run, shard=place.partition("/")[2], replaced_by="") for place in sorted(shards)]
        return Index(runs={**self.runs, run: manifest}, shards=before + added)
