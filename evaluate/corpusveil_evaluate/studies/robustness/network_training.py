"""Training: Adam on cross-entropy, of the scores alone or mixed with that of the worst scores.

    loss = (1 - kappa) CE(z, y) + kappa CE(z_worst, y)

kappa rises from 0 to 0.8 and the boxes from a point to full size, linearly over the first two thirds of the epochs (40
of 60), and stay (Jia et al. 2019, values of their public code). Derivatives are those of autograd. Adam as by Kingma
and Ba (2015).

There are three regimes: the original texts (``normal``); also private variants of every text, labels kept, by the same
mechanism and epsilon as the attack (``augmented``, Xu et al. 2021: four); and against the worst substitution (``ibp``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from autograd import numpy as traced
from autograd import value_and_grad

from corpusveil.errors import DataError
from corpusveil.mechanisms import Mechanism
from corpusveil.sampling.draws import DrawKey, Draws, keyed_tags
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil_evaluate.studies.robustness.encoded_texts import PADDING, Examples, Ids
from corpusveil_evaluate.studies.robustness.interval_bounds import Substitutes, WordBoxes, bounded_scores, worst
from corpusveil_evaluate.studies.robustness.networks import (
    Boxes,
    Network,
    Points,
    Trained,
    first_layer,
    initial,
    mask_of,
    network_of,
    vectors_of,
)

Regime = Literal["normal", "augmented", "ibp"]
BATCH, RATE, DROPOUT, RISING = 32, 1e-3, 0.2, 2 / 3
"""Examples of a step, Adam's step, the share of a layer's inputs that a step leaves out, and of the epochs in which
kappa and the boxes rise."""
_DRAWS = "6b" * 32
FIRST, SECOND, TINY = 0.9, 0.999, 1e-8
"""Adam's decay rates, and the constant added to its denominator."""


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

    __slots__ = ("_first", "_second", "_steps", "parameters")

    def __init__(self, parameters: dict[str, npt.NDArray[Any]]) -> None:
        self.parameters, self._steps = parameters, 0
        self._first = {name: np.zeros_like(value) for name, value in parameters.items()}
        self._second = {name: np.zeros_like(value) for name, value in parameters.items()}

    def step(self, slopes: dict[str, npt.NDArray[Any]]) -> None:
        self._steps += 1
        rate = RATE * (1 - SECOND**self._steps) ** 0.5 / (1 - FIRST**self._steps)
        for name, slope in slopes.items():
            first, second = self._first[name], self._second[name]
            first += (1 - FIRST) * (slope - first)
            second += (1 - SECOND) * (slope * slope - second)
            self.parameters[name] -= rate * first / (np.sqrt(second) + TINY)


def train(
    network: Network,
    vectors: npt.NDArray[Any],
    examples: Examples,
    epochs: int,
    seed: int,
    boxes: WordBoxes | None = None,
    kappa: float = 0.0,
) -> Trained:
    """Return the network, trained on examples; the same for the same seed.

    ``vectors`` [V, d] are those of the space's words and give the float type; they are not trained. With ``boxes`` the
    loss has the worst scores in it, with the weight ``kappa`` when all is risen. Raises UserError for fewer than two
    classes.
    """
    if len(np.unique(examples.labels)) < 2:
        raise DataError(f"{len(examples):,} examples have fewer than two classes; give examples of at least two.")

    def batch_loss(parameters: Any, some: Examples, drops: Any, risen: float) -> Any:
        return loss(traced, network, parameters, vectors, some, drops, boxes, kappa * risen, risen)

    step = value_and_grad(batch_loss)
    rng = np.random.default_rng(seed)
    adam = _Adam(initial(network, rng, vectors.dtype))
    for epoch in range(epochs):
        order, risen = rng.permutation(len(examples)), min(1.0, epoch / (epochs * RISING))
        for at in range(0, order.size, BATCH):
            rows = order[at : at + BATCH]
            drops = [_drop(rng, (rows.size, width), vectors.dtype) for width in network.dropped]
            _, slopes = step(adam.parameters, examples.take(rows), drops, risen)
            adam.step(slopes)
    return Trained.from_network(network, adam.parameters, vectors)


def _drop(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> npt.NDArray[Any]:
    """Return 0 with the probability ``DROPOUT`` and else what keeps the mean."""
    return np.asarray((rng.random(shape) >= DROPOUT) / (1 - DROPOUT), dtype)


@dataclass(frozen=True, slots=True)
class Noise:
    """A mechanism at one epsilon, and the key for its draws, which privatize texts."""

    mechanism: Mechanism
    epsilon: float
    key: Key

    def draws(self, purpose: str, documents: npt.NDArray[np.int64], positions: npt.NDArray[np.int64]) -> Draws:
        """Return draws for tokens, int64 [T] each, of texts by their numbers.

        ``purpose`` keeps those of training, of variants and of the attack apart.
        """
        key = DrawKey.derive(self.key, _DRAWS)
        names, which = np.unique(documents, return_inverse=True)
        tags = keyed_tags(key.tag, purpose, names.tolist(), np.empty(0, np.uint8), np.zeros(names.size + 1, np.int64))
        return Draws(key, tags, which.astype(np.int64), positions.astype(np.int64))

    def variant(self, texts: Ids, purpose: str) -> Ids:
        """Return texts, int32 [N, L], with every word replaced by its own draw."""
        out = np.full_like(texts, PADDING)
        rows, places = np.nonzero(texts >= 0)
        draws = self.draws(purpose, rows.astype(np.int64), places.astype(np.int64))
        out[rows, places] = self.mechanism.privatize(texts[rows, places], self.epsilon, draws)
        return out


def augmented(examples: Examples, noise: Noise, variants: int) -> Examples:
    """Return the examples and ``variants`` private versions of their texts; labels and premises stay."""
    made = [examples.with_texts(noise.variant(examples.texts, f"train {number}")) for number in range(variants)]
    return examples.joined(made)


def fit(
    regime: Regime,
    examples: Examples,
    space: Space,
    epochs: int,
    seed: int,
    *,
    noise: Noise,
    substitutes: Substitutes,
    variants: int,
    width: int,
    kappa: float,
) -> Trained:
    """Train the network for these examples, of layers of ``width``, by a regime.

    ``augmented`` adds ``variants`` private versions by ``noise``; ``substitutes`` are what ``ibp`` allows.
    """
    vectors, boxes = vectors_of(space), None
    if regime == "augmented":
        examples = augmented(examples, noise, variants)
    if regime == "ibp":
        boxes = WordBoxes.from_space(vectors, substitutes)
    return train(network_of(examples, space, width), vectors, examples, epochs, seed, boxes, kappa)
