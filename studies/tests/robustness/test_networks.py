"""Networks, bounds and training: known answers, sampled substitutions, finite differences, and controls that fail."""

from __future__ import annotations

from typing import Any

import autograd
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusveil.errors import BadValueError, DataError, ShapeError
from corpusveil.evaluation.utility.labelled_texts import LabelledTexts
from corpusveil_studies.robustness.encoded_texts import PADDING, Examples, encode, stacked
from corpusveil_studies.robustness.interval_bounds import (
    Substitutes,
    WordBoxes,
    bounded_scores,
    certified,
    worst,
)
from corpusveil_studies.robustness.network_training import NetworkTraining, cross_entropy, loss, train
from corpusveil_studies.robustness.networks import (
    Boxes,
    Convolutional,
    Entailment,
    Network,
    Points,
    Trained,
    initial,
    network_of,
    vectors_of,
)
from tests.contracts.spaces import small_space
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


class TestExamples:
    def test_unknown_words_are_left_out_and_long_texts_cut(self) -> None:
        space = small_space(words=["cat", "dog", "owl"])
        task = LabelledTexts(["Cat, xyzzy dog! 12 owl", "", "owl owl owl owl"], ["n", "y", "n"])
        found = encode(task, space, longest=3)
        assert found.texts.tolist() == [[0, 1, 2], [-1, -1, -1], [2, 2, 2]]
        assert found.labels.tolist() == [0, 1, 0]
        assert found.lengths.tolist() == [3, 0, 3]

    def test_of_pairs_the_second_text_is_attacked(self) -> None:
        space = small_space(words=["cat", "dog", "owl"])
        found = encode(LabelledTexts(["cat"], ["x"], ["dog owl"]), space, classes=("w", "x"))
        assert found.texts.tolist() == [[1, 2]]
        assert found.premises is not None
        assert found.premises.tolist() == [[0]]
        assert found.labels.tolist() == [1]

    def test_bad_examples_are_refused(self) -> None:
        space = small_space(words=["cat", "dog"])
        with pytest.raises(BadValueError, match="classes"):
            encode(LabelledTexts(["cat"], ["x"]), space, classes=("y",))
        with pytest.raises(ShapeError):
            Examples(np.zeros((2, 3), np.int32), np.zeros(1, np.int64), ("a",))

    def test_stacked_rows_keep_their_words(self) -> None:
        one, other = np.array([[1, 2]], np.int32), np.array([[3], [4]], np.int32)
        assert stacked([one, other]).tolist() == [[1, 2], [3, -1], [4, -1]]


