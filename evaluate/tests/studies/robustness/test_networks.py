"""Networks, bounds and training: known answers, sampled substitutions, finite differences, and controls that fail."""

from __future__ import annotations

import autograd
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusveil.errors import BadValueError
from corpusveil_evaluate.studies.robustness.encoded_texts import PADDING, Examples, stacked
from corpusveil_evaluate.studies.robustness.interval_bounds import (
    Substitutes,
    WordBoxes,
    bounded_scores,
    certified,
)
from corpusveil_evaluate.studies.robustness.network_training import NetworkTraining, loss, train
from corpusveil_evaluate.studies.robustness.networks import (
    Boxes,
    Convolutional,
    Entailment,
    Network,
    Trained,
    initial,
)
from tests.mechanisms.spaces import space_of

WORDS, D = 30, 4
KINDS = {"texts": Convolutional(D, 3, 6), "pairs": Entailment(D, 3, 6)}
kinds = pytest.mark.parametrize("kind", KINDS)


def ids(rng: np.random.Generator, rows: int, most: int, least: int = 1) -> np.ndarray:
    out = np.full((rows, most), PADDING, np.int32)
    for row in out:
        length = rng.integers(least, most + 1)
        row[:length] = rng.integers(0, WORDS, length)
    return out


def made(kind: str, seed: int, rows: int = 7) -> tuple[Network, dict[str, np.ndarray], np.ndarray, Examples]:
    """Return a network with random weights and biases, vectors and examples, all of float64."""
    rng = np.random.default_rng(seed)
    network = KINDS[kind]
    parameters = initial(network, rng, np.float64)
    for name in parameters:
        if name.endswith("bias"):
            parameters[name] = rng.normal(size=parameters[name].shape)
    premises = ids(rng, rows, 6) if network.pairs else None
    examples = Examples(ids(rng, rows, 5), rng.integers(0, 3, rows), ("a", "b", "c"), premises)
    return network, parameters, rng.normal(size=(WORDS, D)), examples


def ones(network: Network) -> list[float]:
    return [1.0] * len(network.dropped)


class TestNetworks:
    @kinds
    def test_padding_and_company_change_no_result(self, kind: str) -> None:
        """Neither more padding, nor texts beside, nor what the vector is that padding happens to read."""
        network, parameters, vectors, examples = made(kind, 1)
        trained = Trained.of(network, parameters, vectors)
        plain = trained.scores(examples.texts, examples.premises)
        wide = stacked([examples.texts, np.full((1, 19), PADDING, np.int32)])[:-1]
        premises = examples.premises
        if premises is not None:
            premises = stacked([premises, np.full((1, 23), PADDING, np.int32)])[:-1]
        np.testing.assert_allclose(trained.scores(wide, premises), plain, rtol=1e-12)
        alone = [trained.scores(one.texts, one.premises)[0] for one in (examples.take(np.array([n])) for n in range(7))]
        np.testing.assert_allclose(alone, plain, rtol=1e-12)
        boxes = WordBoxes.of(vectors, Substitutes.of(space_of(vectors), 3))
        layers = Boxes(np)
        narrow = bounded_scores(layers, network, parameters, boxes, examples, 1.0, ones(network))
        padded = Examples(wide, examples.labels, examples.classes, premises)
        broad = bounded_scores(layers, network, parameters, boxes, padded, 1.0, ones(network))
        np.testing.assert_allclose(broad, narrow, rtol=1e-12)
        without_mask = padded.texts.copy()
        without_mask[without_mask < 0] = WORDS - 1
        assert not np.allclose(trained.scores(without_mask, premises), plain), "padding that counts would be seen"


class TestSubstitutes:
    def test_are_the_nearest_within_the_median(self) -> None:
        """On a line at 0, 1, 3, 7, 15: the second neighbour is at 3, 2, 3, 6, 12; the median is 3."""
        found = Substitutes.of(space_of([[0.0], [1.0], [3.0], [7.0], [15.0]]), 2)
        assert found.within == 3.0
        assert found.members.tolist() == [[0, 1, 2], [1, 0, 2], [2, 1, 0], [3, -1, -1], [4, -1, -1]]
        close = Substitutes.of(space_of([[0.0], [1.0], [3.0], [7.0], [15.0]]), 2, 0.5)
        assert close.within == 1.5
        assert close.members.tolist() == [[0, 1, -1], [1, 0, -1], [2, -1, -1], [3, -1, -1], [4, -1, -1]]
        with pytest.raises(BadValueError, match="count"):
            Substitutes.of(space_of([[0.0], [1.0]]), 2)


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
        substitutes = Substitutes.of(space_of(vectors), count)
        boxes = WordBoxes.of(vectors, substitutes)
        centre, radius = bounded_scores(Boxes(np), network, parameters, boxes, examples, 1.0, ones(network))
        trained = Trained.of(network, parameters, vectors)
        for number in range(40):
            texts = examples.texts if number == 0 else substituted(rng, examples.texts, substitutes.members)
            scores = trained.scores(texts, examples.premises)
            assert (np.abs(scores - centre) <= radius + 1e-9).all()

    @kinds
    def test_a_box_that_is_too_small_would_be_noticed(self, kind: str) -> None:
        """Control: boxes of a twentieth of the size do not hold all substitutions."""
        network, parameters, vectors, examples = made(kind, 5, rows=20)
        rng = np.random.default_rng(5)
        substitutes = Substitutes.of(space_of(vectors), 8)
        boxes = WordBoxes.of(vectors, substitutes)
        centre, radius = bounded_scores(Boxes(np), network, parameters, boxes, examples, 0.05, ones(network))
        trained = Trained.of(network, parameters, vectors)
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
        trained = Trained.of(network, scaled, vectors)
        examples = Examples(examples.texts[:, :2], examples.labels, examples.classes, examples.premises)
        substitutes = Substitutes.of(space_of(vectors), 2)
        kept = certified(trained, WordBoxes.of(vectors, substitutes), examples)
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
        boxes = WordBoxes.of(vectors, Substitutes.of(space_of(vectors), 3)) if with_boxes else None
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

    def test_worst_case_training_certifies_what_plain_training_does_not(self) -> None:
        """Two clouds of words with substitutes inside each: certifiable, but only when it is trained for."""
        rng = np.random.default_rng(12)
        vectors = rng.normal(size=(WORDS, D)).astype(np.float32)
        vectors[:, 0] = np.where(np.arange(WORDS) < 15, -2, 2)
        substitutes = Substitutes.of(space_of(vectors), 4)
        boxes = WordBoxes.of(vectors, substitutes)
        labels = rng.integers(0, 2, 200)
        texts = (rng.integers(0, 15, (200, 4)) + 15 * labels[:, None]).astype(np.int32)
        examples = Examples(texts, labels, ("a", "b"))
        network = Convolutional(D, 2, 16)
        plan = NetworkTraining(epochs=15, rate=3e-3)
        plain, hard = (train(network, vectors, examples, plan, 0, given) for given in (None, boxes))
        assert plain.right(examples).mean() == hard.right(examples).mean() == 1
        assert certified(hard, boxes, examples).mean() > 0.95
        assert certified(hard, boxes, examples).mean() > certified(plain, boxes, examples).mean() + 0.1
