"""Bayes-optimal reconstruction of single words: what the best possible guess makes of one replacement.

With the public prior pi over inputs and the exact law P, output u is best explained by ``argmax_w pi(w) P[w, u]``; that
guess is right with probability ``sum_u max_w pi(w) P[w, u]``, the risk, and no other guess from a single replacement is
right more often (Bayes decision rule; the vulnerability of quantitative information flow).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.errors import NoClosedForm, UserError
from corpusveil.evaluation.prior import Prior
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.on_lists import OnLists

CELLS = 1 << 22
"""Probabilities that are held at once: 32 MiB, in a handful of arrays."""


@dataclass(frozen=True, slots=True, eq=False)
class BestGuesses:
    """What to guess from each output, and how often that is right.

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


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """What explains each of U outputs best, best first; of equals the lower id.

    ``words`` int64 [U, k], -1 where fewer can have given it; ``joint`` float64 [U, k] is prior times law, ``evidence``
    float64 [U] its sum over all inputs; ``own`` float64 [U] the probability that an output comes from itself.
    """

    words: npt.NDArray[np.int64]
    joint: npt.NDArray[np.float64]
    evidence: npt.NDArray[np.float64]
    own: npt.NDArray[np.float64]


def explain(
    mechanism: Mechanism, epsilon: float, prior: Prior, outputs: npt.NDArray[np.integer[Any]], top: int
) -> Explained:
    """Return the ``top`` inputs of the largest prior times law for each output, of all words of the prior; exact.

    Where the law is one of steps on lists, only the words within reach of an output are looked at, and the most
    frequent ones of the others. Elsewhere every law is computed, some at a time. Raises NoClosedForm where the
    mechanism has no exact law here.
    """
    on_lists = isinstance(mechanism, OnLists) and mechanism.space.places is None
    by = _by_steps if on_lists else _by_laws
    return by(mechanism, epsilon, prior, outputs, min(top, prior.words.size))


def _by_steps(mechanism: Any, epsilon: float, prior: Prior, outputs: npt.NDArray[Any], top: int) -> Explained:
    size = len(mechanism.space)
    shares = np.zeros(size)
    shares[prior.words] = prior.shares
    outside = mechanism.outside(epsilon) * shares
    frequent = np.argsort(-outside, kind="stable")[:top]
    frequent = frequent[shares[frequent] > 0]
    own = mechanism.chances(outputs, outputs, epsilon)
    words, joint = np.full((outputs.size, top), -1, dtype=np.int64), np.zeros((outputs.size, top))
    evidence = np.full(outputs.size, outside.sum())
    width = len(mechanism.space.lists) * min(2 * mechanism.reach(epsilon) + 1, size) + top
    for first in range(0, outputs.size, max(1, CELLS // width)):
        some = slice(first, first + max(1, CELLS // width))
        near = mechanism.near(outputs[some], epsilon)
        others = np.where(mechanism.in_reach(frequent, outputs[some, None], epsilon), -1, frequent)
        inputs = np.concatenate([near, others], axis=1)
        weights = mechanism.chances(inputs, outputs[some, None], epsilon) * shares[inputs] * (inputs >= 0)
        evidence[some] += (weights - outside[inputs] * (inputs >= 0))[:, : near.shape[1]].sum(axis=1)
        words[some], joint[some] = _best(inputs, weights, top)
    return Explained(words, joint, evidence, own)


def _by_laws(mechanism: Mechanism, epsilon: float, prior: Prior, outputs: npt.NDArray[Any], top: int) -> Explained:
    words, joint = np.full((outputs.size, top), -1, dtype=np.int64), np.zeros((outputs.size, top))
    evidence, own = np.zeros(outputs.size), np.zeros(outputs.size)
    step = max(1, CELLS // len(mechanism.space))
    order = np.argsort(-prior.shares, kind="stable")  # the likeliest first: later ones seldom are among the best
    strange = np.setdiff1d(outputs, prior.words)
    inputs = np.append(prior.words[order], strange)
    shares = np.append(prior.shares[order], np.zeros(strange.size))
    for first in range(0, inputs.size, step):
        some = inputs[first : first + step]
        try:
            law = mechanism.distributions(some, epsilon)[:, outputs].T
        except NoClosedForm as error:
            raise NoClosedForm(
                f"{mechanism.name}: reconstruction needs the exact law of its output, and this mechanism has none in "
                f"this space ({error})"
            ) from None
        at, itself = np.nonzero(outputs[:, None] == some)
        own[at] = law[at, itself]
        weights = law * shares[first : first + step]
        evidence += weights.sum(axis=1)
        rows = np.flatnonzero(weights.max(axis=1) >= joint[:, -1])
        tried = np.concatenate([words[rows], np.broadcast_to(some, (rows.size, some.size))], axis=1)
        words[rows], joint[rows] = _best(tried, np.concatenate([joint[rows], weights[rows]], axis=1), top)
    return Explained(words, joint, evidence, own)


def _best(
    inputs: npt.NDArray[np.int64], weights: npt.NDArray[np.float64], top: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the inputs of the largest weights above 0 of each row, [U, W] -> [U, k], and these, which are used up.

    The largest comes first, of equals the lowest input.
    """
    rows = np.arange(len(inputs))
    words, joint = np.full((rows.size, top), -1, dtype=np.int64), np.zeros((rows.size, top))
    for rank in range(top):
        joint[:, rank] = weights.max(axis=1, initial=0.0)
        equal = weights == joint[:, rank, None]
        at = np.where(equal, inputs, np.iinfo(np.int64).max).argmin(axis=1)
        words[:, rank] = np.where(joint[:, rank] > 0, inputs[rows, at], -1)
        weights[rows, at] = 0.0
    return words, joint


def bayes_token(mechanism: Mechanism, epsilon: float, prior: Prior, top: int = 1) -> BestGuesses:
    """Return the Bayes-optimal guesses for every output, the ``top`` best of each; exact.

    Raises NoClosedForm where the mechanism has no exact law (noise on vectors of several dimensions).
    """
    if not 1 <= top <= prior.words.size:
        raise UserError(f"top = {top}: it is from 1 to {prior.words.size:,}, the number of words that may be inputs.")
    found = explain(mechanism, epsilon, prior, np.arange(len(mechanism.space)), top)
    with np.errstate(invalid="ignore"):
        posterior = np.where(found.evidence[:, None] > 0, found.joint / found.evidence[:, None], 0.0)
    unchanged = float(found.own[prior.words] @ prior.shares)
    recovered = np.cumsum(found.joint.sum(axis=0))
    return BestGuesses(found.words, posterior, tuple(recovered.tolist()), unchanged, prior.guess, prior.covered)
