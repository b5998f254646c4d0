"""Metrics and events of a run: the same names and numbers on every engine, and never text."""

from __future__ import annotations

import json
import random
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from corpusveil.cli.progress import Terminal
from corpusveil.jobs.beam import Beam
from corpusveil.jobs.local import Local
from corpusveil.jobs.spark import Spark
from corpusveil.storage.engine import NAMES
from corpusveil.storage.records import Beat, Records
from corpusveil.storage.tasks import ShardTask
from corpusveil.transforms.release.corpus import privatize_corpus
from tests.engines.corpora import CANARIES, NAME_CANARY, Ground, make_release, run, text_of, write_shard

pytestmark = pytest.mark.xdist_group("spark")

ENGINES = [
    pytest.param(Local(2), id="local-2"),
    pytest.param(Spark(), id="spark", marks=[pytest.mark.spark, pytest.mark.slow]),
    pytest.param(Beam(), id="beam"),
]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_measures_the_same(ground: Ground, tmp_path: Path, engine: Any) -> None:
    """The sums are those of the records; what was done before is told apart, and of all done there is nothing new."""
    arguments = (make_release(ground.space), [str(ground.corpus)], str(tmp_path / "out"), engine)
    outcome = privatize_corpus(*arguments)
    measured = {name: number for name, number in outcome.measured.items() if number}
    counts = outcome.counts
    assert set(measured) <= set(NAMES)
    assert measured == {
        "shards_done": outcome.shards,
        "documents": counts.documents,
        "tokens": counts.tokens_written,
        "privatized": counts.privatized,
        "changed": counts.privatized - counts.unchanged,
    }
    again = privatize_corpus(*arguments)
    assert (again.measured, again.run != outcome.run) == ({}, True)
    (tmp_path / "out" / "manifest.json").unlink()
    max((tmp_path / "out" / "data").iterdir()).unlink()
    assert privatize_corpus(*arguments).measured.items() >= {"shards_kept": 4, "shards_done": 1}.items()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_shares_are_for_a_terminal_and_for_no_log(
    is_terminal: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many words changed, or are unknown, is private; standard error of a scheduled run is somebody's log."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    records = Records(str(tmp_path))
    task = ShardTask(0, 1, "in.jsonl", "in.jsonl", 1, ".jsonl")
    with Terminal("lines").shards(records, [task], "run"):
        records.write(f"progress/{task.record_name}", Beat(tokens=100, privatized=50, changed=20))
    err = capsys.readouterr().err
    assert "0 of 1 shard, 100 tokens" in err
    assert ("40% of known words changed" in err) == is_terminal


LOGGED = [
    pytest.param(("--workers", 2), id="local-2"),
    pytest.param(("--engine", "spark", "--workers", 2), id="spark", marks=[pytest.mark.spark, pytest.mark.nightly]),
    pytest.param(("--engine", "beam"), id="beam", marks=pytest.mark.nightly),
]


@pytest.mark.parametrize("engine", LOGGED)
def test_the_log_is_numbers_under_one_run(ground: Ground, tmp_path: Path, engine: tuple[object, ...]) -> None:
    """Each line is whole, of the same run, and made of fixed words and numbers, from driver and workers alike."""
    rng, log = random.Random(0), tmp_path / "log.jsonl"
    for number in range(3):
        documents = [{"text": f"{text_of(rng, 5)} {word}"} for word in CANARIES.values()]
        write_shard(tmp_path / "in" / f"{NAME_CANARY}-{number}.json.gz", documents)
    done = run(*ground.arguments(tmp_path / "in", tmp_path / "out", *engine, "--log", log), home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    said = [json.loads(line) for line in log.read_text().splitlines()]
    assert len({event["run"] for event in said}) == 1
    assert [event["event"] for event in said].count("task_done") == 3
    assert {"run_begins", "progress", "run_ends"} <= {event["event"] for event in said}
    assert '"event"' not in done.stdout + done.stderr, "the numbers go to the file alone"
    assert not [event for event in said if "changed_share" in event]
    for event in said:
        values = [value for name, value in event.items() if name not in ("event", "run")]
        assert all(value is None or isinstance(value, int | float) for value in values), event
    last = next(event for event in said if event["event"] == "run_ends")
    assert last["tokens"] == sum(event["tokens"] for event in said if event["event"] == "task_done")
