"""Shares per word: what is stated of n words holds however they form units, and is little more than the worst needs."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from corpusveil.budget import Budget
from corpusveil.budget import composition as module
from corpusveil.budget.composition import concentrated, epsilon_at, worst_epsilon, worst_pure
from corpusveil.budget.privacy_loss import BoundedRange, PrivacyLoss, Pure
from corpusveil.mechanisms import make
from tests.budget.test_composition import least_epsilon
from tests.budget.test_composition import response as response_of
from tests.contracts.spaces import small_space

Floats = npt.NDArray[np.float64]
Pair = tuple[Floats, Floats]
DELTAS = (0.05, 1e-3, 1e-6)
WEIGHTS = 2.0**-19
"""Of integer weights, for each word; no figure includes it."""


def divisions(words: int, longest: int) -> Iterator[tuple[int, ...]]:
    """Return the sizes of units of every division of words, longer units first."""
    if words == 0:
        yield ()
    for size in range(min(words, longest), 0, -1):
        yield from ((size, *rest) for rest in divisions(words - size, size))


@functools.cache
def together(pairs: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]) -> Pair:
    """Return the laws of all units; outputs of one log-ratio count as one, which loses nothing."""
    if not pairs:
        return np.ones(1), np.ones(1)
    *rest, last = pairs
    both = [np.outer(law, more).ravel() for law, more in zip(together(tuple(rest)), last, strict=True)]
    _, same = np.unique(np.round(np.log(both[0] / both[1]), 10), return_inverse=True)
    first, second = (np.bincount(same, law) for law in both)
    return first, second


def needed(units: Sequence[Pair], delta: float) -> float:
    """Return the ε at δ that two documents need, given the laws of each unit in both."""
    first, second = together(tuple((tuple(first.tolist()), tuple(second.tolist())) for first, second in units))
    return least_epsilon(first, second, delta)


def response(epsilon: float) -> Pair:
    law = np.array([1.0, math.exp(-epsilon)]) / (1 + math.exp(-epsilon))
    return law, law[::-1]


def ranged(epsilon: float, top: float) -> Pair:
    """Return the two-point pair with log-ratios between (top - 1) and top times epsilon."""
    share = (math.exp(epsilon) - math.exp(top * epsilon)) / math.expm1(epsilon)
    law = np.array([share, 1 - share])
    return law, law * np.exp([-top * epsilon, (1 - top) * epsilon])


def shares(epsilon: float, words: int, longest: int) -> list[float]:
    return Budget(epsilon, "document", "per-word").of_units(words, longest)


def check(pairs: dict[float, list[Pair]], losses: dict[float, PrivacyLoss], epsilons: list[float], words: int) -> float:
    """Compare all divisions with what is stated; return the largest part of it that one needs."""
    units = [losses[epsilon] for epsilon in epsilons]
    most = 0.0
    for delta in DELTAS:
        stated = worst_epsilon(units, words, delta) + WEIGHTS * words
        for sizes in divisions(words, len(epsilons)):
            each = [pairs[epsilons[size - 1]] for size in sizes]
            need = max(needed([some[number] for some in each], delta) for number in range(len(each[0])))
            assert need <= stated, (sizes, delta)
            most = max(most, need / stated)
    return most


@pytest.mark.parametrize(("longest", "epsilon"), [(2, 7.3), (3, 10.0), (4, 3.0), (5, 10.0)])
def test_no_division_of_words_needs_more_and_one_needs_nearly_as_much(longest: int, epsilon: float) -> None:
    """All divisions of up to 11 words, enumerated; the figure of randomised response is close to their largest need."""
    for words in (1, 2, 5, 9, 11):
        epsilons = shares(epsilon, words, longest)
        losses: dict[float, PrivacyLoss] = {each: Pure(each) for each in epsilons}
        assert check({each: [response(each)] for each in epsilons}, losses, epsilons, words) > 0.99
        sums = [sum(Fraction(epsilons[size - 1]) for size in sizes) for sizes in divisions(words, longest)]
        pure = worst_pure(list(losses.values()), words)
        assert max(sums) <= Fraction(pure) <= epsilon
        assert pure == pytest.approx(float(max(sums)), rel=1e-15)
        if words in (5, 9):
            pairs = {each: [ranged(each, top) for top in (0.3, 0.5, 0.6, 0.8)] for each in epsilons}
            check(pairs, {each: BoundedRange(each) for each in epsilons}, epsilons, words)


@pytest.mark.parametrize(
    ("name", "distance", "longest"),
    [("ring-geometric", 1.0, 2), ("ring-geometric", 3.0, 5), ("diffractor-geometric", 2.0, 3), ("santext", 2.0, 4),
     ("tem", 2.0, 3)],
)  # fmt: skip
def test_of_the_laws_of_mechanisms_too(name: str, distance: float, longest: int) -> None:
    """Documents in which every unit is one of two words that the distance allows, for several pairs of words."""
    mechanism = make(name, small_space(9))
    words = 7
    epsilons = shares(6.0, words, longest)
    apart = np.max([[mechanism.distances(word, each) for word in range(9)] for each in epsilons], axis=0)
    near = np.argwhere((apart > 0) & (apart <= distance))[:6]
    assert near.size
    laws = {each: mechanism.distributions(np.arange(9), each) for each in epsilons}
    pairs = {each: [(laws[each][one], laws[each][other]) for one, other in near] for each in epsilons}
    losses = {each: loss for each in epsilons if (loss := mechanism.privacy_loss(each, distance)) is not None}
    check(pairs, losses, epsilons, words)


def test_units_of_one_word_would_be_caught_by_the_enumeration() -> None:
    """The control: what was stated before is exceeded in documents of any length, for every longest unit."""
    for longest, words in ((2, 5), (3, 9), (5, 11)):
        epsilons = shares(10.0, words, longest)
        needs = (needed([response(epsilons[size - 1]) for size in sizes], 1e-3) for sizes in divisions(words, longest))
        assert max(needs) > epsilon_at([(Pure(epsilons[0]), words)], 1e-3)


def test_nor_are_units_of_the_longest_size_always_the_worst() -> None:
    """Shares of 10/9 are rounded down less than those of 30/9, and three equal units never cancel, as two can."""
    epsilons = shares(10.0, 9, 3)
    longest = epsilon_at([(Pure(epsilons[2]), 3)], 0.01)
    need = needed([response(epsilons[1])] * 4 + [response(epsilons[0])], 0.01)
    assert longest < need <= worst_epsilon([Pure(each) for each in epsilons], 9, 0.01)
    small = 0.2
    two, three = ([response(size * small)] * (6 // size) for size in (3, 2))
    delta = 0.2915
    assert needed(two, delta) < needed(three, delta) <= worst_epsilon([Pure(k * small) for k in (1, 2, 3)], 6, delta)


def test_extremes() -> None:
    """No loss, no bound, a δ above every divergence, and losses of many nats."""
    assert worst_epsilon([Pure(0.0), Pure(0.0)], 9, 1e-6) == 0
    assert worst_epsilon([Pure(1.0), Pure(math.inf)], 9, 1e-6) == math.inf
    assert worst_epsilon([Pure(1.0), Pure(math.inf)], 1, 1e-6) == pytest.approx(1, abs=1e-5)
    assert worst_epsilon([Pure(1e-3), Pure(2e-3)], 9, 0.9) == 0
    with np.errstate(all="raise", under="ignore"):
        assert 900 * 16 < worst_epsilon([Pure(17.0), Pure(18.0)], 900, 1e-6) <= 900 * 17


def test_more_words_than_can_be_composed_have_the_other_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = [Pure(each) for each in shares(10.0, 60, 3)]
    composed = worst_epsilon(losses, 60, 1e-6)
    monkeypatch.setattr(module, "MOST_WORDS", 59)
    assert composed <= worst_epsilon(losses, 60, 1e-6)
    assert worst_epsilon(losses, 60, 1e-6) == min(
        worst_pure(losses, 60), concentrated(20 * losses[2].rho, 1e-6)
    )  # 20 units of three words have the largest ρ


@pytest.mark.parametrize("words", [50, 1000])
def test_at_the_smallest_delta_rounding_is_counted(words: int) -> None:
    """Units of one word have an exact law; a thousand transforms state no less, and little more."""
    (epsilon,) = shares(10.0, words, 1)
    exact = response_of(epsilon, words, 1e-10)
    assert exact <= worst_epsilon([Pure(epsilon)], words, 1e-10) <= exact * 1.01
