"""The contract of a word-level mechanism: what every one must keep, tested the same way for all.

A mechanism's test class inherits ``MechanismContract`` and says, by ``cases``, on which small spaces it is looked at
and what distance is there. A mechanism without a guarantee leaves ``distances`` None; its law is tested all the same.
"""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest

from corpusveil.mechanisms import Guarantee, Mechanism, find
from corpusveil.sampling import grid
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import EXTRA_LOG_RATIO, FLOOR, TOTAL
from corpusveil.text.policy import DOCUMENT_LENGTH
from tests.calls import refused
from tests.contracts.poisoned import poisoned, powers
from tests.contracts.statistics import LEVEL, fit_p_value, independence_p_value

SAMPLES = 200_000
ROUNDING = 1e-12
"""Of logarithms of float64 probabilities, far below the 2^-19 that is looked for."""


@dataclass(frozen=True)
class Case:
    """A mechanism over a small space; ``distances(epsilon)`` is its metric there, float64 [V, V]."""

    name: str
    mechanism: Mechanism
    distances: Callable[[float], npt.NDArray[np.float64]] | None


def draw_key(release: str = "00" * 32, key: Key | None = None) -> DrawKey:
    """Return the draw key of a release digest under a key, the test key unless another is given."""
    return DrawKey.derive(key or Key.for_tests(), release)


def another_key() -> Key:
    """Return a fixed key other than the test key."""
    return Key(bytes((37 * k + 200) % 256 for k in range(32)))


def draws_of(count: int, *, document: str = "tokens", key: DrawKey | None = None) -> Draws:
    return Draws.of_tokens(key or draw_key(), count, document=document)


def matrix(mechanism: Mechanism, epsilon: float) -> npt.NDArray[np.float64]:
    """Return the law of every word; float64 [V, V]."""
    return np.array([mechanism.distribution(word, epsilon) for word in range(len(mechanism.space))])


def worst_excess(
    law: npt.NDArray[np.float64], distances: npt.NDArray[np.float64], epsilon: float
) -> tuple[float, float]:
    """Return the largest (log-ratio - epsilon d) and the largest log-ratio over all pairs and outputs."""
    logs = np.log(law)
    ratios = (logs[:, None, :] - logs[None, :, :]).max(axis=2)
    return float((ratios - epsilon * distances).max()), float(ratios.max())


