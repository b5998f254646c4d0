"""The measures of a schedule's starts: a line for each, and all in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import orjson
from pydantic import AfterValidator

from corpusveil.errors import BadRecordError
from corpusveil.storage import files
from corpusveil.storage.records import Record, Records

METRICS = "metrics.jsonl"


class LeftOut(Record):
    """``left_out.json``: shards that are unusable with these settings: size, stamp, digest and reason."""

    settings: str
    shards: dict[str, tuple[int, str, str, str]]


def _is_time(text: str) -> str:
    try:
        datetime.fromisoformat(text).timestamp()
    except (OverflowError, OSError) as error:
        raise ValueError from error
    return text


class Metric(Record):
    """A line of ``metrics.jsonl``: one start of the schedule, its run, and why it made no release."""

    time: Annotated[str, AfterValidator(_is_time)]
    status: int
    seconds: float
    run: int | None
    new: int = 0
    changed: int = 0
    documents: int = 0
    tokens: int = 0
    why: str | None = None


def note(state: Records, at: datetime, status: int, seconds: float, measured: Mapping[str, Any]) -> None:
    """Add a line to the metrics of a schedule: what its outputs show, times, and why a run made no release."""
    line = {"time": at.isoformat(timespec="seconds"), "status": status, "seconds": round(seconds, 3), **measured}
    address = state.address(METRICS)
    before = files.read_if_there(address) or b""
    files.write_bytes(address, before + orjson.dumps(line) + b"\n", private=True)


def metrics_of(state: Records) -> list[Metric]:
    """Return the lines of metrics, the oldest first. Raises UserError for a damaged one."""
    address = state.address(METRICS)
    data = (files.read_if_there(address) or b"").splitlines()
    lines = [metric for one in data if (metric := Metric.of(one)) is not None]
    if len(lines) < len(data):
        raise BadRecordError(f"{address}: a line of these metrics is damaged; remove the line or the file.")
    return lines


def _number_left_out(state: Records) -> int:
    left_out = state.read("left_out.json", LeftOut)
    return 0 if left_out is None else len(left_out.shards)


def prometheus(state: Records) -> str:
    """Return the metrics of a schedule in the text form of Prometheus, for the textfile collector."""
    lines = metrics_of(state)
    good = [line for line in lines if line.status == 0]
    runs = [line for line in good if line.run]

    def total(name: str) -> int:
        return sum(getattr(line, name) for line in runs)

    def seconds(line: Metric) -> float:
        return datetime.fromisoformat(line.time).timestamp()

    families: list[tuple[str, str, str, float]] = []
    if lines:
        families += [
            ("last_start_timestamp_seconds", "gauge", "When the schedule last started.", seconds(lines[-1])),
            (
                "last_status",
                "gauge",
                "Exit status of the last start: 0 success, 1 failure, 2 invalid call or input.",
                lines[-1].status,
            ),
            ("last_duration_seconds", "gauge", "Duration of the last start in seconds.", lines[-1].seconds),
        ]
    if good:
        families.append(
            ("last_success_timestamp_seconds", "gauge", "Time of the last successful start.", seconds(good[-1]))
        )
    families += [
        ("left_out_shards", "gauge", "Shards that cannot be used until they change.", _number_left_out(state)),
        ("runs_total", "counter", "Releases made.", len(runs)),
        ("shards_total", "counter", "Shards released.", total("new") + total("changed")),
        ("documents_total", "counter", "Documents released.", total("documents")),
        ("tokens_total", "counter", "Tokens released.", total("tokens")),
    ]
    text = ""
    for name, kind, words, value in families:
        full = f"corpusveil_schedule_{name}"
        text += f"# HELP {full} {words}\n# TYPE {full} {kind}\n{full} {value}\n"
    return text
