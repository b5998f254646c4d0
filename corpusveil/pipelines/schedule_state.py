"""The files of a schedule's state: a plan and a done record of each run, their summary, unusable shards, and measures.

The measures are a line for each start, and all in the text format of Prometheus.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, Field

from corpusveil.errors import BadRecordError, CorpusveilError
from corpusveil.storage import files
from corpusveil.storage.records import Line, Record, Records

SUMMARY, LEFT_OUT, METRICS = "summary.json", "left_out.json", "metrics.jsonl"
MOST_LINES = 1000
"""The starts that are kept: six weeks of hours."""


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


def _is_time(text: str) -> str:
    try:
        datetime.fromisoformat(text).timestamp()
    except (OverflowError, OSError) as error:
        raise ValueError from error
    return text


class Metric(Record):
    """A line of ``metrics.jsonl``: one start of the schedule, what it released, and why it ended early.

    ``run`` is the last run that it worked on, ``left_out`` the number of shards that were left out at its end.
    """

    time: Annotated[str, AfterValidator(_is_time)]
    status: int
    seconds: float
    run: int | None
    new: int = 0
    changed: int = 0
    documents: int = 0
    tokens: int = 0
    left_out: int | None = None
    why: str | None = None

    @property
    def seconds_since_1970(self) -> float:
        return datetime.fromisoformat(self.time).timestamp()


@dataclass(slots=True)
class Did:
    """What a start has done so far: the last run that it worked on, and what was released."""

    run: int | None = None
    measured: Counter[str] = field(default_factory=Counter)
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    began: float = field(default_factory=time.monotonic)

    def metric(self, state: Records | None, status: int, error: BaseException | None) -> Metric:
        """Return the line of this start, which ended with this status, and perhaps by an error."""
        line = {"time": self.at.isoformat(timespec="seconds"), "status": status, "run": self.run, **self.measured}
        if isinstance(error, CorpusveilError):  # no other text may be kept
            line["why"] = str(error)
        if state is not None:
            with contextlib.suppress(CorpusveilError):
                line["left_out"] = len((state.read(LEFT_OUT, LeftOut) or LeftOut()).shards)
        return Metric.model_validate({**line, "seconds": round(time.monotonic() - self.began, 3)})


def note(state: Records, metric: Metric) -> None:
    """Add a start to the metrics of a schedule. The oldest go, but never the last success."""
    address = state.address(METRICS)
    lines = [*(files.read_if_there(address) or b"").splitlines(), metric.data()]
    if len(lines) > MOST_LINES:
        success = next(
            (line for line in reversed(lines) if (start := Metric.of(line)) and start.status == 0), lines[-1]
        )
        lines = lines[-MOST_LINES:]
        if success not in lines:
            lines[0] = success
    files.write_bytes(address, b"\n".join([*lines, b""]), private=True)


def metrics_of(state: Records) -> list[Metric]:
    """Return the lines of metrics, the oldest first. Raises UserError for a damaged one."""
    address = state.address(METRICS)
    data = (files.read_if_there(address) or b"").splitlines()
    lines = [metric for line in data if (metric := Metric.of(line)) is not None]
    if len(lines) < len(data):
        raise BadRecordError(f"{address}: a line of these metrics is damaged; remove the line or the file.")
    return lines


def prometheus(state: Records | None, last: Metric) -> str:
    """Return the metrics of a schedule in the text form of Prometheus, for the textfile collector.

    ``last`` is the last start. What cannot be read of the state is left out.
    """
    totals: StartSummary | None = None
    starts = [last]
    if state is not None:
        with contextlib.suppress(CorpusveilError):
            totals = state.read(SUMMARY, StartSummary) or StartSummary()
        with contextlib.suppress(CorpusveilError):
            starts = [*metrics_of(state), last]
    success = next((start for start in reversed(starts) if start.status == 0), None)
    status = "Exit status of the last start: 0 success, 1 failure, 2 invalid call or input, 130 or 143 a signal."
    families = (
        ("last_start_timestamp_seconds", "gauge", "When the schedule last started.", last.seconds_since_1970),
        ("last_status", "gauge", status, last.status),
        ("last_duration_seconds", "gauge", "Duration of the last start in seconds.", last.seconds),
        ("last_success_timestamp_seconds", "gauge", "Time of the last successful start.",
         success and success.seconds_since_1970),
        ("left_out_shards", "gauge", "Shards that cannot be used until they change.", last.left_out),
        ("runs_total", "counter", "Releases made.", totals and totals.runs),
        ("shards_total", "counter", "Shards released.", totals and totals.released),
        ("documents_total", "counter", "Documents released.", totals and totals.documents),
        ("tokens_total", "counter", "Tokens released.", totals and totals.tokens),
    )  # fmt: skip
    text = ""
    for name, kind, words, value in families:
        if value is not None:
            full = f"corpusveil_schedule_{name}"
            text += f"# HELP {full} {words}\n# TYPE {full} {kind}\n{full} {value}\n"
    return text
