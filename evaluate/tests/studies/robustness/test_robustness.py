"""Networks, bounds, training and the genetic attacker: known answers, brute force, and controls that fail."""

from __future__ import annotations

import math

import autograd
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusveil.errors import SettingError
from corpusveil.mechanisms import make_mechanism
from corpusveil.sampling.keys import Key
from corpusveil_evaluate.studies.robustness.encoded_texts import PADDING, Examples
from corpusveil_evaluate.studies.robustness.genetic import Genetic, attack, measure
from corpusveil_evaluate.studies.robustness.interval_bounds import (
    Substitutes,
    WordBoxes,
    bounded_scores,
    certified,
)
from corpusveil_evaluate.studies.robustness.network_training import Noise, loss
from corpusveil_evaluate.studies.robustness.networks import (
    Boxes,
    Convolutional,
    Entailment,
    Network,
    Trained,
    initial,
)
from tests.contracts.spaces import small_space
from tests.engines.corpora import TEST_KEY
from tests.mechanisms.spaces import space_of

WORDS, D = 30, 4
KINDS = {"texts": Convolutional(D, 3, 6), "pairs": Entailment(D, 3, 6)}
kinds = pytest.mark.parametrize("kind", KINDS)


def ids(rng: np.random.Generator, rows: int, most: int, least: int) -> np.ndarray:
    out = np.full((rows, most), PADDING, np.int32)
    for row in out:
        length = rng.integers(least, most + 1)
        row[:length] = rng.integers(0, WORDS, length)
    return out


def made(
    kind: str, seed: int, rows: int = 7, least: int = 1
) -> tuple[Network, dict[str, np.ndarray], np.ndarray, Examples]:
    """Return a network with random weights and biases, vectors and examples of ``least`` words, all of float64."""
    rng = np.random.default_rng(seed)
    network = KINDS[kind]
    parameters = initial(network, rng, np.float64)
    for name in parameters:
        if name.endswith("bias"):
            parameters[name] = rng.normal(size=parameters[name].shape)
    premises = ids(rng, rows, 6, least) if network.pairs else None
    examples = Examples(ids(rng, rows, 5, least), rng.integers(0, 3, rows), ("a", "b", "c"), premises)
    return network, parameters, rng.normal(size=(WORDS, D)), examples


def ones(network: Network) -> list[float]:
    return [1.0] * len(network.dropped)


class TestSubstitutes:
    def test_are_the_nearest_within_the_median(self) -> None:
        """On a line at 0, 1, 3, 7, 15: the second neighbor is at 3, 2, 3, 6, 12; the median is 3."""
        found = Substitutes.from_space(space_of([[0.0], [1.0], [3.0], [7.0], [15.0]]), 2)
        assert found.within == 3.0
        assert found.members.tolist() == [[0, 1, 2], [1, 0, 2], [2, 1, 0], [3, -1, -1], [4, -1, -1]]
        close = Substitutes.from_space(space_of([[0.0], [1.0], [3.0], [7.0], [15.0]]), 2, 0.5)
        assert close.within == 1.5
        assert close.members.tolist() == [[0, 1, -1], [1, 0, -1], [2, -1, -1], [3, -1, -1], [4, -1, -1]]
        with pytest.raises(SettingError, match="count"):
            Substitutes.from_space(space_of([[0.0], [1.0]]), 2)