class TestNetworks:
    def test_a_convolution_worked_by_hand(self) -> None:
        """One dimension, width 1: words 2 and 3 give h = 2, 3; windows (0, 2, 3), (2, 3, 0) . (1, 10, 100) + 1."""
        network = Convolutional(1, 2, 1)
        parameters = {
            "words.weight": np.array([[1.0]]),
            "words.bias": np.array([0.0]),
            "convolution.weight": np.array([[1.0], [10.0], [100.0]]),
            "convolution.bias": np.array([1.0]),
            "hidden.weight": np.array([[2.0]]),
            "hidden.bias": np.array([-1.0]),
            "output.weight": np.array([[1.0, -1.0]]),
            "output.bias": np.array([0.0, 5.0]),
        }
        trained = Trained.of(network, parameters, np.array([[2.0], [3.0], [-7.0]]))
        mean = ((0 + 20 + 300 + 1) + (2 + 30 + 0 + 1)) / 2
        assert trained.scores(np.array([[0, 1]], np.int32)).tolist() == [[2 * mean - 1, 6 - 2 * mean]]

    def test_sums_of_words_worked_by_hand(self) -> None:
        """Width 1: premise 2 + 2, text 3 + 0 (-7 is cut by the ReLU); (4, 3) . (1, 10) = 34."""
        network = Entailment(1, 2, 1)
        parameters = {f"{name}.bias": np.zeros(outputs) for name, (_, outputs) in network.sizes.items()}
        parameters |= {
            "words.weight": np.array([[1.0]]),
            "first.weight": np.array([[1.0], [10.0]]),
            "second.weight": np.array([[1.0]]),
            "output.weight": np.array([[1.0, 2.0]]),
        }
        trained = Trained.of(network, parameters, np.array([[2.0], [3.0], [-7.0]]))
        found = trained.scores(np.array([[1, 2]], np.int32), np.array([[0, 0]], np.int32))
        assert found.tolist() == [[34.0, 68.0]]

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

    def test_an_empty_text_has_a_result(self) -> None:
        network, parameters, vectors, _ = made("texts", 2)
        trained = Trained.of(network, parameters, vectors)
        assert np.isfinite(trained.scores(np.full((1, 3), PADDING, np.int32))).all()

    def test_vectors_of_any_scale_are_read_alike(self) -> None:
        vectors = np.random.default_rng(0).normal(size=(20, 3))
        one, other = (vectors_of(space_of(factor * vectors), np.float64) for factor in (1.0, 1000.0))
        np.testing.assert_allclose(one, other, rtol=1e-5)
        assert np.mean(one**2) == pytest.approx(1)

    def test_probabilities_are_those_of_the_scores(self) -> None:
        network, parameters, vectors, examples = made("texts", 3)
        trained = Trained.of(network, parameters, vectors)
        scores = trained.scores(examples.texts)
        expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(trained.probabilities(examples.texts), expected, rtol=1e-9)
        assert trained.right(examples).tolist() == (scores.argmax(axis=1) == examples.labels).tolist()
        with pytest.raises(DataError):
            trained.scores(examples.texts, examples.texts)

    def test_the_network_follows_the_examples(self) -> None:
        space = small_space(size=8)
        task = LabelledTexts(["aaaa"], ["x"], ["aaab"])
        assert isinstance(network_of(encode(task, space), space), Entailment)
        assert isinstance(network_of(encode(LabelledTexts(["aaaa"], ["x"]), space), space), Convolutional)


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

    def test_boxes_are_the_smallest_that_hold_them(self) -> None:
        vectors = np.random.default_rng(1).normal(size=(WORDS, D))
        substitutes = Substitutes.of(space_of(vectors), 8)
        boxes = WordBoxes.of(vectors, substitutes)
        centre, radius = boxes.at(np.arange(WORDS))
        for word, members in enumerate(substitutes.members):
            inside = vectors[members[members >= 0]]
            np.testing.assert_allclose(centre[word] - radius[word], inside.min(axis=0), atol=1e-12)
            np.testing.assert_allclose(centre[word] + radius[word], inside.max(axis=0), atol=1e-12)

    def test_at_every_factor_the_word_itself_is_inside(self) -> None:
        vectors = np.random.default_rng(2).normal(size=(WORDS, D))
        boxes = WordBoxes.of(vectors, Substitutes.of(space_of(vectors), 8))
        for factor in (0.0, 0.3, 1.0):
            centre, radius = boxes.at(np.arange(WORDS), factor)
            assert (np.abs(vectors - centre) <= radius + 1e-12).all()
        assert (boxes.at(np.arange(WORDS), 0.0)[1] == 0).all()


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
    def test_boxes_of_no_size_give_the_scores(self, kind: str) -> None:
        network, parameters, vectors, examples = made(kind, 6)
        boxes = WordBoxes.of(vectors, Substitutes.of(space_of(vectors), 8))
        centre, radius = bounded_scores(Boxes(np), network, parameters, boxes, examples, 0.0, ones(network))
        expected = Trained.of(network, parameters, vectors).scores(examples.texts, examples.premises)
        np.testing.assert_allclose(centre, expected, rtol=1e-9)
        np.testing.assert_allclose(radius, 0, atol=1e-12)

    def test_a_linear_layer_and_a_relu_by_hand(self) -> None:
        """[1 +- 2, 0 +- 1] through (1, -2): 1 +- 4, that is -3 to 5; the ReLU leaves 0 to 5."""
        layers = Boxes(np)
        box = layers.linear((np.array([[1.0, 0.0]]), np.array([[2.0, 1.0]])), np.array([[1.0], [-2.0]]), 0.0)
        assert [part.tolist() for part in box] == [[[1.0]], [[4.0]]]
        assert [part.tolist() for part in layers.relu(box)] == [[[2.5]], [[2.5]]]

    def test_worst_scores_are_the_ends_against_the_label(self) -> None:
        found = worst(np.array([[1.0, 2.0, 3.0]]), np.array([[0.5, 0.25, 1.0]]), np.array([[0, 1, 0]]))
        assert found.tolist() == [[1.5, 1.75, 4.0]]

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
    def test_kappa_and_boxes_rise_over_two_thirds(self) -> None:
        plan = NetworkTraining()
        assert plan.epochs == 60
        assert [plan.risen(epoch) for epoch in (0, 10, 20, 40, 59)] == pytest.approx([0, 0.25, 0.5, 1, 1])
        assert [plan.kappa * plan.risen(epoch) for epoch in (0, 20, 40)] == pytest.approx([0, 0.4, 0.8])
        assert NetworkTraining(epochs=3).risen(1) == pytest.approx(0.5)
        assert NetworkTraining(rising=0).risen(0) == 1

    def test_each_epoch_has_its_share_of_kappa_and_boxes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[tuple[float, float]] = []

        def recorded(*given: Any) -> Any:
            seen.append(given[-2:])
            return loss(*given)

        monkeypatch.setattr("corpusveil_studies.robustness.network_training.loss", recorded)
        network, _, vectors, examples = made("texts", 14)
        boxes = WordBoxes.of(vectors, Substitutes.of(space_of(vectors), 3))
        train(network, vectors, examples, NetworkTraining(epochs=6, reach=0.5), 0, boxes)
        assert [kappa for kappa, _ in seen] == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 0.8])
        assert [factor for _, factor in seen] == pytest.approx([0, 0.125, 0.25, 0.375, 0.5, 0.5])

    def test_cross_entropy_by_hand(self) -> None:
        """-ln of 3/4 and of 1/2; also where exponentials would overflow."""
        scores = np.array([[np.log(3.0), 0.0], [1e4, 1e4]])
        found = cross_entropy(np, scores, np.array([[1.0, 0.0], [0.0, 1.0]]))
        assert found == pytest.approx((np.log(4 / 3) + np.log(2)) / 2)

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

    def test_mixed_loss_is_the_weighted_mean_of_both(self) -> None:
        network, parameters, vectors, examples = made("texts", 10)
        boxes = WordBoxes.of(vectors, Substitutes.of(space_of(vectors), 3))
        given = (np, network, parameters, vectors, examples, ones(network))
        plain, hard = loss(*given), loss(*given, boxes, 1.0, 1.0)
        assert hard > plain
        assert loss(*given, boxes, 0.3, 1.0) == pytest.approx(0.7 * plain + 0.3 * hard)
        assert loss(*given, boxes, 0.0, 1.0) == plain

    @kinds
    def test_a_task_that_can_be_told_apart_is_learnt(self, kind: str) -> None:
        """The first dimension's sign of a text's words is its label; and noise is not learnt to generalise."""
        rng = np.random.default_rng(11)
        vectors = rng.normal(size=(WORDS, D)).astype(np.float32)
        halves = [np.flatnonzero(vectors[:, 0] < 0), np.flatnonzero(vectors[:, 0] >= 0)]
        labels = rng.integers(0, 2, 300)
        texts = np.array([rng.choice(halves[label], 5) for label in labels], np.int32)
        premises = rng.integers(0, WORDS, (300, 5)).astype(np.int32) if kind == "pairs" else None
        examples = Examples(texts, labels, ("a", "b"), premises)
        network = (Entailment if kind == "pairs" else Convolutional)(D, 2, 16)
        plan = NetworkTraining(epochs=12, rate=1e-2)
        train_rows, test_rows = np.arange(200), np.arange(200, 300)
        learnt = train(network, vectors, examples.take(train_rows), plan, 0)
        assert learnt.right(examples.take(test_rows)).mean() > 0.9
        shuffled = Examples(texts, rng.permutation(labels), ("a", "b"), premises)
        noise = train(network, vectors, shuffled.take(train_rows), plan, 0)
        assert noise.right(shuffled.take(test_rows)).mean() < 0.7
        again, other = (train(network, vectors, examples.take(train_rows), plan, seed) for seed in (0, 1))
        assert all((again.parameters[name] == value).all() for name, value in learnt.parameters.items())
        assert any((other.parameters[name] != value).any() for name, value in learnt.parameters.items())

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

    def test_examples_of_one_class_or_of_another_kind_are_refused(self) -> None:
        network, _, vectors, examples = made("texts", 0)
        same = Examples(examples.texts, np.zeros(7, np.int64), examples.classes)
        with pytest.raises(DataError):
            train(network, vectors, same, NetworkTraining(), 0)
        with pytest.raises(DataError, match="premises"):
            train(KINDS["pairs"], vectors, examples, NetworkTraining(), 0)


