"""Metrics and events of a run: the same names and numbers on every engine, and never text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from corpusveil import waiting
from corpusveil.cli.progress import Terminal
from corpusveil.collocations.count import CountOptions, count_corpus
from corpusveil.jobs import local
from corpusveil.jobs.beam import Beam
from corpusveil.jobs.local import Local
from corpusveil.jobs.spark import Spark
from corpusveil.storage.engine import NAMES, Measured
from corpusveil.storage.records import Beat, Records
from corpusveil.storage.rows import Columns
from corpusveil.storage.tasks import ShardTask
from corpusveil.transforms.release.corpus import CorpusIn, CorpusOut, Run, privatize_corpus
from tests.engines.corpora import Ground, make_release
from tests.passages.stores import passage_release

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


def test_progress_of_passages_counts_pieces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a whole run, and no share of words, which passages have not."""
    (tmp_path / "in.jsonl").write_text('{"text": "river"}\n')
    reads, writes = CorpusIn([str(tmp_path / "in.jsonl")], Columns()), CorpusOut(str(tmp_path / "out"))
    Run(passage_release(), reads, writes, watch=Terminal("lines").shards).privatize(Local())
    last = capsys.readouterr().err.splitlines()[-1]
    assert re.search(r"1 of 1, 1 piece, [\d,]+ pieces/s", last), last
    assert not re.search("token|word", last)


def test_who_calls_from_python_is_told_of_each_stage(tmp_path: Path) -> None:
    """Where nothing else shows it: a release, and what makes public artifacts."""
    seen = []

    class Looking(Local):
        def run(self, function: Any, tasks: Any) -> Any:
            shown = waiting._shown.get()
            seen.append(None if shown is None else shown[2])
            return super().run(function, tasks)

    (tmp_path / "in.jsonl").write_text('{"text": "the river was cold"}\n')
    privatize_corpus(passage_release(), [str(tmp_path / "in.jsonl")], str(tmp_path / "out"), Looking())
    count_corpus([str(tmp_path / "in.jsonl")], str(tmp_path / "counts"), Looking(), CountOptions(2, 1))
    assert len(seen) > 2
    assert "privatizing shards" in seen
    assert None not in seen


@dataclass(frozen=True)
class Adding:
    """Measures the number of a task."""

    def __call__(self, task: int) -> Measured | None:
        return {"tasks": 1, "sum": task} if task % 5 else None


NIGHT = (pytest.param(calls, marks=pytest.mark.nightly) for calls in (3, 4096))


@pytest.mark.parametrize("calls", [10, *NIGHT])
def test_measures_are_those_of_all_tasks(monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    monkeypatch.setattr(local, "_CALLS", calls)
    for workers in (1, 2):
        engine = local.Local(workers)
        assert engine.run(Adding(), range(11)) == {"tasks": 8, "sum": 40}
        assert engine.run(Adding(), []) == {}
