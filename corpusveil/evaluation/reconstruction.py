"""Bayes-optimal reconstruction of single words: what the best possible guess makes of one replacement.

With the public prior pi over inputs and the exact law P, output u is best explained by ``argmax_w pi(w) P[w, u]``; that
guess is right with probability ``sum_u max_w pi(w) P[w, u]``, the risk, and no other guess from a single replacement is
right more often (Bayes decision rule; the vulnerability of quantitative information flow).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corpusveil.errors import NoClosedForm, UserError
from corpusveil.evaluation.prior import Prior
from corpusveil.mechanisms import Mechanism


@dataclass(frozen=True, slots=True, eq=False)
class BestGuesses:
    """What to guess from each output, and how often that is right.

    Attributes:
        guesses: int32 [V, k], the inputs that explain each output best, best first (of equals the lower id); -1 where
            fewer can have given it.
        posterior: float64 [V, k], the probability of each, given the output.
        recovered: how often the truth is among the first 1, ..., k guesses; the first is the risk.
        unchanged: how often a word comes back as it was, so how often a guess of the output itself is right.
        unseen: how often the most frequent word is right, without looking.
        covered: the share of the space's public counts that the prior's words have.
    """

    guesses: npt.NDArray[np.int32]
    posterior: npt.NDArray[np.float64]
    recovered: tuple[float, ...]
    unchanged: float
    unseen: float
    covered: float


def laws(mechanism: Mechanism, epsilon: float, prior: Prior) -> Iterator[tuple[int, float, npt.NDArray[np.float64]]]:
    """Yield each word of the prior with its share and the law of its output, float64 [V].

    Raises NoClosedForm where the mechanism has no exact law here.
    """
    for word, share in zip(prior.words.tolist(), prior.shares.tolist(), strict=True):
        try:
            law = mechanism.distribution(word, epsilon)
        except NoClosedForm as error:
            raise NoClosedForm(
                f"{mechanism.name}: reconstruction needs the exact law of its output, and this mechanism has none in "
                f"this space ({error})"
            ) from None
        yield word, share, law


def bayes_token(mechanism: Mechanism, epsilon: float, prior: Prior, top: int = 1) -> BestGuesses:
    """Return the Bayes-optimal guesses for every output, the ``top`` best of each; exact.

    Raises NoClosedForm where the mechanism has no exact law (noise on vectors of several dimensions).
    """
    if not 1 <= top <= prior.words.size:
        raise UserError(f"top = {top}: it is from 1 to {prior.words.size:,}, the number of words that may be inputs.")
    size = len(mechanism.space)
    joint, words = np.zeros((top, size)), np.full((top, size), -1, dtype=np.int32)
    evidence, unchanged = np.zeros(size), 0.0
    for word, share, law in laws(mechanism, epsilon, prior):
        unchanged += share * float(law[word])
        new = share * law
        evidence += new
        _insert(joint, words, new, word)
    with np.errstate(invalid="ignore"):
        posterior = np.where(evidence > 0, joint / evidence, 0.0)
    recovered = np.cumsum(joint.sum(axis=1))
    return BestGuesses(words.T, posterior.T, tuple(recovered.tolist()), unchanged, prior.guess, prior.covered)


def _insert(
    joint: npt.NDArray[np.float64], words: npt.NDArray[np.int32], new: npt.NDArray[np.float64], word: int
) -> None:
    """Put a word's values, float64 [V], among the best so far, [k, V], largest first, of equals the earlier."""
    entering = np.full(new.size, word, dtype=np.int32)
    for rank in range(len(joint)):
        better = new > joint[rank]
        if rank + 1 < len(joint):
            left, leaving = np.where(better, joint[rank], new), np.where(better, words[rank], entering)
        np.copyto(joint[rank], new, where=better)
        np.copyto(words[rank], entering, where=better)
        if rank + 1 < len(joint):
            new, entering = left, leaving
