"""Training: Adam on cross-entropy, of the scores alone or mixed with that of the worst scores.

    loss = (1 - kappa) CE(z, y) + kappa CE(z_worst, y)

kappa rises from 0 to 0.8 and the boxes from a point to full size, linearly over the first two thirds of the epochs (40
of 60), and stay (Jia et al. 2019, values of their public code). Derivatives are those of autograd. Adam as by Kingma
and Ba (2015).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.errors import BadValueError, DataError
from corpusveil.mechanisms.base import check_fraction, check_whole
from corpusveil_studies.robustness.encoded_texts import Examples
from corpusveil_studies.robustness.interval_bounds import WordBoxes, bounded_scores, worst
from corpusveil_studies.robustness.layers import Boxes, Points, autograd
from corpusveil_studies.robustness.networks import Network, Trained, first_layer, initial, mask_of

FIRST, SECOND, TINY = 0.9, 0.999, 1e-8
"""Adam's decay rates, and the constant added to its denominator."""


@dataclass(frozen=True, slots=True)
class NetworkTraining:
    """How a network is trained.

    Attributes:
        epochs: passes over the examples.
        batch: examples of a step.
        rate: Adam's step.
        dropout: the share of a layer's inputs that are left out of a step.
        kappa: the weight of the worst scores when all is risen; with boxes only.
        rising: the share of the epochs in which it rises.
        reach: the size of the boxes when all is risen; 1 holds all substitutes, as in the study. Where these make the
            network give up (it says one label to all texts), smaller boxes train, and certify less.
    """

    epochs: int = 60
    batch: int = 32
    rate: float = 1e-3
    dropout: float = 0.2
    kappa: float = 0.8
    rising: float = 2 / 3
    reach: float = 1.0

    def __post_init__(self) -> None:
        check_whole("epochs", self.epochs, 1, 1_000_000)
        check_whole("batch", self.batch, 1, 1_000_000)
        check_fraction("rate", self.rate, ends=True)
        check_fraction("kappa", self.kappa, ends=True)
        check_fraction("rising", self.rising, ends=True)
        check_fraction("reach", self.reach, ends=True)
        if not 0 <= self.dropout < 1:
            raise BadValueError(f"dropout = {self.dropout}: give 0, or a number between 0 and 1.")

    def risen(self, epoch: int) -> float:
        """Return how far kappa and boxes have risen in an epoch, the first being 0: from 0 to 1."""
        rising = self.epochs * self.rising
        return min(1.0, epoch / rising) if rising else 1.0


def cross_entropy(array: Any, scores: Any, truth: npt.NDArray[Any]) -> Any:
    """Return the mean of -ln softmax(scores) at the true classes; scores [B, C], ``truth`` 1 there and 0 elsewhere."""
    high = scores - array.max(scores, axis=1, keepdims=True)
    return array.mean(array.log(array.sum(array.exp(high), axis=1)) - array.sum(high * truth, axis=1))


def loss(
    array: Any,
    network: Network,
    parameters: Any,
    vectors: npt.NDArray[Any],
    examples: Examples,
    drops: Any,
    boxes: WordBoxes | None = None,
    kappa: float = 0.0,
    factor: float = 0.0,
) -> Any:
    """Return the loss of a batch; without boxes, or at kappa = 0, that of the scores alone.

    ``array`` is NumPy or what autograd has of it, ``vectors`` [V, d] those of the words, ``drops`` factors of dropout.
    """
    truth = np.eye(len(examples.classes), dtype=vectors.dtype)[examples.labels]
    inputs = [examples.texts] + ([] if examples.premises is None else [examples.premises])
    layers = Points(array)
    words = [first_layer(layers, parameters, vectors[ids]) for ids in inputs]
    masks = [mask_of(ids, vectors.dtype) for ids in inputs]
    plain = cross_entropy(array, network.scores(layers, parameters, words, masks, drops), truth)
    if boxes is None or not kappa:
        return plain
    bounds = bounded_scores(Boxes(array), network, parameters, boxes, examples, factor, drops)
    return (1 - kappa) * plain + kappa * cross_entropy(array, worst(*bounds, truth), truth)


class _Adam:
    """Parameters that are stepped in place, with the moments of their derivatives."""

    __slots__ = ("_first", "_rate", "_second", "_steps", "parameters")

    def __init__(self, parameters: dict[str, npt.NDArray[Any]], rate: float) -> None:
        self.parameters, self._rate, self._steps = parameters, rate, 0
        self._first = {name: np.zeros_like(value) for name, value in parameters.items()}
        self._second = {name: np.zeros_like(value) for name, value in parameters.items()}

    def step(self, slopes: dict[str, npt.NDArray[Any]]) -> None:
        self._steps += 1
        rate = self._rate * (1 - SECOND**self._steps) ** 0.5 / (1 - FIRST**self._steps)
        for name, slope in slopes.items():
            first, second = self._first[name], self._second[name]
            first += (1 - FIRST) * (slope - first)
            second += (1 - SECOND) * (slope * slope - second)
            self.parameters[name] -= rate * first / (np.sqrt(second) + TINY)


def train(
    network: Network,
    vectors: npt.NDArray[Any],
    examples: Examples,
    settings: NetworkTraining,
    seed: int,
    boxes: WordBoxes | None = None,
) -> Trained:
    """Return the network, trained on examples; the same for the same seed.

    ``vectors`` [V, d] are those of the space's words and give the float type; they are not trained. With ``boxes`` the
    loss has the worst scores in it. Raises UserError for fewer than two classes, and where autograd is missing.
    """
    if len(np.unique(examples.labels)) < 2:
        raise DataError(f"{len(examples):,} examples have fewer than two classes; give examples of at least two.")
    if (examples.premises is not None) != network.pairs:
        raise DataError("Only the network or only the examples have premises; use network_of(examples).")
    array, slopes_of = autograd("numpy"), autograd().value_and_grad

    def batch_loss(parameters: Any, some: Examples, drops: Any, risen: float) -> Any:
        mixed = (settings.kappa * risen, settings.reach * risen)
        return loss(array, network, parameters, vectors, some, drops, boxes, *mixed)

    step = slopes_of(batch_loss)
    rng = np.random.default_rng(seed)
    adam = _Adam(initial(network, rng, vectors.dtype), settings.rate)
    for epoch in range(settings.epochs):
        for rows in _batches(examples, settings.batch, rng):
            drops = [_drop(rng, (rows.size, width), settings.dropout, vectors.dtype) for width in network.dropped]
            _, slopes = step(adam.parameters, examples.take(rows), drops, settings.risen(epoch))
            adam.step(slopes)
    return Trained.of(network, adam.parameters, vectors)


def _batches(examples: Examples, size: int, rng: np.random.Generator) -> Iterator[npt.NDArray[np.int64]]:
    order = rng.permutation(len(examples))
    for at in range(0, order.size, size):
        yield order[at : at + size]


def _drop(rng: np.random.Generator, shape: tuple[int, int], share: float, dtype: Any) -> npt.NDArray[Any]:
    """Return 0 with probability ``share`` and else 1 / (1 - share), so that the mean stays."""
    return np.asarray((rng.random(shape) >= share) / (1 - share), dtype)
