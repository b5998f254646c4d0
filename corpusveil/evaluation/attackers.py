"""What attackers recover of single words: from the exact law alone, and with a language model over the sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from corpusveil.errors import NoClosedForm
from corpusveil.evaluation.context import ContextAttacker, InSpace, Recovery, released_words, sentence_ids
from corpusveil.evaluation.findings import Measure
from corpusveil.evaluation.language import KneserNey
from corpusveil.evaluation.prior import Prior, prior_of, smoothed
from corpusveil.evaluation.reconstruction import bayes_token
from corpusveil.evaluation.statistics import RUNS, word_statistics
from corpusveil.mechanisms import Mechanism
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space

SENTENCES = 200
LONGEST = 40
WORDS = 25
"""Words of which N_w and S_w are taken, as in the studies; drawn by the prior."""


def prior_by(language: KneserNey, space: Space, inputs: int | None = None) -> Prior:
    """Return how frequent the words of a space are in what a language model was made of; see ``smoothed``."""
    counts = language.vocabulary.counts
    assert counts is not None  # noqa: S101 - a model is made of counts
    known = np.append(counts, 0)[language.ids(space.vocabulary.words)].astype(np.float64)
    return smoothed(known, float(counts.sum()), inputs)


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
    try:
        guesses = bayes_token(mechanism, epsilon, prior)
    except NoClosedForm:
        return
    yield Measure(
        "attack", "words guessed, Bayes-optimal", guesses.recovered[0], model="exact law and word frequencies",
        note=f"any of the {prior.words.size:,} words of the space may be the original", floor=guesses.unseen,
        of_input=not (given and public),
    )  # fmt: skip
    sentences = [one[:LONGEST] for one in sentence_ids(mechanism.space, originals[1::2]) if one.size > 2][:SENTENCES]
    if not sentences:
        return
    attacker = ContextAttacker(mechanism, epsilon, prior, InSpace.of(language, mechanism.space, prior))
    found = attacker.attack(sentences, released_words(mechanism, epsilon, sentences, Key.generate()))
    yield from _recovered(found)


def _recovered(found: Recovery) -> Iterator[Measure]:
    """Yield what each attacker recovers of sentences; who knows more has at least what who knows less has."""
    note = f"{found.words:,} words of the space, in {found.sentences:,} sentences that are released anew"
    yield Measure("attack", "words guessed by the released word", found.unchanged, note=note, of_input=True)
    law = "the best guess by exact law and word frequencies"
    note = f"the better of two attackers: {law}, {found.by_law:.1%}; the released word, {found.unchanged:.1%}"
    model = "exact law and word frequencies" if found.by_law >= found.unchanged else "the released word itself"
    yield Measure("attack", "words guessed one by one", found.without_context, model=model, note=note, of_input=True)
    searched = found.given_back >= 0
    yield Measure(
        "attack", "words guessed from context", found.with_context,
        model="exact law and Kneser-Ney, beam search" if searched else model,
        note=f"the best of three attackers: the search over sentences, {found.by_search:.1%}, gives back "
        f"{found.given_back:+.1%} (standard error {found.error:.1%})" + ("" if searched else "; one by one is better"),
        of_input=True,
    )  # fmt: skip
