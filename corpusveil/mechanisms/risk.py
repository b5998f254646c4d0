"""How often the best guess of a word from its replacement is right, and the epsilon for a given limit of this risk.

With the public prior pi over words and the law P the best guess is right with probability (``docs/mathematics.md``)

    V = sum_u max_w pi(w) P[w, u]

The maximum is over all words, so V is never below the share of words that stay unchanged (guess u itself), nor below
the share of the most frequent word (always guess it). Everything is computed from public data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from corpusveil.choices import RiskOf
from corpusveil.errors import DataError, NoClosedForm, UserError, of_other_type
from corpusveil.mechanisms.base import Mechanism
from corpusveil.mechanisms.explanations import explain, explain_sampled
from corpusveil.sampling.grid import grid_value
from corpusveil.sampling.weights import check_epsilon
from corpusveil.spaces.word_prior import Prior, prior_of

LOWEST, HIGHEST = -8 * 8, 8 * 10
"""Epsilon is chosen from the public grid 2^(j/8), from 2^-8 to 2^10."""
_DOUBLE = 8
READERS: dict[RiskOf, str] = {"word": "one by one", "context": "from context"}


@dataclass(frozen=True, slots=True)
class WordRisk:
    """What a reader of single words guesses, as shares of the words of public text.

    ``share`` is the share that the best guess recovers, ``unchanged`` the share that stays unchanged, and ``blind`` the
    share that a guess without the release gets right. If ``exact`` is False, the law has no closed form and public
    samples estimate the figures. The best guesses are then chosen and counted on the same samples, so ``share`` errs
    upwards.
    """

    share: float
    unchanged: float
    blind: float
    exact: bool

    def sentence(self) -> str:
        """Say it in one sentence."""
        return reader_guesses(self.share, blind=self.blind)


def word_risk(mechanism: Mechanism, epsilon: float, prior: Prior | None = None, *, estimate: bool = True) -> WordRisk:
    """Return how often the best guess of a word is right, by the public counts of the space.

    ``prior`` gives other word frequencies. Without a prior and without counts, all words are equally frequent. A
    mechanism without an exact law is sampled, unless ``estimate`` is False: then it raises NoClosedForm.
    """
    if not isinstance(mechanism, Mechanism):
        raise of_other_type("mechanism", mechanism, "cv.mechanism(NAME, space)")
    prior = prior_of(mechanism.space) if prior is None else prior
    exact = True
    shares = mechanism.best_guess(check_epsilon(epsilon), prior.words, prior.shares)
    if shares is not None:
        share, unchanged = shares
    else:
        every = np.arange(len(mechanism.space))
        try:
            found = explain(mechanism, epsilon, prior.words, prior.shares, every, 1)
        except NoClosedForm:
            if not estimate:
                raise
            found = explain_sampled(mechanism, epsilon, prior.words, prior.shares, every, 1)
            exact = False
        share = math.fsum(found.joint[:, 0].tolist())  # the same sum on every machine
        unchanged = math.fsum((found.own[prior.words] * prior.shares).tolist())
    return WordRisk(min(1.0, max(share, unchanged, prior.guess)), min(1.0, unchanged), prior.guess, exact)


def largest_epsilon(risk_at: Callable[[float], float], risk: float) -> float:
    """Return the largest epsilon of the grid before ``risk_at(epsilon)`` exceeds ``risk``.

    It is evaluated at 1, at doubled or halved epsilons until the risk is bracketed, and then by bisection, so that the
    risk at the next grid value is known to be too large. An epsilon at which it raises UserError, because the mechanism
    is not defined there, is left out. Raises DataError if the risk is too large at the smallest epsilon.
    """
    known: dict[int, float | None] = {}
    refused: list[UserError] = []

    def at(index: int) -> float | None:
        if index not in known:
            try:
                known[index] = risk_at(grid_value(index))
            except UserError as error:
                refused.append(error)
                known[index] = None
        return known[index]

    def fits(index: int) -> bool:
        value = at(index)
        return value is not None and value <= risk

    start = next((index for index in range(0, HIGHEST + 1, _DOUBLE) if at(index) is not None), None)
    if start is None:
        raise refused[-1]
    low = high = start
    if fits(start):
        while fits(high) and high < HIGHEST:
            low, high = high, min(high + _DOUBLE, HIGHEST)
        if fits(high):
            return grid_value(high)
    else:
        while low > LOWEST and at(low) is not None and not fits(low):
            low, high = max(low - _DOUBLE, LOWEST), low
    while high - low > 1 and (fits(low) or at(low) is None):
        middle = (low + high) // 2
        below = fits(middle) or (at(middle) is None and not fits(low))
        low, high = (middle, high) if below else (low, middle)
    if not fits(low):
        least = min(index for index, value in known.items() if value is not None)
        raise DataError(
            f"risk = {risk:g}: even at epsilon {grid_value(least):g}, the smallest, a reader guesses "
            f"{known[least] or 0.0:.1%} of the words of public text; give a larger risk."
        )
    return grid_value(low)


def reader_guesses(share: float, of: RiskOf = "word", blind: float | None = None) -> str:
    """Say what a reader guesses, everywhere in the same words: *about*, for the text is not the public text."""
    without = "" if blind is None else f", {blind:.1%} without looking"
    return f"an informed reader guesses about {share:.1%} of known words {READERS[of]}{without}"
