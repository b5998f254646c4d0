"""The local engine does each task once, also where several are one call."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from corpusveil.jobs import local
from corpusveil.storage.engine import Measured


@dataclass(frozen=True)
class Adding:
    """Measures the number of a task."""

    def __call__(self, task: int) -> Measured | None:
        return {"tasks": 1, "sum": task} if task % 5 else None


@pytest.mark.parametrize("calls", [3, 10, 4096])
def test_measures_are_those_of_all_tasks(monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    monkeypatch.setattr(local, "_CALLS", calls)
    for workers in (1, 2):
        engine = local.Local(workers)
        assert engine.run(Adding(), range(11)) == {"tasks": 8, "sum": 40}
        assert engine.run(Adding(), []) == {}
