"""An audit refutes what does not hold and nothing that holds: every defect of ``mechanisms.md``, planted."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest

import corpusveil as cv
from corpusveil.mechanisms import Guarantee, Mechanism, find, make_mechanism, names
from corpusveil.mechanisms.base import by_epsilon
from corpusveil.mechanisms.mahalanobis import Mahalanobis
from corpusveil.sampling.draws import MECHANISM, DrawKey, Draws
from corpusveil.sampling.gamma import gamma_noise
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil_evaluate.audits.guarantee_audit import audit
from tests.calls import command, fails, succeeds
from tests.contracts.mechanism import another_key
from tests.contracts.spaces import small_space
from tests.engines.corpora import TEST_KEY
from tests.mechanisms.spaces import Floats, distances, exponential, normal, space_of

KEY = Key(TEST_KEY)
EPSILON = 2.0
CALL = ("evaluate", "audit", "--space")
SOUND = [name for name in names() if find(name).private]


POINTS = np.vstack([normal(20, 2) * 0.05, [[1.5, 0.0], [1.6, 0.3], [-2.0, 0.5]]]).astype(np.float32)
CLUSTERS = small_space(len(POINTS), vectors=POINTS)


@dataclass(frozen=True, slots=True)
class Planted(Mechanism):
    """A mechanism of a given law that promises epsilon times the Euclidean distance, or other ``metric``."""

    law: Any
    metric: Any = None
    follows: bool = True
    keyed: bool = True

    name: ClassVar[str] = "planted"
    paper: ClassVar[str] = "none"
    summary: ClassVar[str] = "a law"

    def privatize(
        self, ids: npt.NDArray[np.int32], epsilon: float | npt.NDArray[np.float64], draws: Draws
    ) -> npt.NDArray[np.int32]:
        ((value, _),) = by_epsilon(epsilon, ids.size)
        law = self.law(value if self.follows else value * 1.3)
        uniform = (draws.uint64(MECHANISM) >> np.uint64(11)) * 2.0**-53
        if not self.keyed:
            uniform = np.random.default_rng(42).random(ids.size)
        ends = law.cumsum(axis=1) / law.sum(axis=1, keepdims=True)
        return np.minimum((uniform[:, None] >= ends[ids]).sum(axis=1), len(law) - 1).astype(np.int32)

    def distribution(self, word: int, epsilon: float) -> Floats:
        return np.asarray(self.law(epsilon)[word])

    def distances(self, word: int, epsilon: float) -> Floats:
        return np.asarray((distances(self.space) if self.metric is None else self.metric(epsilon))[word])

    @property
    def distance(self) -> str:
        return "the Euclidean distance"

    def retention(self, epsilon: float) -> float:
        return float(np.diag(self.law(epsilon)).mean())

    def unknown_bound(self, epsilon: float, public: Floats) -> float:
        return math.inf

    def unknown_bound_at_most(self, public: Floats) -> float:
        return math.inf

    def parameters(self) -> dict[str, Any]:
        return {}

    def guarantee(self, epsilon: float) -> Guarantee:
        return Guarantee(
            mechanism="planted", metric="d", epsilon=epsilon, plain_ldp=100.0, neighbors="words", disclosed=(),
            assumptions=("none",), claim="d", holds=True,
        )  # fmt: skip


def kernel(space: Space, epsilon: float, power: float = 1.0, share: float = 0.5) -> Floats:
    return exponential(-share * epsilon * distances(space) ** power)


def found(mechanism: Mechanism, **named: Any) -> Any:
    return audit(mechanism, EPSILON, key=KEY, **{"draws": 20_000, **named})


class TestNothingSoundIsRefuted:
    @pytest.mark.parametrize("name", [
        pytest.param(name, marks=[pytest.mark.nightly] * name.startswith("vickrey")) for name in SOUND
    ])  # fmt: skip
    def test_ours(self, name: str) -> None:
        """Each mechanism with a guarantee, that and where it is true its claim; exact ones reach a part of it."""
        told = found(make_mechanism(name, CLUSTERS))
        assert not told.refuted, told.reasons
        assert told.words == 23
        assert told.checked == "guarantee"
        assert 0.2 < told.realised <= 1 + 1e-6
        assert (told.kind == "sampled") == (name in ("cmp", "mahalanobis") or name.startswith("vickrey"))

    @pytest.mark.nightly
    def test_a_hundred_sampled_audits(self) -> None:
        """At level 1e-3 none of a hundred audits of a sound mechanism refutes it (chance of one: 10 % at most)."""
        space = space_of(normal(8, 2))
        mechanism = make_mechanism("cmp", space)
        refuted = [audit(mechanism, 1.0, draws=2000, pairs=4, level=1e-3).refuted for _ in range(100)]
        assert sum(refuted) <= 2  # three of them: less than 2e-4

    def test_a_planted_sound_law(self) -> None:
        """The harness itself: the exponential law of half epsilon passes as it is."""
        assert not found(Planted(CLUSTERS, functools.partial(kernel, CLUSTERS))).refuted


class TestDefects:
    """Each planted defect is refuted, and for its reason."""

    def test_laws_that_are_too_sharp(self) -> None:
        """Squared distances, and the whole of epsilon without a half for the normalizers."""
        for named in ({"power": 2.0}, {"share": 1.0}):
            told = found(Planted(CLUSTERS, functools.partial(kernel, CLUSTERS, **named)))
            assert told.refuted
            assert "exceeds epsilon times the distance" in told.reasons[0]

    def test_vickrey_without_the_input(self) -> None:
        told = found(make_mechanism("vickrey-cmp-excluding", space_of(normal(8, 2))))
        assert (told.refuted, told.kind, told.checked) == (True, "sampled", "claim")

    def test_swallowed_branch(self) -> None:
        """TEM that returns the input when the rest wins: words outside become impossible."""

        def law(epsilon: float) -> Floats:
            apart = distances(CLUSTERS)
            near = apart <= 0.5
            scores = np.where(near, np.exp(-epsilon / 2 * apart), 0.0)
            rest = np.exp(-epsilon / 2 * 0.5) * (~near).sum(axis=1)
            scores[np.diag_indices_from(scores)] += rest
            return np.asarray(scores / scores.sum(axis=1, keepdims=True))

        told = found(Planted(CLUSTERS, law, lambda _epsilon: np.minimum(distances(CLUSTERS), 0.5)))
        assert told.refuted
        assert math.isinf(told.realised)

    @pytest.mark.nightly
    def test_renormalised_mahalanobis(self) -> None:
        """Directions made unit vectors: sampled, at lam = 1 in a stretched plane."""

        class Renormalized(Mahalanobis):
            __slots__ = ()
            name: ClassVar[str] = "renormalized"

            def noise(self, draws: Draws, epsilon: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
                plain = gamma_noise(draws, self.space.dimensions, epsilon)
                stretched = plain @ self.shape().columns
                lengths = np.linalg.norm(plain, axis=1) / np.linalg.norm(stretched, axis=1)
                return np.asarray(stretched * lengths[:, None])

        points = np.array([*normal(30, 2), [0.0, 0.0], [0.0, 0.05]]) @ np.array([[1.0, 0.0], [0.0, 0.12]])
        space = space_of(points)
        assert audit(Renormalized(space, 1.0), 0.5, key=KEY, draws=50_000, pairs=4).refuted
        assert not audit(Mahalanobis(space, 1.0), 0.5, key=KEY, draws=50_000, pairs=4).refuted

    def test_a_fixed_seed(self) -> None:
        """Noise that does not come from the key: the law is right, and the promise void."""
        told = found(Planted(CLUSTERS, functools.partial(kernel, CLUSTERS), keyed=False))
        assert any("two keys" in reason for reason in told.reasons)

    def test_samples_of_another_law(self) -> None:
        """The stated law is not the law of the draws."""
        told = found(Planted(CLUSTERS, functools.partial(kernel, CLUSTERS), follows=False), draws=200_000)
        assert any("do not follow" in reason for reason in told.reasons)

    def test_a_plain_bound_that_is_too_low(self) -> None:
        @dataclass(frozen=True, slots=True)
        class Low(Planted):
            def guarantee(self, epsilon: float) -> Guarantee:
                return dataclasses.replace(Planted.guarantee(self, epsilon), plain_ldp=1.0)

        told = found(Low(CLUSTERS, functools.partial(kernel, CLUSTERS)))
        assert any("for any two words" in reason for reason in told.reasons)


class TestClaims:
    def test_of_custext_is_refuted_and_its_guarantee_is_not(self) -> None:
        """Published is epsilon-LDP for any two words; between groups nothing but the smoothing holds."""
        mechanism = make_mechanism("custext", CLUSTERS, K=4)
        assert found(mechanism, claim=True).refuted
        assert not found(mechanism).refuted


class TestTheCommand:
    @pytest.fixture
    def space(self, tmp_path: Path) -> str:
        return str(CLUSTERS.save(str(tmp_path / "space")).url)

    def test_says_what_it_found(self, space: str, tmp_path: Path) -> None:
        """Status 0 and figures; JSON with the same."""
        at = tmp_path / "audit.json"
        words = [*CALL, space, "--mechanism", "ring-geometric", "--epsilon", "1", "--output", at]
        assert "not refuted" in succeeds(*words).out
        told = json.loads(at.read_text())
        assert told["kind"] == "exact"
        assert told["refuted"] is False
        assert told["realised"] == pytest.approx(1, rel=1e-5)

    def test_ends_with_1_when_it_is_refuted(self, space: str) -> None:
        words = [*CALL, space, "--mechanism", "custext-per-word", "--parameter", "K=3", "--epsilon", "1"]
        ended = command(*words)
        assert ended.status == 1
        assert "REFUTED" in ended.out

    def test_refuses_wrong_calls(self, space: str) -> None:
        """Neither a release nor a mechanism, both, and half of either."""
        for call, code in {
            "--mechanism ring-geometric --epsilon 0": "wrong-setting",
            "--mechanism ring-geometric": "wrong-setting",
            "": "wrong-setting",
            "in.jsonl": "wrong-setting",
            "--mechanism ring-geometric --epsilon 1 --parameter t=0.3": "wrong-setting",
            "in.jsonl out --mechanism ring-geometric --epsilon 1": "wrong-setting",
            "--mechanism ring-geometric --epsilon 1 --held-out other": "wrong-setting",
            "in.jsonl out --epsilon 1": "wrong-setting",
            "in.jsonl out --claim": "wrong-setting",
        }.items():
            fails([*CALL, space, *call.split()], code)


def test_draws_come_from_the_key_that_is_given() -> None:
    """Two audits with one key see the same; the key of a release is never used by itself."""
    mechanism = make_mechanism("cmp", space_of(normal(8, 2)))
    first, second = (found(mechanism, draws=5000, pairs=2) for _ in range(2))
    assert first.realised == second.realised
    other = audit(mechanism, EPSILON, key=another_key(), draws=5000, pairs=2)
    assert other.realised != first.realised
    assert DrawKey.derive(KEY, "00" * 32) != DrawKey.derive(cv.Key.generate(), "00" * 32)