def substituted(rng: np.random.Generator, texts: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Return texts with a random allowed substitute for each word."""
    out = texts.copy()
    for row, place in zip(*np.nonzero(texts >= 0), strict=True):
        allowed = members[texts[row, place]]
        out[row, place] = rng.choice(allowed[allowed >= 0])
    return out


class TestBounds:
    @settings(max_examples=30, deadline=None)
    @given(st.sampled_from(sorted(KINDS)), st.integers(0, 10_000), st.integers(1, 9))
    def test_hold_every_substitution_and_the_text_itself(self, kind: str, seed: int, count: int) -> None:
        network, parameters, vectors, examples = made(kind, seed)
        rng = np.random.default_rng(seed)
        substitutes = Substitutes.from_space(space_of(vectors), count)
        boxes = WordBoxes.from_space(vectors, substitutes)
        centre, radius = bounded_scores(Boxes(np), network, parameters, boxes, examples, 1.0, ones(network))
        trained = Trained.from_network(network, parameters, vectors)
        for number in range(40):
            texts = examples.texts if number == 0 else substituted(rng, examples.texts, substitutes.members)
            scores = trained.scores(texts, examples.premises)
            assert (np.abs(scores - centre) <= radius + 1e-9).all()

    @kinds
    def test_a_box_that_is_too_small_would_be_noticed(self, kind: str) -> None:
        """Control: boxes of a twentieth of the size do not hold all substitutions."""
        network, parameters, vectors, examples = made(kind, 5, rows=20)
        rng = np.random.default_rng(5)
        substitutes = Substitutes.from_space(space_of(vectors), 8)
        boxes = WordBoxes.from_space(vectors, substitutes)
        centre, radius = bounded_scores(Boxes(np), network, parameters, boxes, examples, 0.05, ones(network))
        trained = Trained.from_network(network, parameters, vectors)
        outside = 0
        for _ in range(40):
            scores = trained.scores(substituted(rng, examples.texts, substitutes.members), examples.premises)
            outside += int((np.abs(scores - centre) > radius + 1e-9).sum())
        assert outside > 0

    @kinds
    def test_what_is_certified_keeps_its_label_under_all_substitutions(self, kind: str) -> None:
        """Every substitution of short texts is tried; some texts are certified, some can be turned."""
        network, parameters, vectors, examples = made(kind, 8, rows=60)
        scaled = {name: value * (0.3 if name == "words.weight" else 1) for name, value in parameters.items()}
        trained = Trained.from_network(network, scaled, vectors)
        examples = Examples(examples.texts[:, :2], examples.labels, examples.classes, examples.premises)
        substitutes = Substitutes.from_space(space_of(vectors), 2)
        kept = certified(trained, WordBoxes.from_space(vectors, substitutes), examples)
        brute = np.ones(len(examples), np.bool_)
        for one in range(3):
            for two in range(3):
                texts = examples.texts.copy()
                for place, choice in ((0, one), (1, two)):
                    other = substitutes.members[examples.texts[:, place], choice]
                    texts[:, place] = np.where((examples.texts[:, place] >= 0) & (other >= 0), other, texts[:, place])
                brute &= trained.right(examples.with_texts(texts))
        assert (brute | ~kept).all()
        assert 0 < kept.sum() <= brute.sum() < len(examples)


class TestTraining:
    @kinds
    @pytest.mark.parametrize("with_boxes", [False, True])
    def test_derivatives_are_those_of_finite_differences(self, kind: str, with_boxes: bool) -> None:
        network, parameters, vectors, examples = made(kind, 9)
        rng = np.random.default_rng(9)
        boxes = WordBoxes.from_space(vectors, Substitutes.from_space(space_of(vectors), 3)) if with_boxes else None
        drops = [(rng.random((len(examples), width)) < 0.8) / 0.8 for width in network.dropped]
        mixed = {"boxes": boxes, "kappa": 0.6, "factor": 0.5} if with_boxes else {}

        def at(array: object, given: dict[str, np.ndarray]) -> float:
            return loss(array, network, given, vectors, examples, drops, **mixed)

        slopes = autograd.grad(lambda given: at(autograd.numpy, given))(parameters)
        for name, value in parameters.items():
            for _ in range(4):
                place = tuple(rng.integers(0, size) for size in value.shape)
                moved = []
                for step in (1e-6, -1e-6):
                    other = {key: one.copy() for key, one in parameters.items()}
                    other[name][place] += step
                    moved.append(at(np, other))
                assert slopes[name][place] == pytest.approx((moved[0] - moved[1]) / 2e-6, rel=2e-4, abs=1e-7), name


class TestRegimes:
    def test_a_variant_replaces_every_word_by_the_law_and_nothing_else(self) -> None:
        noise = Noise(make_mechanism("santext", small_space(40)), 2.0, Key(TEST_KEY))
        texts = np.full((3000, 4), 7, np.int32)
        texts[:, 3] = PADDING
        found = noise.variant(texts, "x")
        assert (found[:, 3] == PADDING).all()
        law = noise.mechanism.distribution(7, 2.0)
        shares = np.bincount(found[:, :3].ravel(), minlength=40) / 9000
        assert np.abs(shares - law).max() < 5 * math.sqrt(law.max() / 9000)
        other = noise.mechanism.distribution(7, 4.0)
        assert np.abs(shares - other).max() > 5 * math.sqrt(law.max() / 9000), "another epsilon is told apart"


class TestGenetic:
    @settings(max_examples=25, deadline=None)
    @given(st.integers(0, 10_000), st.booleans(), st.sampled_from([0.1, 1.0, 5.0]), st.integers(2, 7))
    def test_never_does_worse_than_one_variant_nor_than_no_attack(
        self, seed: int, pairs: bool, epsilon: float, members: int
    ) -> None:
        """Text by text: what is robust is right unchanged, on its wholly private variant, and on all that was tried."""
        network, parameters, vectors, examples = made("pairs" if pairs else "texts", seed, 12, least=0)
        trained = Trained.from_network(network, parameters, vectors)
        noise = Noise(make_mechanism("santext", space_of(vectors)), epsilon, Key(TEST_KEY))
        variant = noise.variant(examples.texts, "variant")
        tried: list[tuple[np.ndarray, np.ndarray]] = []

        def asked(texts: np.ndarray, premises: np.ndarray | None) -> np.ndarray:
            found = trained.probabilities(texts, premises)
            tried.append((texts, found))
            return found

        found = attack(asked, examples, noise, Genetic(members, 3), seed, variant)
        assert not (found.robust & ~trained.right(examples)).any()
        assert not (found.robust & ~trained.right(examples.with_texts(variant))).any()
        assert ((found.generation == 0) == ~trained.right(examples)).all()
        turned = examples.with_texts(found.texts)
        fell = found.generation > 0
        assert not trained.right(turned)[fell].any(), "the text that is reported deceives the network"
        assert (found.texts[~fell] == examples.texts[~fell]).all()
        told = measure(trained, examples, noise, Genetic(members, 3), seed)
        assert told["adversarial"] <= min(told["private"], told["clean"])
        assert told["adversarial"] == pytest.approx(found.robust.mean())
