"""The contract can fail: mechanisms that break one promise each are caught by the test of that promise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest

import corpusveil as cv
from corpusveil.mechanisms import Guarantee
from corpusveil.mechanisms.ring_geometric import RingGeometric
from corpusveil.sampling.draws import MECHANISM, Draws
from tests.contracts.mechanism import Case, MechanismContract
from tests.contracts.poisoned import poisoned, powers
from tests.contracts.spaces import ring_distances, small_space
from tests.contracts.statistics import LEVEL, fit_p_value, independence_p_value

SPACE = small_space(37)
Ids = npt.NDArray[np.int32]


class Broken(RingGeometric):
    """A mechanism with one fault; not registered."""

    name: ClassVar[str] = "broken"


@dataclass(frozen=True, slots=True)
class WrongScale(Broken):
    """Samples at 1.3 epsilon what it states at epsilon."""

    def privatize(self, ids: Ids, epsilon: Any, draws: Draws) -> Ids:
        return RingGeometric.privatize(self, ids, 1.3 * epsilon, draws)


@dataclass(frozen=True, slots=True)
class ShuffledTable(Broken):
    """Emits the next word's id."""

    def privatize(self, ids: Ids, epsilon: Any, draws: Draws) -> Ids:
        return (RingGeometric.privatize(self, ids, epsilon, draws) + 1).astype(np.int32) % len(self.space)