@kinds
def test_layers_agree_with_pytorch(kind: str) -> None:
    """Where PyTorch is installed: the same weights in its layers give the same scores."""
    torch = pytest.importorskip("torch")
    network, parameters, vectors, examples = made(kind, 13)
    p = {name: torch.tensor(value) for name, value in parameters.items()}

    def linear(name: str, x: object) -> object:
        return torch.nn.functional.linear(x, p[f"{name}.weight"].T, p[f"{name}.bias"])

    expected = []
    for row in range(len(examples)):
        text = examples.texts[row][examples.texts[row] >= 0]
        h = torch.relu(linear("words", torch.tensor(vectors[text])))
        if examples.premises is None:
            kernel = p["convolution.weight"].reshape(3, network.width, network.width).permute(2, 1, 0)
            h = torch.nn.functional.conv1d(h.T[None], kernel, p["convolution.bias"], padding=1)
            h = torch.relu(linear("hidden", torch.relu(h)[0].mean(dim=1)))
        else:
            premise = examples.premises[row][examples.premises[row] >= 0]
            before = torch.relu(linear("words", torch.tensor(vectors[premise]))).sum(dim=0)
            h = torch.cat([before, h.sum(dim=0)])
            h = torch.relu(linear("second", torch.relu(linear("first", h))))
        expected.append(linear("output", h).numpy())
    found = Trained.of(network, parameters, vectors).scores(examples.texts, examples.premises)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert Points(np).array is np
