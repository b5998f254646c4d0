"""(ε, δ) of documents: never exceeded, not loose, and what others compute."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from corpusveil.budget import Budget
from corpusveil.budget.composition import check_delta, concentrated, epsilon_at, pure_sum
from corpusveil.budget.privacy_loss import BoundedRange, OfLaws, PrivacyLoss, Pure
from corpusveil.mechanisms import Mechanism, make
from tests.calls import refused
from tests.contracts.spaces import small_space

Floats = npt.NDArray[np.float64]


def divergence(first: Floats, second: Floats, epsilon: float) -> float:
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


def least_epsilon(first: Floats, second: Floats, delta: float) -> float:
    """Return the ε at δ of two laws, by bisection."""
    low, high = 0.0, float(np.abs(np.log(first / second)).max()) + 1e-9
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(first, second, middle) > delta else (low, middle)
    return high


def response(epsilon: float, tokens: int, delta: float) -> float:
    """Return the ε at δ of ``tokens`` randomized responses, from the binomial law."""
    heads = np.arange(tokens + 1)
    first = stats.binom.pmf(heads, tokens, 1 / (1 + math.exp(-epsilon)))
    keep = first > 0
    return least_epsilon(first[keep], first[::-1][keep], delta)


@pytest.mark.parametrize(
    ("budget", "words", "stated"), [(5, 200, 1.53), (5, 1000, 0.65), (10, 52, 6.79), (30, 52, 25.0), (30, 1000, 4.59)]
)
def test_the_published_table_comes_out(budget: float, words: int, stated: float) -> None:
    """mechanisms.md §18: every word one step apart, δ = 1e-6."""
    figure, exact = epsilon_at([(Pure(budget / words), words)], 1e-6), response(budget / words, words, 1e-6)
    assert figure == pytest.approx(stated, rel=0.005)
    assert exact <= figure <= exact * (1 + 1e-6)


def worst_delta(mechanism: Mechanism, epsilons: list[float], distance: float | None, epsilon: float) -> float:
    """Return the largest δ at ε of pairs of documents that the change allows, output by output; 0 where there are none.

    All pairs of up to two tokens; of three, some thousands, and those that change each word alike.
    """
    size = len(mechanism.space)
    pairs = []
    most = math.inf if distance is None else distance
    for each in epsilons:
        laws = mechanism.distributions(np.arange(size), each)
        apart = np.array([mechanism.distances(word, each) for word in range(size)])
        first, second = np.nonzero((apart <= most + 1e-9) & ~np.eye(size, dtype=bool))
        if not first.size:
            return 0.0
        pairs.append((laws[first], laws[second]))
    counts = [len(first) for first, _ in pairs]
    chosen = np.array(np.meshgrid(*(np.arange(count) for count in counts))).reshape(len(counts), -1)
    if chosen.shape[1] > 4000:
        alike = np.tile(np.arange(min(counts)), (len(counts), 1))
        chosen = np.concatenate([chosen[:, np.random.default_rng(0).integers(0, chosen.shape[1], 4000)], alike], axis=1)
    documents = [np.ones((chosen.shape[1], 1)) for _ in range(2)]
    for place, both in enumerate(pairs):
        for side, law in enumerate(both):
            whole = documents[side][:, :, None] * law[chosen[place]][:, None, :]
            documents[side] = whole.reshape(len(whole), -1)
    return float(np.maximum(documents[0] - math.exp(epsilon) * documents[1], 0).sum(axis=1).max())


@pytest.mark.parametrize("name", ["ring-geometric", "diffractor-geometric", "santext"])
@pytest.mark.parametrize("distance", [pytest.param(1.0, marks=pytest.mark.nightly), 3.0, None])
def test_no_pair_of_documents_exceeds_what_is_stated(name: str, distance: float | None) -> None:
    """Every law of six words, documents of one to three tokens with equal and different epsilons, enumerated.

    Of each kind of bound; that a mechanism's own bound holds for one token, its contract checks.
    """
    mechanism = make(name, small_space(6, lists=2 if "geometric" in name else 1))
    for epsilons in ([0.7], [1.3, 1.3], [0.5, 1.0], [0.8] * 3):
        losses = [mechanism.privacy_loss(epsilon, distance) for epsilon in epsilons]
        for delta in (0.05, 1e-3, 1e-6):
            stated = epsilon_at([(loss, 1) for loss in losses if loss is not None], delta)
            added = 2.0**-19 * len(epsilons)  # of the integer weights, which no figure includes
            assert worst_delta(mechanism, epsilons, distance, stated + added) <= delta


@pytest.mark.parametrize(("name", "distance"), [("ring-geometric", 1.0), ("diffractor-geometric", 2.0)])
def test_on_one_list_what_is_stated_is_attained(name: str, distance: float) -> None:
    """Some pair of documents needs the stated ε, but for less than a thousandth; one token less would be exceeded."""
    mechanism = make(name, small_space(9))
    for epsilons in ([0.7], [0.8] * 3):
        loss = mechanism.privacy_loss(epsilons[0], distance)
        assert loss is not None
        for delta in (0.05, 1e-3):
            stated = epsilon_at([(loss, len(epsilons))], delta)
            assert worst_delta(mechanism, epsilons, distance, stated * 0.999) > delta
    assert worst_delta(mechanism, [0.8] * 3, distance, epsilon_at([(loss, 2)], 1e-3)) > 10 * 1e-3


def random_pairs(largest: float, *, ranged: bool) -> list[tuple[Floats, Floats]]:
    """Return pairs of laws whose log-ratios are at most ``largest``, or lie in an interval of that length."""
    random = np.random.default_rng(4)
    pairs = []
    for _ in range(60):
        first = random.dirichlet(np.full(5, 0.6)) + 1e-6
        scores = random.uniform(-1, 1, 5) * largest / 2 if ranged else random.choice([-1.0, 1.0], 5) * largest / 2
        second = first * np.exp(scores)
        pairs.append((first / first.sum(), second / second.sum()))
    return pairs


@pytest.mark.parametrize("kind", [Pure, BoundedRange])
@pytest.mark.parametrize("largest", [0.05, 1.0, 6.0])
def test_curves_bound_every_pair_of_their_kind(kind: Any, largest: float) -> None:
    """Divergences of random pairs stay below the curve, which is 1 - e^x on the left and 0 on the right."""
    x = np.linspace(-1.2 * largest, 1.2 * largest, 97)
    curve = kind(largest).deltas(x)
    for first, second in random_pairs(largest, ranged=kind is BoundedRange):
        for at, bound in zip(x, curve, strict=True):
            assert divergence(first, second, float(at)) <= bound + 1e-12
    assert curve[0] == pytest.approx(-math.expm1(x[0]))
    assert curve[-1] == pytest.approx(0.0)
    slopes = np.diff(curve) / np.diff(np.exp(x))
    assert (np.diff(slopes) >= -1e-9).all(), "convex in e^x, or connecting points would not bound it"


@pytest.mark.parametrize("tokens", [1, 4, 60])
def test_a_bounded_range_is_sharper_than_a_pure_bound(tokens: int) -> None:
    """Also against the two-point pairs that attain it: nothing is stated below them."""
    stated = epsilon_at([(BoundedRange(1.0), tokens)], 1e-4)
    assert stated <= epsilon_at([(Pure(1.0), tokens)], 1e-4)
    heads = np.arange(tokens + 1)
    for top in np.linspace(0.05, 0.95, 10):
        share = (math.e - math.exp(top)) / (math.e - 1)
        first = stats.binom.pmf(heads, tokens, share)
        second = stats.binom.pmf(heads, tokens, share * math.exp(-top))
        assert least_epsilon(first, second, 1e-4) <= stated + 1e-9


def test_extremes_and_what_lies_between() -> None:
    """Losses without a grid in common, a million tokens, no bound, none; never above the pure sum, and growing."""
    mixed = epsilon_at([(Pure(0.1), 300), (Pure(0.13), 200)], 1e-6)
    assert response(0.1, 500, 1e-6) < mixed < response(0.13, 500, 1e-6)
    assert mixed <= concentrated(300 * 0.1**2 / 2 + 200 * 0.13**2 / 2, 1e-6)
    assert epsilon_at([(Pure(1e-4), 10**6)], 1e-6) == pytest.approx(concentrated(10**6 * 1e-8 / 2, 1e-6), rel=0.1)
    assert epsilon_at([(Pure(math.inf), 3)], 1e-6) == math.inf
    assert epsilon_at([], 1e-6) == 0
    losses: tuple[PrivacyLoss, ...] = (
        Pure(2.0), BoundedRange(2.0), OfLaws([(np.array([0.8, 0.2]), np.array([0.3, 0.7]))], 3),
    )  # fmt: skip
    for loss in losses:
        figures = [epsilon_at([(loss, n)], 1e-6) for n in (1, 2, 3, 10, 100)]
        assert figures == sorted(figures)
        assert all(figure <= pure_sum(((loss, n),)) for figure, n in zip(figures, (1, 2, 3, 10, 100), strict=True))


def test_delta_is_a_probability() -> None:
    for delta in (0.0, 1.0, -1e-6, 1e-11, float("nan"), True, "1e-6"):
        with refused("wrong-value", "delta"):
            check_delta(delta)  # type: ignore[arg-type]


@pytest.mark.parametrize("words", [1, 4, 50])
def test_a_document_of_words_has_the_shares_that_are_drawn_with(words: int) -> None:
    (share,) = set(Budget(10, "document").shares(np.repeat(words, words)).tolist())
    assert Budget(10, "document").share_of(words) == share <= 10 / words
    assert Budget(2.0).share_of(words) == 2.0