@dataclass(frozen=True, slots=True)
class SharedDraws(Broken):
    """Replaces every occurrence of a word alike: a cache of draws."""

    def privatize(self, ids: Ids, epsilon: Any, draws: Draws) -> Ids:
        held = replace(draws, positions=draws.positions // 2)
        return RingGeometric.privatize(self, ids, epsilon, held)


@dataclass(frozen=True, slots=True)
class DocumentBlind(Broken):
    """Draws by position only."""

    def privatize(self, ids: Ids, epsilon: Any, draws: Draws) -> Ids:
        return RingGeometric.privatize(self, ids, epsilon, replace(draws, tags=np.zeros_like(draws.tags)))


@dataclass(frozen=True, slots=True)
class FromTheSystem(Broken):
    """Draws from the operating system: a retry writes other words."""

    def privatize(self, ids: Ids, epsilon: Any, draws: Draws) -> Ids:
        tags = np.random.default_rng().integers(0, 2**63, draws.tags.shape).astype(np.uint64)
        return RingGeometric.privatize(self, ids, epsilon, replace(draws, tags=tags))


@dataclass(frozen=True, slots=True)
class ByNumpy(Broken):
    """Draws by a table of numpy's exponentials, whose last bits are those of a machine."""

    def privatize(self, ids: Ids, epsilon: Any, draws: Draws) -> Ids:
        at = self.space.positions[0].astype(np.int64)
        sums = np.exp(-epsilon * np.abs(at[:, None] - at)).cumsum(axis=1)[ids]
        sums /= sums[:, -1:]
        uniform = (draws.uint64(MECHANISM) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return (sums > uniform[:, None]).argmax(axis=1).astype(np.int32)


@dataclass(frozen=True, slots=True)
class NoFloor(Broken):
    """A float table: at a large epsilon the noise is gone."""

    def distribution(self, word: int, epsilon: float) -> npt.NDArray[np.float64]:
        law = RingGeometric.distribution(self, word, epsilon)
        law[law < 2.0**-43] = 0
        return law / law.sum()


@dataclass(frozen=True, slots=True)
class Renormalized(Broken):
    """A truncated law, renormalized by word: the classic slip on a path."""

    def distribution(self, word: int, epsilon: float) -> npt.NDArray[np.float64]:
        at = self.space.positions[0]
        law = np.exp(-epsilon * np.abs(at - at[word]))
        return law / law.sum()


@dataclass(frozen=True, slots=True)
class BoldClaim(Broken):
    """States less plain LDP than is true."""

    def guarantee(self, epsilon: float) -> Guarantee:
        true = RingGeometric.guarantee(self, epsilon)
        assert true.plain_ldp is not None
        return replace(true, plain_ldp=true.plain_ldp / 2)


@dataclass(frozen=True, slots=True)
class RoundsUp(Broken):
    """Rounds a token's epsilon up."""

    def privatize(self, ids: Ids, epsilon: Any, draws: Draws) -> Ids:
        return RingGeometric.privatize(
            self, ids, epsilon if np.ndim(epsilon) == 0 else epsilon * 1.0905077326652577, draws
        )


CONTRACT = MechanismContract()


def case_of(cls: type[Broken]) -> Case:
    steps = ring_distances(SPACE)
    return Case(cls.__name__, cls(SPACE), lambda _epsilon: steps)


FAULTS = [
    (WrongScale, "test_samples_follow_the_distribution", 1.0),
    (ShuffledTable, "test_samples_follow_the_distribution", 1.0),
    (SharedDraws, "test_positions_and_documents_are_independent", None),
    (DocumentBlind, "test_positions_and_documents_are_independent", None),
    (DocumentBlind, "test_another_key_or_release_other_noise", None),
    (FromTheSystem, "test_same_key_same_words", None),
    (ByNumpy, "test_no_math_library_decides_what_is_drawn", None),
    (NoFloor, "test_noise_is_never_silently_gone", 1e6),
    (Renormalized, "test_realised_epsilon_is_at_most_the_promised", 0.1),
    (BoldClaim, "test_plain_ldp_is_at_most_the_promised", 1.0),
    (RoundsUp, "test_grid_epsilons_agree_with_the_scalar", None),
    (RoundsUp, "test_other_epsilons_are_rounded_down", None),
]


@pytest.mark.parametrize(("cls", "test", "epsilon"), FAULTS)
def test_a_broken_promise_fails_its_test(cls: type[Broken], test: str, epsilon: float | None) -> None:
    """The fault is found by the test that is named after the promise; the sound mechanism passes it."""
    check = getattr(CONTRACT, test)
    arguments = () if epsilon is None else (epsilon,)
    with np.errstate(divide="ignore", invalid="ignore"), pytest.raises(AssertionError):
        check(case_of(cls), *arguments)
    check(case_of(Broken), *arguments)


def test_p_values_reject_what_is_impossible_and_accept_what_is_true() -> None:
    """A single sample in a cell of probability 0 is enough; rare cells together are looked at, too."""
    law = np.array([0.5, 0.5, 0.0])
    fair = np.arange(10_000) % 2
    assert fit_p_value(fair, law) > LEVEL
    assert fit_p_value(np.append(fair, 2), law) < LEVEL
    rare = np.array([1 - 1e-7, *[1e-9] * 100])
    assert fit_p_value(np.zeros(100_000, dtype=int), rare) > LEVEL
    assert fit_p_value(np.append(np.zeros(100_000, dtype=int), np.arange(1, 30)), rare) < LEVEL


def test_independence_is_rejected_for_a_tenth_of_copies() -> None:
    random = np.random.default_rng(0)
    one, other = random.integers(0, 20, (2, 50_000))
    assert independence_p_value(one, other, 20) > LEVEL
    copied = np.where(random.random(50_000) < 0.1, one, other)
    assert independence_p_value(one, copied, 20) < LEVEL


def test_no_math_library_decides_what_a_kernel_writes() -> None:
    """Nor public draws and shares of a budget, which no mechanism draws."""
    key, mechanism = cv.Key.for_tests(), RingGeometric(small_space(37, counts=list(range(1, 38))))
    per_document, word = cv.Budget(20.0, "document"), mechanism.space.vocabulary.words[3]
    texts, ids = [f"{word} {'9' * n} unheardof{n} {word}" * n for n in range(1, 40)], [str(n) for n in range(1, 40)]
    policy = cv.TextPolicy(punctuation="drop", contacts="drop")
    for release in (
        cv.Release(mechanism, per_document, cv.TextPolicy(), key=key),
        cv.Release(mechanism, cv.Budget(1.0), policy, key=key),
    ):
        before = cv.privatize(texts, release, ids=ids)
        with poisoned():
            assert cv.privatize(texts, release, ids=ids) == before, release


def test_no_table_that_is_drawn_from_is_made_by_powers() -> None:
    """Control: powers in any spelling are found; squares, and whole powers that are written, are not."""
    for power in ("np.e**epsilon", "1.5 ** -x", "base **= 2", "pow(a, b)", "x.__pow__(y)", "2.0 ** (j / 8)", "2**0.5"):
        assert powers(f"y = 1\n{power}") == [2], power
    assert powers("a = 2.0**-20 * 2**64 - 10**9 + x**2\nb = f(**named)") == []
    for room in ("mechanisms", "sampling"):
        for path in sorted(Path(cv.__file__).with_name(room).glob("*.py")):
            assert powers(path.read_text()) == [], path.name
