"""Definitions that start a schedule: a line for cron, units for systemd, a Kubernetes CronJob, an Airflow DAG.

Times are those of cron: minute, hour, day of the month, month, day of the week, in UTC.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from corpusveil.errors import BadValueError, UnsetError

MARK = "Written by corpusveil schedule"
_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of the month", 1, 31), ("month", 1, 12), ("day of the week", 0, 7))
_ITEM = re.compile(r"(\*|\d{1,2}(?:-\d{1,2})?)(?:/(\d{1,2}))?")
_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")


@dataclass(frozen=True, slots=True)
class Call:
    """What is to be started: the program, the configuration by its whole path, and a name for it all."""

    name: str
    at: str
    program: str
    file: str
    image: str | None = None
    text: str = ""
    """The configuration itself, for a cluster that does not have the file."""
    key_path: str | None = None
    key_environment: str | None = None


def parse_times(at: str) -> tuple[frozenset[int] | None, ...]:
    """Return the five fields of a cron expression as sets, None where ``*`` allows all. Raises UserError for others."""
    words = at.split()
    if len(words) != len(_FIELDS):
        raise BadValueError(f"--at {at}: give five fields of a cron expression: minute, hour, day, month, weekday.")
    return tuple(_field(at, word, *field) for word, field in zip(words, _FIELDS, strict=True))


def _field(at: str, word: str, name: str, low: int, high: int) -> frozenset[int] | None:
    if word == "*":
        return None
    chosen: set[int] = set()
    for item in word.split(","):
        found = _ITEM.fullmatch(item)
        if found is None:
            raise BadValueError(
                f"--at {at}: the {name} {item} is not a number, range, list or step, such as 5, 1-5, 1,15, */2."
            )
        first, _, last = ("", "", "") if found[1] == "*" else found[1].partition("-")
        begin = int(first) if first else low
        end = int(last) if last else (high if found[1] == "*" or found[2] else begin)
        step = int(found[2]) if found[2] else 1
        if not (low <= begin <= end <= high and step):
            raise BadValueError(f"--at {at}: the {name} {item} is outside {low} to {high}.")
        chosen |= set(range(begin, end + 1, step))
    return frozenset(one % 7 for one in chosen) if high == 7 else frozenset(chosen)


def on_calendar(at: str) -> list[str]:
    """Return a cron expression as systemd's calendar events; where cron means either of two days, two of them."""
    minute, hour, day, month, weekday = parse_times(at)

    def listed(values: frozenset[int] | None) -> str:
        return "*" if values is None else ",".join(f"{one:02d}" for one in sorted(values))

    def event(day: frozenset[int] | None, weekday: frozenset[int] | None) -> str:
        names = "" if weekday is None else ",".join(_DAYS[one] for one in sorted(weekday)) + " "
        return f"{names}*-{listed(month)}-{listed(day)} {listed(hour)}:{listed(minute)}:00 UTC"

    if day is not None and weekday is not None:
        return [event(day, None), event(None, weekday)]
    return [event(day, weekday)]


def cron(call: Call) -> dict[str, str]:
    """Return a crontab; what is said goes to cron."""
    command = f"{shlex.quote(call.program)} schedule {shlex.quote(call.file)}"
    escaped = command.replace("%", "\\%")  # which cron takes for the end of a line
    text = (
        f"# {MARK}. Install: crontab -l | cat - {call.name}.cron | crontab -\n"
        f"# Times are those of this machine. A start that was missed is made up for by the next.\n"
        f"{call.at} {escaped} --progress none\n"
    )
    return {f"{call.name}.cron": text}


def systemd(call: Call) -> dict[str, str]:
    """Return a service and a timer that makes up for a missed start."""
    events = "".join(f"OnCalendar={one}\n" for one in on_calendar(call.at))
    words = " ".join(_unit_word(word) for word in (call.program, "schedule", call.file, "--progress", "none"))
    service = (
        f"# {MARK}. Install: copy both units to /etc/systemd/system,\n"
        f"# systemctl enable --now {call.name}.timer\n"
        f"[Unit]\nDescription=Privatize what is new ({call.name})\n"
        "Wants=network-online.target\nAfter=network-online.target\n\n"
        f"[Service]\nType=oneshot\nExecStart={words}\n"
        "UMask=0077\nPrivateTmp=yes\nNoNewPrivileges=yes\n"
    )
    timer = (
        f"# {MARK}.\n[Unit]\nDescription=When to privatize what is new ({call.name})\n\n"
        f"[Timer]\n{events}Persistent=true\nRandomizedDelaySec=60\n\n[Install]\nWantedBy=timers.target\n"
    )
    return {f"{call.name}.service": service, f"{call.name}.timer": timer}


