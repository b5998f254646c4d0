"""The definitions of docs/schedules.md for cron, systemd, Kubernetes and Airflow are read by parsers of each."""

from __future__ import annotations

import ast
import configparser
import re
from pathlib import Path

import kubernetes_validate
import yaml
from croniter import croniter

PAGE = Path(__file__).parents[1] / "docs/schedules.md"


def blocks(kind: str) -> list[str]:
    text = PAGE.read_text().partition("## Deployments")[2]
    return re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)


def test_each_definition_is_read_and_starts_the_schedule() -> None:
    (cron,), (python,), (manifest,), units = (blocks(kind) for kind in ("cron", "python", "yaml", "ini"))
    assert croniter.is_valid(" ".join(cron.split()[:5]))
    job = yaml.safe_load(manifest)
    kubernetes_validate.validate(job, "1.31", strict=True)
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["command"][:2] == ["corpusveil", "schedule"]
    ast.parse(python)
    parsed = configparser.ConfigParser()
    for unit in units:
        parsed.read_string(unit)
    assert set(parsed.sections()) == {"Service", "Timer", "Install"}
    for text in (cron, python, parsed["Service"]["ExecStart"]):
        assert "corpusveil schedule /srv/veil/release.toml" in text
