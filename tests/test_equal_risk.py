"""The benchmark's figures at equal risk: the chart and the table of the documentation are those of one file."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import pytest

from benchmarks import utility
from benchmarks.equal_risk import FILE, read_equal_risk

DOCS = Path(__file__).resolve().parents[1] / "docs"


def published() -> dict[tuple[str, str, str], float]:
    """Return the similarities on SST-2 at risk .5 that the documentation's table has, by mechanism, space and text."""
    similarities = {}
    with (DOCS / "evaluation-figures.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["table"] == "equal risk" and row["row"].startswith("SST-2; ") and row["column"] == "similarity":
                _, mechanism_and_space, _, _, text = row["row"].split("; ")
                mechanism, space = mechanism_and_space.split(", ")
                similarities[mechanism, space, text] = float(row["value"].split(" ±")[0])
    return similarities


def test_the_chart_and_the_table_of_the_documentation_are_those_of_the_file() -> None:
    """The file has no other mechanism at this risk: only measured points are in the chart."""
    assert (DOCS / "equal-risk.svg").read_text(encoding="utf-8") == read_equal_risk().chart()
    points = {(p.mechanism, p.space, p.text): p.similarity for p in read_equal_risk().points if p.risk == 0.5}
    assert points == {key: pytest.approx(value, abs=0.00055) for key, value in published().items()}


def test_the_benchmark_writes_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From cells of the values in the file, which it averages over keys."""
    known = read_equal_risk()
    assert known.as_json() == FILE.read_text(encoding="utf-8")
    values = {(p.mechanism, p.space, p.risk, p.text): p.similarity for p in known.points}
    cells = []
    for mechanism, space, risk in {key[:3]: None for key in values}:
        drawn, denoised = ({"similarity": [values[mechanism, space, risk, text]] * 5} for text in ("drawn", "denoised"))
        cells.append(utility.Cell("sst2", mechanism, space, risk, 1.0, 1.0, {}, drawn, denoised))
    (tmp_path / "cell").touch()
    monkeypatch.setattr(utility, "_path", lambda *_: tmp_path / "cell")
    monkeypatch.setattr(utility.contextual, "space", lambda *_: range(known.words))
    written = utility.equal_risk("quick", "sst2", cells[::-1])
    assert {**dataclasses.asdict(written), "measured": "", "points": set(written.points)} == {
        **dataclasses.asdict(known), "measured": "", "points": set(known.points)
    }  # fmt: skip
    assert list(written.lines()) == list(known.lines())
