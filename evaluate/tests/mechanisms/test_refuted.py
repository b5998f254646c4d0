"""The refuted mechanisms: their contracts, their laws, and why they promise nothing."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pytest

from corpusveil.errors import DataError
from corpusveil.mechanisms import make_mechanism
from corpusveil_evaluate.mechanisms.as_run import SanTextAsRun, SynTfAsRun, TruncatedGumbelAsRun
from corpusveil_evaluate.mechanisms.custext_per_word import CusTextPerWord
from corpusveil_evaluate.mechanisms.nearest_sets import nearest_sets
from corpusveil_evaluate.mechanisms.truncated_gumbel import TruncatedGumbel, extent, floor_of, scale_of
from tests.contracts.mechanism import SAMPLES, Case, MechanismContract, RefutedContract, draws_of, matrix
from tests.contracts.statistics import LEVEL, fit_p_value
from tests.mechanisms.spaces import distances, draw, excess, normal, space_of
from tests.mechanisms.test_custext import DUPLICATES, Integers
from tests.mechanisms.test_vickrey import EPSILON, EVERY, PLANE, Contract, law_of


class TestCusTextPerWord(RefutedContract, Integers):
    name = "custext-per-word"

    @classmethod
    def cases(cls) -> list[Case]:
        return [
            Case("two words", CusTextPerWord(space_of([[-0.7], [0.6]])), None),
            Case("thirty-five", CusTextPerWord(space_of(normal(35, 4))), None),
            Case("duplicates", CusTextPerWord(space_of(DUPLICATES), K=3), None),
        ]


def test_nearest_sets_are_the_nearest() -> None:
    """Each word first, then others by distance and id."""
    space = space_of([*DUPLICATES, [0, 0.5]])
    apart = distances(space)
    for word, members in enumerate(nearest_sets(space, 5).members.tolist()):
        others = sorted((u for u in range(11) if u != word), key=lambda u, w=word: (apart[w, u], u))
        assert members == [word, *others[:4]]


def test_a_set_per_word_is_refuted() -> None:
    """Supports differ, so the ratio of two laws is infinite."""
    law = matrix(CusTextPerWord(space_of(normal(200, 10))), 1.0)
    assert len({tuple(np.flatnonzero(row)) for row in law}) == 200
    assert excess(law, np.ones((200, 200)), 1e9) == math.inf


class TestTruncatedGumbel(RefutedContract):
    name = "truncated-gumbel"
    test_no_math_library_decides_what_is_drawn = None  # its noise is a logarithm in float64, as published
    epsilons: ClassVar[tuple[float, ...]] = (0.3, 1.0, 3.0, 10.0, 1e6)
    sampled: ClassVar[tuple[float, ...]] = (0.3, 3.0)

    @classmethod
    def cases(cls) -> list[Case]:
        far = 400 * np.unique(np.round(2 * normal(40, 2)), axis=0)[:20]
        return [
            Case("two words", TruncatedGumbel(space_of([[0.0], [300.0]])), None),
            Case("twenty", TruncatedGumbel(space_of(far)), None),
        ]

    def test_a_wrong_scale_would_be_noticed(self, case: Case) -> None:
        """Control: samples at 4 epsilon do not pass for samples at epsilon; b has only the logarithm of it."""
        ids = np.zeros(SAMPLES, dtype=np.int32)
        out = case.mechanism.privatize(ids, 4.0, draws_of(SAMPLES))
        assert fit_p_value(out, case.mechanism.distribution(0, 1.0)) < LEVEL
        assert fit_p_value(out, case.mechanism.distribution(0, 4.0)) > LEVEL


def test_epsilon_has_a_floor() -> None:
    """At and below (2 (1 + ln n) + 3) / D0 it refuses; just above it works. The papers' vocabularies: 120.3, 104.9."""
    space = space_of(normal(30, 4))
    mechanism = TruncatedGumbel(space)
    floor = floor_of(30, extent(space)[0])
    assert math.log((floor - 2 * (1 + math.log(30)) / extent(space)[0]) / 3 * extent(space)[0]) == pytest.approx(0)
    for below in (floor * (1 - 1e-9), floor / 2, 1e-9):
        with pytest.raises(DataError):
            mechanism.guarantee(below)
    assert mechanism.scale(floor * 1.01) > 0
    stated = 2 * (1 + math.log(48_210))
    assert floor_of(48_210, stated / 106.7) == pytest.approx(106.7 * (1 + 3 / stated))


