"""The report of an evaluation: one self-contained page, with charts, tables and, if it is private, texts."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from corpusveil.evaluation.attacks.attribute_inference import Readable
from corpusveil.evaluation.attacks.word_attacks import BAYES_OPTIMAL
from corpusveil.evaluation.report.equal_risk import read_equal_risk
from corpusveil.evaluation.report.findings import EQUAL, GROUPS, Example, Findings
from corpusveil.evaluation.report.line_charts import Mark, legend, line_chart
from corpusveil.evaluation.statistics import registry
from corpusveil.evaluation.statistics.figure import Figure
from corpusveil.evaluation.statistics.statistic import Statistic
from corpusveil.language.denoise import NO_FACTS
from corpusveil.storage import files
from corpusveil.transforms.release.illustration import Guess
from corpusveil.transforms.release.pages import environment

BARS = "Bars: standard deviations over seeds. Each point is a separate release, under a throwaway key."

THIS = "this release"
SIDES = ("released", "denoised")
"""Versions of a text that are shown beside it; others are folded."""
UNCHANGED = "words unchanged"

FigureName = tuple[str, str, str]
"""Mechanism, figure and model: a row of a table over epsilons."""


@dataclass(frozen=True, slots=True)
class _Tile:
    value: str
    name: str
    of: str
    model: str
    floor: str
    filled: float | None = None
    """The figure as a share of the whole, and the place of its floor; None for other figures."""
    floor_at: float | None = None


@dataclass(frozen=True, slots=True)
class _Own:
    """The release itself: its mechanism, the epsilon of its budget, and its figures by name."""

    mechanism: str
    epsilon: float
    figures: Mapping[str, Figure]

    def mark(self, names: Sequence[str], *, at_risk: bool = False) -> Mark | None:
        """Return its place in a chart of these figures over epsilon, or over the best attacker's risk."""
        ys = tuple(self.figures[name].value for name in names if name in self.figures)
        if not at_risk:
            return Mark(THIS, self.epsilon, ys)
        risk = self.figures.get(BAYES_OPTIMAL.name)
        return None if risk is None else Mark(THIS, risk.value, ys)


@dataclass(frozen=True, slots=True)
class _Chart:
    title: str
    note: str
    svg: Markup
    legend: Markup


@dataclass(frozen=True, slots=True)
class _Table:
    """Figures with one column for each epsilon or risk; a missing figure is None."""

    title: str
    note: str
    heads: tuple[str, ...]
    rows: tuple[tuple[FigureName, tuple[Figure | None, ...]], ...]


def write_report(findings: Findings, folder: str, *, publishable: bool = False) -> str:
    """Write ``report.html``, ``report.json`` and ``report.csv`` into a folder; return the address of the page.

    Unless ``publishable``, they hold original text and figures of it, and get mode 0600 on a local disk.
    """
    shown = findings.publishable() if publishable else findings
    private = not publishable
    files.write_bytes(files.join(folder, "report.json"), shown.as_json(), private=private)
    files.write_bytes(files.join(folder, "report.csv"), shown.as_csv(), private=private)
    page = files.join(folder, "report.html")
    files.write_bytes(page, render(shown).encode(), private=private)
    return page


def render(findings: Findings) -> str:
    """Return the page."""
    template = environment("corpusveil.evaluation.report", "release.html").get_template("release.html")
    released = {
        measure.name: measure for measure in reversed(findings.measures) if measure.epsilon is None
    }  # the first of several models
    tiles = [
        _tile(released[statistic.name], statistic, released)
        for statistic in registry.statistics()
        if statistic.tile and statistic.name in released
    ]
    examples = [
        {
            "original": example.original,
            "sides": [(label, marked(example.original, text)) for label, text in example.versions if label in SIDES],
            "others": [
                (label, marked(example.original, text)) for label, text in example.versions if label not in SIDES
            ],
        }
        for example in findings.examples
    ]
    return template.render(
        found=findings, groups=GROUPS, tiles=tiles, charts=_charts(findings.measures, _own(findings, released)),
        tables=_tables(findings.measures), examples=examples, of=lambda name: registry.find(name).of,
        no_facts=NO_FACTS if any("denoised" in dict(example.versions) for example in findings.examples) else None,
        equal_risk=_equal_risk(released), picture=findings.picture, unchanged=released.get(UNCHANGED),
        guess=_guess(findings, released),
    )  # fmt: skip


