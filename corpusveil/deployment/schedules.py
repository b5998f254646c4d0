"""Definitions that start a schedule: a line for cron, units for systemd, a Kubernetes CronJob, an Airflow DAG.

Each is a file of ``template_files``. Times are those of cron, in UTC: minute, hour, day of the month, month, day of the
week.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from dataclasses import asdict, dataclass
from importlib import resources

from corpusveil.errors import BadValueError, UnsetError

KINDS = ("cron", "systemd", "kubernetes", "airflow")
MARK = "Written by corpusveil schedule"
"""What every definition has in its first line."""
_FOLDER = "/etc/corpusveil"
"""Where a container has the configuration."""
_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of the month", 1, 31), ("month", 1, 12), ("day of the week", 0, 7))
_ITEM = re.compile(r"(\*|\d{1,2}(?:-\d{1,2})?)(?:/(\d{1,2}))?")
_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")


@dataclass(frozen=True, slots=True)
class Call:
    """The call to start: the program, the absolute path of the configuration, and a name."""

    name: str
    at: str
    program: str
    file: str
    image: str | None = None
    text: str = ""
    """The configuration itself, for a cluster that does not have the file."""
    key_path: str | None = None
    key_environment: str | None = None
    user: str = "root"
    """The user who owns the configuration, for systemd."""
    workers: int = 1
    claim: str | None = None
    """For Kubernetes: the claim of the volume that holds the folder of the configuration."""
    longest: int = 86_400
    """The seconds after which the call is ended."""


def parse_times(at: str) -> tuple[frozenset[int] | None, ...]:
    """Return the five fields of a cron expression as sets, None for ``*``. Raises UserError for other forms."""
    words = at.split()
    if len(words) != len(_FIELDS):
        raise BadValueError(f"at = {at}: give five fields of a cron expression: minute, hour, day, month, weekday.")
    return tuple(_field(at, word, *field) for word, field in zip(words, _FIELDS, strict=True))


def _field(at: str, word: str, name: str, low: int, high: int) -> frozenset[int] | None:
    if word == "*":
        return None
    chosen: set[int] = set()
    for item in word.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise BadValueError(
                f"at = {at}: the {name} {item} is not a number, range, list or step, such as 5, 1-5, 1,15, */2."
            )
        first, _, last = ("", "", "") if match[1] == "*" else match[1].partition("-")
        begin = int(first) if first else low
        end = int(last) if last else (high if match[1] == "*" or match[2] else begin)
        step = int(match[2]) if match[2] else 1
        if not (low <= begin <= end <= high and step):
            raise BadValueError(f"at = {at}: the {name} {item} is outside {low} to {high}.")
        chosen |= set(range(begin, end + 1, step))
    return frozenset(value % 7 for value in chosen) if high == 7 else frozenset(chosen)


def on_calendar(at: str) -> list[str]:
    """Return a cron expression as systemd's calendar events: two events if cron means either of two days."""
    minute, hour, day, month, weekday = parse_times(at)

    def listed(values: frozenset[int] | None) -> str:
        return "*" if values is None else ",".join(f"{value:02d}" for value in sorted(values))

    def event(day: frozenset[int] | None, weekday: frozenset[int] | None) -> str:
        names = "" if weekday is None else ",".join(_DAYS[number] for number in sorted(weekday)) + " "
        return f"{names}*-{listed(month)}-{listed(day)} {listed(hour)}:{listed(minute)}:00 UTC"

    if day is not None and weekday is not None:
        return [event(day, None), event(None, weekday)]
    return [event(day, weekday)]


def definition(kind: str, call: Call) -> dict[str, str]:
    """Return the files of one of ``KINDS``, by name.

    For Kubernetes, a claimed volume replaces the folder of the configuration: relative paths have the same meaning in
    it.
    """
    import jinja2  # here, because help shows only the kinds
    import yaml

    if kind == "kubernetes" and call.image is None:
        raise UnsetError(
            "kubernetes: the container image is missing; name it: the Dockerfile of the repository builds one."
        )
    environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)  # noqa: S701 - none of these is HTML
    environment.filters |= {
        "shell": shlex.quote,
        "unit": _unit_word,
        "quoted": json.dumps,
        "block": lambda text: yaml.safe_dump(text, default_style="|", allow_unicode=True).rstrip("\n"),
    }
    log = f"{call.file.removesuffix('.toml')}.log"
    values = asdict(call) | {
        "command": [call.program, "schedule", call.file, "--progress", "none"],
        "events": on_calendar(call.at),
        "failed": f"{call.name} failed: see {log}",
        "key_path": posixpath.normpath(posixpath.join(_FOLDER, str(call.key_path))),
        "log": log,
    }
    template = resources.files(__package__).joinpath("template_files", f"{kind}.in").read_text(encoding="utf-8")
    _, *parts = re.split(r"^==> (.+) <==\n", environment.from_string(template).render(values), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _unit_word(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
