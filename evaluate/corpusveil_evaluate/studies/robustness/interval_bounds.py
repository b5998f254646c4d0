"""Bounds of a network's scores under any allowed substitution of any words, by interval bound propagation.

For each position the input is the smallest axis-aligned box that holds the vectors of the word and of its allowed
substitutes (Jia, Raghunathan, Göksel, Liang 2019). ``networks.Boxes`` carries it through the network. The worst scores
are the lower end for the true class and the upper end for the others: where they still give the label, no allowed
substitution changes it. That is about allowed substitutes only, not about what a mechanism draws: it may draw any word.

The literature's substitutes are near words of counter-fitted vectors. Ours: the 8 nearest words of the space, within
the median distance of a word's 8th neighbor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.errors import SettingError
from corpusveil.spaces import Space
from corpusveil_evaluate.mechanisms.nearest_sets import nearest_sets
from corpusveil_evaluate.studies.robustness.encoded_texts import Examples
from corpusveil_evaluate.studies.robustness.networks import Boxes, Layers, Network, Trained, first_layer, mask_of

TOGETHER = 256
"""Texts whose boxes are computed at once: 6 MiB for each 10 words of 300 dimensions."""


@dataclass(frozen=True, slots=True, eq=False)
class Substitutes:
    """Allowed substitutes: ``members`` int32 [V, 1 + k], the word itself first, -1 where it has fewer.

    ``within`` is the largest distance of a substitute, on the space's vectors as given.
    """

    members: npt.NDArray[np.int32]
    within: float

    @classmethod
    def from_space(cls, space: Space, count: int, closeness: float = 1.0) -> Substitutes:
        """Take the ``count`` nearest words within ``closeness`` times the median distance of the last of these.

        All words count alike for the median. Below 1 fewer words have substitutes, and those are more alike.
        """
        if not 1 <= count < len(space):
            raise SettingError(f"count = {count}: give 1 to {len(space) - 1} nearest words.")
        members = nearest_sets(space, 1 + count).members.copy()
        apart = np.empty(members.shape)
        for start in range(0, len(space), 4096):
            block = slice(start, start + 4096)
            points = space.vectors[block].astype(np.float64)
            for place in range(members.shape[1]):
                apart[block, place] = np.linalg.norm(space.vectors[members[block, place]] - points, axis=1)
        within = closeness * float(np.median(apart[:, -1]))
        members[apart > within] = -1
        members[:, 0] = np.arange(len(space))
        return cls(members, within)


@dataclass(frozen=True, slots=True, eq=False)
class WordBoxes:
    """A box for each word: ``offsets`` from the word's vector to the center, and ``radii``; both [V, d]."""

    vectors: npt.NDArray[Any]
    offsets: npt.NDArray[Any]
    radii: npt.NDArray[Any]

    @classmethod
    def from_space(cls, vectors: npt.NDArray[Any], substitutes: Substitutes) -> WordBoxes:
        """Return the smallest boxes that hold the vectors ([V, d]) of each word and of its substitutes."""
        low, high = vectors.copy(), vectors.copy()
        for place in range(1, substitutes.members.shape[1]):
            some = np.flatnonzero(substitutes.members[:, place] >= 0)
            corners = vectors[substitutes.members[some, place]]
            low[some], high[some] = np.minimum(low[some], corners), np.maximum(high[some], corners)
        return cls(vectors, 0.5 * (low + high) - vectors, 0.5 * (high - low))

    def at(self, ids: npt.NDArray[np.int32], factor: float = 1.0) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return center and radius for words, [..., d] each, shrunk toward the word's own vector by ``factor``.

        So the word itself is in the box at every factor, and nothing else is at 0.
        """
        scale = self.vectors.dtype.type(factor)
        return self.vectors[ids] + scale * self.offsets[ids], scale * self.radii[ids]


def bounded_scores(
    layers: Layers, network: Network, parameters: Any, boxes: WordBoxes, examples: Examples, factor: float, drops: Any
) -> tuple[Any, Any]:
    """Return a box of the scores, center and radius [B, C]: words of texts in their boxes, premises as they are."""
    dtype = boxes.vectors.dtype
    inputs = [(examples.texts, boxes.at(examples.texts, factor))]
    if examples.premises is not None:
        exact = boxes.vectors[examples.premises]
        inputs.append((examples.premises, (exact, np.zeros_like(exact))))
    words = [first_layer(layers, parameters, box) for _, box in inputs]
    masks = [mask_of(ids, dtype) for ids, _ in inputs]
    bounds: tuple[Any, Any] = network.scores(layers, parameters, words, masks, drops)
    return bounds


def worst(centre: Any, radius: Any, truth: npt.NDArray[Any]) -> Any:
    """Return the worst scores [B, C]: the lower end for the true class, the upper end for the others.

    ``truth`` [B, C] is 1 at the true class and 0 elsewhere.
    """
    return centre + radius * (1 - 2 * truth)


def certified(trained: Trained, boxes: WordBoxes, examples: Examples) -> npt.NDArray[np.bool_]:
    """Return which examples keep their label under every allowed substitution; bool [N].

    Computed in the parameters' float type: rounding is not bounded. A tie is no certificate.
    """
    out = np.zeros(len(examples), np.bool_)
    drops = [1.0] * len(trained.network.dropped)
    for at in range(0, len(examples), TOGETHER):
        some = examples.take(np.arange(at, min(at + TOGETHER, len(examples))))
        bounds = bounded_scores(Boxes(np), trained.network, trained.parameters, boxes, some, 1.0, drops)
        truth = np.eye(len(some.classes), dtype=np.int64)[some.labels]
        scores = worst(*bounds, truth)
        others = np.where(truth == 1, -np.inf, scores).max(axis=1)
        out[at : at + len(some)] = scores[truth == 1] > others
    return out
