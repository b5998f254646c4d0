"""Bayes-optimal reconstruction of single words: the best possible guess from one replacement.

With the public prior pi over inputs and the exact law P, output u is best explained by ``argmax_w pi(w) P[w, u]``; that
guess is right with probability ``sum_u max_w pi(w) P[w, u]``, the risk, and no other guess from a single replacement is
right more often (Bayes decision rule; the vulnerability of quantitative information flow).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corpusveil.errors import BadValueError
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.risk import Prior, explain


@dataclass(frozen=True, slots=True, eq=False)
class BestGuesses:
    """The best guesses from each output, and how often they are right.

    Attributes:
        guesses: int64 [V, k], the inputs that explain each output best, best first (of equals the lower id); -1 where
            fewer can have given it.
        posterior: float64 [V, k], the probability of each, given the output.
        recovered: how often the truth is among the first 1, ..., k guesses; the first is the risk.
        unchanged: how often a word comes back as it was, so how often a guess of the output itself is right.
        unseen: how often the most frequent word is right, without looking.
        covered: the share of the space's public counts that the prior's words have.
    """

    guesses: npt.NDArray[np.int64]
    posterior: npt.NDArray[np.float64]
    recovered: tuple[float, ...]
    unchanged: float
    unseen: float
    covered: float


def bayes_token(mechanism: Mechanism, epsilon: float, prior: Prior, top: int = 1) -> BestGuesses:
    """Return the Bayes-optimal guesses for every output, the ``top`` best of each; exact.

    Raises NoClosedForm where the mechanism has no exact law (noise on vectors of several dimensions).
    """
    if not 1 <= top <= prior.words.size:
        raise BadValueError(f"top = {top}: give 1 to {prior.words.size:,}, the number of words that can be inputs.")
    found = explain(mechanism, epsilon, prior.words, prior.shares, np.arange(len(mechanism.space)), top)
    with np.errstate(invalid="ignore"):
        posterior = np.where(found.evidence[:, None] > 0, found.joint / found.evidence[:, None], 0.0)
    unchanged = float(found.own[prior.words] @ prior.shares)
    recovered = np.cumsum(found.joint.sum(axis=0))
    return BestGuesses(found.words, posterior, tuple(recovered.tolist()), unchanged, prior.guess, prior.covered)
