"""What a reader of single words guesses: the likeliest originals of a word, and how often they are right.

Bayes' rule for one token: with public probabilities pi and the law P, output u comes from w with probability
proportional to ``pi(w) P[w, u]``. Attackers and denoisers start from this. The best guess is right with probability
(``docs/mathematics.md``)

    V = sum_u max_w pi(w) P[w, u]

The maximum is over all words, so V is never below the share of words that stay unchanged (guess u itself), nor below
the share of the most frequent word (always guess it). With pi(w) times a weight, it is the share that a reader guesses
who cares for some words alone: content words (``content.py``). Everything is computed from public data.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corpusveil.arrays import Float64, Int64, Integers
from corpusveil.errors import BadValueError, DataError, NoClosedForm, UserError, of_other_type
from corpusveil.mechanisms.base import Mechanism
from corpusveil.mechanisms.content import content_weights, stop_words_of
from corpusveil.mechanisms.on_lists import OnLists
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.sampling.grid import grid_value
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import check_epsilon
from corpusveil.spaces.space import Space
from corpusveil.text.policy import DEFAULT, TextPolicy

SMOOTHING = 0.5
"""Added to every count (Krichevsky, Trofimov 1981), since a word that public text lacks may still be an input."""
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
LOWEST, HIGHEST = -8 * 8, 8 * 10
"""Epsilon is chosen from the public grid 2^(j/8), from 2^-8 to 2^10."""
_DOUBLE = 8
STEPS, SLACK = 8, 0.01
"""Between two grid values, ``STEPS`` more are tried where a risk is more than ``SLACK`` below the one asked for."""


@dataclass(frozen=True, slots=True)
class Prior:
    """The possible inputs, int64 [N], their public probabilities, float64 [N], and their coverage.

    ``covered`` is the share of the public counts that these words have.
    """

    words: Int64
    shares: Float64
    covered: float

    @property
    def guess(self) -> float:
        """The risk without looking at the output: the share of the most frequent word."""
        return float(self.shares.max())


def prior_of(space: Space, inputs: int | None = None) -> Prior:
    """Return the public prior of a space's words, uniform without counts; see ``smoothed``."""
    counts = np.zeros(len(space)) if space.counts is None else space.counts.astype(np.float64)
    return smoothed(counts, inputs=inputs)


