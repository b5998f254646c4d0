"""Claims of the papers, as data, and one function that compares them with the results of a study.

A claim is a table ``[[claims]]`` in the file of a study's grid: a kind, series of figures, and the paper's values by
place (an epsilon). The kinds:

    rises, falls   each series does, from its first place to its last
    above          at every place the first half of the series is above the second
    near           the first half of the series is at most ``slack`` above the second
    least          every figure is at least ``slack``
    order          the figures of the series are in the order of the paper's

There is no verdict if a part of the claim is missing. A difference within the slack shows no direction: it makes no
claim of ``rises``, ``falls`` or ``above`` true, and none false.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from corpusveil_evaluate.studies.cells import Results

UNQUOTED = "expected; we have no figure from the paper"
"""The paper's entry if only the direction is known."""

Value = float | None
Rows = Sequence[Sequence[Value]]
Slack = float | Literal["chance"]
"""The largest difference that tells nothing; ``chance``: the standard error of a difference of accuracies."""
PART = 0.1
"""A difference tells nothing up to this part of the paper's either: 100.0 to 99.9 is not the fall of 98.1 to 0.1."""


@dataclass(frozen=True, slots=True)
class Check:
    """A claim of the paper, and our result.

    ``same``: whether the direction is the same, None if this run cannot show it. ``paper`` quotes reference values,
    ``seen`` has our figures in the same order, ``differs`` names differences in data or models.
    """

    claim: str
    paper: str
    seen: str
    same: bool | None
    differs: str


class Series(BaseModel):
    """A measure over places: its mean in the cells of a kind. All other keys are options of these cells."""

    model_config = ConfigDict(extra="allow", frozen=True)

    cells: str
    measure: str
    times: float = 1
    """How many times this series the other has to be above."""
    slack: float = 0
    """The largest rise of this series that tells nothing."""

    def of(self, results: Results, names: Mapping[str, Any]) -> Results:
        options = {name: _named(value, names) for name, value in (self.model_extra or {}).items()}
        return results.where(self.cells, **options)

    def value(self, results: Results, names: Mapping[str, Any], axis: str = "", place: Value = None) -> Value:
        """Return the mean at a place; cells without the axis count at every place."""
        of = self.of(results, names)
        at = of if place is None or not of.options(axis) else of.where(**{axis: place})  # type: ignore[arg-type]
        return at.mean(_named(self.measure, names))


class Claim(BaseModel):
    """A claim of a paper. Texts may contain ``{at}``, the places, and names that the study gives."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    claim: str
    kind: Literal["rises", "falls", "above", "near", "least", "order"]
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
    needs: Literal["", "encoder", "vectors"] = ""
    """What the run must be given: of averaged vectors, or at one epsilon of vectors trained here, nothing is told."""
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
            cells = [series.of(results, of_one) for series in claim.series]
            if claim.kind == "order" or all(len(some) for some in cells):
                yield from _compared(claim, results, texts, of_one)


def _compared(claim: Claim, results: Results, texts: float, names: Mapping[str, Any]) -> Iterator[Check]:
    quoted = {None if place == "mean" else float(place): values for place, values in claim.paper.items()}
    axis = [place for series in claim.series for place in series.of(results, names).options(claim.axis)]
    places = _places(claim, axis, quoted)
    if len(places) < (2 if claim.kind in ("rises", "falls") else 1):
        return
    seen = [[series.value(results, names, claim.axis, place) for series in claim.series] for place in places]
    theirs = places if set(places) <= quoted.keys() else _places(claim, quoted, quoted)
    theirs = [place for place in theirs if place in quoted]
    paper = [quoted[place] for place in theirs]
    at = "" if theirs == places or not paper else " at {}"
    ours = [[None if value is None else claim.scale * value for value in row] for row in seen]
    tells = _is_learned(claim, results, texts, names) and (not claim.needs or names[f"given {claim.needs}"])
    same = _verdict(claim, seen, paper, texts) if tells else None
    yield Check(
        _named(claim.claim, {**names, "at": _joined(places)}),
        claim.quote.format(paper=(_rows(paper, claim.digits) + at.format(_joined(theirs))) if paper else UNQUOTED),
        _rows(ours, claim.digits) + at.format(_joined(places)),
        same,
        _named(claim.differs, names),
    )


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


def _verdict(claim: Claim, seen: Rows, paper: Rows, texts: float) -> bool | None:
    least = largest_error(texts) if claim.slack == "chance" else claim.slack
    half = len(claim.series) // 2
    if any(value is None for row in seen for value in row):
        return None
    if claim.kind == "order":
        orders = [sorted((value or 0, at) for at, value in enumerate(row)) for row in (seen[0], paper[0])]
        return [at for _, at in orders[0]] == [at for _, at in orders[1]]
    if claim.kind == "least":
        return all(value is not None and value >= least for row in seen for value in row)
    ours, theirs = (list(_differences(claim, rows, half)) for rows in (seen, paper))
    if claim.kind == "near":
        return all(one <= least for one in ours)
    slacks = [series.slack if claim.kind in ("rises", "falls") else 0.0 for series in claim.series]
    parts = [claim.part / claim.scale * abs(one) for one in theirs] if len(theirs) == len(ours) else [0.0] * len(ours)
    # A part of a figure that the paper lacks is not a number, and so never the largest if it is last.
    limits = [max(least, slack, part) for slack, part in zip(itertools.cycle(slacks), parts, strict=False)]
    if any(one < -limit for one, limit in zip(ours, limits, strict=True)):
        return False
    return True if all(one > limit for one, limit in zip(ours, limits, strict=True)) else None


def _differences(claim: Claim, rows: Rows, half: int) -> Iterator[float]:
    """Yield the differences that a claim calls positive: of ends, by series, or of the halves of each row."""
    if claim.kind in ("rises", "falls"):
        for first, *_, last in () if len(rows) < 2 else zip(*rows, strict=True):
            yield _less(last, first) if claim.kind == "rises" else _less(first, last)
    else:
        for row in rows:
            for one, other, series in zip(row, row[half:], claim.series[half:], strict=False):
                yield _less(one, None if other is None else series.times * other)


def _less(one: Value, other: Value) -> float:
    return math.nan if one is None or other is None else one - other


def _is_learned(claim: Claim, results: Results, texts: float, names: Mapping[str, Any]) -> bool:
    """Say whether the baseline is above its floor; if it is not, a comparison of the results has no meaning."""
    if not claim.learned:
        return True
    whole, floor = (series.value(results, names) for series in claim.learned)
    return is_above(whole, floor, largest_error(texts) if claim.learned_by == "chance" else claim.learned_by) is True


def is_above(first: Value, second: Value, slack: float) -> bool | None:
    """Say whether one value is above the other; None if one is missing, or if they are within the slack."""
    if first is None or second is None or abs(first - second) <= slack:
        return None
    return first > second


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


def _rows(rows: Rows, digits: int) -> str:
    """Write figures side by side; places with several figures are separated by a semicolon."""
    texts = [
        " ".join("-" if value is None or math.isnan(value) else f"{value:.{digits}f}" for value in row) for row in rows
    ]
    return ("; " if any(" " in text for text in texts) else " ").join(texts)
