"""``custext``: the contract, the partition, the closed forms, and why it is sound."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.custext import CusText
from corpusveil.mechanisms.on_sets import OnSets, partition
from corpusveil.sampling.weights import EXTRA_LOG_RATIO, TOTAL
from tests.contracts.mechanism import ROUNDING, Case, MechanismContract, matrix
from tests.mechanisms.spaces import Floats, distances, excess, normal, random_spaces, space_of


def case(name: str, vectors: npt.ArrayLike, k: int = 10, eta: float = 0.01) -> Case:
    mechanism = CusText(space_of(vectors), K=k, eta=eta)
    groups = partition(mechanism.space, k)
    return Case(name, mechanism, lambda epsilon: metric(mechanism, groups, epsilon))


def metric(mechanism: CusText, groups: npt.NDArray[np.int32], epsilon: float) -> Floats:
    apart = np.where(groups[:, None] == groups[None], 1.0, mechanism.plain_ldp(epsilon) / epsilon)
    np.fill_diagonal(apart, 0)
    return apart


DUPLICATES = [[0.1, 0.4], [1, 2], [0, 0], [0, 0], [1, 2], [1, 2], [-1, 3], [1, 2], [4, 4], [5, 5]]


class Integers(MechanismContract):
    @classmethod
    def integers(cls, mechanism: Mechanism, word: int, epsilon: float) -> list[int]:
        assert isinstance(mechanism, OnSets)
        cells = [mechanism.table(epsilon).added] * len(mechanism.space)
        for u, weight in zip(mechanism.sets.members[word].tolist(), mechanism.added_to(word, epsilon), strict=False):
            cells[u] += weight
        return cells

    def test_rows_total_two_to_the_64(self, case: Case, epsilon: float) -> None:
        """The integers are a law without a rounding error, the word itself the likeliest."""
        for word in range(len(case.mechanism.space)):
            weights = self.integers(case.mechanism, word, epsilon)
            assert sum(weights) == TOTAL
            assert weights[word] >= max(weights) * (1 - 1e-12)

    def test_distribution_is_the_closed_form(self, case: Case, epsilon: float) -> None:
        """P is proportional to exp(epsilon s / 2) on the candidates, mixed with eta of the uniform law."""
        mechanism = case.mechanism
        assert isinstance(mechanism, OnSets)
        apart, size = distances(mechanism.space), len(mechanism.space)
        eta = getattr(mechanism, "eta", 0.0)
        for word in range(size):
            members = mechanism.sets.members[word][: mechanism.sets.sizes[word]]
            d = apart[word, members]
            scores = -(d - d.min()) / ((d.max() - d.min()) or 1.0)
            kernel = np.exp(epsilon * scores / 2)
            expected = np.full(size, eta / size)
            expected[members] += (1 - eta) * kernel / kernel.sum()
            assert mechanism.distribution(word, epsilon) == pytest.approx(expected, abs=1e-11)


class TestCusText(Integers):
    name = "custext"
    bad = (("K", 1), ("K", 257), ("K", 2.5), ("eta", 0.0), ("eta", 1.0))

    @classmethod
    def cases(cls) -> list[Case]:
        return [
            case("two words", [[-0.7], [0.6]]),
            case("three groups", normal(35, 4)),
            case("duplicates", DUPLICATES, k=3),
            case("little smoothing", normal(24, 2), k=4, eta=1e-30),
        ]


def naive_partition(apart: Floats, k: int) -> list[int]:
    """Return the group of each word by the rule, slowly."""
    groups = [-1] * len(apart)
    group = 0
    while -1 in groups:
        free = [u for u in range(len(apart)) if groups[u] < 0]
        chosen = free
        if len(free) >= 2 * k:
            chosen = [free[0], *sorted(free[1:], key=lambda u, w=free[0]: (apart[w, u], u))[: k - 1]]
        for u in chosen:
            groups[u] = group
        group += 1
    return groups


def test_the_partition_follows_its_rule() -> None:
    """The lowest free id and its k - 1 nearest free words; fewer than 2 k are the last group; ties by id."""
    for number, space in enumerate(random_spaces()):
        k = (2, 3, 10)[number % 3]
        assert partition(space, k).tolist() == naive_partition(distances(space), k)
    line = space_of(np.arange(20.0)[:, None] // 2)
    assert partition(line, 4).tolist() == naive_partition(distances(line), 4)
    assert np.bincount(partition(line, 6)).tolist() == [6, 6, 8]


def test_the_promise_holds_on_random_spaces() -> None:
    """Epsilon within groups, the stated bound between; control: half of epsilon within groups fails."""
    refuted = 0
    for number, space in enumerate(random_spaces()):
        epsilon = (0.1, 1.0, 5.0)[number % 3]
        mechanism = CusText(space, K=(3, 10)[number % 2])
        groups = partition(space, mechanism.K)
        law = matrix(mechanism, epsilon)
        assert excess(law, metric(mechanism, groups, epsilon), epsilon) <= EXTRA_LOG_RATIO + ROUNDING
        within = np.where(groups[:, None] == groups[None], 1.0, 1e9)
        refuted += excess(law, within, 0.45 * epsilon) > 0
    assert refuted >= 10
