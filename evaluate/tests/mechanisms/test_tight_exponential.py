"""``tight-exponential``: the contract, K c = 1, the clamped geometric on a path, and the calibrated fallback."""

from __future__ import annotations

import numpy as np
import pytest

from corpusveil.mechanisms.exponential_rows import rows_of
from corpusveil.mechanisms.santext import SanText
from corpusveil.mechanisms.vector_blocks import VectorBlocks
from corpusveil.sampling.weights import TOTAL
from corpusveil.spaces import Space
from corpusveil_evaluate.mechanisms.tight_exponential import (
    RESIDUAL,
    TightExponential,
    calibrate,
    realised,
    solution_of,
    solve,
)
from tests.contracts.mechanism import Case, matrix
from tests.mechanisms import spaces
from tests.mechanisms.spaces import RowsContract, distances, excess, mechanism_excess, normal, space_of


class TestTightExponential(RowsContract):
    name = "tight-exponential"
    test_distribution_is_the_closed_form = None  # other exponents and weights, below

    @classmethod
    def case(cls, name: str, space: Space) -> Case:
        apart = distances(space)
        return Case(name, TightExponential(space), lambda _epsilon: apart)

    @classmethod
    def cases(cls) -> list[Case]:
        return [
            cls.case("two words", space_of([[-0.7], [0.6]])),
            cls.case("tight from epsilon 1", space_of(2 * normal(40, 6))),
            cls.case("calibrated", space_of(normal(33, 5) / 4)),
            cls.case("duplicates", space_of([[0, 0], [1, 2], [0, 0], [1, 2], [0, 0], [1, 2.0001], [-1, 3]])),
        ]

    def test_the_exponent_is_what_is_said(self, case: Case, epsilon: float) -> None:
        """The law is c_u exp(-s d) / Z_w with the s and c of the solution, s from epsilon / 2 to epsilon."""
        assert case.distances is not None
        found = solution_of(case.mechanism.space, epsilon)
        assert epsilon / 2 <= found.s <= epsilon
        assert found.realised <= epsilon
        size = len(case.mechanism.space)
        factors = np.ones(size) if found.factors is None else found.factors
        expected = factors * np.exp(-found.s * case.distances(epsilon))
        expected /= expected.sum(axis=1, keepdims=True)
        assert matrix(case.mechanism, epsilon) == pytest.approx(expected, abs=1e-11)


def test_weights_solve_their_equations() -> None:
    """K c = 1 and c > 0, as a direct solver finds; the guarantee says so; nearly all of epsilon is realized."""
    space = space_of(2 * normal(40, 6))
    apart = distances(space)
    found = solution_of(space, 1.0)
    assert found.factors is not None
    assert found.factors == pytest.approx(np.linalg.solve(np.exp(-apart), np.ones(40)), abs=1e-6)
    assert np.abs(np.exp(-apart) @ found.factors - 1).max() <= RESIDUAL
    mechanism = TightExponential(space)
    assert "solved" in mechanism.guarantee(1.0).notes[0]
    assert mechanism_excess(mechanism, apart, 0.999) > 0
    assert mechanism.retention(1.0) > SanText(space).retention(1.0)


def test_on_a_path_it_is_the_clamped_geometric() -> None:
    """Words at whole numbers: the geometric of 1-Diffractor, clamped at the ends."""
    law = matrix(TightExponential(space_of(np.arange(15.0)[:, None])), 0.7)
    a = np.exp(-0.7)
    steps = np.abs(np.subtract.outer(np.arange(15), np.arange(15)))
    expected = (1 - a) / (1 + a) * a**steps
    expected[:, 0] = a ** steps[:, 0] / (1 + a)
    expected[:, -1] = a ** steps[:, -1] / (1 + a)
    assert law == pytest.approx(expected, abs=1e-6)


def test_where_weights_are_negative_it_is_calibrated() -> None:
    """The fallback says so, is sharper than SanText, and the realized epsilon of §1 is that of the whole matrix."""
    space = space_of(normal(33, 5) / 4)
    apart = distances(space)
    assert np.linalg.solve(np.exp(-apart), np.ones(33)).min() < 0
    assert solve(VectorBlocks.from_vectors(space.vectors), 1.0) is None
    mechanism = TightExponential(space)
    found = solution_of(space, 1.0)
    assert found.factors is None
    assert "calibrated" in mechanism.guarantee(1.0).notes[0]
    assert 0.5 < found.s < 1
    law = np.log(spaces.exponential(-found.s * apart))
    ratios = np.abs(law[:, None] - law[None]).max(axis=2)
    np.fill_diagonal(apart, np.inf)
    assert found.realised == pytest.approx((ratios / apart).max(), abs=1e-6)
    assert 0.95 < found.realised <= 1
    assert mechanism.retention(1.0) > SanText(space).retention(1.0)


def test_the_full_epsilon_without_weights_is_refuted() -> None:
    """Planted defect: the plain exponential with all of epsilon in the exponent breaks the promise."""
    space = space_of(np.vstack([normal(60, 3) / 10, 2 * normal(5, 3)]))
    rows = rows_of(space, 1.0)
    law = rows.several(np.arange(65)).astype(float) / TOTAL
    assert excess(law, distances(space), 1.0) > 0.01
    assert realised(VectorBlocks.from_vectors(space.vectors), 1.0) > 1.01
    assert calibrate(VectorBlocks.from_vectors(space.vectors), 1.0).s < 1
