"""``ring-geometric``: the contract, the closed form, the rule for gamma, and every boundary of its tables."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.ring_geometric import RingGeometric, _displacement, ring_table
from corpusveil.sampling.weights import EXTRA_LOG_RATIO, TOTAL
from tests.calls import refused
from tests.contracts.mechanism import Case, MechanismContract
from tests.contracts.spaces import ring_distances, small_space


def case(size: int, *, lists: int = 1, gamma: int | None = None) -> Case:
    space = small_space(size, lists=lists, seed=size + 100 * lists)
    mechanism = RingGeometric(space, gamma=gamma)
    steps = ring_distances(space)
    name = f"n{size}-lists{lists}-gamma{gamma or 'rule'}"
    return Case(name, mechanism, lambda epsilon: np.minimum(steps, mechanism.table(epsilon).gamma))


CASES = [case(2), case(8, gamma=4), case(60, lists=3), case(3), case(60, gamma=30), case(37, lists=2, gamma=2)]


class TestRingGeometric(MechanismContract):
    name = "ring-geometric"
    bad = (("gamma", 0), ("gamma", 31), ("beta", 0.0), ("beta", 1.0), ("beta", float("nan")))

    @classmethod
    def cases(cls) -> list[Case]:
        return CASES

    @classmethod
    def integers(cls, mechanism: Mechanism, word: int, epsilon: float) -> list[int]:
        assert isinstance(mechanism, RingGeometric)
        return [int(weight) for weight in mechanism.position_weights(0, epsilon)]

    def test_realised_epsilon_of_the_integers(self, case: Case, epsilon: float) -> None:
        """Exactly, in integers: neighboring displacements differ by at most a factor exp(epsilon + 2^-19)."""
        weights = self.integers(case.mechanism, 0, epsilon)
        bound = Fraction(np.exp(min(epsilon, 100.0) + EXTRA_LOG_RATIO)) * (1 + Fraction(1, 1 << 50))
        for one, other in zip(weights, weights[1:] + weights[:1], strict=True):
            assert max(one, other) <= bound * min(one, other)

    def test_weights_total_two_to_the_64(self, case: Case, epsilon: float) -> None:
        """The integers are a law without a rounding error, and the same to the right as to the left."""
        weights = self.integers(case.mechanism, 0, epsilon)
        assert sum(weights) == TOTAL
        assert weights[1:] == weights[:0:-1]
        assert max(weights) == weights[0]

    def test_distribution_is_the_closed_form(self, case: Case, epsilon: float) -> None:
        """P[i, j] = a^min(d, gamma) / Z, but for the floor of 2^-44 that every word gets."""
        mechanism = case.mechanism
        assert isinstance(mechanism, RingGeometric)
        size = len(mechanism.space)
        gamma = mechanism.table(epsilon).gamma
        for word in (0, size - 1):
            expected = np.zeros(size)
            for order in mechanism.space.lists.tolist():
                steps = np.array([abs(order.index(word) - order.index(u)) for u in range(size)])
                kernel = np.exp(-epsilon * np.minimum(np.minimum(steps, size - steps), gamma))
                expected += kernel / kernel.sum() / len(mechanism.space.lists)
            mixed = (1 - size * 2.0**-44) * expected + 2.0**-44
            assert mechanism.distribution(word, epsilon) == pytest.approx(mixed, rel=1e-12)
            assert mechanism.distribution(word, epsilon) == pytest.approx(expected, abs=size * 2.0**-43)


def test_gamma_follows_the_rule() -> None:
    """n = 50,000, epsilon 1, beta 0.001: gamma 18, retention 0.4620, 3.5e-4 of the mass beyond, 18 nats."""
    table = ring_table(50_000, 1.0, 18)
    assert table.near[0] / TOTAL == pytest.approx(0.4620, abs=5e-5)
    assert (50_000 - 2 * 18 + 1) * table.far / TOTAL == pytest.approx(3.5e-4, abs=1e-5)
    mechanism = RingGeometric(small_space(50_000))
    assert mechanism.table(1.0).gamma == 18
    assert mechanism.guarantee(1.0).plain_ldp == pytest.approx(18, abs=1e-3)
    assert mechanism.table(0.1).gamma == 178
    assert mechanism.table(1e-9).gamma == 25_000
    assert RingGeometric(small_space(10), beta=0.999).table(1.0).gamma == 1


def naive_displacement(draw: int, law: list[int], gamma: int) -> int:
    """Return the displacement of a draw by walking through the cells: 0, +1, -1, +2, -2, ..., then the far ones."""
    size = len(law)
    order = [0] + [step for k in range(1, gamma) for step in (k, -k)] + list(range(gamma, size - gamma + 1))
    assert len(order) == size
    edge = 0
    for step in order:
        edge += law[step]
        if draw < edge:
            return step % size
    raise AssertionError


@pytest.mark.parametrize("size", [2, 3, 8, 61])
@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 40.0])
def test_every_boundary_draw_falls_where_a_naive_search_puts_it(size: int, epsilon: float) -> None:
    """The guide and the binary search change nothing: each bound, the draw before it, 0 and 2^64 - 1."""
    for gamma in {1, max(1, size // 4), size // 2}:
        table = ring_table(size, epsilon, gamma)
        mechanism = RingGeometric(small_space(size), gamma=gamma)
        law = [int(w) for w in mechanism.position_weights(0, epsilon)]
        bounds = [int(b) for b in table.by_distance.lower_bounds]
        halves = [(a + b) // 2 for a, b in itertools.pairwise(bounds[1:])]
        far = [bounds[-1] + k * table.far for k in range(size - 2 * gamma + 2)]
        edges = {d for b in (*bounds, *halves, *far) for d in (b - 1, b, b + 1)} | {k << 54 for k in range(1 << 10)}
        for draw in sorted(d for d in edges | {0, TOTAL - 1} if 0 <= d < TOTAL):
            got = _displacement(np.uint64(draw), *mechanism.arguments(table))
            assert got % size == naive_displacement(draw, law, gamma)


def test_a_space_without_a_list_is_refused() -> None:
    with refused("unsuitable-data", "list"):
        RingGeometric(small_space(8, lists=0))
