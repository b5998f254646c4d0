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

import math
from dataclasses import dataclass

import numpy as np

from corpusveil.arrays import Float64, Int64
from corpusveil.errors import NoClosedForm, SettingError, of_other_type
from corpusveil.mechanisms.base import Mechanism
from corpusveil.mechanisms.on_distances import OnDistances
from corpusveil.mechanisms.on_lists import OnLists
from corpusveil.sampling.weights import check_epsilon
from corpusveil.spaces.space import Space
from corpusveil.text.policy import DEFAULT, TextPolicy
from corpusveil_evaluate.readers.content_words import content_weights, stop_words_of
from corpusveil_evaluate.readers.ngrams.explained import explain, explain_sampled
from corpusveil_evaluate.readers.ngrams.laws_on_distances import guessed_by_distances
from corpusveil_evaluate.readers.ngrams.laws_on_lists import guessed_on_a_list

SMOOTHING = 0.5
"""Added to every count (Krichevsky, Trofimov 1981), since a word that public text lacks may still be an input."""


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
        raise SettingError(f"inputs = {inputs}: give 2 or more.")
    # Stable, so that of equally frequent words the lowest ids are inputs on every machine.
    words = np.sort(np.argsort(-counts, kind="stable")[:inputs])
    weights = counts[words] + SMOOTHING
    whole = counts.sum() if total is None else total
    return Prior(words, weights / weights.sum(), float(counts[words].sum() / whole) if whole else 1.0)


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
    if isinstance(mechanism, OnDistances):  # without the rows of all words, which are too many to build
        return *guessed_by_distances(mechanism.exponential_rows(epsilon), prior.words, counted), True
    if isinstance(mechanism, OnLists) and len(mechanism.space.lists) == 1:
        return *guessed_on_a_list(mechanism, epsilon, prior.words, counted), True
    every, exact = np.arange(len(mechanism.space)), True
    try:
        explained = [explain(mechanism, epsilon, prior.words, some, every, 1) for some in counted]
    except NoClosedForm:
        if not estimate:
            raise
        explained = [explain_sampled(mechanism, epsilon, prior.words, prior.shares, every, 1, some) for some in counted]
        exact = False
    return np.stack([laws.joint[:, 0] for laws in explained]), explained[0].own[prior.words], exact


TRIGRAMS = "the public trigrams"
"""What a reader from context knows of language, unless a stronger one was measured."""


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
