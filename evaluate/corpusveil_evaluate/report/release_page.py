"""The report of an evaluation: one self-contained page, with charts, tables and, if it is private, texts."""

from __future__ import annotations

import difflib
import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from corpusveil.language.denoise import NO_FACTS
from corpusveil.storage import files
from corpusveil.transforms.release.illustration import Guess
from corpusveil.transforms.release.pages import Block, environment
from corpusveil_evaluate.attacks.attribute_inference import Readable
from corpusveil_evaluate.attacks.word_attacks import BAYES_OPTIMAL, CONTENT_OPTIMAL
from corpusveil_evaluate.line_charts import Mark, legend, line_chart
from corpusveil_evaluate.report.findings import EQUAL, GROUPS, Example, Findings
from corpusveil_evaluate.statistics.statistic import Figure, Statistic, compared, find, statistics

BARS = "Bars: standard deviations over seeds. Each point is a separate release, under a throwaway key."
LESS = "Difference from original: the mean of paired differences over seeds, with its 95 % interval."
EPSILONS_MEAN = "Each mechanism states epsilon in its own metric, so equal epsilons do not give equal guarantees."
RISKS_MEAN = (
    "Further right, an attacker who knows the mechanism guesses more content words; further up, more is kept. This "
    "compares mechanisms at equal risk, whatever their epsilons mean. Mechanisms without an exact law have no line."
)
SEEDS_MEAN = "Means ± standard deviations over seeds; each seed has its own key."
BETWEEN = (
    "At the epsilon where the best attacker guesses this share of content words, interpolated between two epsilons."
)
SIDES = ("released", "denoised")
"""Versions of a text that are shown beside it; others are folded."""
UNCHANGED = "words unchanged"


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
    template = environment("corpusveil_evaluate.report", "release.html").get_template("release.html")
    first_of_models = reversed(findings.measures)
    released = {figure.name: figure for figure in first_of_models if figure.epsilon is None}
    budget = findings.configuration.get("budget")
    epsilon = None if budget is None else float(budget["epsilon"])
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
    pictured = findings.picture is not None and findings.picture.own.guess is not None
    guess, every = (None if pictured else released.get(name.name) for name in (CONTENT_OPTIMAL, BAYES_OPTIMAL))
    beside = None if every is None else every.value
    return template.render(
        findings=findings, examples=examples, picture=findings.picture, unchanged=released.get(UNCHANGED),
        tiles=[
            _tile(statistic, released)
            for group in GROUPS
            for statistic in statistics()
            if statistic.tile and statistic.group == group and statistic.name in released
        ],
        charts=[*_charts(findings.measures, released, epsilon)],
        tables=[*_figures(findings.measures), *_swept(findings.measures)],
        no_facts=NO_FACTS if any("denoised" in dict(example.versions) for example in findings.examples) else None,
        guess=None if guess is None else Guess(guess.value, guess.floor or 0.0, "content", beside),
    )  # fmt: skip


def _tile(statistic: Statistic, released: Mapping[str, Figure]) -> dict[str, Any]:
    """Return a figure with its whole, and the floor to compare it with."""
    figure, other = released[statistic.name], released.get(statistic.floor_from)
    floor = figure.floor if other is None else other.value
    return {
        "value": str(figure).split(" ±")[0], "name": figure.name, "of": statistic.of, "model": figure.model,
        "floor": "" if floor is None else f"floor {floor:.1%}: {statistic.floor}", "floor_at": floor,
        "filled": min(max(figure.value, 0.0), 1.0) if figure.unit == "share" else None,
    }  # fmt: skip


