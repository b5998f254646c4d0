"""The genetic attacker (after Alzantot et al. 2018; 60 members and 40 generations in Jia et al. 2019).

    perturb(s): a random position; its ORIGINAL word is replaced through the mechanism at epsilon
    population <- perturb(original), 60 times
    repeat up to 40 times:
        fitness(s) = 1 - P(true label | s);  the network gets one of them wrong: success
        next <- the fittest, and children until there are 60:
            two parents with probability proportional to fitness, each word from either, perturbed

Every word of every member is the original one or a single draw at epsilon for it. Positions are drawn uniformly (our
choice). Success is any member that is wrong, not only the fittest: of two classes that is the same.

The wholly private text of the comparison (``variant``) is one more member of the first population. The paper does
not do that; with it the attacker never does worse than that one variant, by construction. Nor does it do worse than a
single perturbation, which is always a member, nor than no attack: a text that the network gets wrong unchanged is not a
success of the attack, but is not robust.

The attack measures robustness, not privacy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corpusveil_evaluate.studies.robustness.encoded_texts import Examples, Ids, trimmed
from corpusveil_evaluate.studies.robustness.network_training import Noise
from corpusveil_evaluate.studies.robustness.networks import Trained

Int64 = npt.NDArray[np.int64]
Probabilities = Callable[[Ids, Ids | None], npt.NDArray[np.float64]]
"""Texts int32 [N, L] and their premises in, the probability of each class out; ``Trained.probabilities``."""

PURPOSE = "attack"
TOGETHER = 16
"""Texts that are attacked in parallel; the draws of a text do not depend on the others."""


@dataclass(frozen=True, slots=True)
class Genetic:
    """The size of the attack."""

    members: int = 60
    generations: int = 40


@dataclass(frozen=True, slots=True, eq=False)
class Attacked:
    """The result of an attack.

    Attributes:
        robust: bool [N], right before the attack and after it.
        generation: int64 [N], the population (from 1) in which a text was first wrong; 0 where it was wrong unchanged,
            -1 where it is robust.
        texts: int32 [N, L], the member that was wrong; the original where there is none.
    """

    robust: npt.NDArray[np.bool_]
    generation: Int64
    texts: Ids


def attack(
    probabilities: Probabilities,
    examples: Examples,
    noise: Noise,
    settings: Genetic,
    seed: int,
    variant: Ids,
) -> Attacked:
    """Attack every example through a mechanism; premises stay.

    Positions, parents and crossings are drawn by the seed, words by the key. ``variant`` int32 [N, L] joins the first
    population.
    """
    generation, texts = np.full(len(examples), -1, np.int64), examples.texts.copy()
    order = np.argsort(examples.lengths, kind="stable")  # rows of similar length need little padding
    for at in range(0, order.size, TOGETHER):
        rows = order[at : at + TOGETHER]
        group = _Group(probabilities, examples, noise, settings, rows, seed)
        group.run(variant, generation, texts)
    return Attacked(generation == -1, generation, texts)


class _Group:
    """A texts that are attacked in parallel: those that are still robust, with their populations."""

    def __init__(
        self, probabilities: Probabilities, examples: Examples, noise: Noise, settings: Genetic, rows: Int64, seed: int
    ) -> None:
        self.probabilities, self.noise, self.settings, self.rows = probabilities, noise, settings, rows
        self.originals = trimmed(examples.texts[rows])
        self.lengths = examples.lengths[rows]
        self.labels = examples.labels[rows]
        self.premises = None if examples.premises is None else trimmed(examples.premises[rows])
        self.streams = [np.random.default_rng([seed, row]) for row in rows.tolist()]

    def run(self, variant: Ids, generation: Int64, texts: Ids) -> None:
        """Attack; for rows that fail, record the generation and the text."""
        unchanged, _ = self._judge(self.originals[:, None])
        generation[self.rows[unchanged[:, 0]]] = 0
        self._keep(~unchanged[:, 0] & (self.lengths > 0))
        if not self.rows.size:
            return
        size = self.settings.members
        members = np.repeat(self.originals[:, None], size, axis=1)
        self._perturb(members, self._uniform(size, 1)[:, :, 0], 0)
        members = np.concatenate([members, variant[self.rows, None, : self.originals.shape[1]]], axis=1)
        for number in range(1, self.settings.generations + 1):
            wrong, fitness = self._judge(members)
            fallen = np.asarray(wrong.any(axis=1))
            first = wrong.argmax(axis=1)
            at = self.rows[fallen]
            generation[at] = number
            texts[at, : members.shape[2]] = members[fallen, first[fallen]]
            if number == self.settings.generations or fallen.all():
                return
            self._keep(~fallen)
            members = self._next(members[~fallen], fitness[~fallen], number)

    def _keep(self, kept: npt.NDArray[np.bool_]) -> None:
        self.rows, self.originals, self.lengths = self.rows[kept], self.originals[kept], self.lengths[kept]
        self.labels = self.labels[kept]
        self.premises = None if self.premises is None else self.premises[kept]
        self.streams = [stream for stream, stays in zip(self.streams, kept.tolist(), strict=True) if stays]

    def _judge(self, members: Ids) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
        """Return which members are wrong, bool [A, P], and their fitness, float64 [A, P]; int32 [A, P, L]."""
        rows, each, length = members.shape
        premises = None if self.premises is None else np.repeat(self.premises, each, axis=0)
        probabilities = self.probabilities(members.reshape(-1, length), premises).reshape(rows, each, -1)
        truth = np.take_along_axis(probabilities, self.labels[:, None, None], axis=2)[:, :, 0]
        return probabilities.argmax(axis=2) != self.labels[:, None], 1 - truth

    def _next(self, members: Ids, fitness: npt.NDArray[np.float64], number: int) -> Ids:
        """Return the next population: the fittest, then children."""
        children = self.settings.members - 1
        uniform = self._uniform(children, 3 + self.originals.shape[1])
        one, other = (parents(fitness, uniform[:, :, place]) for place in (1, 2))
        every = np.arange(len(members))[:, None]
        crossed = np.where(uniform[:, :, 3:] < 0.5, members[every, one], members[every, other])
        self._perturb(crossed, uniform[:, :, 0], number)
        best = members[every, fitness.argmax(axis=1)[:, None]]
        return np.concatenate([best, crossed], axis=1)

    def _uniform(self, members: int, numbers: int) -> npt.NDArray[np.float64]:
        """Return uniform numbers, float64 [A, members, numbers]; of each text as many as its own length needs."""
        out = np.zeros((len(self.rows), members, numbers))
        for at, (stream, length) in enumerate(zip(self.streams, self.lengths.tolist(), strict=True)):
            own = min(numbers, 3 + length)
            out[at, :, :own] = stream.random((members, own))
        return out

    def _perturb(self, members: Ids, uniform: npt.NDArray[np.float64], generation: int) -> None:
        """Replace one original word of each member, int32 [A, P, L], in place; ``uniform`` [A, P] chooses which."""
        rows, each, _ = members.shape
        places = np.minimum((uniform * self.lengths[:, None]).astype(np.int64), self.lengths[:, None] - 1)
        words = np.take_along_axis(self.originals, places, axis=1)
        numbers = np.tile(generation * self.settings.members + np.arange(each), rows)
        draws = self.noise.draws(PURPOSE, np.repeat(self.rows, each), numbers)
        outputs = self.noise.mechanism.privatize(words.ravel(), self.noise.epsilon, draws).reshape(rows, each)
        np.put_along_axis(members, places[:, :, None], outputs[:, :, None], axis=2)


def parents(fitness: npt.NDArray[np.float64], uniform: npt.NDArray[np.float64]) -> Int64:
    """Return a member for each uniform number, with probability proportional to fitness; uniformly where all are 0.

    ``fitness`` float64 [A, P], at least 0; ``uniform`` float64 [A, K], below 1 -> int64 [A, K].
    """
    weights = np.where(fitness.sum(axis=1, keepdims=True) > 0, fitness, 1.0)
    ends = np.cumsum(weights, axis=1)
    chosen = (uniform[:, :, None] * ends[:, -1:, None] >= ends[:, None, :]).sum(axis=2)
    return np.asarray(np.minimum(chosen, fitness.shape[1] - 1), dtype=np.int64)


def measure(trained: Trained, examples: Examples, noise: Noise, settings: Genetic, seed: int) -> dict[str, float]:
    """Return how robust a network is under one mechanism at one epsilon, in shares of ``texts``.

    ``clean``: right on the original text; ``private``: on one private variant of it, every word replaced;
    ``adversarial``: on the original and on all that the attacker tried, the variant among it; ``floor``: the most
    frequent label. ``changed`` words deceived the network, the mean over texts that the attack turned, if any.
    """
    variant = noise.variant(examples.texts, "variant")
    right, private = trained.right(examples), trained.right(examples.with_texts(variant))
    attacked = attack(trained.probabilities, examples, noise, settings, seed, variant)
    turned = attacked.generation > 0
    differ = ((attacked.texts != examples.texts) & (examples.texts >= 0)).sum(axis=1)
    return {
        "clean": float(right.mean()), "private": float(private.mean()),
        # Scores of one text differ by rounding between batches, so every verdict on a tried text counts.
        "adversarial": float((attacked.robust & right & private).mean()),
        "floor": float(np.bincount(examples.labels).max() / len(examples)), "texts": len(examples),
        **({"changed": float(differ[turned].mean())} if turned.any() else {}),
    }  # fmt: skip