def _unit_word(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def kubernetes(call: Call) -> dict[str, str]:
    """Return a ConfigMap with the configuration and a CronJob that starts it, one at a time."""
    if call.image is None:
        raise UnsetError(
            "--write kubernetes: the container image is missing; name an image with corpusveil in it by --image."
        )
    mounts = [{"name": "configuration", "mountPath": "/etc/corpusveil", "readOnly": True}]
    volumes: list[object] = [{"name": "configuration", "configMap": {"name": call.name}}]
    container: dict[str, object] = {
        "name": "corpusveil",
        "image": call.image,
        "command": ["corpusveil", "schedule", "/etc/corpusveil/schedule.toml", "--progress", "none"],
        "workingDir": "/tmp",  # noqa: S108 - of the container
        "volumeMounts": mounts,
        "securityContext": {"allowPrivilegeEscalation": False},
    }
    if call.key_environment is not None:
        reference = {"secretKeyRef": {"name": f"{call.name}-key", "key": "key"}}
        container["env"] = [{"name": call.key_environment, "valueFrom": reference}]
    else:
        path = str(call.key_path)
        folder, _, name = path.rpartition("/")
        if not folder:
            raise BadValueError(f"--write kubernetes: key.path = {path}: give an absolute path of the container.")
        mounts.append({"name": "key", "mountPath": folder, "readOnly": True})
        items = [{"key": "key", "path": name}]
        secret = {"secretName": f"{call.name}-key", "defaultMode": 0o400, "items": items}
        volumes.append({"name": "key", "secret": secret})
    configuration = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": call.name},
        "data": {"schedule.toml": call.text},
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": call.name},
        "spec": {
            "schedule": call.at,
            "timeZone": "Etc/UTC",
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {
                "spec": {
                    "backoffLimit": 2,
                    "template": {"spec": {"restartPolicy": "OnFailure", "containers": [container], "volumes": volumes}},
                }
            },
        },
    }
    how = (
        f"# {MARK}. Install: kubectl apply -f {call.name}.yaml\n"
        f"# The key: kubectl create secret generic {call.name}-key --from-file=key=release.key"
        + (" (as 64 hex digits)\n" if call.key_environment is not None else f"\n{_OF_THE_KEY}")
    )
    return {f"{call.name}.yaml": how + "\n---\n".join(map(_yaml, (configuration, job))) + "\n"}


_OF_THE_KEY = (
    "# Its file is root's and has mode 0400, as a key that others may read is refused. fsGroup would make it 0440:\n"
    "# for a container of another user give the key by key.environment instead.\n"
)


def _yaml(value: object) -> str:
    return json.dumps(value, indent=2)  # which is YAML


def airflow(call: Call) -> dict[str, str]:
    """Return a DAG of one task; a missed start is made up for by the next, and one runs at a time."""
    command = f"{shlex.quote(call.program)} schedule {shlex.quote(call.file)} --progress none"
    quoted = json.dumps("{% raw %}" + command + "{% endraw %} ")  # it is a template of Jinja's otherwise
    text = f'''"""{MARK}. Install: copy it to the DAGs folder."""

from datetime import datetime, timedelta, timezone

from airflow import DAG

try:
    from airflow.providers.standard.operators.bash import BashOperator
except ImportError:  # before Airflow 3
    from airflow.operators.bash import BashOperator

with DAG(
    dag_id={json.dumps(call.name)},
    schedule={json.dumps(call.at)},
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    default_args={{"retries": 2, "retry_delay": timedelta(minutes=5)}},
    tags=["corpusveil"],
):
    # The space at the end keeps Airflow from taking a name that ends in .sh for a template file.
    BashOperator(task_id="privatize", bash_command={quoted}, append_env=True)
'''
    return {f"{call.name.replace('-', '_')}.py": text}


KINDS: Mapping[str, Callable[[Call], dict[str, str]]] = {
    "cron": cron,
    "systemd": systemd,
    "kubernetes": kubernetes,
    "airflow": airflow,
}
