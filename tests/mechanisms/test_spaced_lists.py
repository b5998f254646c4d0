"""``ring-geometric`` on lists with arcs: the contract, and an oracle that walks through the cells one by one."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest

import corpusveil as cv
from corpusveil.budget.privacy_loss import OfLaws
from corpusveil.language.prepared import public_weights
from corpusveil.mechanisms.ring_geometric import RingGeometric
from corpusveil.mechanisms.risk import explain, prior_of, word_risk
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from tests.contracts.mechanism import Case, MechanismContract, draws_of, matrix, worst_excess
from tests.contracts.spaces import small_space
from tests.contracts.statistics import LEVEL, fit_p_value

Floats = npt.NDArray[np.float64]


def arcs_of(size: int) -> list[int]:
    """Return odd and even arcs, from 1 cell to about a quarter of the ring."""
    return [1 + 7 * word % 6 for word in range(size - 1)] + [size]


def spaced(size: int, lists: int = 1, arcs: list[int] | None = None) -> Space:
    counts = [10 * (word + 1) for word in range(size)]
    return small_space(size, lists=lists, seed=size, counts=counts, arcs=arcs_of(size) if arcs is None else arcs)


def walk(space: Space, arcs: list[int], epsilon: float, gamma: int) -> tuple[Floats, Floats]:
    """Return the law and the distance of every pair of words, cell by cell; float64 [V, V] each. Slow and plain."""
    size, cells = len(space), sum(arcs)
    law, apart = np.zeros((size, size)), np.zeros((size, size))
    for order in space.lists.tolist():
        owners = [word for word in order for _ in range(arcs[word])]
        middle = {word: owners.index(word) + arcs[word] // 2 for word in order}
        for word in range(size):
            steps = np.abs(np.arange(cells) - middle[word])
            steps = np.minimum(np.minimum(steps, cells - steps), gamma)
            kernel = np.exp(-epsilon * size / cells * steps)
            np.add.at(law[word], owners, kernel / kernel.sum() * (1 - cells * 2.0**-44) + 2.0**-44)
            for other in range(size):
                apart[word, other] = max(apart[word, other], steps[middle[other]] * size / cells)
    return law / len(space.lists), apart


def oracle(mechanism: RingGeometric, epsilon: float, arcs: list[int] | None = None) -> tuple[Floats, Floats]:
    space = mechanism.space
    return walk(space, arcs_of(len(space)) if arcs is None else arcs, epsilon, mechanism.table(epsilon).gamma)


def case(size: int, lists: int = 1, gamma: int | None = None) -> Case:
    mechanism = RingGeometric(spaced(size, lists), gamma=gamma)
    name = f"n{size}-lists{lists}-gamma{gamma or 'rule'}"
    return Case(name, mechanism, lambda epsilon: oracle(mechanism, epsilon)[1])


CASES = [case(2), case(8, gamma=2), case(37, 3)]


class TestSpacedLists(MechanismContract):
    name = "ring-geometric"

    @classmethod
    def cases(cls) -> list[Case]:
        return CASES

    def test_distribution_is_that_of_the_cells(self, case: Case, epsilon: float) -> None:
        """The law of a word is that of its middle cell, added up over the cells of each word."""
        assert isinstance(case.mechanism, RingGeometric)
        law, _ = oracle(case.mechanism, epsilon)
        assert matrix(case.mechanism, epsilon) == pytest.approx(law, rel=1e-9)
        every = np.arange(len(law))
        assert case.mechanism.chances(every[:, None], every, epsilon) == pytest.approx(law, rel=1e-9)

    def test_explanations_and_risk_are_those_of_all_laws(self, case: Case, epsilon: float) -> None:
        mechanism, prior = case.mechanism, prior_of(case.mechanism.space)
        joint = prior.shares[:, None] * matrix(mechanism, epsilon)
        every, top = np.arange(len(joint)), min(5, len(joint))
        explained = explain(mechanism, epsilon, prior.words, prior.shares, every, top)
        assert explained.joint == pytest.approx(np.sort(joint, axis=0)[::-1][:top].T, rel=1e-9)
        assert explained.evidence == pytest.approx(joint.sum(axis=0), rel=1e-9)
        risk = word_risk(mechanism, epsilon)
        assert risk.exact
        assert risk.share == pytest.approx(max(joint.max(axis=0).sum(), prior.guess), rel=1e-9)
        assert risk.unchanged == pytest.approx(np.diag(joint).sum(), rel=1e-9)


def test_wrong_arcs_would_be_noticed() -> None:
    """Control: neither samples nor the metric of a space pass with arcs that other words should have."""
    mechanism = RingGeometric(spaced(37, 2))
    wrong = arcs_of(37)[1:] + arcs_of(37)[:1]
    out = mechanism.privatize(np.full(200_000, 5, np.int32), 1.0, draws_of(200_000))
    (law, apart), (other_law, other_apart) = oracle(mechanism, 1.0), oracle(mechanism, 1.0, wrong)
    assert fit_p_value(out, law[5]) > LEVEL
    assert fit_p_value(out, other_law[5]) < LEVEL
    assert worst_excess(matrix(mechanism, 1.0), apart, 1.0)[0] < 1e-6
    assert worst_excess(matrix(mechanism, 1.0), other_apart, 1.0)[0] > 0.1


def test_arcs_of_one_cell_are_the_plain_ring() -> None:
    """Byte for byte, at every epsilon, on several lists; and wider arcs are another law."""
    plain, one, two = (RingGeometric(small_space(60, lists=2, arcs=arcs)) for arcs in (None, [1] * 60, [1, 3] * 30))
    ids = np.arange(30_000, dtype=np.int32) % 60
    for epsilon in (1e-6, 0.3, 1.0, 7.0):
        released = [mechanism.privatize(ids, epsilon, draws_of(ids.size)) for mechanism in (plain, one, two)]
        assert np.array_equal(released[0], released[1])
        assert not np.array_equal(released[0], released[2])
        assert matrix(plain, epsilon) == pytest.approx(matrix(one, epsilon), rel=1e-14)
        assert plain.guarantee(epsilon).plain_ldp == one.guarantee(epsilon).plain_ldp


def test_other_mechanisms_on_lists_count_steps_and_see_no_arcs() -> None:
    for name in ("diffractor-geometric", "diffractor-exponential"):
        on = [cv.mechanism(name, small_space(37, lists=2, arcs=arcs)) for arcs in (None, arcs_of(37))]
        assert np.array_equal(matrix(on[0], 1.0), matrix(on[1], 1.0))
        assert on[0].guarantee(1.0).metric == on[1].guarantee(1.0).metric


@pytest.mark.parametrize("distance", [1.0, None])
def test_the_privacy_loss_bounds_all_pairs_within_the_distance(distance: float | None) -> None:
    """For each pair of words at most this far apart; at 0.7 of epsilon it would not."""
    mechanism = RingGeometric(spaced(37, 2))
    law, apart = oracle(mechanism, 1.0)
    x = np.linspace(-3, 3, 61)
    bounds = [mechanism.privacy_loss(epsilon, distance) for epsilon in (1.0, 0.7)]
    assert isinstance(bounds[0], OfLaws)
    worst = np.zeros(61)
    for word, other in itertools.permutations(range(37), 2):
        if distance is None or apart[word, other] <= distance:
            excess = law[word] - np.exp(x)[:, None] * law[other]
            np.maximum(worst, np.maximum(excess, 0).sum(axis=1), out=worst)
    assert bounds[0] is not None
    assert bounds[1] is not None
    assert (worst <= bounds[0].deltas(x) + 1e-9).all()
    assert (worst > bounds[1].deltas(x) + 1e-3).any()


@pytest.mark.parametrize("lists", [1, 2])
def test_documents_with_unknown_words_follow_the_product_of_the_laws(lists: int) -> None:
    """All outcomes of a document of four words, one of them unknown; wrong arcs and another epsilon do not pass."""
    space = small_space(3, lists=lists, counts=[7, 2, 1], arcs=[1, 5, 2])
    mechanism, unknown = RingGeometric(space), -1
    words, count = [0, 2, unknown, 1], 40_000
    release = cv.Release(mechanism, cv.Budget(6.0, per="document"), key=Key.for_tests())
    text = " ".join("zzzzzz" if word == unknown else space.word(word) for word in words)
    out = cv.privatize([text] * count, release, ids=range(count))
    drawn = np.array([[space.id(word) for word in line.split()] for line in out])
    outcomes = np.ravel_multi_index(tuple(drawn.T), (3,) * 4)
    public = public_weights(space).astype(np.float64)

    def joint(arcs: list[int], epsilon: float) -> Floats:
        law = np.ones(1)
        known, _ = walk(space, arcs, epsilon, RingGeometric(small_space(3, arcs=arcs)).table(epsilon).gamma)
        for word in words:
            law = np.outer(law, public / public.sum() if word == unknown else known[word]).ravel()
        return law

    share = max(release.budget.of_words(4))
    assert fit_p_value(outcomes, joint([1, 5, 2], share)) > LEVEL
    assert fit_p_value(outcomes, joint([5, 2, 1], share)) < LEVEL
    assert fit_p_value(outcomes, joint([1, 5, 2], 1.5 * share)) < LEVEL
