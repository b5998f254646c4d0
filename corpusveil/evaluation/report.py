"""The report of an evaluation: one self-contained page, with charts, tables and, where it is private, texts."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from corpusveil.evaluation.charts import legend, line_chart
from corpusveil.evaluation.findings import GROUPS, Example, Findings, Measure
from corpusveil.storage import files
from corpusveil.transforms.pages import environment

TILES = ("words unchanged", "words guessed from context", "similarity of meaning", "accuracy, private to private")
CHARTS = {
    "Privacy and utility by epsilon": (
        ("words unchanged", "words guessed from context", "similarity of meaning", "accuracy, private to private",
         "attribute, adaptive"),
        "Bars: standard deviations over seeds. Each point is a privatization of its own, by a key thrown away.",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Chart:
    title: str
    note: str
    svg: Markup
    legend: Markup


def write_report(found: Findings, folder: str, *, publishable: bool = False) -> str:
    """Write ``report.html``, ``report.json`` and ``report.csv`` into a folder; return the address of the page.

    Unless ``publishable``, they hold original text and figures of it, and get mode 0600 on a local disk.
    """
    shown = found.publishable() if publishable else found
    private = not publishable
    files.write_bytes(files.join(folder, "report.json"), shown.as_json(), private=private)
    files.write_bytes(files.join(folder, "report.csv"), shown.as_csv(), private=private)
    page = files.join(folder, "report.html")
    files.write_bytes(page, render(shown).encode(), private=private)
    return page


def render(found: Findings) -> str:
    """Return the page."""
    template = environment("corpusveil.evaluation", "release.html").get_template("release.html")
    tiles = [one for name in TILES for one in found.measures if one.name == name and one.epsilon is None]
    examples = [
        {"original": one.original, "versions": [(label, marked(one.original, text)) for label, text in one.versions]}
        for one in found.examples
    ]
    return template.render(found=found, groups=GROUPS, tiles=tiles, charts=_charts(found.measures), examples=examples)


def _charts(measures: Sequence[Measure]) -> list[_Chart]:
    charts = []
    for title, (names, note) in CHARTS.items():
        lines: dict[str, list[tuple[float, float]]] = defaultdict(list)
        spread: dict[str, list[float]] = defaultdict(list)
        for one in sorted((one for one in measures if one.epsilon is not None), key=lambda one: one.epsilon or 0):
            if one.name in names and one.epsilon:
                lines[one.name].append((one.epsilon, one.value))
                spread[one.name].append(one.deviation or 0.0)
        drawn = {name: points for name, points in lines.items() if len(points) > 1}
        if drawn:
            svg = line_chart(drawn, "epsilon", "share", top=1.0, spread=spread)
            charts.append(_Chart(title, note, Markup(svg), Markup(legend(list(drawn)))))  # noqa: S704 - escaped there
    return charts


def marked(original: str, private: str) -> list[tuple[str, bool]]:
    """Return the words of a private text, each with whether it differs from what stood there."""
    before = [word.lower() for word in original.split()]
    words = private.split()
    matcher = difflib.SequenceMatcher(None, before, [word.lower() for word in words], autojunk=False)
    same = {at for block in matcher.get_matching_blocks() for at in range(block.b, block.b + block.size)}
    return [(word, at not in same) for at, word in enumerate(words)]


def examples_of(
    originals: Sequence[str], versions: dict[str, Sequence[str]], count: int = 5, most: int = 400
) -> tuple[Example, ...]:
    """Return some texts, shortened to so many characters, with all their versions."""
    places = [at for at, text in enumerate(originals) if len(text.split()) > 3][:count]
    return tuple(
        Example(originals[at][:most], tuple((label, texts[at][:most]) for label, texts in versions.items()))
        for at in places
    )
