"""The likeliest originals of released words, by Bayes' rule: from the exact law, or from public samples of it."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from corpusveil.arrays import Float64, Int64, Integers
from corpusveil.errors import NoClosedForm
from corpusveil.mechanisms.base import Mechanism
from corpusveil.mechanisms.on_lists import OnLists
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.sampling.keys import Key
from corpusveil_evaluate.readers.ngrams.laws_on_lists import chances, in_reach, near, outside

_PUBLIC = b"corpusveil: replacements drawn to learn a law that anybody may learn"
SAMPLES = 1 << 18
"""The number of samples without an exact law, distributed among words by their prior."""
LEAST_SAMPLES = 8
"""The least number of samples of a word."""
STAYS, REPLACED = 4.0, 0.5
"""Pseudo-samples in the law of one word, distributed as those of all words.

For staying unchanged, and for each possible replacement (Jeffreys).
"""
CELLS = 1 << 22
"""The number of probabilities in memory: 32 MiB, in a few arrays."""


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """The likeliest originals of each of U outputs, likeliest first; ties go to the lower id.

    ``words`` int64 [U, k], padded by -1; ``joint`` float64 [U, k] is prior times law; ``own`` float64 [U] is the
    probability that an output comes from itself.
    """

    words: Int64
    joint: Float64
    own: Float64


def explain(
    mechanism: Mechanism, epsilon: float, words: Int64, shares: Float64, outputs: Integers, top: int
) -> Explained:
    """Return the ``top`` inputs with the largest prior times law for each output, among all words of the prior; exact.

    ``words`` int64 [N], ascending, are the possible inputs, and ``shares`` float64 [N] their prior. For laws of steps
    on lists, only the words within reach of an output, and the most frequent other words, are considered. For other
    laws, all rows are computed, in portions. Raises NoClosedForm if the mechanism has no exact law here.
    """
    by = _by_steps if isinstance(mechanism, OnLists) else _by_laws
    return by(mechanism, epsilon, words, shares, outputs, min(top, words.size))


def _by_steps(mechanism: Any, epsilon: float, prior_words: Any, prior_shares: Any, outputs: Any, top: int) -> Explained:
    size = len(mechanism.space)
    shares = np.zeros(size)
    shares[prior_words] = prior_shares
    beyond_reach = outside(mechanism, epsilon) * shares
    frequent = np.argsort(-beyond_reach, kind="stable")[:top]
    frequent = frequent[shares[frequent] > 0]
    own = chances(mechanism, outputs, outputs, epsilon)
    words, joint = np.full((outputs.size, top), -1, dtype=np.int64), np.zeros((outputs.size, top))
    width = len(mechanism.space.lists) * min(2 * mechanism.reach(epsilon) + 1, size) + top
    for first in range(0, outputs.size, max(1, CELLS // width)):
        some = slice(first, first + max(1, CELLS // width))
        close = near(mechanism, outputs[some], epsilon)
        others = np.where(in_reach(mechanism, frequent, outputs[some, None], epsilon), -1, frequent)
        inputs = np.concatenate([close, others], axis=1)
        weights = chances(mechanism, inputs, outputs[some, None], epsilon) * shares[inputs] * (inputs >= 0)
        words[some], joint[some] = _best(inputs, weights, top)
    return Explained(words, joint, own)


def _by_laws(
    mechanism: Mechanism, epsilon: float, prior_words: Any, prior_shares: Any, outputs: Any, top: int
) -> Explained:
    words, joint = np.full((outputs.size, top), -1, dtype=np.int64), np.zeros((outputs.size, top))
    own = np.zeros(outputs.size)
    step = max(1, CELLS // len(mechanism.space))
    order = np.argsort(-prior_shares, kind="stable")  # the likeliest first: later words are seldom among the best
    strange = np.setdiff1d(outputs, prior_words)
    inputs = np.append(prior_words[order], strange)
    shares = np.append(prior_shares[order], np.zeros(strange.size))
    for first in range(0, inputs.size, step):
        some = inputs[first : first + step]
        try:
            law = mechanism.distributions(some, epsilon)[:, outputs].T
        except NoClosedForm as error:
            raise NoClosedForm(
                f"{mechanism.name}: explaining a released word needs the exact law of its output, which this "
                f"mechanism does not have in this space ({error}); choose another mechanism."
            ) from None
        at, itself = np.nonzero(outputs[:, None] == some)
        own[at] = law[at, itself]
        weights = law * shares[first : first + step]
        rows = np.flatnonzero(weights.max(axis=1) >= joint[:, -1])
        tried = np.concatenate([words[rows], np.broadcast_to(some, (rows.size, some.size))], axis=1)
        words[rows], joint[rows] = _best(tried, np.concatenate([joint[rows], weights[rows]], axis=1), top)
    return Explained(words, joint, own)


def _best(inputs: Int64, weights: Float64, top: int) -> tuple[Int64, Float64]:
    """Return the inputs with the largest weights above 0 in each row, [U, W] -> [U, k], and these weights.

    The largest comes first; ties go to the lowest input. ``weights`` are overwritten.
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


