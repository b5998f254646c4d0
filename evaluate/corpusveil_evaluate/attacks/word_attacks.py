"""What attackers recover of single words: from the exact law alone, or with a language model over the document.

An attacker who uses context weighs the mechanism's law with a language model, by the search of denoise. Words are
replaced independently, so released words u_1 ... u_n came from w_1 ... w_n with a probability proportional to
``prod_i P[w_i, u_i] p(w_i | w_i-2, w_i-1)``. Law, public shares, model and search are those of ``denoise``: this
attacker's guess is the text denoised without a margin. If the mechanism has no exact law, public samples estimate it,
and the figures of this attacker are lower bounds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.arrays import Float64, Integers
from corpusveil.budget import Budget
from corpusveil.errors import DataError, NoClosedForm, SettingError
from corpusveil.mechanisms import Mechanism
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import check_epsilon
from corpusveil.spaces import Space
from corpusveil.text.classes import WORD
from corpusveil.text.policy import DEFAULT
from corpusveil.text.sentences import sentence_ends
from corpusveil_evaluate.readers.content_words import content_weights
from corpusveil_evaluate.readers.ngrams.channel import ALL, Candidates
from corpusveil_evaluate.readers.ngrams.denoise import CUT, LEAST, MEMORY, THOROUGH, Denoiser, Reader, Search, reader_of
from corpusveil_evaluate.readers.ngrams.lattice import Runs, search_runs
from corpusveil_evaluate.readers.ngrams.lattice_bigrams import Channel
from corpusveil_evaluate.readers.ngrams.lattice_room import LONGEST
from corpusveil_evaluate.readers.ngrams.model import LanguageModel
from corpusveil_evaluate.readers.ngrams.word_risk import Prior, prior_of, smoothed, word_risk
from corpusveil_evaluate.statistics.perplexity import KneserNey
from corpusveil_evaluate.statistics.statistic import CONTENT_WORDS, KNOWN_WORDS, Figure, Reading, Statistic, register
from corpusveil_evaluate.statistics.word_statistics import N_W, RUNS, S_W, word_statistics
from corpusveil_evaluate.terms import tokenizer_of_space


@dataclass(frozen=True, slots=True)
class Recovery:
    """Shares of the attacked words, 0 to 1.

    ``unchanged``: the released word is the original; ``by_frequency``: the original is the most frequent word, whatever
    was released; ``by_law``: the best guess from the word alone is right; ``by_search``: the search over the document
    is right. ``error`` and ``share_error`` are the standard errors of ``given_back`` and ``with_context``, for
    independent documents. ``content`` are the shares of content words, of attackers who care for these alone; None if
    there are none.
    """

    words: int
    documents: int
    unchanged: float
    by_frequency: float
    by_law: float
    by_search: float
    error: float
    share_error: float
    content: Recovery | None = None

    @property
    def without_context(self) -> float:
        """The best attacker on single words: by the law, the released word, or the most frequent word."""
        return max(self.by_law, self.unchanged, self.by_frequency)

    @property
    def with_context(self) -> float:
        """The share that the best of all attackers recovers."""
        return max(self.by_search, self.without_context)

    @property
    def given_back(self) -> float:
        """The share that the search over documents recovers beyond single words.

        Below 0 if it is the weaker attacker.
        """
        return self.by_search - self.without_context


@dataclass(slots=True)
class ContextAttacker:
    """Reconstructs documents from their released words; ``search`` is the width of the search.

    Candidates come from the whole vocabulary and always include the released word. No margin keeps a released word.
    ``known`` are other originals, as ids, which this attacker has beside the model.
    """

    mechanism: Mechanism
    epsilon: float
    model: LanguageModel
    search: Search = THOROUGH
    known: Sequence[Integers] | None = None
    _reader: Reader = field(init=False, repr=False)
    _candidates: Candidates = field(init=False, repr=False)
    _likelier: Float64 = field(init=False, repr=False)
    _weights: npt.NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        search = dataclasses.replace(self.search, margin=0.0)
        self._reader = reader_of(Denoiser(self.mechanism, Budget(1.0), DEFAULT, self.model, search))
        self._weights = content_weights(self.mechanism.space)
        self._candidates, self._likelier = self._reader.candidates, np.ones(self._weights.size)
        if self.known is not None:
            self._likelier = likelier(self._reader.shares, self.known)
            shares = self._reader.shares * self._likelier
            self._candidates = Candidates(self.mechanism, shares / shares.sum(), self._candidates.count, CUT)

    def guesses(self, released: Sequence[Integers]) -> list[npt.NDArray[np.int32]]:
        """Return the likeliest originals of each document, int32, as many as released words.

        A document is ids, -1 for a word that was not replaced by the mechanism and for the end of a sentence: it stays,
        and what stands on its two sides is not used as context.
        """
        whole, ends = _joined(released)
        return _split(self._guessed(whole, ends)[0], ends)

    def attack(self, originals: Sequence[Integers], released: Sequence[Integers]) -> Recovery:
        """Attack documents, and count recovered words over the places where both are words of the space."""
        if [len(original) for original in originals] != [len(document) for document in released]:
            raise SettingError("The released documents differ in length from the originals; give both word by word.")
        (truth, ends), (seen, _) = _joined(originals), _joined(released)
        both = (truth >= 0) & (seen >= 0)
        if not both.any():
            raise DataError("The mechanism replaced no word of these documents; there is nothing to attack.")
        searched, weighed = self._guessed(seen, ends)
        every = np.ones(self._weights.size)
        content = None
        if (counts := self._weights[truth] * both).any():
            content = self._recovery(truth, seen, ends, weighed, counts, self._weights)
        return dataclasses.replace(self._recovery(truth, seen, ends, searched, both, every), content=content)

    def _recovery(
        self, truth: Any, seen: Any, ends: Any, searched: Any, counts: Any, weights: npt.NDArray[np.float64]
    ) -> Recovery:
        """Count the words that attackers guess who weigh words by ``weights``; ``counts`` [T] weighs each place."""
        whole = float(counts.sum())
        constant = np.full(truth.size, (self._candidates.shares * weights).argmax(), np.int32)
        right = [(guess == truth) * counts for guess in (seen, constant, self._alone(seen, weights), searched)]
        unchanged, by_frequency, by_law, by_search = (float(hits.sum()) / whole for hits in right)
        simpler = max(range(3), key=lambda at: right[at].sum())
        some = ends.size
        which = np.repeat(np.arange(some), np.diff(ends, prepend=0))
        best = max(simpler, 3, key=lambda at: right[at].sum())

        def error(hits: Any) -> float:
            residues = np.bincount(which, hits - hits.sum() / whole * counts, some)
            return math.sqrt(some / (some - 1) * float(residues @ residues)) / whole if some > 1 else math.nan

        errors = error(right[3].astype(np.float64) - right[simpler]), error(right[best])
        return Recovery(int((counts > 0).sum()), some, unchanged, by_frequency, by_law, by_search, *errors)

    def _alone(self, seen: npt.NDArray[np.int32], weights: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
        """Return the best guess of each word alone, of readers who weigh words."""
        out = seen.copy()
        at = np.flatnonzero(seen >= 0)
        with self._reader.lock:
            rows = self._candidates.candidate_rows(self.epsilon, seen[at])
        out[at] = self._candidates.guesses(rows, weights)
        return out

    def _guessed(
        self, seen: npt.NDArray[np.int32], ends: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return the likeliest originals in their sentences, and those of a reader who cares for content words."""
        out, weighed = seen.copy(), seen.copy()
        at = np.flatnonzero(seen >= 0)
        if not at.size:
            return out, weighed
        self.mechanism.check_id(int(seen.max()))
        reader, candidates = self._reader, self._candidates
        document = np.searchsorted(ends, at, side="right")
        begins = np.ones(at.size, np.bool_)
        begins[1:] = (np.diff(at) > 1) | (np.diff(document) > 0)
        first = np.maximum.accumulate(np.where(begins, np.arange(at.size), 0))
        begins |= (np.arange(at.size) - first) % LONGEST == 0
        runs = np.flatnonzero(begins)
        documents = np.searchsorted(document[runs], np.arange(ends.size + 1))
        guesses, content = np.empty((2, at.size), np.int32)
        with reader.lock:
            rows = candidates.candidate_rows(self.epsilon, seen[at])
            filled = int(rows.max()) + 1  # further rows have not been asked for
            words, emissions = candidates.words[:filled], candidates.emissions[:filled]
            search_runs(
                out[at], rows, Runs(np.append(runs, at.size), documents),
                Channel(words, emissions * self._likelier[words], reader.unknown, 0.0), LEAST, ALL, reader.shares,
                MEMORY, reader.said, self.model.arrays, reader.room, guesses, self._weights, content,
            )  # fmt: skip
        out[at] = guesses
        weighed[at] = np.where(content < 0, candidates.guesses(rows, self._weights), content)
        return out, weighed


