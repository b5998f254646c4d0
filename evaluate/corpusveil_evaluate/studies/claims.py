"""Claims of the papers, as data, and one function that compares them with the results of a study.

A claim is a table ``[[claims]]`` in the file of a study's grid: a kind, series of figures, and the paper's values by
place (an epsilon). The kinds:

    rises, falls   each series does, from its first place to its last, and is nowhere back beyond an earlier place
    above          at every place the first half of the series is above the second
    order          at every place the series are in the order of the paper's
    near           the two halves of the series differ by at most ``slack``
    steady         no two places of a series differ by more than ``slack``
    least          every figure is at least ``slack``

A difference tells nothing within twice its standard error over seeds, within ``slack`` (of all kinds to ``order``), or
within a tenth of the paper's: *not shown by this run*. There is no verdict either if a part of the claim is missing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from corpusveil_evaluate.studies.cells import Results

UNQUOTED = "expected; no figure of the paper is quoted here"
"""The paper's entry if only the direction is known."""

Value = float | None
Differences = Iterator[tuple[float, float, bool]]
"""Differences that a claim calls positive, with the slack of each, and whether the claim needs it to be beyond that."""
Slack = float | Literal["chance"]
"""The largest difference that tells nothing; ``chance``: the standard error of a difference of accuracies."""
ERRORS = 2
"""The number of standard errors within which a difference tells nothing."""
NEEDS = {
    "encoder": "judged only with --encoder",
    "vectors": "judged only with --vectors",
    "neighbors": "judged only where neighbors of joined words are nearer than chance",
}
PART = 0.1
"""A difference tells nothing up to this part of the paper's either: 100.0 to 99.9 is not the fall of 98.1 to 0.1."""


@dataclass(frozen=True, slots=True)
class Check:
    """A claim of the paper, and our result.

    ``same``: whether the direction is the same, None if this run cannot show it. ``paper`` quotes reference values,
    ``seen`` has our figures in the same order, ``slack`` the largest difference that tells nothing, or a threshold, in
    their unit, ``differs`` names differences in data or models, and ``why`` says why this run shows nothing.
    """

    claim: str
    paper: str
    seen: str
    slack: str
    same: bool | None
    differs: str
    why: str = ""


class Point(NamedTuple):
    """A mean, and its standard error over seeds: 0 of cells without seeds, or of a single one."""

    mean: float
    error: float

    def times(self, factor: float) -> Point:
        return Point(factor * self.mean, factor * self.error)

    def apart(self, other: Point) -> float:
        """Return the slack of a difference, from its standard error."""
        return ERRORS * math.hypot(self.error, other.error)


Rows = Sequence[Sequence[Point | None]]
Whole = Sequence[Sequence[Point]]


class Series(BaseModel):
    """A measure over places: its mean in the cells of a kind. All other keys are options of these cells."""

    model_config = ConfigDict(extra="allow", frozen=True)

    cells: str
    measure: str
    times: float = 1
    """How many times this series the other has to be above."""
    slack: float = 0
    """The largest rise of this series that tells nothing."""

    def select(self, results: Results, names: Mapping[str, Any]) -> Results:
        options = {name: _named(value, names) for name, value in (self.model_extra or {}).items()}
        return results.where(self.cells, **options)

    def point(self, results: Results, names: Mapping[str, Any], axis: str = "", place: Value = None) -> Point | None:
        """Return the figure at a place; cells without the axis count at every place."""
        chosen = self.select(results, names)
        at = chosen if place is None or not chosen.options(axis) else chosen.where(**{axis: place})  # type: ignore[arg-type]
        if (figure := at.figure(_named(self.measure, names))) is None:
            return None
        deviation = (figure.deviation if at.options("seed") else None) or 0.0
        return Point(figure.mean, deviation / math.sqrt(figure.count))


class Claim(BaseModel):
    """A claim of a paper. Texts may contain ``{at}``, the places, and names that the study gives."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    claim: str
    kind: Literal["rises", "falls", "above", "order", "near", "steady", "least"]
    series: tuple[Series, ...] = Field(min_length=1)
    axis: str = "epsilon"
    at: Literal["shared", "all", "first", "last", "ends", "mean"] | tuple[float, ...] = "shared"
    """Which places count: those that the paper has as well, all, ..., or these; ``mean`` is the mean over all cells."""
    start: float = -math.inf
    """The least place that counts."""
    paper: dict[str, tuple[Value, ...]] = {}
    """By place, the paper's value for each series."""
    quote: str = "{paper}"
    """What surrounds the paper's values, or replaces them."""
    per: str = ""
    """An option, each value of which among the first series' cells has a check of its own and is a name."""
    slack: Slack = 0
    part: float = PART
    learned: tuple[Series, ...] = ()
    """A baseline and its floor: nothing is told unless the first is above the second"""
    learned_by: Slack = "chance"
    """by more than this, since noise can only reduce what was learned."""
    works: tuple[Series, ...] = ()
    """A defense and none: nothing is told unless the first is above the second at every place."""
    needs: Literal["", "encoder", "vectors", "neighbors"] = ""
    """What the run must be given: of averaged vectors, or at one epsilon of vectors trained here, nothing is told.

    ``neighbors``: joined vectors, the neighbors of which are nearer than chance.
    """
    scale: float = 1
    """The factor for our figures, where the paper has percent."""
    digits: int = 2
    differs: str = "{differs}"


