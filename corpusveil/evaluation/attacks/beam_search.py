"""Beam search over a lattice of words, and two ways to read a sentence off it.

A state is the last two words of a history; histories that end in the same two are one state, which costs nothing under
a model of three words. At each place the ``width`` states with the best history stay, and all arcs between states that
stay. With all candidates and no limit the best history is Viterbi's, and the marginals are those of forward-backward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

Place = tuple[Ints, Floats]
"""Candidates int64 [k] for one word, and the logarithm of what each weighs there, float64 [k]."""

Spoken = Callable[[Ints, Ints], Floats]
"""From contexts int64 [n, 2] and candidates int64 [k] to log-probabilities, float64 [n, k]."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """The S states behind one place, best first, and the M arcs into them.

    ``words`` int64 [S] is the last word of each, ``best`` int64 [S] the state before on its best history; ``sources``
    and ``targets`` int64 [M] are states before and here, ``weights`` float64 [M] logarithms.
    """

    words: Ints
    best: Ints
    sources: Ints
    targets: Ints
    weights: Floats


def lattice(places: Sequence[Place], spoken: Spoken, width: int, nothing: int) -> list[Step]:
    """Return the lattice of a sentence, a step a place. A place without candidates is ``nothing``, in contexts too."""
    contexts, scores = np.full((1, 2), nothing, dtype=np.int64), np.zeros(1)
    steps = []
    for words, logs in places:
        if words.size:
            added = logs + spoken(contexts, words)
        else:
            words, added = np.array([nothing], dtype=np.int64), np.zeros((scores.size, 1))  # noqa: PLW2901 - one branch
        total = (scores[:, None] + added).ravel()
        before = np.unique(contexts[:, 1], return_inverse=True)[1]
        ending = (before[:, None] * words.size + np.arange(words.size)).ravel()
        order = np.argsort(-total, kind="stable")
        first = np.unique(ending[order], return_index=True)[1]  # of histories that end alike, the best
        kept = order[np.sort(first)[:width]]
        state_of = np.full(int(ending.max()) + 1, -1, dtype=np.int64)
        state_of[ending[kept]] = np.arange(kept.size)
        targets = state_of[ending]
        arcs = np.flatnonzero(targets >= 0)
        parents, chosen = kept // words.size, words[kept % words.size]
        steps.append(Step(chosen, parents, arcs // words.size, targets[arcs], added.ravel()[arcs]))
        contexts, scores = np.stack([contexts[parents, 1], chosen], axis=1), total[kept]
    return steps


def likeliest_sentence(steps: Sequence[Step]) -> Ints:
    """Return the words of the best history; int64, one a step."""
    words = np.empty(len(steps), dtype=np.int64)
    at = 0
    for place in range(len(steps) - 1, -1, -1):
        words[place], at = steps[place].words[at], int(steps[place].best[at])
    return words


def likeliest_words(steps: Sequence[Step]) -> Ints:
    """Return at each place the word of the largest probability over all histories; int64, one a step.

    That maximises the expected number of right words (forward-backward; Rabiner 1989).
    """
    forward = [np.zeros(1)]
    for step in steps:
        ahead = np.full(step.words.size, -np.inf)
        np.logaddexp.at(ahead, step.targets, forward[-1][step.sources] + step.weights)
        forward.append(ahead)
    likeliest = np.empty(len(steps), dtype=np.int64)
    behind = np.zeros(forward[-1].size)
    for place in range(len(steps) - 1, -1, -1):
        step = steps[place]
        words, which = np.unique(step.words, return_inverse=True)
        share = np.full(words.size, -np.inf)
        np.logaddexp.at(share, which, forward[place + 1] + behind)
        likeliest[place] = words[share.argmax()]
        back = np.full(forward[place].size, -np.inf)
        np.logaddexp.at(back, step.sources, behind[step.targets] + step.weights)
        behind = back
    return likeliest
