"""What attackers recover of single words: from the exact law alone, and with a language model over the sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from corpusveil.errors import NoClosedForm
from corpusveil.evaluation.context import ContextAttacker, InSpace, released_words, sentence_ids
from corpusveil.evaluation.findings import Measure
from corpusveil.evaluation.language import KneserNey
from corpusveil.evaluation.prior import Prior, prior_of
from corpusveil.evaluation.reconstruction import bayes_token
from corpusveil.evaluation.statistics import RUNS, word_statistics
from corpusveil.mechanisms import Mechanism
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space

SENTENCES = 200
LONGEST = 40
WORDS = 25
"""Words of which N_w and S_w are taken, as in the studies; drawn by the prior."""
INPUTS = 3000
"""Words that the attackers consider; of all others the released word is the best guess that they have."""


def prior_by(language: KneserNey, space: Space, inputs: int = INPUTS) -> Prior:
    """Return how frequent the words of a space are in what a language model was made of, of the most frequent ones."""
    counts = language.vocabulary.counts
    assert counts is not None  # noqa: S101 - a model is made of counts
    known = np.append(counts, 0)[language.ids(space.vocabulary.words)].astype(np.float64)
    words = np.sort(np.argsort(-known, kind="stable")[:inputs])
    words = words[known[words] > 0]
    return Prior(words, known[words] / known[words].sum(), float(known[words].sum() / counts.sum()))


def attack_words(
    mechanism: Mechanism, epsilon: float, originals: Sequence[str], language: KneserNey, *, given: bool, public: bool
) -> Iterator[Measure]:
    """Yield N_w, S_w and what single words give away, at the epsilon of a word.

    ``given`` says that epsilon, and ``public`` that the language model, was not computed from the input. Sentences of
    the originals are released anew for it, by a key that is thrown away: in a release, what was replaced and what was
    not cannot be told apart by its words alone.
    """
    known = prior_of(mechanism.space)
    drawn = np.random.default_rng(0).choice(known.words, WORDS, p=known.shares)
    told = word_statistics(mechanism, epsilon, drawn, RUNS)
    kept = told.retention if told.retention_exact is None else told.retention_exact
    exact = f"exact, of {WORDS} words" if told.retention_exact is not None else f"{RUNS} runs of {WORDS} words"
    at = f"at epsilon {epsilon:.3g} a word"
    yield Measure("privacy", "retention of a word (N_w)", kept, model=exact, note=at, of_input=not given)
    distinct = told.distinct if told.distinct_exact is None else told.distinct_exact
    yield Measure("privacy", f"distinct outputs of {RUNS} (S_w)", distinct, "number", model=exact, of_input=not given)
    prior = prior_by(language, mechanism.space)
    if prior.words.size < 2:
        return
    try:
        guesses = bayes_token(mechanism, epsilon, prior)
    except NoClosedForm:
        return
    yield Measure(
        "attack", "words guessed, Bayes-optimal", guesses.recovered[0], model="exact law and word frequencies",
        note=f"of the {prior.words.size:,} most frequent words", floor=guesses.unseen,
        of_input=not (given and public),
    )  # fmt: skip
    sentences = [one[:LONGEST] for one in sentence_ids(mechanism.space, originals[1::2]) if one.size > 2][:SENTENCES]
    if not sentences:
        return
    try:
        attacker = ContextAttacker(mechanism, epsilon, prior, InSpace.of(language, mechanism.space))
        found = attacker.attack(sentences, released_words(mechanism, epsilon, sentences, Key.generate()))
    except NoClosedForm:
        return
    note = f"{found.words:,} words of {found.sentences:,} sentences; {found.covered:.0%} are among those considered"
    yield Measure("attack", "words guessed by the released word", found.unchanged, note=note, of_input=True)
    yield Measure("attack", "words guessed one by one", found.without_context, of_input=True)
    yield Measure(
        "attack", "words guessed from context", found.with_context, model="exact law and Kneser-Ney, beam search",
        note=f"context gives back {found.given_back:+.1%} (standard error {found.error:.1%})", of_input=True,
    )  # fmt: skip