def _charts(measures: Sequence[Figure], released: Mapping[str, Figure], epsilon: float | None) -> Iterator[Block]:
    """Yield the charts with points: one of the release's mechanism, others of several mechanisms.

    Each marks the release itself, with its own figures, at the ``epsilon`` of its budget; None if it is not ours.
    """
    chart = functools.partial(_chart, released, epsilon)
    swept = [figure for figure in measures if figure.epsilon and figure.group != EQUAL]
    swept.sort(key=lambda figure: figure.epsilon or 0)
    mechanisms = list(dict.fromkeys(figure.mechanism for figure in measures if figure.epsilon))
    points = [
        (figure.name, figure)
        for figure in swept
        if figure.mechanism in mechanisms[:1] and figure.group != "curve" and find(figure.name).swept
    ]
    yield from chart("Privacy and utility by epsilon", BARS, points, list(dict(points)))
    tried = {figure.name for figure in swept}
    useful = next(
        (statistic.name for statistic in compared() if statistic.group == "utility" and statistic.name in tried), None
    )
    attacks = [statistic.name for statistic in compared() if statistic.group == "attack"]
    for name in (*([useful] if useful else []), *attacks) if len(mechanisms) > 1 else ():
        points = [(figure.mechanism, figure) for figure in swept if figure.name == name]
        yield from chart(f"{name.capitalize()}, by mechanism", f"{BARS} {EPSILONS_MEAN}", points, [name])
    risks = {
        (figure.mechanism, figure.epsilon): figure.value
        for figure in swept
        if figure.name == CONTENT_OPTIMAL.name and figure.group == "curve"
    }
    points = [
        (figure.mechanism, figure)
        for figure in swept
        if figure.name == useful and (figure.mechanism, figure.epsilon) in risks
    ]
    title = f"{str(useful).capitalize()}, by what can be guessed"
    yield from chart(title, RISKS_MEAN, points, [str(useful)], risks)


def _chart(
    released: Mapping[str, Figure],
    epsilon: float | None,
    title: str,
    text: str,
    points: Sequence[tuple[str, Figure]],
    names: Sequence[str],
    risks: Mapping[tuple[str, float | None], float] | None = None,
) -> Iterator[Block]:
    """Yield a chart of named lines over epsilon, or over risk, with the release's own figures of these names.

    Yield nothing where no line has two points.
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
    if drawn:
        at_risk = risks is not None
        label = "share of content words that the best attacker guesses" if at_risk else "epsilon"
        risk = released.get(CONTENT_OPTIMAL.name)
        own_x = epsilon if not at_risk or epsilon is None else None if risk is None else risk.value
        ys = tuple(released[name].value for name in names if name in released)
        mark = None if own_x is None else Mark("this release", own_x, ys)
        svg = line_chart(drawn, label, "share", top=1.0, spread=spread, shares=at_risk, mark=mark)
        yield Block(title, text, svg, legend(list(drawn)))


def _figures(measures: Sequence[Figure]) -> Iterator[Block]:
    """Yield a table of each group of figures of the release itself."""
    for group, title in GROUPS.items():
        figures = [figure for figure in measures if figure.group == group and figure.epsilon is None]
        less = any(figure.less for figure in figures)
        heads = ("Figure", "Value", "Floor", *(["Difference from original, points"] if less else []), "By")
        rows = [
            (
                [figure.name, *filter(None, (find(figure.name).of, figure.note))], str(figure),
                "" if figure.floor is None else f"{figure.floor:.1%}", *([figure.less] if less else []), figure.model,
            )
            for figure in figures
        ]  # fmt: skip
        if rows:
            yield Block(title, heads=heads, rows=rows, numbers=range(1, len(heads) - 1), look="figures",
                        notes=[LESS] if less else [], folded=True)  # fmt: skip


def _swept(measures: Sequence[Figure]) -> Iterator[Block]:
    """Yield a table of the figures at other epsilons, and one of those at equal risk."""
    over = [(figure.epsilon, figure) for figure in measures if figure.epsilon is not None and figure.group != EQUAL]
    equal = [(figure.risk, figure) for figure in measures if figure.risk is not None]
    for title, text, what, placed in (
        ("At other epsilons", SEEDS_MEAN, "ε", over),
        ("At equal risk", BETWEEN, "risk", equal),
    ):
        columns = sorted({place for place, _ in placed if place is not None})
        cells: dict[str, dict[tuple[str, str], dict[float | None, Figure]]] = {}
        for place, figure in placed:
            cells.setdefault(figure.mechanism, {}).setdefault((figure.name, figure.model), {})[place] = figure
        rows: list[Sequence[str | Sequence[str]]] = []
        for mechanism, figures in cells.items():
            rows.append([mechanism or "This release"])
            rows += [
                ([*filter(None, names)], *(str(row.get(column, "–")) for column in columns))
                for names, row in figures.items()
            ]
        heads = ("Figure", *(f"{what} {column:g}" for column in columns))
        if rows:
            yield Block(title, text, heads=heads, rows=rows, numbers=range(1, len(heads)), look="figures", folded=True)


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
