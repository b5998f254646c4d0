"""The report of an evaluation: one self-contained page, with charts, tables and, where it is private, texts."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from corpusveil.evaluation.charts import legend, line_chart
from corpusveil.evaluation.findings import EQUAL, GROUPS, Example, Findings, Measure
from corpusveil.storage import files
from corpusveil.transforms.pages import environment

RISK = "words guessed, Bayes-optimal"
TILES = ("words unchanged", "words guessed from context", "similarity of meaning", "accuracy, private to private")
FLOORS = {
    "words guessed from context": "who guesses nothing and takes the released word",
    "similarity of meaning": "the private text of another document",
    "accuracy, private to private": "always the most frequent label",
}
"""What reaches a tile's floor without the figure's merit."""
NO_GUESS = "words guessed by the released word"
BY_EPSILON = (
    "words unchanged", "words guessed from context", "similarity of meaning", "accuracy, private to private",
    "attribute, adaptive",
)  # fmt: skip
BARS = "Bars: standard deviations over seeds. Each point is a privatization of its own, by a key thrown away."
KEPT = ("accuracy, private to private", "similarity of meaning")
"""What several mechanisms are compared by: the first of these that there is."""

Key = tuple[str, str, str]
"""Mechanism, figure and model: a row of a table over epsilons."""


@dataclass(frozen=True, slots=True)
class _Tile:
    value: str
    name: str
    of: str
    floor: str


@dataclass(frozen=True, slots=True)
class _Chart:
    title: str
    note: str
    svg: Markup
    legend: Markup


@dataclass(frozen=True, slots=True)
class _Table:
    """Figures with one column an epsilon, or a risk; a missing one is None."""

    title: str
    note: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Key, tuple[Measure | None, ...]], ...]


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
    released = {one.name: one for one in reversed(found.measures) if one.epsilon is None}  # of several models the first
    tiles = [_tile(released[name], released) for name in TILES if name in released]
    examples = [
        {"original": one.original, "versions": [(label, marked(one.original, text)) for label, text in one.versions]}
        for one in found.examples
    ]
    return template.render(
        found=found, groups=GROUPS, tiles=tiles, charts=_charts(found.measures), tables=_tables(found.measures),
        examples=examples,
    )  # fmt: skip


def _tile(one: Measure, released: Mapping[str, Measure]) -> _Tile:
    """Return a figure with what it is of, and the floor that it has to be read against."""
    floor = one.floor
    if one.name == "words guessed from context" and NO_GUESS in released:
        floor = released[NO_GUESS].value
    told = "" if floor is None else f"floor {floor:.1%}: {FLOORS.get(one.name, 'by chance')}"
    return _Tile(str(one).split(" ±")[0], one.name, one.of, told)


def _charts(measures: Sequence[Measure]) -> list[_Chart]:
    """Return the charts that there are points for: one of the release's mechanism, others of several."""
    tried = sorted((one for one in measures if one.epsilon and one.group != EQUAL), key=lambda one: one.epsilon or 0)
    names = list(dict.fromkeys(one.mechanism for one in measures if one.epsilon))
    own = [one for one in tried if one.mechanism in names[:1] and one.group != "curve"]
    charts = [
        _chart("Privacy and utility by epsilon", BARS, [(one.name, one) for one in own if one.name in BY_EPSILON])
    ]
    kept = next((name for name in KEPT if any(one.name == name for one in tried)), None)
    if len(names) > 1:
        for name in (kept, "attribute, adaptive"):
            points = [(one.mechanism, one) for one in tried if one.name == name]
            note = f"{BARS} An epsilon is in the metric of its mechanism, so equal ones do not promise the same."
            charts.append(_chart(f"{str(name).capitalize()}, by mechanism", note, points))
    risks = {(one.mechanism, one.epsilon): one.value for one in tried if one.name == RISK and one.group == "curve"}
    points = [(one.mechanism, one) for one in tried if one.name == kept and (one.mechanism, one.epsilon) in risks]
    note = (
        "To the right an attacker who knows the mechanism guesses more words; further up more is kept. So mechanisms "
        "compare at equal risk, whatever their epsilons mean. Those without an exact law have no line."
    )
    charts.append(_chart(f"{str(kept).capitalize()}, by what can be guessed", note, points, risks))
    return [one for one in charts if one is not None]


def _chart(
    title: str,
    note: str,
    points: Sequence[tuple[str, Measure]],
    risks: Mapping[tuple[str, float | None], float] | None = None,
) -> _Chart | None:
    """Return a chart of named lines over epsilon, or over risk; None where no line has two points."""
    lines: dict[str, list[tuple[float, float]]] = defaultdict(list)
    spread: dict[str, list[float]] = defaultdict(list)
    seen: set[tuple[str, float | None]] = set()
    for name, one in points:
        if (name, one.epsilon) not in seen:  # of several models the first
            seen.add((name, one.epsilon))
            x = (one.epsilon or 0.0) if risks is None else risks[one.mechanism, one.epsilon]
            lines[name].append((x, one.value))
            spread[name].append(one.deviation or 0.0)
    drawn = {name: some for name, some in lines.items() if len(some) > 1}
    if not drawn:
        return None
    label = "epsilon" if risks is None else "share of words that the best attacker guesses"
    svg = line_chart(drawn, label, "share", top=1.0, spread=spread, shares=risks is not None)
    return _Chart(title, note, Markup(svg), Markup(legend(list(drawn))))  # noqa: S704 - escaped there


def _tables(measures: Sequence[Measure]) -> list[_Table]:
    tried = [one for one in measures if one.epsilon is not None]
    over = [one for one in tried if one.group != EQUAL]
    equal = [one for one in tried if one.group == EQUAL]
    found = [
        _table("At other epsilons", "Means ± deviations over seeds, each with a key of its own.", "ε", over,
               [one.epsilon for one in over]),
        _table("At equal risk", "Where the best attacker guesses so many words; between two epsilons that were tried.",
               "risk", equal, [one.risk for one in equal]),
    ]  # fmt: skip
    return [one for one in found if one.rows]


def _table(title: str, note: str, what: str, measures: Sequence[Measure], places: Sequence[float | None]) -> _Table:
    """Return figures with one column for each place, rows of one mechanism together."""
    columns = sorted({place for place in places if place is not None})
    cells: dict[Key, dict[float | None, Measure]] = defaultdict(dict)
    for one, place in zip(measures, places, strict=True):
        cells[one.mechanism, one.name, one.model][place] = one
    order = list(dict.fromkeys(mechanism for mechanism, _, _ in cells))
    rows = sorted(cells.items(), key=lambda row: order.index(row[0][0]))
    heads = tuple(f"{what} {column:g}" for column in columns)
    return _Table(title, note, heads, tuple((key, tuple(row.get(one) for one in columns)) for key, row in rows))


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
