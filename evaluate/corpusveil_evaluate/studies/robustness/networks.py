"""The two networks of the robustness study: a convolution for texts, sums of words for premise and hypothesis.

Architectures after Jia, Raghunathan, Göksel, Liang (2019), on fixed word vectors. Texts: linear layer and ReLU to 100,
convolution of width 3 and ReLU, mean over the words, hidden layer and ReLU, output. Pairs: the same first layer for
both texts, the sum over the words of each, both side by side through two hidden layers (our choice: the study says "a
small network"), output. The place of dropout is our choice, too: before each layer after the words are combined.

Padding is set to 0 after the first layer and excluded from means, so it changes no result.

A network is written once, over points and over boxes, and returns scores or bounds of scores.
A box is a center and a radius, arrays of one shape. Interval bound propagation (Gowal et al. 2018; Jia et al. 2019):
``W c + b`` and ``|W| r`` through a linear layer, both ends through a monotone activation, and a sum with weights of at
least 0 on both. Every layer's box contains the layer's output for any point of the box before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from autograd import extend

from corpusveil.spaces import Space
from corpusveil_evaluate.studies.robustness.encoded_texts import Examples

WIDTH = 100
TOGETHER = 1024
"""The batch size of inference."""

Parameters = Mapping[str, npt.NDArray[Any]]
"""Arrays by name: ``layer.weight`` [inputs, outputs] and ``layer.bias`` [outputs]."""


@dataclass(frozen=True, slots=True)
class Points:
    """Layers over arrays: NumPy's for inference, ``autograd``'s for training (the ``array`` module).

    ``scaled`` takes constants of at least 0, ``windows`` puts each position between its neighbors, [B, L, c] ->
    [B, L, 3 c], ``summed`` is over positions, ``joined`` side by side on the last axis.
    """

    array: Any

    def linear(self, x: Any, weight: Any, bias: Any) -> Any:
        return _product(x, weight) + bias

    def relu(self, x: Any) -> Any:
        return x * (x > 0)

    def scaled(self, x: Any, factor: Any) -> Any:
        return x * factor

    def windows(self, x: Any) -> Any:
        shift = _shift if self.array is np else _traced_shift
        return self.array.concatenate([shift(x, 1), x, shift(x, -1)], axis=2)

    def summed(self, x: Any) -> Any:
        return self.array.sum(x, axis=1)

    def joined(self, x: Any, y: Any) -> Any:
        return self.array.concatenate([x, y], axis=-1)


@dataclass(frozen=True, slots=True)
class Boxes:
    """The same layers over boxes (center, radius)."""

    array: Any

    def linear(self, x: Any, weight: Any, bias: Any) -> Any:
        centre, radius = x
        return _product(centre, weight) + bias, _product(radius, self.array.abs(weight))

    def relu(self, x: Any) -> Any:
        centre, radius = x
        low, high = (Points(self.array).relu(end) for end in (centre - radius, centre + radius))
        return 0.5 * (low + high), 0.5 * (high - low)

    def scaled(self, x: Any, factor: Any) -> Any:
        return x[0] * factor, x[1] * factor

    def windows(self, x: Any) -> Any:
        return tuple(Points(self.array).windows(part) for part in x)

    def summed(self, x: Any) -> Any:
        return tuple(Points(self.array).summed(part) for part in x)

    def joined(self, x: Any, y: Any) -> Any:
        return tuple(Points(self.array).joined(one, other) for one, other in zip(x, y, strict=True))


def _product(x: Any, weight: Any) -> Any:
    """Return the product over the last axis as a single matrix product, several times as fast as a stack."""
    if len(x.shape) == 2:
        return x @ weight
    return (x.reshape((-1, x.shape[-1])) @ weight).reshape((*x.shape[:-1], weight.shape[1]))


def _shift(x: Any, by: int) -> Any:
    """Return positions moved by one, to the later (1) or the earlier (-1), 0 where nothing moved in."""
    out = np.zeros_like(x)
    if by == 1:
        out[:, 1:] = x[:, :-1]
    else:
        out[:, :-1] = x[:, 1:]
    return out


_traced_shift = extend.primitive(_shift)
extend.defvjp(_traced_shift, lambda _, __, by: lambda g: _traced_shift(g, -by), None)  # a slice's goes number by number


Layers = Points | Boxes


@dataclass(frozen=True, slots=True)
class Convolutional:
    """The network for texts. ``dimensions`` of a word's vector, ``classes`` to tell apart, ``width`` of all layers.

    ``sizes`` are inputs and outputs of each layer, ``dropped`` the widths at which dropout is applied. ``scores``
    returns those of the classes, [B, C], or a box of them. Its ``words`` and ``masks`` have one entry for the texts and
    one for the premises where there are some: the first layer's output, [B, L, 100], and float [B, L, 1], 1 at words.
    ``drops`` are factors for dropout, or ones.
    """

    dimensions: int
    classes: int
    width: int = WIDTH
    pairs: bool = False

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        w = self.width
        return {"words": (self.dimensions, w), "convolution": (3 * w, w), "hidden": (w, w), "output": (w, self.classes)}

    @property
    def dropped(self) -> tuple[int, ...]:
        return (self.width, self.width)

    def scores(self, layers: Layers, parameters: Any, words: Any, masks: Any, drops: Any) -> Any:
        (word,), (mask,) = words, masks
        h = layers.windows(layers.scaled(word, mask))
        h = layers.relu(_linear(layers, parameters, "convolution", h))
        mean = layers.summed(layers.scaled(h, mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)))
        h = layers.relu(_linear(layers, parameters, "hidden", layers.scaled(mean, drops[0])))
        return _linear(layers, parameters, "output", layers.scaled(h, drops[1]))


@dataclass(frozen=True, slots=True)
class Entailment:
    """The network for premise and hypothesis; sizes as of ``Convolutional``."""

    dimensions: int
    classes: int
    width: int = WIDTH
    pairs: bool = True

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        w = self.width
        return {"words": (self.dimensions, w), "first": (2 * w, w), "second": (w, w), "output": (w, self.classes)}

    @property
    def dropped(self) -> tuple[int, ...]:
        return (2 * self.width, self.width, self.width)

    def scores(self, layers: Layers, parameters: Any, words: Any, masks: Any, drops: Any) -> Any:
        text, premise = (layers.summed(layers.scaled(part, mask)) for part, mask in zip(words, masks, strict=True))
        h = layers.joined(premise, text)
        for name, drop in zip(("first", "second"), drops[:2], strict=True):
            h = layers.relu(_linear(layers, parameters, name, layers.scaled(h, drop)))
        return _linear(layers, parameters, "output", layers.scaled(h, drops[2]))


Network = Convolutional | Entailment


def network_of(examples: Examples, space: Space, width: int = WIDTH) -> Network:
    """Return the network for examples: of pairs where they have premises."""
    kind = Convolutional if examples.premises is None else Entailment
    return kind(space.dimensions, len(examples.classes), width)


def first_layer(layers: Layers, parameters: Any, vectors: Any) -> Any:
    """Return the first layer's output for word vectors, which depends on each word alone; [..., d] -> [..., 100]."""
    return layers.relu(_linear(layers, parameters, "words", vectors))