def likelier(shares: Float64, documents: Sequence[Integers]) -> Float64:
    """Return by how much likelier words are in a kind of text than in public text, float64 [V], from some of the kind.

    It is (C + M p) / (N + M) over the public share p of a word that stands C times in the N words of the ``documents``
    (Dirichlet prior). Public text weighs as much as the M words, of ``MEMORIES``, by which each document is best
    predicted from the others: words are often repeated within one.
    """
    memories, said = MEMORIES[:, None], np.zeros(MEMORIES.size)
    known = [document[document >= 0] for document in documents]
    counts = np.bincount(np.concatenate([np.empty(0, np.int64), *known]), minlength=shares.size).astype(np.float64)
    for document in known:
        words, times = np.unique(document, return_counts=True)
        others = counts[words] - times + memories * shares[words]
        said += (times * np.log(others / (counts.sum() - document.size + memories))).sum(axis=1)
    memory = float(MEMORIES[said.argmax()])
    return np.asarray((counts + memory * shares) / (counts.sum() + memory) / shares)


def _joined(documents: Sequence[Integers]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return the ids of all documents, int32 [T], and where each ends, int64 [D]."""
    whole = [np.asarray(document, dtype=np.int32) for document in documents]
    return np.concatenate([np.empty(0, np.int32), *whole]), np.cumsum(
        [document.size for document in whole], dtype=np.int64
    )


def _split(whole: npt.NDArray[np.int32], ends: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int32]]:
    return list(np.split(whole, ends[:-1])) if ends.size else []


def released_words(
    mechanism: Mechanism, epsilon: float, originals: Sequence[Integers], key: Key
) -> list[npt.NDArray[np.int32]]:
    """Replace the words of documents as a release would, for an attack on them; ids of -1 stay."""
    whole, ends = _joined(originals)
    known = np.flatnonzero(whole >= 0)
    draws = Draws.of_tokens(DrawKey.derive(key, "33" * 32), known.size)
    whole[known] = mechanism.privatize(whole[known], epsilon, draws)
    return _split(whole, ends)


def document_ids(space: Space, texts: Sequence[str]) -> list[Integers]:
    """Return the words of each text as ids, int32; -1 for a word that the space lacks, and after a sentence.

    Numbers, punctuation, and texts without a word are left out.
    """
    tokens = tokenizer_of_space(space).tokenize(texts)
    words = np.flatnonzero(tokens.classes == WORD)
    after = np.concatenate([[0], np.cumsum(sentence_ends(tokens))])[words]  # sentences before each word
    cuts = np.flatnonzero(np.diff(after)) + 1
    starts = np.flatnonzero(np.diff(np.searchsorted(tokens.offsets, words, side="right"))) + 1
    whole = np.insert(tokens.ids[words], cuts, -1)
    return list(np.split(whole, starts + np.searchsorted(cuts, starts, side="right"))) if words.size else []


MEMORIES = 2.0 ** np.arange(6, 25)
ATTACKED = 8000
"""About how many words are attacked, of documents of which each counts with at most ``MOST_WORDS``."""
MOST_WORDS = 400
WORDS = 25
"""The number of words for N_w and S_w, as in the studies; drawn by the prior."""
BAYES_OPTIMAL = register("words guessed, Bayes-optimal", group="attack", of=KNOWN_WORDS)
RELEASED_WORD = register("words guessed by the released word", group="attack", of=KNOWN_WORDS)
ONE_BY_ONE = register("words guessed one by one", group="attack", of=KNOWN_WORDS)
CONTENT_OPTIMAL = register("content words guessed, Bayes-optimal", group="attack", of=CONTENT_WORDS)
CONTENT_ONE_BY_ONE = register("content words guessed one by one", group="attack", of=CONTENT_WORDS)
CONTENT_FROM_CONTEXT = register("content words guessed from context", group="attack", of=CONTENT_WORDS, tile=True,
    floor="a reader who takes the most frequent content word")  # fmt: skip
CONTENT_BY_HALF = register("content words guessed with half of the originals", group="attack", of=CONTENT_WORDS,
    tile=True, floor="a reader who takes the most frequent content word")  # fmt: skip
PUBLIC = "a reader with public trigrams"
OTHERS = "of every second original, who guesses the others"
OF_HALF = f"a reader with trigrams {OTHERS}"
FROM_CONTEXT = register("words guessed from context", group="attack", of=KNOWN_WORDS, tile=True,
    floor="a reader who guesses nothing and takes the released word", floor_from=RELEASED_WORD.name)  # fmt: skip


def prior_by(language: KneserNey, space: Space) -> Prior:
    """Return the frequencies of a space's words in the text of a language model; see ``smoothed``."""
    counts = language.vocabulary.counts
    assert counts is not None  # noqa: S101 - a model is made of counts
    known = np.append(counts, 0)[language.model.ids(space.vocabulary.words)].astype(np.float64)
    return smoothed(known, float(counts.sum()))


def attack_words(
    mechanism: Mechanism, epsilon: float, originals: Sequence[str], language: KneserNey, *, epsilon_given: bool,
    model_public: bool, public: LanguageModel | None = None,
) -> Iterator[Figure]:  # fmt: skip
    """Yield N_w, S_w and the figures of attacks on single words, at the epsilon of a word.

    ``epsilon_given`` says that epsilon was not computed from the input, ``model_public`` that the ``language`` model
    was not; else ``public`` is one that was not, for the reader who has public text only. Some originals are released
    anew, under a throwaway key, because the words of a release do not show which of them were replaced.
    """
    known = prior_of(mechanism.space)
    drawn = np.random.default_rng(0).choice(known.words, WORDS, p=known.shares)
    statistics = word_statistics(mechanism, epsilon, drawn, RUNS)
    exact = f"exact, of {WORDS} words" if statistics.retention_exact is not None else f"{RUNS} runs of {WORDS} words"
    at = f"at epsilon {epsilon:.3g} a word"
    yield N_W.measure(Reading(statistics.n_w, exact, at, not epsilon_given))
    yield S_W.measure(Reading(statistics.s_w, exact, of_input=not epsilon_given))
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
        yield CONTENT_OPTIMAL.measure(Reading(risk.content.share, model, note, of_input), floor=risk.content.blind)
    documents = [document[:MOST_WORDS] for document in document_ids(mechanism.space, originals[1::2])]
    documents = documents[: 1 + int(np.searchsorted(_joined(documents)[1], ATTACKED))]
    if not any((document >= 0).any() for document in documents):
        return
    released = released_words(mechanism, epsilon, documents, Key.generate())
    recovery = ContextAttacker(mechanism, epsilon, language.model).attack(documents, released)
    readers = [(recovery, CONTENT_FROM_CONTEXT, PUBLIC) if model_public else (recovery, CONTENT_BY_HALF, OF_HALF)]
    if not model_public and public is not None:
        alone = ContextAttacker(mechanism, epsilon, public)
        both = dataclasses.replace(alone, known=document_ids(mechanism.space, originals[::2]))
        some = alone.attack(documents, released)
        yield from _content(some, CONTENT_FROM_CONTEXT, PUBLIC)
        others = some, both.attack(documents, released)  # who knows more can always read as who knows less
        readers += [(each, CONTENT_BY_HALF, f"{PUBLIC} and words {OTHERS}") for each in others]
    yield from _content(*max(readers, key=lambda of: of[0].content.with_context if of[0].content else 0.0))
    yield from _recovered(recovery, law, _frequencies(model_public))


def _content(recovery: Recovery, statistic: Statistic, who: str) -> Iterator[Figure]:
    """Yield what a reader from context recovers who cares for content words: who has public text only, or originals."""
    if (content := recovery.content) is None:
        return
    note = (
        f"± {100 * content.share_error:.1f}, {content.words:,} content words; a search over sentences guesses "
        f"{content.by_search:.1%}"
    )
    yield statistic.measure(Reading(content.with_context, who, note), floor=content.by_frequency)


def _frequencies(model_public: bool) -> str:
    """Name what the attacker knows of the text, which decides how far the figure is from that of public text."""
    return "word frequencies" if model_public else "word frequencies of every second original"


def _recovered(recovery: Recovery, law: str, frequencies: str) -> Iterator[Figure]:
    """Yield what each attacker recovers of documents; an attacker who knows more never recovers less."""
    note = f"{recovery.words:,} words of the space, in {recovery.documents:,} documents that were privatized again"
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
        f"the best of all attackers; a search over documents, as in denoise, guesses {recovery.by_search:.1%}, and "
        f"gives back {recovery.given_back:+.1%} (standard error {recovery.error:.1%})"
        + ("" if searched else "; guesses one by one are better")
    )
    learned = "Kneser-Ney" + frequencies.removeprefix("word frequencies")
    best = f"{law} and {learned}, lattice search" if searched else model
    yield FROM_CONTEXT.measure(Reading(recovery.with_context, best, note))
    if (content := recovery.content) is not None:
        note = f"{content.words:,} content words, by attackers who care for these alone"
        yield CONTENT_ONE_BY_ONE.measure(Reading(content.without_context, note=note))
