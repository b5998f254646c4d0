"""``tem``: the contract, the closed form, gamma by its rule, the two defects of its implementations, refuted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from corpusveil.mechanisms.tem import Tem
from corpusveil.spaces import Space
from tests.contracts.mechanism import Case, matrix
from tests.mechanisms.spaces import (
    RowsContract,
    distances,
    normal,
    space_of,
)


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
