"""Claims as data: every kind says yes, no and nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from corpusveil_evaluate.studies.cells import Results
from corpusveil_evaluate.studies.claims import UNQUOTED, Check, Claim, Series, compare
from corpusveil_evaluate.studies.study import STUDIES, claims_of, find

ONE = {"cells": "task", "measure": "cs", "mechanism": "cmp"}
OTHER = {**ONE, "mechanism": "tem"}


def cells(**values: dict[float, float | None]) -> Results:
    """Return cells of mechanisms, by their values at epsilons."""
    return Results([
        {"kind": "task", "options": {"mechanism": name, "epsilon": epsilon, "seed": 0}, "result": {"cs": value}}
        for name, of in values.items() for epsilon, value in of.items()
    ])  # fmt: skip


def checked(results: Results, **claim: Any) -> list[Check]:
    made = Claim.model_validate({"claim": "it does at {at}", "differs": "all", "at": "all", **claim})
    return list(compare([made], results, 200, {}))


def seeds(**values: dict[float, Sequence[float]]) -> Results:
    """Return cells of mechanisms: at each epsilon a value of each seed."""
    return Results([
        {"kind": "task", "options": {"mechanism": name, "epsilon": epsilon, "seed": seed}, "result": {"cs": value}}
        for name, of in values.items() for epsilon, some in of.items() for seed, value in enumerate(some)
    ])  # fmt: skip


def about(*means: float, error: float = 0.0) -> dict[float, Sequence[float]]:
    """Return two seeds about each mean, so that a mean has this standard error."""
    return {epsilon: (mean - error, mean + error) for epsilon, mean in enumerate(means, 1)}


FORMS: list[tuple[str, str, dict[str, dict[float, Sequence[float]]], dict[str, Any], bool | None]] = [
    ("every step up", "rises", {"cmp": about(0.1, 0.3, 0.5, 0.7)}, {}, True),
    ("a plateau", "rises", {"cmp": about(0.1, 0.5, 0.6, 0.6)}, {}, True),
    ("flat", "rises", {"cmp": about(0.5, 0.5, 0.5)}, {}, None),
    ("at the ends only", "rises", {"cmp": about(0.1, 0.8, 0.3, 0.4)}, {}, False),
    ("slowly down between", "rises", {"cmp": about(0.1, 0.9, 0.87, 0.84, 0.81)}, {"slack": 0.05}, False),
    ("down within the slack", "rises", {"cmp": about(0.1, 0.6, 0.57, 0.9)}, {"slack": 0.05}, True),
    ("ends within the slack", "rises", {"cmp": about(0.5, 0.51, 0.49, 0.52)}, {"slack": 0.05}, None),
    ("up within chance, of 200 texts", "rises", {"cmp": about(0.5, 0.54)}, {"slack": "chance"}, None),
    ("up beyond it", "rises", {"cmp": about(0.5, 0.56)}, {"slack": "chance"}, True),
    ("down and up again", "rises", {"cmp": about(0.5, 0.2, 0.52)}, {"slack": 0.05}, False),
    ("reversed", "rises", {"cmp": about(0.7, 0.5, 0.1)}, {}, False),
    ("reversed, of falls", "falls", {"cmp": about(0.1, 0.5, 0.7)}, {}, False),
    ("up by a sixth of its errors", "rises", {"cmp": about(0.4, 0.45, error=0.2)}, {}, None),
    ("up by ten errors", "rises", {"cmp": about(0.4, 0.6, error=0.02)}, {}, True),
    ("down by less than its errors", "rises", {"cmp": about(0.4, 0.7, 0.62, error=0.05)}, {}, True),
    ("above by less than its errors", "above", {"cmp": about(0.5, error=0.1), "tem": about(0.4, error=0.1)}, {}, None),
    ("above by ten errors", "above", {"cmp": about(0.5, error=0.005), "tem": about(0.4, error=0.005)}, {}, True),
    ("above at one of two places", "above", {"cmp": about(0.5, 0.3), "tem": about(0.4, 0.4)}, {}, False),
    ("near from above", "near", {"cmp": about(0.5), "tem": about(0.45)}, {"slack": 0.1}, True),
    ("far above", "near", {"cmp": about(0.7), "tem": about(0.45)}, {"slack": 0.1}, False),
    ("far below", "near", {"cmp": about(0.2), "tem": about(0.45)}, {"slack": 0.1}, False),
    ("near or far", "near", {"cmp": about(0.5, error=0.1), "tem": about(0.45)}, {"slack": 0.1}, None),
    ("steady", "steady", {"cmp": about(0.5, 0.55, 0.52)}, {"slack": 0.1}, True),
    ("steady at its ends", "steady", {"cmp": about(0.5, 0.9, 0.5)}, {"slack": 0.1}, False),
    ("at least", "least", {"cmp": about(0.8, 0.9)}, {"slack": 0.8}, True),
    ("at least, or not", "least", {"cmp": about(0.82, error=0.05)}, {"slack": 0.8}, None),
    ("below", "least", {"cmp": about(0.9, 0.7)}, {"slack": 0.8}, False),
    ("in order", "order", {"cmp": about(0.5), "tem": about(0.2)}, {"paper": {"1": [3, 2]}}, True),
    ("in order by a tenth of the paper's", "order", {"cmp": about(0.3), "tem": about(0.2)},
     {"paper": {"1": [3, 2]}}, None),
    ("another order", "order", {"cmp": about(0.0), "tem": about(0.2)}, {"paper": {"1": [3, 2]}}, False),
    ("no order", "order", {"cmp": about(0.21, error=0.05), "tem": about(0.2)}, {"paper": {"1": [3, 2]}}, None),
    ("another within the errors", "order", {"cmp": about(0.2, error=0.05), "tem": about(0.21)},
     {"paper": {"1": [3, 2]}}, None),
]  # fmt: skip
"""The forms on which verdicts are measured: a name, a kind, figures at places, settings, and what may be said."""


@pytest.mark.parametrize(("kind", "figures", "more", "same"), [form[1:] for form in FORMS], ids=[of[0] for of in FORMS])
def test_a_verdict_is_of_every_step_on_both_sides_and_none_within_the_errors(
    kind: str, figures: Any, more: dict[str, Any], same: bool | None
) -> None:
    series = [{**ONE, "mechanism": name} for name in figures]
    (check,) = checked(seeds(**figures), kind=kind, series=series, **more)
    assert check.same is same


def test_the_slack_is_that_of_the_figures_errors_and_is_named() -> None:
    """Two standard errors of the difference; of one seed no error is known."""
    (check,) = checked(seeds(cmp=about(0.4, 0.6, error=0.03)), kind="rises", series=[ONE], scale=100)
    assert check.slack == "slack 8.5"  # 2 sqrt(2) 0.03
    (check,) = checked(seeds(cmp=about(0.4, error=0.03), tem=about(0.4)), kind="near", series=[ONE, OTHER], slack=0.1)
    assert (check.slack, check.same) == ("threshold 0.1 ± 0.06", True)


def test_of_a_defense_nothing_is_told_where_none_keeps_as_much() -> None:
    """That ibp keeps more than augmented was a yes where normal training kept as much as ibp."""
    works = [ONE, {**ONE, "mechanism": "normal"}]
    for normal, same in ((0.2, True), (0.79, None), (0.9, None), (None, None)):
        some = cells(cmp={1: 0.8}, tem={1: 0.3}, normal={1: normal})
        (check,) = checked(some, kind="above", series=[ONE, OTHER], works=works, slack=0.05)
        assert check.same is same


@pytest.mark.parametrize("kind", ["rises", "falls", "above", "near", "steady", "least", "order"])
def test_nothing_is_told_without_a_figure_and_there_is_no_check_without_cells(kind: str) -> None:
    of = {"kind": kind, "series": [ONE, OTHER], "paper": {"1": [3, 2], "2": [3, 2]}}
    (check,) = checked(cells(cmp={1: 0.1, 2: None}, tem={1: 0.3, 2: 0.2}), **of)
    assert check.same is None
    assert checked(Results([]), **of) == []
    halved = [ONE, {**OTHER, "times": 0.5}]
    for value, same in ((0.5, True), (0.0, False)):  # a figure of 0 is a figure
        (check,) = checked(cells(cmp={1: value}, tem={1: 0.9}), kind="above", series=halved)
        assert check.same is same


def test_a_difference_far_below_the_papers_shows_no_direction() -> None:
    """100.0 to 99.9 was a yes to a fall from 98.1 to 0.1; a claim of proportions has no such limit."""
    paper = {"1": [98.1], "10": [0.1]}
    for last, same in ((0.999, None), (0.91, None), (0.89, True), (1.2, False)):
        (check,) = checked(cells(cmp={1: 1.0, 10: last}), kind="falls", series=[ONE], paper=paper, scale=100)
        assert check.same is same
    (check,) = checked(cells(cmp={1: 1.0, 10: 0.999}), kind="falls", series=[ONE], paper=paper, scale=100, part=0)
    assert check.same is True
    (check,) = checked(cells(cmp={1: 0.1, 10: 0.3}), kind="rises", series=[ONE], paper={"1": [0], "10": [float("nan")]})
    assert check.same is True  # the paper does not say how far


def test_where_original_texts_teach_nothing_no_comparison_of_accuracies_is_told() -> None:
    """Labels at random: .425 against .55 was a no to the paper."""
    for accuracy, same in ((0.56, None), (0.5, None), (0.7, True)):
        learned = Results([{"kind": "baseline", "options": {}, "result": {"whole": accuracy, "floor": 0.55}}])
        some = Results([*cells(cmp={1: 0.1, 2: 0.9}).records, *learned.records])
        baseline = [{"cells": "baseline", "measure": measure} for measure in ("whole", "floor")]
        (check,) = checked(some, kind="rises", series=[ONE], learned=baseline)
        assert (check.same, check.why) == (same, "" if same else "the classifier is not above its floor")


def test_a_claim_per_option_has_a_check_for_each_that_its_first_series_has() -> None:
    """Speed is compared with every mechanism on vectors, and lists with none of themselves."""
    records = [
        {"kind": "speed", "options": {"mechanism": name, "space": space}, "result": {"ms": took}}
        for name, space, took in (("lists", "L0", 1), ("cmp", "words", 9), ("tem", "words", 0.5), ("syntf", "words", 1))
    ]
    series = [{"cells": "speed", "mechanism": "{mechanism}", "space": "words", "measure": "ms"},
              {"cells": "speed", "mechanism": "lists", "measure": "ms"}]  # fmt: skip
    checks = checked(Results(records), claim="{mechanism}", kind="above", series=series, at="mean", per="mechanism")
    assert [(check.claim, check.same) for check in checks] == [("cmp", True), ("tem", False), ("syntf", None)]


def test_the_papers_values_are_those_of_the_same_places_or_say_theirs() -> None:
    paper = {"0.1": [0.37, 0.08], "10": [0.82, 0.15]}
    same, other = (cells(cmp={at: 0.1}, tem={at: 0.3}) for at in (0.1, 0.2))
    (check,) = checked(same, kind="above", series=[ONE, OTHER], at="first", paper=paper)
    assert check == Check("it does at 0.1", "0.37 0.08", "0.10 0.30", "slack 0.029", False, "all")
    (check,) = checked(other, kind="above", series=[ONE, OTHER], at="first", paper=paper)
    assert (check.paper, check.seen) == ("0.37 0.08 at 0.1", "0.10 0.30 at 0.2")
    (check,) = checked(other, kind="above", series=[ONE, OTHER])
    assert check.paper == UNQUOTED
    (check,) = checked(other, kind="above", series=[ONE, OTHER], quote="yes")
    assert check.paper == "yes"


def made_up(claim: Claim, sign: int, names: Mapping[str, Any]) -> Results:
    """Return one figure for each series and place: of the claim, of its contrary (-1), or of the paper (0)."""
    places = claim.at if isinstance(claim.at, tuple) else [*claim.paper] or [max(claim.start, 1.0), 900.0]
    figures: dict[Any, float] = {}

    def put(some: Sequence[Series], place: Any, each: Sequence[float]) -> None:
        for series, figure in zip(some, each, strict=True):
            options = {name: str(value).format_map(names) for name, value in (series.model_extra or {}).items()}
            at = {} if place in ("", "mean") or claim.at == "mean" else {claim.axis: float(place)}
            figures.setdefault((series.cells, series.measure.format_map(names), *{**options, **at}.items()), figure)

    for step, place in enumerate(places):
        for number, series in enumerate(claim.series):
            theirs = [*claim.paper.values()][step][number] if claim.paper else 0
            second, ranked = 2 * number >= len(claim.series), sign * theirs if claim.kind == "order" else 0
            form = {"rises": sign * step, "falls": -sign * step, "above": -sign * second, "least": sign,
                    "near": second * (sign < 0), "steady": step * (sign < 0), "order": ranked}  # fmt: skip
            put([series], place, [1000 * form[claim.kind] if sign else theirs / claim.scale])
        put(claim.works, place, (0, -1e6)[: len(claim.works)])
    put(claim.learned, "", (1e5, -1e6)[: len(claim.learned)])
    return Results([{"kind": kind, "options": dict(options), "result": {measure: figure}}
                    for (kind, measure, *options), figure in figures.items()])  # fmt: skip


CLAIMS = [claim for name in STUDIES for claim in claims_of(find(name))]


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.claim for claim in CLAIMS])
def test_each_claim_says_yes_and_no_never_no_of_the_papers_figures_and_nothing_without_what_it_needs(
    claim: Claim,
) -> None:
    """An epsilon means nothing without the vectors; whichever way the figures are, nothing is told of it."""
    names = {name: name for name in [f"given {claim.needs}", *re.findall(r"{(\w+)}", repr(claim))]}
    for sign, same in ((1, {True}), (-1, {False}), *([(0, {True, None})] if claim.paper else [])):
        for given in (True, False):
            names[f"given {claim.needs}"] = given  # type: ignore[assignment]
            (check,) = compare([claim], made_up(claim, sign, names), 200, names)
            assert check.same in (same if given or not claim.needs else {None})
            assert ("other way" in check.why) == (check.same is None and sign < 0)
    assert {len(values) for values in claim.paper.values()} <= {len(claim.series)}
