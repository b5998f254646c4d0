"""``mahalanobis``: the contract on a line, exact laws in the plane, and what its constant promises."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from corpusveil.mechanisms.cmp import Cmp
from corpusveil.mechanisms.mahalanobis import Mahalanobis, shape_of
from corpusveil.spaces import Space
from tests.calls import refused
from tests.contracts.mechanism import Case, ContractWithoutLaw, MechanismContract
from tests.contracts.statistics import LEVEL, fit_p_value
from tests.mechanisms.spaces import Floats, angles, distances, draw, masses, normal, space_of

EPSILON = 2.0
STRETCHED = space_of(np.array([*normal(7, 2), [0.0, 0.0]]) @ np.array([[1.6, 0.7], [0.0, 0.3]]))


def matrix_of(space: Space, lam: float) -> Floats:
    """Return A, by numpy."""
    covariance = np.atleast_2d(np.cov(space.vectors.astype(np.float64).T, bias=True))
    covariance *= space.dimensions / np.trace(covariance)
    return np.asarray(lam * covariance + (1 - lam) * np.eye(space.dimensions))


def norms(space: Space, lam: float) -> Floats:
    """Return the Mahalanobis norm of the difference of every two words, by numpy's inverse; float64 [V, V]."""
    points = space.vectors.astype(np.float64)
    gaps = points[:, None] - points[None]
    return np.asarray(np.sqrt(np.einsum("abi,ij,abj->ab", gaps, np.linalg.inv(matrix_of(space, lam)), gaps)))


def case(name: str, space: Space, lam: float) -> Case:
    apart = norms(space, lam)
    return Case(name, Mahalanobis(space, lam), lambda _epsilon: apart)


class TestOnALine(MechanismContract):
    """In one dimension A is 1, and the law is that of ``cmp``."""

    name = "mahalanobis"

    @classmethod
    def cases(cls) -> list[Case]:
        return [case("irregular", space_of(3 * normal(12, 1)), 0.2), case("lam 1", space_of(normal(9, 1)), 1.0)]


class TestInFiveDimensions(ContractWithoutLaw):
    """Without a closed form everything else of the contract holds; the law itself is looked at below."""

    name = "mahalanobis"
    bad = (("lam", -0.1), ("lam", 1.1), ("lam", float("nan")), ("lam", True))
    control = 4.0

    @classmethod
    def cases(cls) -> list[Case]:
        return [case("five dimensions", space_of(normal(20, 5) * [3, 1, 1, 0.5, 0.1]), 0.2)]


def law_of(word: int, epsilon: float, lam: float, count: int = 20_000) -> Floats:
    rays = angles(count) @ np.linalg.cholesky(matrix_of(STRETCHED, lam)).T
    return np.asarray(masses(STRETCHED.vectors.astype(np.float64), word, epsilon, rays).mean(axis=0))


@functools.cache
def logs_of(epsilon: float, lam: float) -> Floats:
    """Return the logarithms of the exact laws in the plane."""
    return np.log([law_of(word, epsilon, lam) for word in range(len(STRETCHED))])


def realised(epsilon: float, lam: float, apart: Floats) -> float:
    """Return their largest log-ratio by distance."""
    logs = logs_of(epsilon, lam)
    return float(((logs[:, None] - logs[None]).max(axis=2) / (apart + np.eye(len(STRETCHED)))).max())


class TestTheShape:
    def test_is_the_cholesky_factor_of_the_covariance(self) -> None:
        """By numpy's covariance and factor, also where words are many; its least stretch is that of A or less."""
        for space, lam in ((STRETCHED, 0.7), (space_of(normal(500, 40) * np.linspace(0.1, 2, 40)), 0.2)):
            shape, expected = shape_of(space, lam), matrix_of(space, lam)
            assert shape.columns.T @ shape.columns == pytest.approx(expected, rel=1e-9, abs=1e-12)
            assert np.array_equal(shape.columns, np.triu(shape.columns))
            least = math.sqrt(np.linalg.eigvalsh(expected)[0])
            assert least * (1 - 2e-6) <= shape.least <= least

    def test_is_round_at_zero(self) -> None:
        """With lam = 0 it is ``cmp``, draw by draw."""
        assert np.array_equal(draw(Mahalanobis(STRETCHED, 0.0), 3, 1.0, 5000), draw(Cmp(STRETCHED), 3, 1.0, 5000))

    def test_must_not_be_flat(self) -> None:
        """lam = 1 in a flat part of the space has no noise in one direction: refused. Less than 1 has."""
        flat = space_of(np.column_stack([normal(9, 2), np.zeros(9)]))
        with refused("unsuitable-data"):
            Mahalanobis(flat, 1.0)
        assert Mahalanobis(flat, 0.99).constant == pytest.approx(10, rel=1e-5)


@pytest.mark.parametrize("lam", [0.2, 0.9])
def test_samples_in_the_plane_follow_the_exact_law(lam: float) -> None:
    """Rays along the factor's ellipse times the Gamma law. Control: another scale and round noise are rejected."""
    for word in (0, 7):
        law = law_of(word, EPSILON, lam)
        assert law.sum() == pytest.approx(1, abs=1e-9)
        assert fit_p_value(draw(Mahalanobis(STRETCHED, lam), word, EPSILON, 100_000), law) > LEVEL
    assert fit_p_value(draw(Mahalanobis(STRETCHED, lam), 0, 1.2 * EPSILON, 100_000), law_of(0, EPSILON, lam)) < LEVEL
    assert fit_p_value(draw(Cmp(STRETCHED), 0, EPSILON, 400_000), law_of(0, EPSILON, lam)) < LEVEL


class TestTheGuarantee:
    @pytest.mark.parametrize("lam", [0.2, 1.0])
    def test_holds_in_its_norm_and_by_its_constant(self, lam: float) -> None:
        """Exactly, in the plane: epsilon in the norm, nearly reached; epsilon times the constant in Euclidean terms."""
        mechanism = Mahalanobis(STRETCHED, lam)
        assert 0.9 * EPSILON < realised(EPSILON, lam, norms(STRETCHED, lam)) <= EPSILON * (1 + 1e-4)
        assert realised(1.2 * EPSILON, lam, norms(STRETCHED, lam)) > EPSILON
        euclidean = realised(EPSILON, lam, distances(STRETCHED))
        assert euclidean <= EPSILON * mechanism.constant * (1 + 1e-4)
        if lam == 1:
            assert euclidean > 1.5 * EPSILON