def test_the_theorem_is_false() -> None:
    """100 words at distance 1 of one another, one at 1.5 of all: more than epsilon R, at 1.05 times the floor."""
    simplex = np.eye(100, 101) / math.sqrt(2)
    height = math.sqrt(1.5**2 - ((simplex[0] - simplex.mean(axis=0)) ** 2).sum())
    far = simplex.mean(axis=0)
    far[100] = height
    mechanism = TruncatedGumbel(space_of(np.vstack([simplex, far])))
    apart = distances(mechanism.space)
    epsilon = 1.05 * floor_of(101, extent(mechanism.space)[0])
    law = np.array([mechanism.distribution(word, epsilon) for word in (0, 100)])
    assert excess(law, apart[[0, 100]][:, [0, 100]], epsilon) > 0


def test_words_with_one_vector_are_refused() -> None:
    with pytest.raises(DataError):
        TruncatedGumbel(space_of([[0.0], [1.0], [1.0]]))


def test_b_is_as_printed() -> None:
    """b from its two fractions, and a law that is sharper with more epsilon."""
    assert scale_of(20, 10.0, 5.0, 50.0) == pytest.approx(
        2 * 50 / min(4.806, math.log((10 - 2 * (1 + math.log(20)) / 5) / 3 * 5)), rel=1e-3
    )
    mechanism = TruncatedGumbel(space_of(100 * normal(20, 2)))
    floor = floor_of(20, extent(mechanism.space)[0])
    assert np.diag(matrix(mechanism, 100 * floor)).mean() > np.diag(matrix(mechanism, 1.1 * floor)).mean()


class TestVickreyCmpExcluding(Contract):
    name = "vickrey-cmp-excluding"


class TestVickreyMahalanobisExcluding(Contract):
    name = "vickrey-mahalanobis-excluding"


@pytest.mark.parametrize("name", EVERY)
def test_excluding_never_returns_the_input(name: str) -> None:
    """And chooses from the two nearest of all others; it is said that nothing holds."""
    mechanism = make_mechanism(f"{name}-excluding", PLANE)
    assert not mechanism.private
    assert mechanism.retention(EPSILON) == 0
    for word in range(8):
        found = draw(mechanism, word, EPSILON, 20_000)
        assert (found != word).all()
    if name == "vickrey-cmp":
        assert fit_p_value(draw(mechanism, 3, EPSILON, 50_000), law_of(3, EPSILON, 0.5, excluding=True)) > LEVEL


def test_exclusion_needs_three_words() -> None:
    with pytest.raises(DataError):
        draw(make_mechanism("vickrey-cmp-excluding", space_of([[0], [1]])), 0, 1.0, 10)


# As a study's code runs them


class TestSanTextAsRun(MechanismContract):
    name = "santext-as-run"

    @classmethod
    def cases(cls) -> list[Case]:
        space = space_of(normal(12, 5))
        apart = distances(space_of(space.vectors[:, :3]))
        return [Case("five dimensions", SanTextAsRun(space), lambda _epsilon: apart)]


class TestVickreyCmpAsRun(Contract):
    name = "vickrey-cmp-as-run"
    test_no_math_library_decides_what_is_drawn = None  # it chooses by an exponential in float64, as it was run


class TestTruncatedGumbelAsRun(TestTruncatedGumbel):
    name = "truncated-gumbel-as-run"

    @classmethod
    def cases(cls) -> list[Case]:
        return [Case(case.name, TruncatedGumbelAsRun(case.mechanism.space), None) for case in super().cases()]


class TestSynTfAsRun(RefutedContract):
    name = "syntf-as-run"
    test_a_wrong_scale_would_be_noticed = None  # the law is the same at every epsilon

    @classmethod
    def cases(cls) -> list[Case]:
        return [Case("thirty-five", SynTfAsRun(space_of(normal(35, 4)), K=5), None)]


def test_what_a_study_ran_hardly_depends_on_epsilon_and_may_return_the_input() -> None:
    """Gumbel below its floor and SynTF; Vickrey leaves out the nearest word, so a little noise never returns it."""
    space = space_of(normal(60, 8) / 4)
    gumbel = TruncatedGumbelAsRun(space)
    assert floor_of(60, extent(space)[0]) > 40
    assert gumbel.retention(10.0) == pytest.approx(gumbel.retention(1.0), abs=0.02)
    assert 0.1 < gumbel.retention(1.0) < 0.6
    with pytest.raises(DataError, match="no positive b"):
        gumbel.retention(0.99 * floor_of(60, extent(space)[0]))
    assert SynTfAsRun(space, K=5).retention(1e6) == pytest.approx(0.2)
    vickrey = make_mechanism("vickrey-cmp-as-run", space)
    assert (draw(vickrey, 3, 1e6, 1_000) == 3).sum() == 0
    assert 0 < (draw(vickrey, 3, 16.0, 5_000) == 3).mean() < 0.3
