"""The measures of a schedule: a line for each start, and all in the text format of Prometheus."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator

from corpusveil.errors import BadRecordError
from corpusveil.pipelines.schedule_state import LEFT_OUT, SUMMARY, LeftOut, Summary
from corpusveil.storage import files
from corpusveil.storage.records import Record, Records

METRICS = "metrics.jsonl"
MOST_LINES = 1000
"""The starts that are kept: six weeks of hours."""


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
    left_out: int = 0
    why: str | None = None


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
    lines = [metric for one in data if (metric := Metric.of(one)) is not None]
    if len(lines) < len(data):
        raise BadRecordError(f"{address}: a line of these metrics is damaged; remove the line or the file.")
    return lines


def prometheus(state: Records) -> str:
    """Return the metrics of a schedule in the text form of Prometheus, for the textfile collector."""
    lines = metrics_of(state)
    good = [line for line in lines if line.status == 0]
    totals = state.read(SUMMARY, Summary) or Summary()
    left_out = state.read(LEFT_OUT, LeftOut) or LeftOut()

    def seconds(line: Metric) -> float:
        return datetime.fromisoformat(line.time).timestamp()

    families: list[tuple[str, str, str, float]] = []
    if lines:
        families += [
            ("last_start_timestamp_seconds", "gauge", "When the schedule last started.", seconds(lines[-1])),
            (
                "last_status",
                "gauge",
                "Exit status of the last start: 0 success, 1 failure, 2 invalid call or input, 130 interrupted.",
                lines[-1].status,
            ),
            ("last_duration_seconds", "gauge", "Duration of the last start in seconds.", lines[-1].seconds),
        ]
    if good:
        families.append(
            ("last_success_timestamp_seconds", "gauge", "Time of the last successful start.", seconds(good[-1]))
        )
    families += [
        ("left_out_shards", "gauge", "Shards that cannot be used until they change.", len(left_out.shards)),
        ("runs_total", "counter", "Releases made.", totals.runs),
        ("shards_total", "counter", "Shards released.", totals.released),
        ("documents_total", "counter", "Documents released.", totals.documents),
        ("tokens_total", "counter", "Tokens released.", totals.tokens),
    ]
    text = ""
    for name, kind, words, value in families:
        full = f"corpusveil_schedule_{name}"
        text += f"# HELP {full} {words}\n# TYPE {full} {kind}\n{full} {value}\n"
    return text
