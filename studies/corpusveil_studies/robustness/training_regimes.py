"""Three ways to train: on the original texts, also on private variants, and against the worst substitution.

``augmented`` adds private variants of every text, labels kept, by the same mechanism and epsilon as the attack (Xu et
al. 2021: four). ``ibp`` mixes in the loss of the worst scores (Jia et al. 2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from corpusveil.errors import UnsetError, not_a_choice
from corpusveil.mechanisms import Mechanism
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil_studies.robustness.encoded_texts import PADDING, Examples, Ids
from corpusveil_studies.robustness.interval_bounds import Substitutes, WordBoxes
from corpusveil_studies.robustness.network_training import NetworkTraining, train
from corpusveil_studies.robustness.networks import WIDTH, Trained, network_of, vectors_of

Regime = Literal["normal", "augmented", "ibp"]
REGIMES: tuple[Regime, ...] = get_args(Regime)
VARIANTS = 4
_DRAWS = "6b" * 32


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
        tags = key.tags(purpose, names.tolist(), np.empty(0, np.uint8), np.zeros(names.size + 1, np.int64))
        return Draws(key, tags, which.astype(np.int64), positions.astype(np.int64))

    def variant(self, texts: Ids, purpose: str) -> Ids:
        """Return texts, int32 [N, L], with every word replaced by its own draw."""
        out = np.full_like(texts, PADDING)
        rows, places = np.nonzero(texts >= 0)
        draws = self.draws(purpose, rows.astype(np.int64), places.astype(np.int64))
        out[rows, places] = self.mechanism.privatize(texts[rows, places], self.epsilon, draws)
        return out


def augmented(examples: Examples, noise: Noise, variants: int = VARIANTS) -> Examples:
    """Return the examples and ``variants`` private versions of their texts; labels and premises stay."""
    made = [examples.with_texts(noise.variant(examples.texts, f"train {number}")) for number in range(variants)]
    return examples.joined(made)


def fit(
    regime: Regime,
    examples: Examples,
    space: Space,
    settings: NetworkTraining,
    seed: int,
    *,
    noise: Noise | None = None,
    substitutes: Substitutes | None = None,
    variants: int = VARIANTS,
    width: int = WIDTH,
) -> Trained:
    """Train the network for these examples, of layers of ``width``, by a regime.

    ``augmented`` adds ``variants`` private versions by ``noise``; ``substitutes`` are what ``ibp`` allows, by default
    ``Substitutes.of(space)``.
    """
    if regime not in REGIMES:
        raise not_a_choice("regime", regime, REGIMES)
    vectors, boxes = vectors_of(space), None
    if regime == "augmented":
        if noise is None:
            raise UnsetError(
                "augmented: private variants need a mechanism at an epsilon; give the noise of the attack."
            )
        examples = augmented(examples, noise, variants)
    if regime == "ibp":
        boxes = WordBoxes.of(vectors, substitutes or Substitutes.of(space))
    return train(network_of(examples, space, width), vectors, examples, settings, seed, boxes)
