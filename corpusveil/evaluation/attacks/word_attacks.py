"""What attackers recover of single words, from the exact law alone or with a language model over the sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from corpusveil.errors import NoClosedForm
from corpusveil.evaluation.attacks.context_attack import (
    ContextAttacker,
    Recovery,
    released_words,
    sentence_ids,
)
from corpusveil.evaluation.statistics.perplexity import KneserNey
from corpusveil.evaluation.statistics.statistic import KNOWN_WORDS, Figure, Reading, register
from corpusveil.evaluation.statistics.word_statistics import N_W, RUNS, S_W, word_statistics
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.risk import word_risk
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil.spaces.word_prior import Prior, prior_of, smoothed

SENTENCES = 200
LONGEST = 40
WORDS = 25
"""The number of words for N_w and S_w, as in the studies; drawn by the prior."""
BAYES_OPTIMAL = register("words guessed, Bayes-optimal", group="attack", of=KNOWN_WORDS)
RELEASED_WORD = register("words guessed by the released word", group="attack", of=KNOWN_WORDS)
ONE_BY_ONE = register("words guessed one by one", group="attack", of=KNOWN_WORDS)
FROM_CONTEXT = register("words guessed from context", group="attack", of=KNOWN_WORDS, tile=True,
    floor="a reader who guesses nothing and takes the released word", floor_from=RELEASED_WORD.name)  # fmt: skip


def prior_by(language: KneserNey, space: Space, inputs: int | None = None) -> Prior:
    """Return the frequencies of a space's words in the text of a language model; see ``smoothed``."""
    counts = language.vocabulary.counts
    assert counts is not None  # noqa: S101 - a model is made of counts
    known = np.append(counts, 0)[language.model.ids(space.vocabulary.words)].astype(np.float64)
    return smoothed(known, float(counts.sum()), inputs)


def attack_words(
    mechanism: Mechanism,
    epsilon: float,
    originals: Sequence[str],
    language: KneserNey,
    *,
    epsilon_given: bool,
    model_public: bool,
) -> Iterator[Figure]:
    """Yield N_w, S_w and the figures of attacks on single words, at the epsilon of a word.

    ``epsilon_given`` says that epsilon was not computed from the input, ``model_public`` that the language model was
    not. Sentences of the originals are released anew, under a throwaway key, because the words of a release do not show
    which of them were replaced.
    """
    known = prior_of(mechanism.space)
    drawn = np.random.default_rng(0).choice(known.words, WORDS, p=known.shares)
    statistics = word_statistics(mechanism, epsilon, drawn, RUNS)
    retained = statistics.retention if statistics.retention_exact is None else statistics.retention_exact
    exact = f"exact, of {WORDS} words" if statistics.retention_exact is not None else f"{RUNS} runs of {WORDS} words"
    at = f"at epsilon {epsilon:.3g} a word"
    yield N_W.measure(Reading(retained, exact, at, not epsilon_given))
    distinct = statistics.distinct if statistics.distinct_exact is None else statistics.distinct_exact
    yield S_W.measure(Reading(distinct, exact, of_input=not epsilon_given))
    prior = prior_by(language, mechanism.space)
    law = "exact law"
    try:
        risk = word_risk(mechanism, epsilon, prior, estimate=False)
    except NoClosedForm:
        law = "law learned from public samples"
    else:
        note = f"any of the {prior.words.size:,} words of the space can be the original"
        model, of_input = f"{law} and {_frequencies(model_public)}", not (epsilon_given and model_public)
        yield BAYES_OPTIMAL.measure(Reading(risk.share, model, note, of_input), floor=risk.blind)
    sentences = [
        sentence[:LONGEST] for sentence in sentence_ids(mechanism.space, originals[1::2]) if sentence.size > 2
    ][:SENTENCES]
    if not sentences:
        return
    attacker = ContextAttacker(mechanism, epsilon, language.model)
    recovery = attacker.attack(sentences, released_words(mechanism, epsilon, sentences, Key.generate()))
    yield from _recovered(recovery, law, _frequencies(model_public))


def _frequencies(model_public: bool) -> str:
    """Name what the attacker knows of the text, which decides how far the figure is from that of public text."""
    return "word frequencies" if model_public else "word frequencies of every second original"


def _recovered(recovery: Recovery, law: str, frequencies: str) -> Iterator[Figure]:
    """Yield what each attacker recovers of sentences; an attacker who knows more never recovers less."""
    note = f"{recovery.words:,} words of the space, in {recovery.sentences:,} sentences that were privatized again"
    yield RELEASED_WORD.measure(Reading(recovery.unchanged, note=note))
    alone = {
        f"{law} and {frequencies}": recovery.by_law,
        "the released word itself": recovery.unchanged,
        "the most frequent word": recovery.by_frequency,
    }
    model = max(alone, key=lambda name: alone[name])
    shares = "; ".join(f"{name}, {share:.1%}" for name, share in alone.items())
    yield ONE_BY_ONE.measure(Reading(recovery.without_context, model, f"the best of three attackers: {shares}"))
    searched = recovery.given_back >= 0
    note = (
        f"the best of all attackers; a search over sentences, as in denoise, guesses {recovery.by_search:.1%}, and "
        f"gives back {recovery.given_back:+.1%} (standard error {recovery.error:.1%})"
        + ("" if searched else "; guesses one by one are better")
    )
    learned = "Kneser-Ney" + frequencies.removeprefix("word frequencies")
    best = f"{law} and {learned}, lattice search" if searched else model
    yield FROM_CONTEXT.measure(Reading(recovery.with_context, best, note))
