"""``santext``, ``tem`` and ``syntf``, whose law is a row of integers: the contract, closed forms and searches."""

from __future__ import annotations

import math

import numpy as np
import pytest

from corpusveil.mechanisms.exponential_rows import ExponentialRows
from corpusveil.mechanisms.santext import SanText
from corpusveil.mechanisms.syntf import SynTf
from corpusveil.mechanisms.tem import Tem
from corpusveil.mechanisms.vector_blocks import VectorBlocks, unit_vectors
from corpusveil.sampling.weights import TOTAL
from corpusveil.spaces import Space
from tests.calls import refused
from tests.contracts.mechanism import Case, matrix
from tests.mechanisms import spaces
from tests.mechanisms.spaces import Floats, RowsContract, distances, normal, space_of


class TestSanText(RowsContract):
    name = "santext"

    @classmethod
    def case(cls, name: str, space: Space) -> Case:
        apart = distances(space)
        return Case(name, SanText(space), lambda _epsilon: apart)

    @classmethod
    def cases(cls) -> list[Case]:
        return [
            cls.case("two words", space_of([[-0.7], [0.6]])),
            cls.case("duplicates", space_of([[0, 0], [1, 2], [0, 0], [1, 2], [0, 0], [1, 2.0001], [-1, 3]])),
            cls.case("a cluster and one far word", space_of(np.vstack([normal(40, 2) / 50, [[3, 0]]]))),
        ]


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_every_boundary_draw_falls_where_a_naive_search_puts_it(epsilon: float) -> None:
    """The block search changes nothing: w first, then all other words by id, in one or several chunks a block."""
    space = space_of(normal(75, 6) / 2)
    for blocks in (
        VectorBlocks.from_vectors(space.vectors),
        VectorBlocks.from_vectors(space.vectors, table_bytes=75 * 16),
    ):
        rows = ExponentialRows(blocks, epsilon / 2, math.inf)
        assert blocks.blocks == (3 if blocks.per_block == 1 else 2)
        for word in (0, 40, 74):
            row = [int(weight) for weight in rows.several(np.array([word]))[0]]
            order = [word] + [u for u in range(75) if u != word]
            bounds = np.cumsum([0] + [row[u] for u in order], dtype=object)
            draws = sorted({d for b in bounds for d in (b - 1, b, b + 1) if 0 <= d < TOTAL})
            expected = [order[int(np.searchsorted(bounds, d, side="right")) - 1] for d in draws]
            out = rows.sample(np.full(len(draws), word, np.int32), np.array(draws, dtype=np.uint64))
            assert out.tolist() == expected


def test_rows_do_not_depend_on_the_order_in_which_they_are_built() -> None:
    """A row built alone, in a batch or later is the same row."""
    space = space_of(normal(200, 7))
    whole, single = (
        ExponentialRows(VectorBlocks.from_vectors(space.vectors), 0.7, math.inf),
        ExponentialRows(VectorBlocks.from_vectors(space.vectors), 0.7, math.inf),
    )
    whole.build(np.arange(200))
    for word in np.random.default_rng(0).permutation(200):
        single.build(np.array([word]))
    assert np.array_equal(whole.totals, single.totals)
    assert np.array_equal(whole.own, single.own)


class TestTem(RowsContract):
    name = "tem"
    bad = (("gamma", 0), ("gamma", math.nan), ("gamma", True), ("beta", 0.0), ("beta", 0.99))
    control = 2.0

    @classmethod
    def case(cls, name: str, space: Space, gamma: float | None = None) -> Case:
        mechanism, apart = Tem(space, gamma=gamma), distances(space)
        return Case(name, mechanism, lambda epsilon: np.minimum(apart, mechanism.gamma_at(epsilon)))

    @classmethod
    def cases(cls) -> list[Case]:
        return [
            cls.case("two words", space_of([[-0.7], [0.6]])),
            cls.case("rule", space_of(4 * normal(40, 3))),
            cls.case("gamma given", space_of(normal(35, 2)), 1.5),
        ]


def test_gamma_follows_the_rule() -> None:
    """gamma = (2/epsilon) ln((1 - beta)(n - 1)/beta): plain LDP at most 2 ln(...) at every epsilon."""
    space = space_of(100 * normal(50, 3))
    mechanism = Tem(space)
    rule = math.log(0.999 * 49 / 0.001)
    assert mechanism.gamma_at(2.0) == pytest.approx(rule)
    for epsilon in (0.5, 2.0, 8.0):
        ldp = mechanism.guarantee(epsilon).plain_ldp
        assert ldp == pytest.approx(min(2 * rule, epsilon * mechanism.diameter(), 44 * math.log(2)))
        outside = 1 - np.diag(matrix(mechanism, 8.0))
        assert outside.max() <= 0.0011
    assert mechanism.retention(8.0) == pytest.approx(0.999, abs=1e-3)


def scores(space: Space) -> Floats:
    """Return (1 + cosine) / 2 of every two words, by numpy."""
    points = space.vectors.astype(np.float64)
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray((1 + np.clip(points @ points.T, -1, 1)) / 2)


class TestSynTf(RowsContract):
    name = "syntf"
    control = 6.0
    excessive = 4.0
    test_a_weaker_guarantee_would_be_noticed = None  # half of epsilon is realized

    @classmethod
    def case(cls, name: str, space: Space) -> Case:
        apart = 1 - np.eye(len(space))
        return Case(name, SynTf(space), lambda _epsilon: apart)

    @classmethod
    def cases(cls) -> list[Case]:
        return [
            cls.case("two opposite words", space_of([[-0.7, 0.1], [0.7, -0.1]])),
            cls.case("equal directions", space_of([[1, 1], [2, 2], [-1, 0], [0, 3], [1e-20, 0], [3e18, 1e18]])),
            cls.case("a chunk and one", space_of(normal(33, 5))),
        ]

    def test_distribution_is_the_closed_form(self, case: Case, epsilon: float) -> None:
        """P is proportional to exp(epsilon rho / 2), but for the floor and for vectors of length 1 in float32."""
        size = len(case.mechanism.space)
        if epsilon > 100:
            return  # there a last digit of the vectors decides between equal directions
        expected = spaces.exponential(epsilon / 2 * scores(case.mechanism.space))
        mixed = (1 - size * 2.0**-44) * expected + 2.0**-44
        for word in range(size):
            assert case.mechanism.distribution(word, epsilon) == pytest.approx(mixed[word], rel=1e-6 * max(epsilon, 1))


def test_lengths_of_vectors_do_not_matter() -> None:
    """Unit vectors are of length 1 whatever length was given, also where squares overflow in float32."""
    vectors = normal(20, 7)
    factors = (10.0 ** np.linspace(-30, 30, 20)[:, None]).astype(np.float32)
    assert np.linalg.norm(unit_vectors(vectors * factors).astype(float), axis=1) == pytest.approx(1, rel=1e-6)
    assert unit_vectors(vectors * factors) == pytest.approx(unit_vectors(vectors), abs=1e-6)


def test_a_word_without_a_direction_is_named() -> None:
    space = space_of([[1, 0], [0, 0], [0, 1]])
    with refused("unsuitable-data", space.word(1)):
        SynTf(space)