def _linear(layers: Layers, parameters: Any, name: str, x: Any) -> Any:
    return layers.linear(x, parameters[f"{name}.weight"], parameters[f"{name}.bias"])


def initial(
    network: Network, rng: np.random.Generator, dtype: npt.DTypeLike = np.float32
) -> dict[str, npt.NDArray[Any]]:
    """Return weights and biases drawn uniformly within ``1 / sqrt(inputs)``, as PyTorch's layers begin.

    Larger ones (He et al. 2015) make boxes grow at each layer, so that worst-case training never gets off the ground.
    """
    made: dict[str, npt.NDArray[Any]] = {}
    for name, (inputs, outputs) in network.sizes.items():
        bound = 1 / math.sqrt(inputs)
        made[f"{name}.weight"] = rng.uniform(-bound, bound, (inputs, outputs)).astype(dtype)
        made[f"{name}.bias"] = rng.uniform(-bound, bound, outputs).astype(dtype)
    return made


def vectors_of(space: Space) -> npt.NDArray[Any]:
    """Return the space's vectors as networks read them, [V, d]: scaled so that a coordinate's mean square is 1.

    One factor for all, so directions and ratios of distances stay; spaces of any scale then train alike.
    """
    square = float(np.mean(np.square(space.vectors, dtype=np.float64)))
    return np.asarray(space.vectors / math.sqrt(square or 1.0), np.float32)


def mask_of(ids: npt.NDArray[np.int32], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return 1 at words and 0 at padding; [B, L, 1]."""
    return np.asarray((ids >= 0)[:, :, None], dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A network with its parameters. ``table`` [V, 100] is the first layer's output for each word of the space."""

    network: Network
    parameters: Parameters
    table: npt.NDArray[Any]

    @classmethod
    def from_network(cls, network: Network, parameters: Parameters, vectors: npt.NDArray[Any]) -> Trained:
        return cls(network, parameters, first_layer(Points(np), parameters, vectors))

    def scores(self, texts: npt.NDArray[np.int32], premises: npt.NDArray[np.int32] | None = None) -> npt.NDArray[Any]:
        """Return the scores of texts, int32 [N, L], and their premises, int32 [N, M]; [N, C]."""
        parts = [
            self._scores([texts[at : at + TOGETHER]] + ([] if premises is None else [premises[at : at + TOGETHER]]))
            for at in range(0, max(len(texts), 1), TOGETHER)
        ]
        return np.concatenate(parts)

    def _scores(self, inputs: list[npt.NDArray[np.int32]]) -> npt.NDArray[Any]:
        words = [self.table[ids] for ids in inputs]  # what padding reads there is set to 0 by its mask
        masks = [mask_of(ids, self.table.dtype) for ids in inputs]
        drops = [1.0] * len(self.network.dropped)
        return np.asarray(self.network.scores(Points(np), self.parameters, words, masks, drops))

    def probabilities(
        self, texts: npt.NDArray[np.int32], premises: npt.NDArray[np.int32] | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the probability of each class; float64 [N, C]."""
        scores = self.scores(texts, premises).astype(np.float64)
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def right(self, examples: Examples) -> npt.NDArray[np.bool_]:
        """Return which examples get their label; bool [N]. Ties go to the lower class."""
        return np.asarray(self.scores(examples.texts, examples.premises).argmax(axis=1) == examples.labels)