def compare(claims: Iterable[Claim], results: Results, texts: float, names: Mapping[str, Any]) -> Iterator[Check]:
    """Yield a check for every claim, unless the grid lacks its cells or places.

    ``texts`` is the number of texts of an accuracy, ``names`` what the study calls its data and models.
    """
    for claim in claims:
        fixed = {name: of for name, of in (claim.series[0].model_extra or {}).items() if "{" not in str(of)}
        for value in results.where(claim.series[0].cells, **fixed).options(claim.per) if claim.per else ("",):
            of_one = {**names, claim.per: value}
            cells = [series.select(results, of_one) for series in claim.series]
            if claim.kind == "order" or all(len(some) for some in cells):
                yield from _compared(claim, results, texts, of_one)


def _compared(claim: Claim, results: Results, texts: float, names: Mapping[str, Any]) -> Iterator[Check]:
    quoted = {None if place == "mean" else float(place): values for place, values in claim.paper.items()}
    axis = [place for series in claim.series for place in series.select(results, names).options(claim.axis)]
    places = _places(claim, axis, quoted)
    if len(places) < (2 if claim.kind in ("rises", "falls", "steady") else 1):
        return
    seen, works = (
        [[series.point(results, names, claim.axis, place) for series in some] for place in places]
        for some in (claim.series, claim.works)
    )
    theirs = places if set(places) <= quoted.keys() else _places(claim, quoted, quoted)
    theirs = [place for place in theirs if place in quoted]
    paper = [quoted[place] for place in theirs]
    at = "" if theirs == places or not paper else " at {}"
    ours = [[None if point is None else claim.scale * point.mean for point in row] for row in seen]
    same, slack = _verdict(claim, seen, paper, texts)
    why = "" if same is not None else "too close to tell" if slack != "–" else "a figure is missing"
    if untold := _untold(claim, results, texts, names, works):
        why, same = ("points the other way; " if same is False else "") + untold, None
    yield Check(
        _named(claim.claim, {**names, "at": _joined(places)}),
        claim.quote.format(paper=(_rows(paper, claim.digits) + at.format(_joined(theirs))) if paper else UNQUOTED),
        _rows(ours, claim.digits) + at.format(_joined(places)),
        slack,
        same,
        _named(claim.differs, names),
        why,
    )


def _untold(claim: Claim, results: Results, texts: float, names: Mapping[str, Any], works: Rows) -> str:
    """Return why this run tells nothing of a claim, whatever its figures; empty if it tells something."""
    if not _is_learned(claim, results, texts, names):
        return "the classifier is not above its floor"
    if claim.needs and not names[f"given {claim.needs}"]:
        return NEEDS[claim.needs]
    if claim.works and _verdict(claim.model_copy(update={"kind": "above"}), works, [], texts)[0] is not True:
        return "training without the defense keeps as much"
    return ""


def _places(claim: Claim, axis: Iterable[Value], quoted: Mapping[Value, Any]) -> list[Value]:
    """Return the places of a claim among those of an axis; empty if it lacks them."""
    if claim.at == "mean":
        return [None]
    there = sorted({place for place in axis if place is not None and place >= claim.start})
    if isinstance(claim.at, tuple):
        return list(claim.at) if set(claim.at) <= set(there) else []
    if claim.at == "shared":
        return [place for place in there if place in quoted]
    chosen = {"all": there, "first": there[:1], "last": there[-1:], "ends": [*there[:1], *there[1:][-1:]]}
    return [*chosen[claim.at]]


