"""The published 1-Diffractors: the contract, their closed forms, and the errors that others made."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.diffractor_exponential import DiffractorExponential
from corpusveil.mechanisms.diffractor_geometric import DiffractorGeometric
from corpusveil.spaces import Space
from tests.contracts.mechanism import Case, MechanismContract, draws_of
from tests.contracts.spaces import small_space

SIZES = (2, 8, 37)


def path_distances(space: Space) -> npt.NDArray[np.float64]:
    positions = space.positions.astype(np.float64)
    return np.abs(positions[:, :, None] - positions[:, None, :]).max(axis=0)


def geometric(size: int, lists: int = 1) -> Case:
    space = small_space(size, lists=lists, seed=size)
    steps = path_distances(space)
    return Case(f"n{size}-lists{lists}", DiffractorGeometric(space), lambda _: steps)


def exponential(size: int, lists: int = 1, gamma: int | None = None) -> Case:
    space = small_space(size, lists=lists, seed=size)
    steps = path_distances(space)
    mechanism = DiffractorExponential(space, gamma=gamma)
    name = f"n{size}-lists{lists}-gamma{gamma or 'rule'}"
    return Case(name, mechanism, lambda epsilon: np.minimum(steps, mechanism.table(epsilon).gamma))


class Diffractor(MechanismContract):
    @classmethod
    def integers(cls, mechanism: Mechanism, word: int, epsilon: float) -> list[int]:
        assert isinstance(mechanism, (DiffractorGeometric, DiffractorExponential))
        rows = [
            np.asarray(mechanism.position_weights(int(position[word]), epsilon))[position]
            for position in mechanism.space.positions
        ]
        return [sum(int(row[u]) for row in rows) // len(rows) for u in range(len(mechanism.space))]


class TestDiffractorGeometric(Diffractor):
    name = "diffractor-geometric"

    @classmethod
    def cases(cls) -> list[Case]:
        return [*(geometric(size) for size in SIZES), geometric(37, lists=3)]

    @pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
    def test_law_is_the_clamped_geometric(self, scale: float) -> None:
        """Interior and end cells are those of the closed form."""
        mechanism = DiffractorGeometric(small_space(30, lists=1, seed=1))
        a = math.exp(-scale)
        for i in range(30):
            law = mechanism.position_weights(i, scale).astype(np.float64) / 2.0**64
            expected = (1 - a) / (1 + a) * a ** np.abs(i - np.arange(30.0))
            expected[0], expected[29] = a**i / (1 + a), a ** (29 - i) / (1 + a)
            assert np.allclose(law, expected, rtol=1e-5, atol=30 * 2.0**-43)


class TestDiffractorExponential(Diffractor):
    name = "diffractor-exponential"
    bad = (("gamma", 0), ("gamma", 37))

    @classmethod
    def cases(cls) -> list[Case]:
        return [*(exponential(size) for size in SIZES), exponential(8, gamma=1), exponential(37, lists=2)]

    @pytest.mark.parametrize(("n", "gamma"), [(11, 5), (10, 5), (12, 5), (30, 3), (4, 3), (2, 1)])
    def test_law_is_tem_on_positions_with_and_without_words_outside(self, n: int, gamma: int) -> None:
        """Also where no word, or only some words', lies beyond gamma: there the outside element must not exist."""
        mechanism = DiffractorExponential(small_space(n, lists=1, seed=2), gamma=gamma)
        for i in range(n):
            expected = np.exp(-0.5 * np.minimum(np.abs(i - np.arange(n)), gamma))
            law = mechanism.position_weights(i, 1.0).astype(np.float64) / 2.0**64
            assert np.abs(law / (expected / expected.sum()) - 1).max() < 1e-5

    def test_a_row_whose_weights_are_all_equal_is_not_taken_for_an_empty_one(self) -> None:
        """At the smallest epsilons every weight is equal; a total of 2^64 would read as 0 and keep every word."""
        size = 64
        mechanism = DiffractorExponential(small_space(size, lists=1, seed=6))
        ids = np.arange(size, dtype=np.int32).repeat(200)
        kept = (mechanism.privatize(ids, 1e-90, draws_of(ids.size)) == ids).mean()
        assert kept == pytest.approx(1 / size, abs=5 * math.sqrt(1 / size / ids.size))
