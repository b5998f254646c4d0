"""Figures of the short table: what a file must look like, and when ``compare`` calls a row slower. Nothing is timed."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as benchmarks


def a_side(what: str, seconds: list[float]) -> dict[str, Any]:
    return {"what": what, "items": 100.0, "seconds": seconds}


def a_row(ours: list[float], *, name: str = "ring", **other: Any) -> dict[str, Any]:
    sides = {"ours": a_side("corpusveil", ours), "baseline": a_side("plain copy", [1.0, 1.0, 1.0])}
    return {"name": name, "unit": "words", "clock": "cpu", **sides, **other}


def a_run(*rows: dict[str, Any], **other: Any) -> dict[str, Any]:
    return {
        "version": 2, "when": "2026-11-22T00:00:00Z", "machine": "2 cores", "load": "0.1, 0.1", "minutes": 8.0,
        "data": "generated", "rows": list(rows), "skipped": {}, **other,
    }  # fmt: skip


@pytest.fixture
def compared(tmp_path: Path) -> Callable[[Any, Any], int]:
    def files(old: Any, new: Any) -> int:
        paths = []
        for name, content in (("old.json", old), ("new.json", new)):
            paths.append(str(tmp_path / name))
            Path(paths[-1]).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return benchmarks.main(["compare", *paths])

    return files


STEADY = [4.0, 4.1, 4.2]


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (a_row(STEADY), a_row([4.3, 4.4, 4.5]), 0),  # 7 %: less than any threshold
        (a_row(STEADY), a_row([5.2, 5.3, 5.4]), 1),
        (a_row(STEADY), a_row([8.0, 8.2, 8.4], baseline=a_side("plain copy", [2.0, 2.0, 2.0])), 0),  # a slower machine
        (a_row([3.0, 4.1, 5.2]), a_row([4.2, 5.3, 6.4]), 0),  # as much slower, but runs differ by more
    ],
)  # fmt: skip
def test_slower_is_what_grew_beyond_the_spread_of_runs(
    old: dict[str, Any],
    new: dict[str, Any],
    status: int,
    compared: Callable[[Any, Any], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert compared(a_run(old, a_row(STEADY, name="gone")), a_run(new)) == status
    said = capsys.readouterr().out
    assert ("Slower: ring." in said) == bool(status)
    assert "gone: only in the old file" in said


ROOT = Path(__file__).parents[1]
IN_ONE_PROCESS = """
import contextlib, io, json, sys
from benchmarks import __main__ as benchmarks, bench, inputs, job
def here(kind, **arguments):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        sys.stdin = io.StringIO("\\n")
        job.main(kind, **arguments)
    return json.loads(said.getvalue().splitlines()[-1])
with job.Started("copy", shards=inputs.shards()) as started:
    started.wait()
    assert started.turn()["cpu"] > 0
for group in bench.GROUPS:
    for planned in group():
        for work in (planned.ours, planned.beside):
            done = here(**work)
            assert planned.items or done["items"], planned.name
for name in ("units", "startup"):
    assert benchmarks.main([name]) == 0, name
"""


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(["-c", IN_ONE_PROCESS], id="all others", marks=pytest.mark.nightly),
        pytest.param(["-m", "benchmarks", "ledger"], id="ledger", marks=pytest.mark.nightly),  # many processes
    ],
)
def test_every_benchmark_runs_at_its_smallest_size(program: list[str]) -> None:
    """At night; by day mypy finds a name that moved."""
    smallest = {**os.environ, "CORPUSVEIL_BENCH_SMALLEST": "1"}
    done = subprocess.run(
        [sys.executable, *program], cwd=ROOT, env=smallest, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert "Skipped" not in done.stdout, done.stdout


@pytest.mark.nightly
def test_every_reader_of_the_fuzzer_holds_on_its_own_seeds() -> None:
    command = [sys.executable, "-m", "fuzz", "all", "--seeds"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