def _guess(findings: Findings, released: Mapping[str, Figure]) -> Guess | None:
    """Return the share that the best attacker on single words guesses, unless the mechanism's pictures show it."""
    pictured = findings.picture is not None and findings.picture.own.guess is not None
    found = released.get(BAYES_OPTIMAL.name)
    return None if pictured or found is None else Guess(found.value, found.floor or 0.0)


def _own(findings: Findings, released: Mapping[str, Figure]) -> _Own | None:
    """Return the place of the release in the charts; None for texts that are not a release of ours."""
    told = findings.configuration
    if not told:
        return None
    return _Own(told["mechanism"]["name"], float(told["budget"]["epsilon"]), released)


def _tile(measure: Figure, statistic: Statistic, released: Mapping[str, Figure]) -> _Tile:
    """Return a figure with its whole, and the floor to compare it with."""
    floor = released[statistic.floor_from].value if statistic.floor_from in released else measure.floor
    beside = "" if floor is None else f"floor {floor:.1%}: {statistic.floor}"
    filled = min(max(measure.value, 0.0), 1.0) if measure.unit == "share" else None
    return _Tile(
        str(measure).split(" ±")[0], measure.name, statistic.of, measure.model, beside, filled,
        None if filled is None else floor,
    )  # fmt: skip


def _charts(measures: Sequence[Figure], release: _Own | None) -> list[_Chart]:
    """Return the charts with points: one of the release's mechanism, others of several mechanisms.

    Each marks the release itself.
    """
    swept = sorted(
        (measure for measure in measures if measure.epsilon and measure.group != EQUAL),
        key=lambda figure: figure.epsilon or 0,
    )
    names = list(dict.fromkeys(measure.mechanism for measure in measures if measure.epsilon))
    own = [figure for figure in swept if figure.mechanism in names[:1] and figure.group != "curve"]
    points = [(figure.name, figure) for figure in own if registry.find(figure.name).swept]
    charts = [_chart("Privacy and utility by epsilon", BARS, points, release, list(dict(points)))]
    by_rank = registry.compared()
    useful = [
        figure.name for figure in by_rank if figure.group == "utility" and figure.name in {each.name for each in swept}
    ]
    useful_name = useful[0] if useful else None
    if len(names) > 1:
        for name in (useful_name, *(figure.name for figure in by_rank if figure.group == "attack")):
            points = [(figure.mechanism, figure) for figure in swept if figure.name == name]
            note = (
                f"{BARS} Each mechanism states epsilon in its own metric, so equal epsilons do not give equal "
                "guarantees."
            )
            charts.append(_chart(f"{str(name).capitalize()}, by mechanism", note, points, release, [str(name)]))
    risks = {
        (figure.mechanism, figure.epsilon): figure.value
        for figure in swept
        if figure.name == BAYES_OPTIMAL.name and figure.group == "curve"
    }
    points = [
        (figure.mechanism, figure)
        for figure in swept
        if figure.name == useful_name and (figure.mechanism, figure.epsilon) in risks
    ]
    note = (
        "Further right, an attacker who knows the mechanism guesses more words; further up, more is kept. This "
        "compares mechanisms at equal risk, whatever their epsilons mean. Mechanisms without an exact law have no "
        "line."
    )
    title = f"{str(useful_name).capitalize()}, by what can be guessed"
    charts.append(_chart(title, note, points, release, [str(useful_name)], risks))
    return [chart for chart in charts if chart is not None]


