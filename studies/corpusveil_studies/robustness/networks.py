"""The two networks of the robustness study: a convolution for texts, sums of words for premise and hypothesis.

Architectures after Jia, Raghunathan, Göksel, Liang (2019), on fixed word vectors. Texts: linear layer and ReLU to 100,
convolution of width 3 and ReLU, mean over the words, hidden layer and ReLU, output. Pairs: the same first layer for
both texts, the sum over the words of each, both side by side through two hidden layers (our choice: the study says "a
small network"), output. The place of dropout is our choice, too: before each layer after the words are combined.

Padding is set to 0 after the first layer and excluded from means, so it changes no result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from corpusveil.errors import DataError
from corpusveil.spaces import Space
from corpusveil_studies.robustness.encoded_texts import Examples
from corpusveil_studies.robustness.layers import Layers, Points

WIDTH = 100
TOGETHER = 1024
"""The batch size of inference."""

Parameters = Mapping[str, npt.NDArray[Any]]
"""Arrays by name: ``layer.weight`` [inputs, outputs] and ``layer.bias`` [outputs]."""


class Network(Protocol):
    """A network of some sizes, without its parameters."""

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of each layer."""

    @property
    def pairs(self) -> bool:
        """Whether it reads a premise beside the text."""

    @property
    def dropped(self) -> tuple[int, ...]:
        """The widths at which dropout is applied, in order."""

    def scores(self, layers: Layers, parameters: Any, words: Any, masks: Any, drops: Any) -> Any:
        """Return the scores of the classes, [B, C], or a box of them.

        ``words`` and ``masks`` have one entry for the texts and one for the premises where there are some: the first
        layer's output, [B, L, 100], and float [B, L, 1], 1 at words. ``drops`` are factors for dropout, or ones.
        """


@dataclass(frozen=True, slots=True)
class Convolutional:
    """The network for texts. ``dimensions`` of a word's vector, ``classes`` to tell apart, ``width`` of all layers."""

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


def vectors_of(space: Space, dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """Return the space's vectors as networks read them, [V, d]: scaled so that a coordinate's mean square is 1.

    One factor for all, so directions and ratios of distances stay; spaces of any scale then train alike. Raises
    UserError where a word has no vector.
    """
    space.require_vectors("A network")
    square = float(np.mean(np.square(space.vectors, dtype=np.float64)))
    return np.asarray(space.vectors / math.sqrt(square or 1.0), dtype)


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
    def of(cls, network: Network, parameters: Parameters, vectors: npt.NDArray[Any]) -> Trained:
        return cls(network, parameters, first_layer(Points(np), parameters, vectors))

    def scores(self, texts: npt.NDArray[np.int32], premises: npt.NDArray[np.int32] | None = None) -> npt.NDArray[Any]:
        """Return the scores of texts, int32 [N, L], and their premises, int32 [N, M]; [N, C]."""
        if (premises is not None) != self.network.pairs:
            raise DataError(
                f"The network reads {('pairs' if self.network.pairs else 'single texts')}; give such examples."
            )
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
