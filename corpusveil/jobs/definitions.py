"""Definitions that start a schedule: a line for cron, units for systemd, a Kubernetes CronJob, an Airflow DAG.

Times are those of cron: minute, hour, day of the month, month, day of the week, in UTC.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from corpusveil.errors import BadValueError, UnsetError

MARK = "Written by corpusveil schedule"
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
        found = _ITEM.fullmatch(item)
        if found is None:
            raise BadValueError(
                f"at = {at}: the {name} {item} is not a number, range, list or step, such as 5, 1-5, 1,15, */2."
            )
        first, _, last = ("", "", "") if found[1] == "*" else found[1].partition("-")
        begin = int(first) if first else low
        end = int(last) if last else (high if found[1] == "*" or found[2] else begin)
        step = int(found[2]) if found[2] else 1
        if not (low <= begin <= end <= high and step):
            raise BadValueError(f"at = {at}: the {name} {item} is outside {low} to {high}.")
        chosen |= set(range(begin, end + 1, step))
    return frozenset(one % 7 for one in chosen) if high == 7 else frozenset(chosen)


def on_calendar(at: str) -> list[str]:
    """Return a cron expression as systemd's calendar events: two events if cron means either of two days."""
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
    """Return a crontab whose starts append to a log beside the configuration; cron mails only failures."""
    command = f"{shlex.quote(call.program)} schedule {shlex.quote(call.file)} --progress none"
    log = shlex.quote(f"{call.file.removesuffix('.toml')}.log")
    failed = shlex.quote(f"{call.name} failed: see {call.file.removesuffix('.toml')}.log")
    line = f"umask 077; {command} >> {log} 2>&1 || echo {failed}".replace("%", "\\%")  # % ends a line of a crontab
    text = (
        f"# {MARK}. Install: crontab -l | cat - {call.name}.cron | crontab -\n"
        "# Install it as the user who owns the key file. Times are in the time zone of this machine.\n"
        "# The next start makes up for a missed one. On failure, cron mails one line to MAILTO.\n"
        f"{call.at} {line}\n"
    )
    return {f"{call.name}.cron": text}


def systemd(call: Call) -> dict[str, str]:
    """Return a service, a timer that makes up for a missed start, and a service that reports a failure."""
    events = "".join(f"OnCalendar={event}\n" for event in on_calendar(call.at))
    words = " ".join(_unit_word(word) for word in (call.program, "schedule", call.file, "--progress", "none"))
    failure = f"{call.name}-failure.service"
    optional = "" if call.key_environment is not None else "-"  # a file that need not exist
    holds = f"# {call.key_environment}=64 hexadecimal digits, the key\n" if call.key_environment is not None else ""
    service = (
        f"# {MARK}. Install: copy the three units to /etc/systemd/system,\n"
        f"# then: systemctl daemon-reload && systemctl enable --now {call.name}.timer\n"
        f"[Unit]\nDescription=Privatize new and changed shards ({call.name})\n"
        f"Wants=network-online.target\nAfter=network-online.target\nOnFailure={failure}\n\n"
        "[Service]\nType=oneshot\n"
        f"# The user who owns the configuration; the key file must belong to the same user.\nUser={call.user}\n"
        f"# Variables such as credentials of a store, one NAME=VALUE a line; mode 0600.\n{holds}"
        f"EnvironmentFile={optional}/etc/corpusveil/{call.name}.env\n"
        f"ExecStart={words}\n"
        "UMask=0077\nNoNewPrivileges=yes\nPrivateTmp=yes\nPrivateDevices=yes\nProtectSystem=full\n"
        "ProtectKernelTunables=yes\nProtectKernelModules=yes\nProtectControlGroups=yes\nRestrictSUIDSGID=yes\n"
    )
    report = (
        f"# {MARK}. Started when {call.name}.service fails; replace ExecStart to send mail or a message.\n"
        f"[Unit]\nDescription=Report that {call.name} failed\n\n"
        "[Service]\nType=oneshot\n"
        f"ExecStart=/usr/bin/logger --priority user.err --tag {call.name} "
        f'"The last start failed. See: journalctl -u {call.name}.service"\n'
    )
    timer = (
        f"# {MARK}.\n[Unit]\nDescription=Start {call.name} on time\n\n"
        f"[Timer]\n{events}Persistent=true\nRandomizedDelaySec=60\n\n[Install]\nWantedBy=timers.target\n"
    )
    return {f"{call.name}.service": service, failure: report, f"{call.name}.timer": timer}


