"""The files of a schedule's state: a plan and a done record of each run, their summary, and unusable shards."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from corpusveil.storage.records import Line, Record

SUMMARY, LEFT_OUT = "summary.json", "left_out.json"


class Planned(Record):
    """``runs/*.plan.json``: the shards of a run (address, relative path, size, stamp), and why they are in it."""

    shards: list[tuple[str, str, int, str]]
    why: dict[str, str]


class Finished(Record):
    """``runs/*.done.json``: the shards that a run released, with size, stamp and digest; or why it was abandoned."""

    given_up: bool = False
    why: Line = ""
    release: Line = ""
    key_fingerprint: Line = ""
    documents: int = 0
    tokens: int = 0
    shards: dict[str, tuple[int, str, str]]


class StartSummary(Record):
    """``summary.json``: the runs through a number, so that a start does not read them one by one.

    It is made again from the runs if it is missing or damaged. ``shards`` has size, stamp and digest of each shard at
    its last release; the stamp is a later one if the content stayed the same.
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
    shards: dict[str, tuple[int, str, str]] = Field(default_factory=dict)

    def after(self, runs: Mapping[int, Finished | None]) -> StartSummary:
        """Return the summary with later runs, in their order; unfinished ones are None, and count nothing."""
        done = {number: run for number, run in runs.items() if run is not None}
        made = {number: run for number, run in done.items() if not run.given_up}
        shards = dict(self.shards)
        for run in made.values():
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
            last=last, release=release, shards=shards,
        )  # fmt: skip


class LeftOut(Record):
    """``left_out.json``: shards that are unusable with these settings: size, stamp, digest and reason."""

    settings: str = ""
    shards: dict[str, tuple[int, str, str, str]] = Field(default_factory=dict)
