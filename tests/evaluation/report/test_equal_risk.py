"""The benchmark's figures at equal risk: one file is the chart of the documentation and that of every report."""

from __future__ import annotations

import csv
import dataclasses
import re
import zipfile
from html import unescape
from pathlib import Path

import pytest

from corpusveil.deployment.wheel import build_wheel
from corpusveil.evaluation.report.equal_risk import FILE, OTHER_SCALE, EqualRisk, read_equal_risk
from corpusveil.evaluation.report.findings import Findings
from corpusveil.evaluation.report.line_charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH
from corpusveil.evaluation.report.release_page import render
from corpusveil.evaluation.statistics.encoders import FLATTERS
from corpusveil.evaluation.statistics.figure import Figure

ROOT = Path(__file__).resolve().parents[3]
RISK = Figure("attack", "words guessed from context", 0.62)
SIMILAR = Figure("utility", "similarity of meaning", 0.81, model="sentence encoder minilm")
BY_OWN_VECTORS = dataclasses.replace(SIMILAR, model=f"averaged space vectors, centred{FLATTERS}")


def page_of(*measures: Figure) -> str:
    return render(Findings("t", 1, 1, (), (), measures))


def section(page: str) -> str:
    """Return the section of a report, up to the end of its note."""
    return page.split("<h2>Equal risk, side by side</h2>")[1].split("</p>", maxsplit=1)[0]


def chart(page: str) -> str:
    return section(page).split('<div class="chart">')[1].split("</div>")[0]


def place(x: float, y: float) -> tuple[float, float]:
    """Return where a risk and a similarity are to be drawn."""
    return LEFT + x * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y * (HEIGHT - TOP - BOTTOM)


def published() -> dict[tuple[str, str, str], float]:
    """Return the similarities on SST-2 at risk .5 that the documentation's table has, by mechanism, space and text."""
    published = {}
    with (ROOT / "docs" / "evaluation-figures.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["table"] == "equal risk" and row["row"].startswith("SST-2; ") and row["column"] == "similarity":
                _, mechanism_and_space, _, _, text = row["row"].split("; ")
                mechanism, space = mechanism_and_space.split(", ")
                published[mechanism, space, text] = float(row["value"].split(" ±")[0])
    return published


def test_the_chart_of_the_documentation_is_drawn_from_the_file() -> None:
    assert (ROOT / "docs" / "equal-risk.svg").read_text(encoding="utf-8") == read_equal_risk().standalone()


def test_the_file_has_the_figures_that_the_documentation_has() -> None:
    """It has no other mechanism at this risk: only measured points are in the chart."""
    points = {(p.mechanism, p.space, p.text): p.similarity for p in read_equal_risk().points if p.risk == 0.5}
    assert points == {key: pytest.approx(value, abs=0.00055) for key, value in published().items()}


def test_the_file_is_written_as_it_is_read() -> None:
    told = (ROOT / "corpusveil" / "evaluation" / "report" / FILE).read_text(encoding="utf-8")
    assert read_equal_risk().as_json() == told
    assert dataclasses.replace(read_equal_risk(), keys=4).as_json() != told


def test_a_report_has_every_point_of_the_file_and_says_where_it_was_measured() -> None:
    shown = section(page_of())
    for name, points in read_equal_risk().lines().items():
        (drawn,) = re.findall(rf'points="([^"]+)"><title>{name}<', shown)
        found = [tuple(map(float, pair.split(","))) for pair in drawn.split()]
        if len(points) == 1:  # a dash about it
            found = [((found[0][0] + found[1][0]) / 2, found[0][1])]
        assert found == [pytest.approx(place(*point), abs=0.06) for point in points], name
        assert f"</svg> {name}</li>" in shown
    assert "measured by the benchmark on SST-2, not on this corpus" in shown
    assert "2026-11-22" in shown


def test_a_release_stands_where_its_figures_say() -> None:
    drawn = chart(page_of(RISK, SIMILAR))
    (circle,) = re.findall(r'<circle class="line own" cx="([\d.]+)" cy="([\d.]+)"', drawn)
    assert tuple(map(float, circle)) == pytest.approx(place(0.62, 0.81), abs=0.06)
    assert f'x1="{place(0.62, 0)[0]:.1f}" x2="{place(0.62, 0)[0]:.1f}" y1="{TOP}"' in drawn
    note = unescape(section(page_of(RISK, SIMILAR)))
    assert "(62.0%)" in note
    assert "(81.0%), by sentence encoder minilm" in note
    assert OTHER_SCALE in note


@pytest.mark.parametrize("similar", [(), (BY_OWN_VECTORS,)])
def test_a_similarity_that_flatters_is_not_drawn(similar: tuple[Figure, ...]) -> None:
    """Nor one that nobody measured; the risk still is."""
    page = page_of(RISK, *similar)
    assert "<circle" not in page
    assert ">this release<" in chart(page)
    assert "It has no height" in section(page)


def test_a_release_without_a_risk_is_not_marked() -> None:
    at_another_epsilon = dataclasses.replace(RISK, epsilon=3.0, mechanism="santext")
    page = page_of(SIMILAR, at_another_epsilon)
    assert chart(page) == chart(page_of())
    assert "This release is not marked" in section(page)


def test_the_wheel_has_the_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(build_wheel(tmp_path)) as wheel:
        told = wheel.read(f"corpusveil/evaluation/report/{FILE}").decode()
    assert told == read_equal_risk().as_json()


def test_the_benchmark_writes_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From cells of the values in the file, which it averages over keys."""
    from benchmarks import utility

    known: EqualRisk = read_equal_risk()
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
