"""Similarity of mechanisms at equal contextual risk, measured by the benchmark, and the place of a release.

``equal_risk.json`` is written by ``python -m benchmarks utility --chart``, which draws the chart of the documentation
from the same values.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from corpusveil.evaluation.attacks.word_attacks import FROM_CONTEXT
from corpusveil.evaluation.report.line_charts import Mark, legend, line_chart, standalone
from corpusveil.evaluation.statistics.encoders import FLATTERS
from corpusveil.evaluation.statistics.figure import Figure
from corpusveil.evaluation.statistics.similarity import CS

FILE = "equal_risk.json"
OURS = ("ring-geometric", "tight-exponential")
"""Mechanisms shown on balanced spaces and denoised; all others are shown as published."""
OTHER_SCALE = "Do not compare its height with the lines: similarity depends on the texts and on the vectors."
CAVEATS = (
    "A dash is a mechanism that was measured at one risk only. Denoising raises the other mechanisms, too; the risk "
    "of cmp is a lower bound."
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

    def labels(self) -> tuple[str, str]:
        return "contextual risk of public text", f"similarity of meaning, {self.task}"

    def standalone(self) -> str:
        """Return the chart as an SVG file."""
        return standalone(self.lines(), *self.labels(), shares=True, top=1.0)

    def beside(self, released: Mapping[str, Figure]) -> tuple[str, str, str]:
        """Return the chart with a release's own place, its legend, and a note; figures of the release by name."""
        mark, told = _own_place(released)
        note = (
            f"The lines and dashes were measured by the benchmark on {self.task}, not on this corpus. Each mechanism "
            "has the epsilons at which an attacker who uses context guesses the same share of words of public text; "
            f"similarity is measured on {self.texts:,} texts of {self.task}, by {self.similarity} (a space of "
            f"{self.words:,} words, means of {self.keys} keys, {self.measured}). {CAVEATS}"
        )
        lines = self.lines()
        return line_chart(lines, *self.labels(), shares=True, top=1.0, mark=mark), legend(list(lines)), f"{note} {told}"


@functools.cache
def read_equal_risk() -> EqualRisk:
    """Return the figures that come with the package."""
    told = json.loads((resources.files(__package__) / FILE).read_text(encoding="utf-8"))
    return EqualRisk(**{**told, "points": tuple(EqualRiskPoint(**point) for point in told["points"])})


def _own_place(released: Mapping[str, Figure]) -> tuple[Mark | None, str]:
    """Return the place of a release, without a height unless independent vectors measured it, and a note on it."""
    risk, similar = released.get(FROM_CONTEXT.name), released.get(CS.name)
    if risk is None:
        return None, f"This release is not marked: this report has no figure of {FROM_CONTEXT.name}."
    told = f"Vertical line: this release, at its {FROM_CONTEXT.name} ({risk}), measured on its own text."
    if similar is None or not similar.model or similar.model.endswith(FLATTERS):
        return Mark(
            "this release", risk.value
        ), f"{told} It has no height, because no independent vectors measured its similarity."
    circle = f"Circle: its {CS.name} ({similar}), by {similar.model}. {OTHER_SCALE}"
    return Mark("this release", risk.value, (similar.value,)), f"{told} {circle}"