def _chart(
    title: str,
    note: str,
    points: Sequence[tuple[str, Figure]],
    release: _Own | None,
    names: Sequence[str],
    risks: Mapping[tuple[str, float | None], float] | None = None,
) -> _Chart | None:
    """Return a chart of named lines over epsilon, or over risk, with the release's own figures of these names.

    None where no line has two points.
    """
    lines: dict[str, list[tuple[float, float]]] = defaultdict(list)
    spread: dict[str, list[float]] = defaultdict(list)
    seen: set[tuple[str, float | None]] = set()
    for name, figure in points:
        if (name, figure.epsilon) not in seen:  # the first of several models
            seen.add((name, figure.epsilon))
            x = (figure.epsilon or 0.0) if risks is None else risks[figure.mechanism, figure.epsilon]
            lines[name].append((x, figure.value))
            spread[name].append(figure.deviation or 0.0)
    drawn = {name: some for name, some in lines.items() if len(some) > 1}
    if not drawn:
        return None
    label = "epsilon" if risks is None else "share of words that the best attacker guesses"
    mark = None if release is None else release.mark(names, at_risk=risks is not None)
    svg = line_chart(drawn, label, "share", top=1.0, spread=spread, shares=risks is not None, mark=mark)
    return _Chart(title, note, Markup(svg), Markup(legend(list(drawn))))  # noqa: S704 - escaped there


def _equal_risk(released: Mapping[str, Figure]) -> _Chart:
    """Return the chart of the benchmark's figures, with the release's own place."""
    svg, names, note = read_equal_risk().beside(released)
    return _Chart("Equal risk, side by side", note, Markup(svg), Markup(names))  # noqa: S704 - escaped there


def _tables(measures: Sequence[Figure]) -> list[_Table]:
    swept = [measure for measure in measures if measure.epsilon is not None]
    over = [figure for figure in swept if figure.group != EQUAL]
    equal = [figure for figure in swept if figure.group == EQUAL]
    tables = [
        _table("At other epsilons", "Means ± standard deviations over seeds; each seed has its own key.", "ε", over,
               [figure.epsilon for figure in over]),
        _table("At equal risk",
               "At the epsilon where the best attacker guesses this share of words, interpolated between two epsilons.",
               "risk", equal, [figure.risk for figure in equal]),
    ]  # fmt: skip
    return [figure for figure in tables if figure.rows]


def _table(title: str, note: str, what: str, measures: Sequence[Figure], places: Sequence[float | None]) -> _Table:
    """Return figures with one column for each place, rows of one mechanism together."""
    columns = sorted({place for place in places if place is not None})
    cells: dict[FigureName, dict[float | None, Figure]] = defaultdict(dict)
    for figure, place in zip(measures, places, strict=True):
        cells[figure.mechanism, figure.name, figure.model][place] = figure
    order = list(dict.fromkeys(mechanism for mechanism, _, _ in cells))
    rows = sorted(cells.items(), key=lambda row: order.index(row[0][0]))
    heads = tuple(f"{what} {column:g}" for column in columns)
    return _Table(title, note, heads, tuple((key, tuple(row.get(column) for column in columns)) for key, row in rows))


def marked(original: str, private: str) -> list[tuple[str, bool]]:
    """Return the words of a private text, and whether each differs from the original."""
    before = [word.lower() for word in original.split()]
    words = private.split()
    matcher = difflib.SequenceMatcher(None, before, [word.lower() for word in words], autojunk=False)
    same = {at for block in matcher.get_matching_blocks() for at in range(block.b, block.b + block.size)}
    return [(word, at not in same) for at, word in enumerate(words)]


def examples_of(
    originals: Sequence[str],
    versions: Mapping[str, Sequence[str]],
    readable: Readable | None = None,
    count: int = 5,
    most: int = 400,
) -> tuple[Example, ...]:
    """Return some texts with all their versions.

    Versions of texts above ``most`` characters are cut to equal word numbers.

    ``readable`` denoises, if possible: its result for the first version follows that version.
    """
    places = [at for at, text in enumerate(originals) if len(text.split()) > 3][:count]
    shown = {label: [texts[at] for at in places] for label, texts in versions.items()}
    if readable is not None:
        first, *others = shown
        shown = {first: shown[first], "denoised": readable(shown[first]), **{label: shown[label] for label in others}}
    cut = [None if len(originals[at]) <= most else len(originals[at][:most].split()) for at in places]
    return tuple(
        Example(
            _first_words(originals[at], words),
            tuple((label, _first_words(texts[row], words)) for label, texts in shown.items()),
        )
        for row, (at, words) in enumerate(zip(places, cut, strict=True))
    )


def _first_words(text: str, words: int | None) -> str:
    return text if words is None else " ".join([*text.split()[:words], "…"])
