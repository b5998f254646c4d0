"""The Vickrey mechanisms as published: without the input among the candidates, there is no guarantee."""

from __future__ import annotations

import math

import pytest

from corpusveil.errors import DataError
from corpusveil.mechanisms import make
from tests.contracts.statistics import LEVEL, fit_p_value
from tests.mechanisms.rays import draw
from tests.mechanisms.spaces import space_of
from tests.mechanisms.test_vickrey import EPSILON, EVERY, PLANE, Contract, law_of, realised


class TestVickreyCmpExcluding(Contract):
    name = "vickrey-cmp-excluding"


class TestVickreyMahalanobisExcluding(Contract):
    name = "vickrey-mahalanobis-excluding"


def test_does_not_hold_where_the_input_is_left_out() -> None:
    """The published rule: an output is impossible for itself. Dropping it only when it is nearest: over epsilon."""
    assert math.isinf(realised(EPSILON, 0.5, "input"))
    assert realised(EPSILON, 0.5, "input when nearest") > 2 * EPSILON


@pytest.mark.parametrize("name", EVERY)
def test_excluding_never_returns_the_input(name: str) -> None:
    """And chooses from the two nearest of all others; it is said that nothing holds."""
    mechanism = make(f"{name}-excluding", PLANE)
    assert not mechanism.private
    assert mechanism.retention(EPSILON) == 0
    for word in range(8):
        found = draw(mechanism, word, EPSILON, 20_000)
        assert (found != word).all()
    if name == "vickrey-cmp":
        assert fit_p_value(draw(mechanism, 3, EPSILON, 50_000), law_of(3, EPSILON, 0.5, "input")) > LEVEL


def test_exclusion_needs_three_words() -> None:
    with pytest.raises(DataError):
        draw(make("vickrey-cmp-excluding", space_of([[0], [1]])), 0, 1.0, 10)