@functools.lru_cache(maxsize=1)
def _pairs(mechanism: Mechanism, epsilon: float, each: bytes) -> tuple[Int64, Int64]:
    """Draw the samples of each word, int64 [V]; return the pairs ``u V + w`` of output and word, and how often each."""
    size = len(mechanism.space)
    inputs = np.repeat(np.arange(size), np.frombuffer(each, np.int64)).astype(np.int32)
    draws = Draws.of_tokens(DrawKey.derive(Key(hashlib.sha256(_PUBLIC).digest()), "33" * 32), inputs.size)
    drawn = mechanism.privatize(inputs, epsilon, draws).astype(np.int64)
    pairs, counts = np.unique(drawn * size + inputs, return_counts=True)
    return pairs, counts


def explain_sampled(
    mechanism: Mechanism, epsilon: float, words: Int64, shares: Float64, outputs: Any, top: int,
    counted: Float64 | None = None,
) -> Explained:  # fmt: skip
    """Return an estimate of what ``explain`` returns, from replacements drawn under a published key.

    For mechanisms without an exact law. Every word is drawn ``LEAST_SAMPLES`` times, and further ``SAMPLES`` are
    distributed by the prior. The few samples of a word are combined with those of all words: of n samples of a word, s
    unchanged and k replaced by u, the law is

        P[w, w] = (s + STAYS r) / (n + STAYS)        P[w, u] = (1 - P[w, w]) (k + R q_u) / (n - s + R)

    with R = V REPLACED, r the share of all samples that are unchanged, and q how often each word replaces another.
    Otherwise one sample in eight of a rare word would count as an eighth, and a guess would be right less often than
    the released word.

    ``counted`` float64 [N] takes the place of the shares in the joint weights, but not in the estimate of the law.
    """
    size = len(mechanism.space)
    each = np.zeros(size, np.int64)
    each[words] = LEAST_SAMPLES + np.floor(SAMPLES * shares).astype(np.int64)
    pairs, counts = _pairs(mechanism, epsilon, each.tobytes())
    prior = np.zeros(size)
    prior[words] = shares
    output, word = pairs // size, pairs % size
    same = output == word
    stayed = np.zeros(size)
    stayed[word[same]] = counts[same]
    share = prior / np.maximum(each, 1)
    own = (stayed + STAYS * float(stayed @ share)) / (each + STAYS)
    others = np.bincount(output[~same], counts[~same] * share[word[~same]], size) + 1e-6 / size
    others /= others.sum()
    pooled = REPLACED * size
    prior[words] = shares if counted is None else counted
    scale = (1.0 - own) / (each - stayed + pooled)
    unseen = prior * scale * pooled  # times ``others``: the joint share of a word that was not seen to become it
    frequent = np.argsort(-unseen, kind="stable")[:top]
    joint = (counts + pooled * others[output]) * (prior * scale)[word]
    every = np.arange(size)
    keys = np.concatenate([every * size + every, pairs[~same], (every[:, None] * size + frequent).ravel()])
    joint = np.concatenate([prior * own, joint[~same], np.outer(others, unseen[frequent]).ravel()])
    keys, first = np.unique(keys, return_index=True)  # for a pair that occurs twice, its samples
    joint, output, word = joint[first], keys // size, keys % size
    some = joint > 0
    joint, output, word = joint[some], output[some], word[some]
    order = np.lexsort((word, -joint, output))
    output, word, joint = output[order], word[order], joint[order]
    begins = np.searchsorted(output, outputs)
    sizes = np.minimum(np.searchsorted(output, outputs, side="right") - begins, top)
    at = begins[:, None] + np.arange(top)
    there = np.arange(top) < sizes[:, None]
    at = np.where(there, at, 0)
    return Explained(np.where(there, word[at], -1), np.where(there, joint[at], 0.0), own[outputs])
