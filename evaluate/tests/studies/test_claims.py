"""Claims and profiles as data: every kind says yes, no and nothing, and a profile is its study's settings."""

from __future__ import annotations

from typing import Any

import pytest

import corpusveil as cv
from corpusveil.mechanisms.ring_geometric import RingGeometric
from corpusveil_evaluate.studies.cells import Results
from corpusveil_evaluate.studies.claims import UNQUOTED, Check, Claim, compare, is_above, largest_error
from corpusveil_evaluate.studies.profiles import PROFILES
from corpusveil_evaluate.studies.study import STUDIES, claims_of, find
from tests.contracts.spaces import small_space, words_of

ONE = {"cells": "task", "measure": "cs", "mechanism": "cmp"}
OTHER = {**ONE, "mechanism": "tem"}


def cells(**values: dict[float, float | None]) -> Results:
    """Return cells of mechanisms, by their values at epsilons."""
    return Results([
        {"kind": "task", "options": {"mechanism": name, "epsilon": epsilon, "seed": 0}, "result": {"cs": value}}
        for name, of in values.items() for epsilon, value in of.items()
    ])  # fmt: skip


def checked(results: Results, given: tuple[str, ...] = (), **claim: Any) -> list[Check]:
    made = Claim.model_validate({"claim": "it does at {at}", "differs": "all", "at": "all", **claim})
    return list(compare([made], results, 200, {f"given {name}": name in given for name in ("encoder", "vectors")}))


@pytest.mark.parametrize(
    ("kind", "series", "more", "yes", "no"),
    [
        ("rises", [ONE], {}, {"cmp": {1: 0.1, 2: 0.9}}, {"cmp": {1: 0.9, 2: 0.1}}),
        ("rises", [{**ONE, "slack": 0.1}], {}, {"cmp": {1: 0.1, 2: 0.3}}, {"cmp": {1: 0.3, 2: 0.15}}),
        ("falls", [ONE], {}, {"cmp": {1: 0.9, 2: 0.1}}, {"cmp": {1: 0.1, 2: 0.9}}),
        ("above", [ONE, OTHER], {}, {"cmp": {1: 0.5, 2: 0.6}, "tem": {1: 0.4, 2: 0.5}},
         {"cmp": {1: 0.5, 2: 0.0}, "tem": {1: 0.4, 2: 1.0}}),  # a figure of 0 is a figure
        ("above", [ONE, {**OTHER, "times": 0.5}], {}, {"cmp": {1: 0.5}, "tem": {1: 0.9}},
         {"cmp": {1: 0.4}, "tem": {1: 0.9}}),
        ("near", [ONE, OTHER], {"slack": 0.1}, {"cmp": {1: 0.5}, "tem": {1: 0.45}},
         {"cmp": {1: 0.7}, "tem": {1: 0.45}}),
        ("least", [ONE], {"slack": 0.8}, {"cmp": {1: 0.8, 2: 0.9}}, {"cmp": {1: 0.7, 2: 0.9}}),
        ("order", [ONE, OTHER], {"paper": {"1": [3, 2]}}, {"cmp": {1: 0.3}, "tem": {1: 0.2}},
         {"cmp": {1: 0.1}, "tem": {1: 0.2}}),
    ],
)  # fmt: skip
def test_a_kind_says_yes_no_and_nothing(
    kind: str, series: Any, more: dict[str, Any], yes: dict[str, Any], no: dict[str, Any]
) -> None:
    """Nothing where a figure is missing, and no check at all where the grid has no such cells."""
    unknown = {name: {**of, 1: None} for name, of in yes.items()}
    seen = [checked(cells(**some), kind=kind, series=series, **more) for some in (yes, no, unknown)]
    assert [check.same for (check,) in seen] == [True, False, None]
    assert checked(Results([]), kind=kind, series=series, **more) == []


def test_a_difference_within_a_standard_error_tells_nothing() -> None:
    assert largest_error(200) == pytest.approx(0.05)
    assert [is_above(first, 0.5, 0.05) for first in (0.54, 0.56, 0.44, None)] == [None, True, False, None]
    for last, same in ((0.54, None), (0.56, True), (0.44, False)):
        (check,) = checked(cells(cmp={1: 0.5, 2: last}), kind="rises", series=[ONE], slack="chance")
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


