"""A statistic that stands in one new file reaches page, JSON and CSV of a release's report, and a study's table."""

from __future__ import annotations

import csv
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpusveil_evaluate import statistics
from corpusveil_evaluate.matching import Matched
from corpusveil_evaluate.report.evaluate_release import evaluate_release
from corpusveil_evaluate.report.question import Question
from corpusveil_evaluate.report.release_page import write_report
from corpusveil_evaluate.statistics import statistic

NAME = "words a private text has"
FILE = f'''
"""The mean number of words of a private text."""

from corpusveil_evaluate.statistics.statistic import register
from corpusveil_evaluate.statistics.statistic import Reading


def _compute(evidence):
    yield Reading(sum(len(text.split()) for text in evidence.privates) / len(evidence.privates), note="by blanks")


register("{NAME}", group="utility", key="length", unit="number", tile=True, floor="an empty text",
    floor_of=lambda evidence: 0.0, compute=_compute)
'''


@pytest.fixture
def new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Add a file to the statistics, and change nothing else."""
    folder = tmp_path / "statistics"
    folder.mkdir()
    (folder / "words_a_text.py").write_text(FILE)
    monkeypatch.setattr(statistics, "__path__", [*statistics.__path__, str(folder)])
    importlib.invalidate_caches()
    statistic._load_all.cache_clear()
    yield
    statistic._BY_NAME.pop(NAME, None)
    sys.modules.pop(f"{statistics.__name__}.words_a_text", None)


def report(folder: Path) -> Path:
    originals = [f"the lake was cold and deep on day {['one', 'two', 'three', 'four'][row % 4]}" for row in range(8)]
    matched = Matched(originals, ["a b c d" for _ in originals], len(originals), chosen=len(originals))
    write_report(evaluate_release(matched, None, Question()), str(folder))
    return folder


@pytest.mark.usefixtures("new_file")
def test_a_statistic_in_one_new_file_reaches_page_json_and_csv(tmp_path: Path) -> None:
    folder = report(tmp_path / "report")
    figures = {one["name"]: one for one in json.loads((folder / "report.json").read_bytes())["measures"]}
    assert figures[NAME]["value"] == 4
    assert (figures[NAME]["group"], figures[NAME]["floor"]) == ("utility", 0.0)
    with (folder / "report.csv").open(newline="") as file:
        assert [row["value"] for row in csv.DictReader(file) if row["name"] == NAME] == ["4.0"]
    page = (folder / "report.html").read_text()
    assert f"<tr><td>{NAME}<br>" in page  # its row
    assert f"<b>4</b><span>{NAME}<br>floor 0.0%: an empty text" in page  # its tile
