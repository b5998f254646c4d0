"""Metrics and events of a run: the same names and numbers on every engine, and never text."""

from __future__ import annotations

import re
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
from tests.engines.corpora import Ground, make_release

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
    assert again.measured == {}
    (tmp_path / "out" / "manifest.json").unlink()
    max((tmp_path / "out" / "data").iterdir()).unlink()
    assert privatize_corpus(*arguments).measured.items() >= {"shards_kept": 4, "shards_done": 1}.items()


def test_progress_says_how_much_and_no_share_of_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """How many words changed, or are unknown, is private; standard error of a scheduled run is somebody's log."""
    records = Records(str(tmp_path))
    task = ShardTask(0, 1, "in.jsonl", "in.jsonl", 1, ".jsonl")
    with Terminal("lines").shards(records, [task], "privatizing shards"):
        records.write(f"progress/{task.record_name}", Beat(tokens=100, privatized=50, changed=20))
    err = capsys.readouterr().err
    assert "0 of 1, 100 tokens" in err
    assert not re.search("%|changed|known", err)