def test_a_claim_is_not_told_without_the_encoder_or_the_vectors_that_it_needs() -> None:
    """An epsilon means nothing without the vectors; whichever way the figures are, nothing is told of it."""
    for needs, given, yes, no in (
        ("encoder", ("vectors",), None, None), ("vectors", ("encoder",), None, None), ("", (), True, False),
        ("encoder", ("encoder",), True, False), ("vectors", ("vectors",), True, False),
    ):  # fmt: skip
        for some, same in ((cells(cmp={1: 0.1, 2: 0.9}), yes), (cells(cmp={1: 0.9, 2: 0.1}), no)):
            (check,) = checked(some, given, kind="rises", series=[ONE], needs=needs)
            assert check.same is same


def test_an_order_with_a_missing_part_is_not_shown() -> None:
    """Two of four were compared, and the winner was missing."""
    series = [{**ONE, "mechanism": name} for name in ("cmp", "tem", "santext")]
    of = {"kind": "order", "series": series, "paper": {"1": [1, 2, 3]}}
    (check,) = checked(cells(cmp={1: 0.3}, tem={1: 0.2}, santext={1: None}), **of)
    assert check.same is None
    (check,) = checked(cells(cmp={1: 0.3}, tem={1: 0.2}, santext={1: 0.4}), **of)
    assert check.same is False


def test_where_original_texts_teach_nothing_no_comparison_of_accuracies_is_told() -> None:
    """Labels at random: .425 against .55 was a no to the paper."""
    for accuracy, same in ((0.56, None), (0.5, None), (0.7, True)):
        learned = Results([{"kind": "baseline", "options": {}, "result": {"whole": accuracy, "floor": 0.55}}])
        some = Results([*cells(cmp={1: 0.1, 2: 0.9}).records, *learned.records])
        baseline = [{"cells": "baseline", "measure": measure} for measure in ("whole", "floor")]
        (check,) = checked(some, kind="rises", series=[ONE], learned=baseline)
        assert check.same is same


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
    assert check == Check("it does at 0.1", "0.37 0.08", "0.10 0.30", False, "all")
    (check,) = checked(other, kind="above", series=[ONE, OTHER], at="first", paper=paper)
    assert (check.paper, check.seen) == ("0.37 0.08 at 0.1", "0.10 0.30 at 0.2")
    (check,) = checked(other, kind="above", series=[ONE, OTHER])
    assert check.paper == UNQUOTED
    (check,) = checked(other, kind="above", series=[ONE, OTHER], quote="yes")
    assert check.paper == "yes"


@pytest.mark.parametrize("name", [name for name in STUDIES if name != "equal-recovery"])  # which has no paper
def test_every_claim_of_a_paper_is_sound_and_has_a_value_for_each_series(name: str) -> None:
    claims = claims_of(find(name))
    assert len(claims) > 5
    for claim in claims:
        assert {len(values) for values in claim.paper.values()} <= {len(claim.series)}, claim.claim
        assert len(claim.series) % 2 == 0 or claim.kind in ("rises", "falls", "least"), claim.claim


WORDS = words_of(40)
TEXT = f"The {WORDS[0]}, 12 zzcanary {WORDS[1]}! \U0001f600 a@b.example"


@pytest.mark.parametrize("name", PROFILES)
def test_the_sentence_names_what_comes_out_unchanged(name: str) -> None:
    """What the kernel leaves of a text with every kind of token in it is what the profile says it leaves."""
    policy = PROFILES[name].policy()
    release = cv.Release(RingGeometric(small_space(words=WORDS)), cv.Budget(1e-6), policy, key=cv.Key.for_tests())
    out = " ".join(cv.privatize([TEXT] * 3, release, ids=["a", "b", "c"]))
    said = PROFILES[name].in_the_clear()
    assert 1 <= said.count(".") <= 2
    for token, words in (
        ("the", "stop words"), ("zzcanary", "words outside the vocabulary"), ("12", "numbers"),
        ("!", "punctuation"), ("\U0001f600", "emoji"), ("a@b.example", "e-mail addresses"),
    ):  # fmt: skip
        is_unknown = token == "the" and policy.stop_words == "privatize"  # the space lacks it
        assert (token in out) == (("words outside the vocabulary" if is_unknown else words) in said), token
