"""Metrics and events of a run: the same names and numbers on every engine, and never text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from corpusveil.cli.progress import State, Terminal
from corpusveil.jobs.beam import Beam
from corpusveil.jobs.local import Local
from corpusveil.jobs.spark import Spark
from corpusveil.storage.engine import NAMES, total
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


def test_progress_goes_by_what_was_done_and_shares_by_words() -> None:
    """Punctuation and numbers are neither known nor unknown."""
    assert total([None, {"tokens": 2}, {}, {"tokens": 3, "documents": 1}]) == {"tokens": 5, "documents": 1}
    state = State(8, 2, 0, tokens=1000, privatized=400, changed=100, seconds=10.0, words=500, unknown=125)
    assert (state.rate, state.left) == (100.0, 30.0)
    assert state.shares() == ["25% of known words changed", "75% known, 25% unknown"]
    none = State(shards=8, done=0, failed=0, tokens=0, privatized=0, changed=0, seconds=0.0)
    assert (none.rate, none.left, none.shares()) == (0.0, None, [])


@pytest.mark.parametrize("is_terminal", [True, False])
def test_shares_are_for_a_terminal(
    is_terminal: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many words changed, or are unknown, is private; standard error of a scheduled run is somebody's log."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    records = Records(str(tmp_path))
    task = ShardTask(0, 1, "in.jsonl", "in.jsonl", 1, ".jsonl")
    with Terminal("lines").shards(records, [task], "privatizing shards"):
        records.write(f"progress/{task.record_name}", Beat(tokens=100, privatized=50, changed=20))
    err = capsys.readouterr().err
    assert "0 of 1 shard, 100 tokens" in err
    assert ("40% of known words changed" in err) == is_terminal