def _unit_word(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def kubernetes(call: Call) -> dict[str, str]:
    """Return a service account, a ConfigMap with the configuration, and a CronJob that starts it, one at a time.

    With a claim, the volume replaces the folder of the configuration: relative paths have the same meaning in it.
    """
    if call.image is None:
        raise UnsetError(
            "kubernetes: the container image is missing; name it: the Dockerfile of the repository builds one."
        )
    from corpusveil.jobs.yaml_text import yaml_of

    documents = (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": call.name}},
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": call.name},
            "data": {_CONFIGURATION: call.text},
        },
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": call.name},
            "spec": {
                "schedule": call.at,
                "timeZone": "Etc/UTC",
                "concurrencyPolicy": "Forbid",
                "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 3,
                "jobTemplate": {"spec": {"backoffLimit": 2, "template": {"spec": _pod(call)}}},
            },
        },
    )
    given = "literal=key=64_HEXADECIMAL_DIGITS" if call.key_environment is not None else "file=key=release.key"
    how = (
        f"# {MARK}. Install: kubectl apply -f {call.name}.yaml\n"
        f"# The key: kubectl create secret generic {call.name}-key --from-{given}\n"
        + (_OF_THE_KEY if call.key_environment is None else "")
        + "# Resources are a starting point: a worker takes about 1 GiB and one CPU.\n"
        "# Credentials of a store belong to the service account (workload identity).\n"
    )
    return {f"{call.name}.yaml": how + yaml_of(documents)}


_CONFIGURATION = "schedule.toml"
_FOLDER = "/etc/corpusveil"
_SCRATCH = "/tmp"  # noqa: S108 - of the container
_OF_THE_KEY = (
    "# The file of the key is root's and has mode 0400, because a key that others may read is refused. To run as\n"
    "# another user, give the key by key.environment instead.\n"
)


def _pod(call: Call) -> dict[str, object]:
    """Return the pod: without privileges, and with a file system that is read-only except for its volumes."""
    container: dict[str, Any] = {
        "name": "corpusveil",
        "image": call.image,
        "command": ["corpusveil", "schedule", f"{_FOLDER}/{_CONFIGURATION}", "--progress", "none"],
        "workingDir": _SCRATCH,
        "env": [{"name": "HOME", "value": _SCRATCH}],  # where compiled loops are kept
        "resources": {
            "requests": {"cpu": str(call.workers), "memory": f"{1 + call.workers}Gi"},
            "limits": {"memory": f"{2 + 2 * call.workers}Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [],
    }
    pod: dict[str, Any] = {
        "serviceAccountName": call.name,
        "automountServiceAccountToken": False,
        "restartPolicy": "OnFailure",
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [],
    }

    def mount(name: str, volume: Mapping[str, object], path: str, **more: object) -> None:
        pod["volumes"].append({"name": name, **volume})
        container["volumeMounts"].append({"name": name, "mountPath": path, **more})

    mount("scratch", {"emptyDir": {}}, _SCRATCH)
    if call.claim is not None:
        mount("data", {"persistentVolumeClaim": {"claimName": call.claim}}, _FOLDER)
    configuration = {"configMap": {"name": call.name}}
    one_file = {"subPath": _CONFIGURATION, "readOnly": True}
    mount("configuration", configuration, f"{_FOLDER}/{_CONFIGURATION}", **one_file)
    if call.key_environment is not None:
        reference = {"secretKeyRef": {"name": f"{call.name}-key", "key": "key"}}
        container["env"].append({"name": call.key_environment, "valueFrom": reference})
        pod["securityContext"] |= {"runAsNonRoot": True, "runAsUser": _USER, "runAsGroup": _USER, "fsGroup": _USER}
    else:
        path = posixpath.normpath(posixpath.join(_FOLDER, str(call.key_path)))
        secret = {"secretName": f"{call.name}-key", "defaultMode": 0o400}
        mount("key", {"secret": secret}, path, subPath="key", readOnly=True)
    return pod


_USER = 10001
"""The user of the image that the Dockerfile builds."""


def airflow(call: Call) -> dict[str, str]:
    """Return a DAG of one task; the next start makes up for a missed one, and only one runs at a time."""
    command = f"{shlex.quote(call.program)} schedule {shlex.quote(call.file)} --progress none"
    quoted = json.dumps("{% raw %}" + command + "{% endraw %} ")  # otherwise Jinja interprets it as a template
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
