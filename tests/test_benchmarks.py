"""Benchmarks and the fuzzer run at their smallest size, at night. Nothing is timed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS

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


FUZZ = ["-m", "fuzz", "all", "--seeds"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    "program", [["-c", IN_ONE_PROCESS], ["-m", "benchmarks", "ledger"], FUZZ], ids=["one process", "ledger", "fuzz"]
)
def test_every_benchmark_and_reader_of_the_fuzzer_runs_at_its_smallest_size(program: list[str]) -> None:
    """At night; by day mypy finds a name that moved."""
    smallest = {**os.environ, "CORPUSVEIL_BENCH_SMALLEST": "1"}
    done = subprocess.run(
        [sys.executable, *program], cwd=ROOT, env=smallest, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert "Skipped" not in done.stdout, done.stdout


def test_a_page_names_a_benchmark_that_exists_or_the_commit_that_has_it() -> None:
    named = r"`python\s+-m\s+benchmarks\s+([a-z]+)[^`]*`(,\s+commit\s+[0-9a-f]{7})?"
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for name, commit in re.findall(named, page.read_text()):
            assert commit or name in BENCHMARKS, (page.name, name)
