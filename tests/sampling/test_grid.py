"""The public grid of epsilons: 2^(j/8) rounded down, and shares that never exceed a budget."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusveil.sampling import grid

BUDGETS = st.one_of(
    st.floats(1e-9, 1e6),
    st.sampled_from([1e-9, 0.1, 0.3, 1.0, 3.0, 8.0, 10.0, 1e6]),
    st.integers(-100, 160).map(grid.grid_value),
)
COUNTS = st.one_of(st.integers(1, 300), st.integers(1, 2**31 - 1), st.integers(0, 30).map(lambda k: 1 << k))


def test_grid_values_are_two_to_the_eighths_rounded_down() -> None:
    """Exactly: the eighth power of each is at most 2^j, and the next float's is above."""
    for index in (*range(-16, 17), grid.LOWEST, grid.HIGHEST, 100, -333):
        value = grid.grid_value(index)
        power = Fraction(2) ** index
        assert Fraction(value) ** 8 <= power < Fraction(np.nextafter(value, np.inf)) ** 8


def test_the_grid_ascends_without_gaps() -> None:
    values = grid.grid()
    assert values.size == grid.HIGHEST - grid.LOWEST + 1
    assert values[1:] / values[:-1] == pytest.approx(2**0.125, rel=1e-15)
    assert values[-grid.LOWEST] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 1


@given(BUDGETS, st.lists(COUNTS, min_size=1, max_size=8))
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
    down = grid.round_down(np.array(epsilons))
    values = grid.grid()
    for given_, value in zip(epsilons, down.tolist(), strict=True):
        index = int(np.searchsorted(values, value))
        assert values[index] == value <= given_
        assert index + 1 == values.size or values[index + 1] > given_
