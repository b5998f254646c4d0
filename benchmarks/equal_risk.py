"""Similarity of mechanisms at equal contextual risk, as measured: ``equal_risk.json`` and the chart drawn from it.

``python -m benchmarks utility --chart`` writes both.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from corpusveil.evaluation.line_charts import HEIGHT, LEFT, WIDTH, Coordinates, line_chart, line_style

FILE = Path(__file__).with_name("equal_risk.json")
OURS = ("ring-geometric", "tight-exponential")
"""Mechanisms shown on balanced spaces and denoised; all others are shown as published."""
_STYLE = (
    ":root{color-scheme:light dark;--ink:#1d2329;--grid:#d5dae0;--series-0:#1f5fa8;--series-1:#b4471b;"
    "--series-2:#2d7d46;--series-3:#7a3fa0;--series-4:#8a6d00;--series-5:#5a6570}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--grid:#3a434c;--series-0:#6fa8e8;--series-1:#f0915f;"
    "--series-2:#74c98f;--series-3:#c08be0;--series-4:#dcc04a;--series-5:#a5b0bb}}"
    "text{font:12px sans-serif;fill:var(--ink)}.grid{stroke:var(--grid)}.line{fill:none;stroke-width:2}"
)


@dataclass(frozen=True, slots=True)
class EqualRiskPoint:
    """The mean similarity of a mechanism's texts, ``drawn`` or ``denoised``, on a ``plain`` or ``balanced`` space."""

    mechanism: str
    space: str
    text: str
    risk: float
    similarity: float

    @property
    def line(self) -> str | None:
        """The line of the chart to which the point belongs; None if the chart leaves it out."""
        ours = self.mechanism in OURS
        if (self.space, self.text) != (("balanced", "denoised") if ours else ("plain", "drawn")):
            return None
        return f"{self.mechanism}, {'balanced, denoised' if ours else 'as published'}"


@dataclass(frozen=True, slots=True)
class EqualRisk:
    """The measurement: its task and texts, date (ISO), vectors, and all points."""

    task: str
    texts: int
    words: int
    keys: int
    measured: str
    similarity: str
    points: tuple[EqualRiskPoint, ...]

    def as_json(self) -> str:
        head = {name: value for name, value in dataclasses.asdict(self).items() if name != "points"}
        points = ",\n".join(f"  {json.dumps(dataclasses.asdict(point))}" for point in self.points)
        return json.dumps(head, indent=1).removesuffix("\n}") + f',\n "points": [\n{points}\n ]\n}}\n'

    def lines(self) -> dict[str, list[tuple[float, float]]]:
        lines: dict[str, list[tuple[float, float]]] = {}
        for point in self.points:
            if point.line is not None:
                lines.setdefault(point.line, []).append((point.risk, point.similarity))
        return {name: sorted(points) for name, points in lines.items()}

    def chart(self) -> str:
        """Return the chart as an SVG file."""
        return standalone(self.lines(), "contextual risk of public text", f"similarity of meaning, {self.task}")


def read_equal_risk() -> EqualRisk:
    """Return the figures of the last measurement."""
    fields = json.loads(FILE.read_text(encoding="utf-8"))
    return EqualRisk(**{**fields, "points": tuple(EqualRiskPoint(**point) for point in fields["points"])})


def standalone(series: Mapping[str, Coordinates], x_label: str, y_label: str) -> str:
    """Return a chart of shares with its legend as a separate SVG file, light and dark."""
    chart = line_chart(series, x_label, y_label, shares=True, top=1.0)
    rows = -(-len(series) // 2)
    names = []
    for number, name in enumerate(series):
        x, y = LEFT + (WIDTH - LEFT) / 2 * (number // rows), HEIGHT + 16 + 18 * (number % rows)
        style = line_style(number)
        names.append(f'<line class="line" x1="{x}" x2="{x + 28}" y1="{y - 4}" y2="{y - 4}" style="{style}"/>')
        names.append(f'<text x="{x + 34}" y="{y}">{escape(name)}</text>')
    opened = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}"'
    whole = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 18 * rows + 16}"'
    head, _, body = str(chart).replace(opened, whole, 1).partition(">")
    return f"{head}><style>{_STYLE}</style>{body.removesuffix('</svg>')}{''.join(names)}</svg>\n"
