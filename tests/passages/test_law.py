"""The law of an exchange is that of its integers, and no ranking, however chosen, exceeds the printed epsilon."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import corpusveil as cv
from corpusveil.passages.law import Exchange, cells, usual_neighbors
from corpusveil.passages.passage_exchange import PassageExchange
from corpusveil.passages.store import Store
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.sampling.weights import TOTAL
from corpusveil.search.inner_products import ProductSearch
from tests.calls import refused
from tests.engines.corpora import TEST_KEY
from tests.passages.stores import PIECES, small_store

SIZES = ((2, 1), (5, 5), (7, 3), (6000, 10), (100_003, 200))


@pytest.mark.parametrize(("pieces", "neighbors"), SIZES)
def test_the_threshold_is_the_largest_that_an_epsilon_allows(pieces: int, neighbors: int) -> None:
    for epsilon in (1e-3, 0.5, 1.0, 8.0, 10.0, 14.0, 35.0):
        law = Exchange.at(epsilon, pieces, neighbors)
        more = Exchange(pieces, neighbors, law.threshold + 1)
        assert law.epsilon <= epsilon < more.epsilon or more.threshold == TOTAL, epsilon


def test_the_largest_epsilon_that_draws_reach_is_named() -> None:
    largest = Exchange(1000, 10, TOTAL - 1).epsilon
    assert Exchange.at(largest, 1000, 10).threshold == TOTAL - 1
    for epsilon in (60.0, 1e9):  # e^1e9 is more than a decimal number holds
        with refused("wrong-setting", f"epsilon = {epsilon:g}", f"{largest:.4g}"):
            Exchange.at(epsilon, 1000, 10)


@pytest.mark.parametrize(("pieces", "neighbors"), [(5, 5), (7, 3), (12, 1)])
def test_no_two_rankings_are_told_apart_by_more_than_epsilon(pieces: int, neighbors: int) -> None:
    """All pairs of adversarial rankings, exactly, in integers; and hardly less, so that nothing is given away."""
    for epsilon in (0.1, 2.0, 9.0):
        law, worst = Exchange.at(epsilon, pieces, neighbors), Fraction(1)
        rankings = list(itertools.islice(itertools.permutations(range(pieces), neighbors), 60))
        weights = [law.weights(np.array(ranking)) for ranking in [*rankings, tuple(range(pieces))[-neighbors:]]]
        assert all(sum(some) == TOTAL**2 for some in weights)
        for one, other in itertools.permutations(weights, 2):
            worst = max(worst, *(Fraction(a, b) for a, b in zip(one, other, strict=True)))
        assert worst <= 1 + law.odds
        assert pieces == neighbors or math.log(worst) > epsilon - 1e-6


def test_cells_are_uneven_by_at_most_one() -> None:
    for size in (1, 3, 7, 1000):
        found = [cells(number, size) for number in range(size)]
        assert sum(found) == TOTAL
        assert max(found) - min(found) <= 1


def test_k_is_the_fewest_with_which_four_in_five_are_near_and_at_least_four() -> None:
    for epsilon, pieces in itertools.product((0.1, 4.0, 7.5, 10.0, 700.0), (2, 100, 20_740, 1_000_000)):
        neighbors = usual_neighbors(epsilon, pieces)
        assert min(4, pieces) <= neighbors <= pieces
        if 4 < neighbors < pieces:
            near = [Exchange.at(epsilon, pieces, each).near for each in (neighbors - 1, neighbors)]
            assert near[0] < 0.8 <= near[1] + 1e-12


def test_what_is_drawn_has_the_law_and_half_the_noise_would_be_noticed() -> None:
    """Chi-squared at 1e-9, with a control that fails."""
    mechanism, store = PassageExchange(small_store(), 3), small_store()
    point = store.vectors[4]
    draws = Draws.of_tokens(DrawKey.derive(cv.Key(TEST_KEY), "00" * 32), 40_000)
    drawn = mechanism.privatize(np.repeat(point[None], 40_000, axis=0), 2.0, draws)
    observed = np.bincount(drawn, minlength=len(store))
    for epsilon, holds in ((2.0, True), (2.3, False)):
        expected = mechanism.distribution(point, epsilon) * drawn.size
        assert (stats.chisquare(observed, expected).pvalue > 1e-9) == holds


@pytest.mark.parametrize("rows", [3, 130, 5000])
def test_the_search_is_exact_whatever_the_batch(rows: int) -> None:
    """Ties by id; points that are zero rank by id alone; a rank alone is that of all."""
    rng = np.random.default_rng(rows)
    vectors = rng.integers(-3, 4, (rows, 9)).astype(np.int8)
    points = np.concatenate([rng.integers(-127, 128, (299, 9)), np.zeros((1, 9))]).astype(np.int8)
    search, size = ProductSearch(vectors), min(rows, 20)
    products = points.astype(int) @ vectors.T.astype(int)
    wanted = np.array([np.lexsort((np.arange(rows), -row))[:size] for row in products])
    ids, found = search.several(points, size)
    assert (ids == wanted).all()
    assert (found == np.take_along_axis(products, wanted, 1)).all()
    ranks = rng.integers(0, size, 300)
    assert (search.at_ranks(points, ranks) == wanted[np.arange(300), ranks]).all()
    assert (np.concatenate([search.several(points[at : at + 1], size)[0] for at in range(300)]) == wanted).all()
    with refused("wrong-setting", "1,040"):
        ProductSearch(np.zeros((2, 1041), np.int8))


def test_what_is_no_mechanism_is_refused() -> None:
    """K is a number of pieces that the store has, and a store has two pieces at least."""
    store = small_store()
    for neighbors in (0, len(store) + 1, 1.5, True):
        with refused("wrong-setting", "neighbors"):
            PassageExchange(store, neighbors)  # type: ignore[arg-type]
    with refused("wrong-setting", "cv.load_store"):
        PassageExchange("en")  # type: ignore[arg-type]
    with refused("unsuitable-data", "1 passages"):
        Store.from_texts(pa.array(PIECES[:1], pa.large_string()), store.space)