class MechanismContract:
    """Inherit it, define ``name`` and ``cases``; the class is then the mechanism's test file."""

    name: ClassVar[str]
    epsilons: ClassVar[tuple[float, ...]] = (1e-9, 0.1, 0.5, 1.0, 3.0, 10.0, 60.0, 1e6)
    sampled: ClassVar[tuple[float, ...]] = (1e-9, 0.1, 1.0, 3.0)
    daily: ClassVar[tuple[float, ...]] = (0.1, 3.0, 1e6)
    """The epsilons of ``make test``, with at most three cases; ``make nightly`` has the others, too."""
    bad: ClassVar[tuple[tuple[str, Any], ...]] = ()
    """Parameters that are out of range in the largest space."""
    control: ClassVar[float] = 1.0
    """An epsilon at which the law is neither uniform nor a single word, so that a wrong scale shows."""

    @classmethod
    def cases(cls) -> list[Case]:
        raise NotImplementedError

    @classmethod
    def integers(cls, mechanism: Mechanism, word: int, epsilon: float) -> list[int]:
        """Return the integer weights that are sampled for a word. Here: the law times 2^64, float64 of it."""
        return [int(p * TOTAL) for p in mechanism.distribution(word, epsilon)]

    def pytest_generate_tests(self, metafunc: Any) -> None:
        names = metafunc.fixturenames
        if "case" in names:
            cases = self.cases()
            by_day = {0, len(cases) // 2, len(cases) - 1}
            metafunc.parametrize("case", [
                pytest.param(case, id=case.name, marks=() if at in by_day else (pytest.mark.nightly,))
                for at, case in enumerate(cases)
            ])  # fmt: skip
        if "epsilon" in names:
            chosen = self.sampled if "samples" in metafunc.function.__name__ else self.epsilons
            daily = [epsilon for epsilon in chosen if epsilon in self.daily] or chosen[:3]
            marks = {epsilon: () if epsilon in daily else (pytest.mark.nightly,) for epsilon in chosen}
            metafunc.parametrize("epsilon", [pytest.param(epsilon, marks=marks[epsilon]) for epsilon in chosen])

    @pytest.fixture
    def largest(self) -> Case:
        return max(self.cases(), key=lambda case: len(case.mechanism.space))

    # The law

    def test_rows_are_laws(self, case: Case, epsilon: float) -> None:
        """Each row sums to 1 and each entry is a probability."""
        law = matrix(case.mechanism, epsilon)
        size = len(case.mechanism.space)
        assert law.shape == (size, size)
        assert law.dtype == np.float64
        assert np.abs(law.sum(axis=1) - 1).max() <= size * 2.0**-52
        assert law.min() >= 0
        assert law.max() <= 1

    def test_noise_is_never_silently_gone(self, case: Case, epsilon: float) -> None:
        """Every word can become every word, with a weight of at least 2^20 out of 2^64, at any epsilon."""
        for word in range(len(case.mechanism.space)):
            assert min(self.integers(case.mechanism, word, epsilon)) >= FLOOR

    def test_samples_follow_the_distribution(self, case: Case, epsilon: float) -> None:
        """The law that is stated is the law that is sampled."""
        size = len(case.mechanism.space)
        for word in {0, size // 2, size - 1}:
            ids = np.full(SAMPLES // 3, word, dtype=np.int32)
            out = case.mechanism.privatize(ids, epsilon, draws_of(ids.size, document=f"w{word}"))
            assert out.dtype == np.int32
            assert out.shape == ids.shape
            assert 0 <= out.min() <= out.max() < size
            assert fit_p_value(out, case.mechanism.distribution(word, epsilon)) > LEVEL

    def test_a_wrong_scale_would_be_noticed(self, case: Case) -> None:
        """Control: samples at 1.3 epsilon do not pass for samples at epsilon."""
        ids = np.zeros(SAMPLES, dtype=np.int32)
        out = case.mechanism.privatize(ids, 1.3 * self.control, draws_of(SAMPLES))
        assert fit_p_value(out, case.mechanism.distribution(0, self.control)) < LEVEL
        assert fit_p_value(out, case.mechanism.distribution(0, 1.3 * self.control)) > LEVEL

    def test_a_shuffled_table_would_be_noticed(self, case: Case) -> None:
        """Control: outputs under other names do not pass for outputs."""
        size = len(case.mechanism.space)
        out = case.mechanism.privatize(np.zeros(SAMPLES, dtype=np.int32), self.control, draws_of(SAMPLES))
        shuffled = np.roll(np.arange(size), 1)[out]
        assert fit_p_value(shuffled, case.mechanism.distribution(0, self.control)) < LEVEL

    def test_retention_is_the_mean_probability_of_no_change(self, case: Case, epsilon: float) -> None:
        """The printed share of unchanged words is that of the law."""
        diagonal = np.diag(matrix(case.mechanism, epsilon)).mean()
        assert case.mechanism.retention(epsilon) == pytest.approx(diagonal, rel=1e-9)

    # The guarantee

    def test_realised_epsilon_is_at_most_the_promised(self, case: Case, epsilon: float) -> None:
        """On the weights sampled, no output tells two words apart by more than epsilon d + 2^-19."""
        guarantee = case.mechanism.guarantee(epsilon)
        assert case.distances is not None
        assert guarantee.epsilon is not None
        assert guarantee.epsilon <= epsilon
        excess, _ = worst_excess(matrix(case.mechanism, epsilon), case.distances(epsilon), guarantee.epsilon)
        assert excess <= EXTRA_LOG_RATIO + ROUNDING

    def test_plain_ldp_is_at_most_the_promised(self, case: Case, epsilon: float) -> None:
        """Nor by more than the stated nats, however far apart the words are."""
        guarantee = case.mechanism.guarantee(epsilon)
        assert guarantee.plain_ldp is not None
        law = matrix(case.mechanism, epsilon)
        _, worst = worst_excess(law, np.zeros_like(law), epsilon)
        assert worst <= guarantee.plain_ldp + EXTRA_LOG_RATIO + ROUNDING

    def test_a_weaker_guarantee_would_be_noticed(self, case: Case) -> None:
        """Control: the law at 2.2 epsilon (a mechanism may waste half of it) breaks what is promised at epsilon."""
        assert case.distances is not None
        more = 2.2 * self.control
        excess, _ = worst_excess(matrix(case.mechanism, more), case.distances(more), self.control)
        assert excess > EXTRA_LOG_RATIO + ROUNDING

    def test_distances_are_those_of_the_metric(self, case: Case, epsilon: float) -> None:
        """The distance that an audit divides by is the metric of the guarantee; without one there is none."""
        size = len(case.mechanism.space)
        if not case.mechanism.private:
            assert case.mechanism.distances(0, epsilon) is None
            return
        assert case.distances is not None
        found = np.array([case.mechanism.distances(word, epsilon) for word in range(size)])
        assert found == pytest.approx(case.distances(epsilon), rel=1e-6, abs=1e-6)

    def test_guarantee_says_everything(self, case: Case, epsilon: float) -> None:
        """Every field is filled, and what does not hold has a reason."""
        guarantee = case.mechanism.guarantee(epsilon)
        assert isinstance(guarantee, Guarantee)
        assert guarantee.mechanism == self.name
        assert all((guarantee.metric, guarantee.neighbors, guarantee.assumptions, guarantee.claim))
        assert guarantee.disclosed[0] == DOCUMENT_LENGTH
        assert guarantee.per == "token"
        assert guarantee.holds == case.mechanism.private
        assert (guarantee.epsilon is not None) == guarantee.holds
        assert guarantee.plain_ldp is not None if guarantee.holds else guarantee.notes
        assert guarantee.as_dict()["metric"] == guarantee.metric
        assert all((case.mechanism.distance, type(case.mechanism).summary, type(case.mechanism).paper))

    def test_unknown_words_are_bounded_as_stated(self, case: Case) -> None:
        """A resampled word against a known one: no output's log-ratio is larger than what is printed."""
        size = len(case.mechanism.space)
        public = np.arange(1.0, size + 1)
        public /= public.sum()
        law = matrix(case.mechanism, self.control)
        worst = np.abs(np.log(public[None, :] / law)).max()
        assert case.mechanism.unknown_bound(self.control, public) >= worst - ROUNDING

    # The draws

    def test_same_key_same_words(self, largest: Case) -> None:
        """Under one key the same tokens are replaced by the same words, again and in another order of calls."""
        mechanism = largest.mechanism
        ids = np.arange(5_000, dtype=np.int32) % len(mechanism.space)
        first = mechanism.privatize(ids, self.control, draws_of(ids.size))
        mechanism.privatize(ids[:7], 3 * self.control, draws_of(7))
        again = pickle.loads(pickle.dumps(mechanism)).privatize(ids, self.control, draws_of(ids.size))
        assert np.array_equal(first, again)

    def test_no_math_library_decides_what_is_drawn(self, largest: Case) -> None:
        """Tables that are made where exponentials and logarithms are wrong draw the same words; nothing is a power."""
        mechanism = largest.mechanism
        assert powers(inspect.getsource(inspect.getmodule(type(mechanism)))) == []  # type: ignore[arg-type]
        ids = np.arange(5_000, dtype=np.int32) % len(mechanism.space)
        first = mechanism.privatize(ids, self.control, draws_of(ids.size))
        with poisoned():
            again = pickle.loads(pickle.dumps(mechanism)).privatize(ids, self.control, draws_of(ids.size))
        assert np.array_equal(first, again)

    def test_another_key_or_release_other_noise(self, largest: Case) -> None:
        """Another key, release or document gives noise that is independent of the first."""
        mechanism = largest.mechanism
        ids = np.zeros(20_000, dtype=np.int32)
        out = mechanism.privatize(ids, self.control, draws_of(ids.size))
        size = len(mechanism.space)
        for other in (
            draws_of(ids.size, key=draw_key(key=another_key())),
            draws_of(ids.size, key=draw_key("11" * 32)),
            draws_of(ids.size, document="another"),
        ):
            second = mechanism.privatize(ids, self.control, other)
            assert not np.array_equal(out, second)
            assert independence_p_value(out, second, size) > LEVEL

    def test_the_rest_of_the_batch_does_not_matter(self, largest: Case) -> None:
        """A token's replacement depends on its own draw, whatever else is privatized in the same call."""
        mechanism = largest.mechanism
        ids = np.arange(999, dtype=np.int32) % len(mechanism.space)
        draws = draws_of(ids.size)
        whole = mechanism.privatize(ids, self.control, draws)
        part = slice(100, 350)
        some = Draws(draws.key, draws.tags, draws.documents[part], draws.positions[part])
        assert np.array_equal(mechanism.privatize(ids[part], self.control, some), whole[part])
        assert mechanism.privatize(ids[:0], self.control, draws_of(0)).shape == (0,)

    def test_positions_and_documents_are_independent(self, case: Case) -> None:
        """A repeated word gets fresh noise: neighbors in a document are independent, and so is one place in two."""
        mechanism = case.mechanism
        size = len(mechanism.space)
        ids = np.zeros(100_000, dtype=np.int32)
        out = mechanism.privatize(ids, self.control, draws_of(ids.size))
        other = mechanism.privatize(ids, self.control, draws_of(ids.size, document="another"))
        assert independence_p_value(out[::2], out[1::2], size) > LEVEL
        assert independence_p_value(out, other, size) > LEVEL
        key, count = draw_key(), 100_000
        tags = draws_of(1).tags
        shared = Draws(key, tags, np.zeros(count, np.int64), np.arange(count, dtype=np.int64) // 2)
        twice = mechanism.privatize(ids, self.control, shared)
        assert independence_p_value(twice[::2], twice[1::2], size) < LEVEL

    # Epsilon

    def test_grid_epsilons_agree_with_the_scalar(self, case: Case) -> None:
        """One epsilon a token, all on the grid, is the same as the one number."""
        ids = np.arange(3_000, dtype=np.int32) % len(case.mechanism.space)
        draws = draws_of(ids.size)
        values = np.array([grid.grid_value(k) for k in (-24, 0, 13)])
        by_token = case.mechanism.privatize(ids, values[np.arange(ids.size) % 3], draws)
        for k, value in enumerate(values):
            scalar = case.mechanism.privatize(ids, float(value), draws)
            assert np.array_equal(by_token[k::3], scalar[k::3])

    def test_other_epsilons_are_rounded_down(self, largest: Case) -> None:
        """One epsilon a token never spends more than was given: 1.05 is 1, 2 less a little is 2^(7/8)."""
        ids = np.arange(3_000, dtype=np.int32) % len(largest.mechanism.space)
        draws = draws_of(ids.size)
        for given, spent in ((1.05, 1.0), (float(np.nextafter(2.0, 1.0)), grid.grid_value(7)), (2.0, 2.0)):
            out = largest.mechanism.privatize(ids, np.full(ids.size, given), draws)
            assert np.array_equal(out, largest.mechanism.privatize(ids, spent, draws))

    def test_what_makes_no_sense_is_refused(self, largest: Case) -> None:
        """Never broadcast, never another word, never memory behind the draws; an unknown word is no word."""
        mechanism, size = largest.mechanism, len(largest.mechanism.space)
        ids = np.zeros(3, dtype=np.int32)
        for bad in (0.0, -1.0, float("nan"), float("inf"), -float("inf")):
            for call in (
                lambda bad=bad: mechanism.privatize(ids, bad, draws_of(3)),
                lambda bad=bad: mechanism.privatize(ids, np.array([1.0, bad, 1.0]), draws_of(3)),
                lambda bad=bad: mechanism.distribution(0, bad),
                lambda bad=bad: mechanism.guarantee(bad),
                lambda bad=bad: mechanism.retention(bad),
            ):
                with refused("wrong-setting", "epsilon"):
                    call()
        for shape in ((2,), (4,), (3, 1), (1,), (0,)):
            with refused("wrong-setting", "shape"):
                mechanism.privatize(ids, np.ones(shape), draws_of(3))
        for id in (-1, -7, size, size + 999):
            with refused("wrong-setting", "id"):
                mechanism.distribution(id, 1.0)
            with refused("wrong-setting", "id"):
                mechanism.privatize(np.array([0, id, 0], dtype=np.int32), 1.0, draws_of(3))
        with refused("wrong-setting", "draws"):
            mechanism.privatize(ids, 1.0, draws_of(2))
        for name, value in self.bad:
            with refused("wrong-setting", name):
                dataclasses.replace(mechanism, **{name: value})

    # The value

    def test_frozen_and_pickled_whole(self, case: Case) -> None:
        """A mechanism is a value, found by its name: it cannot be changed, and a copy from a pickle says the same."""
        mechanism = case.mechanism
        assert find(self.name) is type(mechanism)
        assert mechanism.name == self.name
        for field in dataclasses.fields(mechanism):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(mechanism, field.name, None)
        copy = pickle.loads(pickle.dumps(mechanism))
        assert copy == mechanism
        assert copy.parameters() == mechanism.parameters()
        assert np.array_equal(copy.distribution(0, 1.0), mechanism.distribution(0, 1.0))


class RefutedContract(MechanismContract):
    """The contract of a mechanism that promises nothing."""

    test_noise_is_never_silently_gone = None
    test_realised_epsilon_is_at_most_the_promised = None
    test_plain_ldp_is_at_most_the_promised = None
    test_a_weaker_guarantee_would_be_noticed = None
    test_unknown_words_are_bounded_as_stated = None


class ContractWithoutLaw(RefutedContract):
    """The contract of a mechanism whose law has no closed form: all that needs none. Its law is tested apart."""

    test_rows_are_laws = None
    test_samples_follow_the_distribution = None
    test_a_wrong_scale_would_be_noticed = None
    test_a_shuffled_table_would_be_noticed = None
    test_retention_is_the_mean_probability_of_no_change = None
    test_frozen_and_pickled_whole = None

    def test_there_is_no_closed_form(self, largest: Case) -> None:
        """The law is refused, not approximated; a copy from a pickle is equal and refuses it, too."""
        copy = pickle.loads(pickle.dumps(largest.mechanism))
        assert copy == largest.mechanism
        for mechanism in (largest.mechanism, copy):
            with refused("no-closed-form"):
                mechanism.distribution(0, 1.0)
