"""The files of a schedule's state: a plan and a done record of each run, their summary, and unusable shards."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from corpusveil.storage.records import Line, Record
from corpusveil.transforms.release.manifest import Index

SUMMARY, LEFT_OUT = "summary.json", "left_out.json"


class Planned(Record):
    """``runs/*.plan.json``: the shards of a run (address, relative path, size, stamp), and why they are in it."""

    shards: list[tuple[str, str, int, str]]
    why: dict[str, str]


class Finished(Record):
    """``runs/*.done.json``: the shards that a run released, with size, stamp, digest and ``RUN/SHARD``; or why not.

    ``manifest`` is the SHA-256 of the release's manifest.
    """

    given_up: bool = False
    why: Line = ""
    release: Line = ""
    key_fingerprint: Line = ""
    documents: int = 0
    tokens: int = 0
    quarantined: int = 0
    dropped: int = 0
    manifest: Line = ""
    shards: dict[str, tuple[int, str, str, Line]]


class StartSummary(Record):
    """``summary.json``: the runs through a number, so that a start does not read them one by one.

    It is made again from the runs if it is missing or damaged. ``shards`` has size, stamp, digest and ``RUN/SHARD`` of
    each shard at its last release; the stamp is a later one if the content stayed the same.
    """

    through: int = 0
    runs: int = 0
    """The number of releases; then the shards, documents and tokens in them."""
    released: int = 0
    documents: int = 0
    tokens: int = 0
    last: int = 0
    """The number of the last release, and its name in a ledger."""
    release: Line = ""
    shards: dict[str, tuple[int, str, str, Line]] = Field(default_factory=dict)
    index: Index = Field(default_factory=Index)

    def after(self, runs: Mapping[int, Finished | None]) -> StartSummary:
        """Return the summary with later runs, in their order; unfinished ones are None, and count nothing."""
        done = {number: run for number, run in runs.items() if run is not None}
        made = {number: run for number, run in done.items() if not run.given_up}
        shards, index = dict(self.shards), self.index
        for number, run in made.items():
            replaced = {place: shards[path][3] if path in shards else "" for path, (*_, place) in run.shards.items()}
            index = index.after(f"run-{number:05d}", run.manifest, replaced)
            shards |= run.shards
        named = {number: run for number, run in made.items() if run.release and run.key_fingerprint}
        last, release = self.last, self.release
        if named:
            last = max(named)
            release = f"{named[last].release[:16]}-{named[last].key_fingerprint[:16]}"
        return StartSummary(
            through=max(done, default=self.through), runs=self.runs + len(made),
            released=self.released + sum(len(run.shards) for run in made.values()),
            documents=self.documents + sum(run.documents for run in made.values()),
            tokens=self.tokens + sum(run.tokens for run in made.values()),
            last=last, release=release, shards=shards, index=index,
        )  # fmt: skip


class LeftOut(Record):
    """``left_out.json``: shards that are unusable with these settings: size, stamp, digest and reason.

    ``aliens`` are sentences about files that are not shards.
    """

    settings: str = ""
    shards: dict[str, tuple[int, str, str, str]] = Field(default_factory=dict)
    aliens: list[str] = Field(default_factory=list)

    def sentences(self) -> list[str]:
        """Return why each is left out."""
        return [*(sentence for *_, sentence in self.shards.values()), *self.aliens]