def smoothed(counts: Float64, total: float | None = None, inputs: int | None = None) -> Prior:
    """Return the prior by the counts of a space's words, float64 [V], each with ``SMOOTHING`` added.

    Every word is an input, unless ``inputs`` restricts inputs to the most frequent words, which the attacker then
    knows. ``total`` is the number of all words in the text, including words that the space lacks.
    """
    if inputs is not None and inputs < 2:
        raise BadValueError(f"inputs = {inputs}: give 2 or more.")
    # Stable, so that of equally frequent words the lowest ids are inputs on every machine.
    words = np.sort(np.argsort(-counts, kind="stable")[:inputs])
    weights = counts[words] + SMOOTHING
    whole = counts.sum() if total is None else total
    return Prior(words, weights / weights.sum(), float(counts[words].sum() / whole) if whole else 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """The likeliest originals of each of U outputs, likeliest first; ties go to the lower id.

    ``words`` int64 [U, k], padded by -1; ``joint`` float64 [U, k] is prior times law, ``evidence`` float64 [U] its sum
    over all inputs; ``own`` float64 [U] the probability that an output comes from itself.
    """

    words: Int64
    joint: Float64
    evidence: Float64
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
        beyond = outside[inputs] * (inputs >= 0)
        evidence[some] += (weights - beyond)[:, : near.shape[1]].sum(axis=1)
        words[some], joint[some] = _best(inputs, weights, top)
    return Explained(words, joint, evidence, own)


def _by_laws(
    mechanism: Mechanism, epsilon: float, prior_words: Any, prior_shares: Any, outputs: Any, top: int
) -> Explained:
    words, joint = np.full((outputs.size, top), -1, dtype=np.int64), np.zeros((outputs.size, top))
    evidence, own = np.zeros(outputs.size), np.zeros(outputs.size)
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
        evidence += weights.sum(axis=1)
        rows = np.flatnonzero(weights.max(axis=1) >= joint[:, -1])
        tried = np.concatenate([words[rows], np.broadcast_to(some, (rows.size, some.size))], axis=1)
        words[rows], joint[rows] = _best(tried, np.concatenate([joint[rows], weights[rows]], axis=1), top)
    return Explained(words, joint, evidence, own)


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
    rest = unseen.sum() - np.bincount(output, unseen[word], size)
    evidence = (np.bincount(output, joint, size) + others * np.maximum(rest, 0.0))[outputs]
    return Explained(np.where(there, word[at], -1), np.where(there, joint[at], 0.0), evidence, own[outputs])


@dataclass(frozen=True, slots=True)
class WordShares:
    """Shares of words of public text: what the best guess recovers, what stays unchanged, and what a blind guess gets.

    The blind guess is that of a reader who does not see the release.
    """

    share: float
    unchanged: float
    blind: float


@dataclass(frozen=True, slots=True)
class WordRisk(WordShares):
    """What a reader of single words guesses of all words, and of ``content`` words who cares for these alone.

    If ``exact`` is False, the law has no closed form and public samples estimate the figures. The best guesses are then
    chosen and counted on the same samples, so ``share`` errs upwards.
    """

    exact: bool
    content: WordShares

    def sentence(self) -> str:
        """Say it in one sentence."""
        return reader_guesses(self.content.share, self.share, self.content.blind)


def word_risk(
    mechanism: Mechanism, epsilon: float, prior: Prior | None = None, *, policy: TextPolicy = DEFAULT,
    content: Float64 | None = None, estimate: bool = True,
) -> WordRisk:  # fmt: skip
    """Return how often the best guess of a word is right, by the public counts of the space.

    ``prior`` gives other word frequencies. Without a prior and without counts, all words are equally frequent.
    ``policy`` says what a reader sees of stop words: kept ones are known, unless a replacement is likelier; of masked
    and resampled ones the reader guesses the most frequent, and dropped ones are not guessed. ``content`` float64 [V]
    is how much each word counts; ``content_weights`` by default. A mechanism without an exact law is sampled, unless
    ``estimate`` is False: then it raises NoClosedForm.
    """
    if not isinstance(mechanism, Mechanism):
        raise of_other_type("mechanism", mechanism, "cv.mechanism(NAME, space)")
    space = mechanism.space
    prior = prior_of(space) if prior is None else prior
    content = content_weights(space, policy.language) if content is None else content
    counted = prior.shares * np.stack([np.ones(prior.words.size), content[prior.words]])
    stops = stop_words_of(space, policy.language)[prior.words] & policy.parts_stop_words()
    best, stays, exact = _best_guesses(mechanism, check_epsilon(epsilon), prior, counted * ~stops, estimate=estimate)
    stopped, hidden = counted * stops, np.zeros(2)
    if policy.stop_words == "keep":
        best[:, prior.words] = np.maximum(best[:, prior.words], stopped)
    elif policy.stop_words != "drop":
        hidden = stopped.max(axis=1)
    stays = np.where(stops, policy.stop_words == "keep", stays)
    figures = []
    for reader, whole in enumerate((1.0, float(counted[1].sum()) or 1.0)):
        unchanged, blind = math.fsum((stays * counted[reader]).tolist()) / whole, float(counted[reader].max()) / whole
        share = math.fsum([*best[reader].tolist(), hidden[reader]]) / whole  # the same sum on every machine
        figures.append(WordShares(min(1.0, max(share, unchanged, blind)), min(1.0, unchanged), blind))
    every, some = figures
    return WordRisk(every.share, every.unchanged, every.blind, exact, some)


def _best_guesses(
    mechanism: Mechanism, epsilon: float, prior: Prior, counted: Float64, *, estimate: bool
) -> tuple[Float64, Float64, bool]:
    """Return the largest weight times law of each output, float64 [m, V], how often each input stays, and if exact."""
    shares = mechanism.best_guess(epsilon, prior.words, counted)
    if shares is not None:
        return *shares, True
    every, exact = np.arange(len(mechanism.space)), True
    try:
        explained = [explain(mechanism, epsilon, prior.words, some, every, 1) for some in counted]
    except NoClosedForm:
        if not estimate:
            raise
        explained = [explain_sampled(mechanism, epsilon, prior.words, prior.shares, every, 1, some) for some in counted]
        exact = False
    return np.stack([laws.joint[:, 0] for laws in explained]), explained[0].own[prior.words], exact


def largest_epsilon(risk_at: Callable[[float], float], risk: float, *, fine: bool = False) -> float:
    """Return the largest epsilon of the grid before ``risk_at(epsilon)`` exceeds ``risk``.

    It is evaluated at 1, at doubled or halved epsilons until the risk is bracketed, and then by bisection, so that the
    risk at the next grid value is known to be too large. An epsilon at which it raises UserError, because the mechanism
    is not defined there, is left out. ``fine`` also bisects between these two values, as long as the risk is not almost
    reached: noise on vectors takes some risks from one grid value to the next from far below to far above. Raises
    DataError if the risk is too large at the smallest epsilon.
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
            f"risk = {risk:g}: even at epsilon {grid_value(least):g}, the smallest that is tried, a reader recovers "
            f"{known[least] or 0.0:.1%} of the words of public text; give at least this "
            "risk, or choose a smaller epsilon yourself."
        )
    first, last, step, width = grid_value(low), grid_value(low + 1), 0, STEPS
    reached = known[low] or 0.0
    while fine and width > 1 and low < HIGHEST and known.get(high) is not None and risk - reached > SLACK:
        width //= 2
        share = risk_at(first + (last - first) * (step + width) / STEPS)  # the same value on every machine
        if share <= risk:
            step, reached = step + width, share
    return first + (last - first) * step / STEPS


def basis_of(mechanism: Mechanism, policy: TextPolicy) -> str:
    """Return a digest of what a choice by risk depends on, besides the reader."""
    space = mechanism.space
    parts = [mechanism.name, mechanism.parameters(), space.digest, policy.stop_words, space.read_in(policy.language)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


Figure = tuple[float, float]
"""A measured share, and its standard error."""
TRIGRAMS = "the public trigrams"
"""What a reader from context knows of language, unless a stronger one was measured."""


def recovered(
    like: Figure,
    unlike: Figure | None = None,
    *,
    reader: str = TRIGRAMS,
    own_text: bool = False,
    highest: Sequence[Any] | None = None,
) -> tuple[str, ...]:
    """Say what a reader from context recovers, of each kind of text, everywhere in the same words.

    ``highest``: of the register of which most is recovered, its name, the share and the standard error of it.
    """
    kind = "the public text that was given" if own_text else "text like the model's"
    said = f"a reader with {reader} recovers {_about(like)} of the content words of {kind}"
    if highest is not None:
        said = f"{said}, of {highest[0]}, where it recovers most, {_about((highest[1], highest[2]))}"
    return (said, *([] if unlike is None else [f"{_about(unlike)} of those of text unlike it"]))


def _about(figure: Figure) -> str:
    return f"about {figure[0]:.1%} (± {100 * figure[1]:.1f})"


def reader_guesses(content: float, every: float, blind: float) -> str:
    """Say what a reader who looks at each word alone guesses: *about*, for the text is not the public text.

    ``content`` and ``every`` are shares of content words and of all words; ``blind`` is the first without the release.
    """
    return (
        f"a reader who looks at each word alone guesses about {_rounded(content)} of the content words "
        f"({_rounded(blind)} by chance), and {_rounded(every)} of all words"
    )


def _rounded(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"
