"""Integer weights: an exact total, a floor under every cell; and the public grid of epsilons, 2^(j/8) rounded down."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corpusveil.sampling import grid
from corpusveil.sampling.weights import (
    EXTRA_LOG_RATIO,
    FLOOR,
    PRECISION_BITS,
    TOTAL,
    WeightTable,
    exp_fixed,
    integer_weights,
)

COUNTS = st.lists(st.one_of(st.integers(0, 10), st.integers(0, 2**62)), min_size=1, max_size=60)


@given(COUNTS)
@settings(max_examples=200)
def test_weights_total_exactly_and_every_cell_has_its_floor(counts: list[int]) -> None:
    weights = [int(w) for w in integer_weights(np.array(counts, dtype=np.int64))] if len(counts) > 1 else [TOTAL]
    assert sum(weights) == TOTAL
    assert min(weights) >= FLOOR
    total = sum(counts) or len(counts)
    for weight, count in zip(weights, counts if sum(counts) else [1] * len(counts), strict=True):
        exact = (TOTAL - len(counts) * FLOOR) * count / total + FLOOR
        assert abs(weight - exact) <= len(counts) + exact * 1e-15
        if count * TOTAL // total >= 1 << 42:
            assert abs(math.log(weight / TOTAL) - math.log(count / total)) <= EXTRA_LOG_RATIO


@given(COUNTS)
@example([2**62, 2**62 + 1, 2**62, 2**62, 2**62])  # weights are equal but for what is left over
def test_order_of_counts_is_order_of_weights(counts: list[int]) -> None:
    """A more frequent word is never the less likely one."""
    if len(counts) == 1:
        return
    weights = integer_weights(np.array(counts, dtype=np.int64))
    ordered = sorted(zip(counts, weights.tolist(), strict=True))
    assert [weight for _, weight in ordered] == sorted(weights.tolist())


def naive_cell(weights: list[int], draw: int) -> int:
    edge = 0
    for cell, weight in enumerate(weights):
        edge += weight
        if draw < edge:
            return cell
    raise AssertionError


@given(st.lists(st.integers(0, 2**40), min_size=2, max_size=40), st.lists(st.integers(0, TOTAL - 1), max_size=20))
@settings(max_examples=100)
def test_cells_are_those_of_a_naive_search(counts: list[int], draws: list[int]) -> None:
    """On any draw and on every boundary: the bound itself, the draw before it, the first and the last."""
    weights = integer_weights(np.array(counts, dtype=np.int64))
    plain = [int(w) for w in weights]
    bounds = np.cumsum([0, *plain[:-1]], dtype=object)
    edges = {int(bound) + step for bound in bounds for step in (-1, 0, 1)} | {0, TOTAL - 1, *draws}
    edges |= {(k << 52) + step for k in (1, 2, 1000, 4095) for step in (-1, 0)}
    wanted = sorted(edge for edge in edges if 0 <= edge < TOTAL)
    got = WeightTable(weights).cells(np.array(wanted, dtype=np.uint64))
    assert got.dtype == np.int32
    assert got.tolist() == [naive_cell(plain, draw) for draw in wanted]


@pytest.mark.parametrize("exponent", [0.0, -1e-300, -0.5, -100.0, -132.0, -1e300])
def test_exp_is_correct_to_the_last_of_192_bits(exponent: float) -> None:
    """Against 150 digits of the decimal module."""
    context = decimal.Context(prec=150, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
    exact = context.multiply(context.exp(decimal.Decimal(exponent)), decimal.Decimal(1 << PRECISION_BITS))
    assert exp_fixed(exponent) == int(exact)


def test_the_floor_adds_at_most_two_to_the_minus_19_to_a_log_ratio() -> None:
    """Two laws at most exp(epsilon) apart stay so: also where one has cells far below the floor."""
    small, large = np.array([1, 10**6, 10**17]), np.array([3, 3 * 10**6, 3 * 10**17 - 2 * 10**17])
    laws = [integer_weights(counts).astype(np.float64) / TOTAL for counts in (small, large)]
    exact = [counts / counts.sum() for counts in (small, large)]
    allowed = np.abs(np.log(exact[0] / exact[1])).max()
    assert np.abs(np.log(laws[0] / laws[1])).max() <= allowed + EXTRA_LOG_RATIO


BUDGETS = st.one_of(
    st.floats(1e-9, 1e6),
    st.sampled_from([1e-9, 0.1, 0.3, 1.0, 3.0, 8.0, 10.0, 1e6]),
    st.integers(-100, 160).map(grid.grid_value),
)
NUMBERS = st.one_of(st.integers(1, 300), st.integers(1, 2**31 - 1), st.integers(0, 30).map(lambda k: 1 << k))


def test_grid_values_are_two_to_the_eighths_rounded_down() -> None:
    """Exactly: the eighth power of each is at most 2^j, and the next float's is above."""
    for index in (*range(-16, 17), grid.LOWEST, grid.HIGHEST, 100, -333):
        value = grid.grid_value(index)
        power = Fraction(2) ** index
        assert Fraction(value) ** 8 <= power < Fraction(np.nextafter(value, np.inf)) ** 8


def test_the_grid_ascends_without_gaps() -> None:
    """It is the same for everybody, and nobody can change it."""
    values = grid.grid()
    assert values.size == grid.HIGHEST - grid.LOWEST + 1
    assert values[1:] / values[:-1] == pytest.approx(2**0.125, rel=1e-15)
    assert values[-grid.LOWEST] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 1


@given(BUDGETS, st.lists(NUMBERS, min_size=1, max_size=8))
@settings(max_examples=300)
def test_shares_never_exceed_the_budget_and_are_the_largest_that_do_not(budget: float, counts: list[int]) -> None:
    """m g <= E in exact arithmetic, and the next grid value would exceed E."""
    shares = grid.share(budget, np.array(counts, dtype=np.int64))
    assert shares.dtype == np.float64
    values = grid.grid()
    for count, value in zip(counts, shares.tolist(), strict=True):
        index = int(np.searchsorted(values, value))
        assert values[index] == value
        assert count * Fraction(value) <= Fraction(budget)
        assert count * Fraction(float(values[index + 1])) > Fraction(budget)


@given(st.lists(st.one_of(st.floats(2.0**-64, 2.0**64), st.integers(-512, 512).map(grid.grid_value)), min_size=1))
def test_rounding_is_down_to_the_grid(epsilons: list[float]) -> None:
    """So that no token spends more than it was given."""
    down = grid.round_down(np.array(epsilons))
    values = grid.grid()
    for given_, value in zip(epsilons, down.tolist(), strict=True):
        index = int(np.searchsorted(values, value))
        assert values[index] == value <= given_
        assert index + 1 == values.size or values[index + 1] > given_