def _verdict(claim: Claim, seen: Rows, paper: Sequence[Sequence[Value]], texts: float) -> tuple[bool | None, str]:
    """Return whether the figures show the claim, None if they show nothing; and the slack in words."""
    rows = [[point for point in row if point is not None] for row in seen]
    least = largest_error(texts) if claim.slack == "chance" else claim.slack
    if [len(row) for row in rows] != [len(row) for row in seen]:
        return None, "–"
    if claim.kind in ("near", "steady", "least"):
        over = [*_excesses(claim, rows, least)]
        error = max(slack for _, slack in over)
        same = True if all(excess <= -slack for excess, slack in over) else None
        same = False if any(excess > slack for excess, slack in over) else same
        return same, f"threshold {claim.scale * least:.2g} ± {claim.scale * error:.2g}"
    told = [(value, max(least, slack), needed) for value, slack, needed in _differences(claim, rows, paper)]
    same = True if all(value > slack for value, slack, needed in told if needed) else None
    same = False if any(value < -slack for value, slack, _ in told) else same
    return same, f"slack {claim.scale * max(slack for _, slack, needed in told if needed):.2g}"


def _excesses(claim: Claim, rows: Whole, most: float) -> Iterator[tuple[float, float]]:
    """Yield by how much figures are beyond the bound of a claim, and twice the standard error of each."""
    if claim.kind == "least":
        yield from ((most - point.mean, ERRORS * point.error) for row in rows for point in row)
        return
    half = len(claim.series) // 2
    pairs = (pair for column in zip(*rows, strict=True) for pair in itertools.combinations(column, 2))
    if claim.kind == "near":
        pairs = (pair for row in rows for pair in zip(row, row[half:], strict=False))
    yield from ((abs(one.mean - other.mean) - most, one.apart(other)) for one, other in pairs)


def _differences(claim: Claim, rows: Whole, paper: Sequence[Sequence[Value]]) -> Differences:
    """Yield what a claim of a direction calls positive: of two places of a series, or of two series at a place."""
    part, whole = claim.part / claim.scale, len(paper) == len(rows)
    if claim.kind in ("rises", "falls"):
        sign, last = (1 if claim.kind == "rises" else -1), len(rows) - 1
        for number, series in enumerate(claim.series):
            slack = max(series.slack, part * _far(paper[0][number], paper[-1][number])) if whole else series.slack
            for first, second in itertools.combinations(range(len(rows)), 2):
                one, other = rows[first][number], rows[second][number]
                yield sign * (other.mean - one.mean), max(slack, one.apart(other)), (first, second) == (0, last)
        return
    half = len(claim.series) // 2
    for row, theirs in zip(rows, paper if whole else [()] * len(rows), strict=True):
        pairs = [(number, number + half) for number in range(half)]
        if claim.kind == "order":
            theirs = theirs or paper[0]  # noqa: PLW2901 - the only row of another place
            ranked = sorted(range(len(row)), key=lambda number: -(theirs[number] or 0.0))
            pairs = list(itertools.combinations(ranked, 2))
        for above, below in pairs:
            slack = part * _far(theirs[above], theirs[below]) if theirs else 0.0
            one, other = row[above], row[below].times(claim.series[below].times)
            yield one.mean - other.mean, max(slack, one.apart(other)), True


def _far(one: Value, other: Value) -> float:
    """Return how far two figures of the paper are apart, 0 if it lacks one."""
    far = math.nan if one is None or other is None else abs(one - other)
    return 0.0 if math.isnan(far) else far


def _is_learned(claim: Claim, results: Results, texts: float, names: Mapping[str, Any]) -> bool:
    """Say whether the baseline is above its floor; if it is not, a comparison of the results has no meaning."""
    if not claim.learned:
        return True
    whole, floor = (series.point(results, names) for series in claim.learned)
    slack = largest_error(texts) if claim.learned_by == "chance" else claim.learned_by
    return whole is not None and floor is not None and whole.mean - floor.mean > slack


def largest_error(texts: float) -> float:
    """Return the largest standard error of a difference of two accuracies, each over this many texts."""
    return math.sqrt(0.5 / texts)


def _named(value: Any, names: Mapping[str, Any]) -> Any:
    """Return a text with names filled in; a text that is one name alone becomes its value, of any type."""
    if not isinstance(value, str):
        return value
    return names[value[1:-1]] if value[:1] == "{" and value[1:-1] in names else value.format_map(names)


def _joined(places: Iterable[Value]) -> str:
    return " ".join(f"{place:g}" for place in places if place is not None)


def _rows(rows: Sequence[Sequence[Value]], digits: int) -> str:
    """Write figures side by side; places with several figures are separated by a semicolon."""
    texts = [
        " ".join("-" if value is None or math.isnan(value) else f"{value:.{digits}f}" for value in row) for row in rows
    ]
    return ("; " if any(" " in text for text in texts) else " ").join(texts)
