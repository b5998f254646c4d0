"""A reader of words with a causal model beside the public trigrams: a beam over the candidates of every place.

The score of a text is the sum, over its words c released as u, of

    NEURAL ln p(c | text before) + TRIGRAM ln s(c) + LAW ln P[c, u] + PRIOR ln pi(c)

where s is the share that the search of ``denoise`` gives a candidate: it has read the trigrams on both sides, so it
looks ahead. Punctuation, which a release keeps, is read along. Words are read as they are and with a capital; the
likelier is what the next word follows. The guess is the content word with the largest mass among the texts that remain.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from corpusveil.arrays import Bool, Float32, Float64, Int32, Int64
from corpusveil.errors import SettingError
from corpusveil.mechanisms import Mechanism
from corpusveil.spaces import Space
from corpusveil.spaces.vocabulary import parts
from corpusveil.text.classes import PUNCTUATION
from corpusveil.text.policy import TextPolicy
from corpusveil.text.tokens import Tokens
from corpusveil_evaluate.readers.causal_model import BEGIN, NAME, CausalModel, Pool
from corpusveil_evaluate.readers.content_words import content_weights
from corpusveil_evaluate.readers.ngrams.channel import ALL, Candidates
from corpusveil_evaluate.readers.ngrams.context_risk import TextReader, TextShares
from corpusveil_evaluate.readers.ngrams.denoise import CUT, MEMORY, Reader
from corpusveil_evaluate.readers.ngrams.lattice import Runs, search_runs
from corpusveil_evaluate.readers.ngrams.lattice_bigrams import Channel
from corpusveil_evaluate.readers.ngrams.lattice_room import room
from corpusveil_evaluate.readers.ngrams.model import LanguageModel
from corpusveil_evaluate.readers.ngrams.word_risk import TRIGRAMS

READER = f"{NAME} and {TRIGRAMS}"
NEURAL, TRIGRAM, LAW, PRIOR = 0.5, 0.85, 0.2, -0.3
"""The weights of a score; chosen on held-out text of which no figure is reported."""
BEAM, WITHIN = 6, 6.0
"""The most continuations of a text, and how many nats below the best one may be."""
TOGETHER = 48
"""Texts that are read at once."""
WIDTH, FAINT = 64, 1e-4
"""Candidates of a place, and the least share of one relative to the best after the first pass of the trigrams."""
FLOOR = 1e-7
"""The least share by the trigrams."""


@dataclass(frozen=True, slots=True, eq=False)
class Forms:
    """How the V words of a space are written in tokens.

    ``rest`` float64 [V] is ln of a word's share among those that begin with its first token.
    """

    model: CausalModel
    words: Sequence[str]
    rest: Float64
    known: dict[tuple[int, bool, bool], list[int]] = field(default_factory=dict)

    def tokens_of(self, word: int, spaced: bool, capital: bool) -> list[int]:
        """Return the tokens of a word, after a blank or not, with a capital or not."""
        key = word, spaced, capital
        if key not in self.known:
            text = self.words[word]
            self.known[key] = self.model.encode(" " * spaced + (text[0].upper() + text[1:] if capital else text))
        return self.known[key]

    def most(self, place: Place) -> int:
        """Return the most tokens of a place, with those before it."""
        forms = (
            self.tokens_of(word, place.spaced, capital) for word in place.words.tolist() for capital in (False, True)
        )
        return len(place.before) + max(map(len, forms))


@functools.lru_cache(maxsize=1)
def forms_of(model: CausalModel, space: Space, shares: bytes) -> Forms:
    """Prepare the words of a space with these public shares, float64 [V] as bytes."""
    prior = np.frombuffer(shares)
    forms = Forms(model, [" ".join(parts(word)) for word in space.vocabulary.words], np.zeros(len(space)))
    first = np.array([forms.tokens_of(word, True, False)[0] for word in range(len(space))])
    forms.rest[:] = np.log(prior / np.bincount(first, prior)[first])
    return forms


@dataclass(frozen=True, slots=True)
class Place:
    """A released word: C candidates, int64 [C], their scores without the causal model, and the tokens before it."""

    words: Int64
    local: Float64
    spaced: bool
    before: Sequence[int]


def masses(forms: Forms, texts: Sequence[Sequence[Place]], beam: int = BEAM) -> Iterator[list[Float64]]:
    """Yield, for each text, the masses of the candidates of every place, float64 [C]."""
    order = sorted((at for at, text in enumerate(texts) if text), key=lambda at: len(texts[at]))
    out: dict[int, list[Float64]] = {}
    for low in range(0, len(order), TOGETHER):
        some = order[low : low + TOGETHER]
        out |= zip(some, _search(forms, [texts[at] for at in some], beam), strict=True)
    yield from (out.get(at, []) for at in range(len(texts)))


def _search(forms: Forms, texts: Sequence[Sequence[Place]], beam: int) -> list[list[Float64]]:
    model = forms.model
    longest = 2 + max(sum(forms.most(place) for place in text) for text in texts)
    out: list[list[Float64]] = [[np.zeros(place.words.size) for place in text] for text in texts]
    of, score = np.arange(len(texts)), np.zeros(len(texts))
    paths, lengths = np.zeros((of.size, longest), np.int32), np.zeros(of.size, np.int64)
    history = np.zeros((of.size, max(map(len, texts))), np.int64)
    pool = model.pool(2 * beam * sum(map(len, texts)) + 2 * longest)
    queues = [[BEGIN, *text[0].before] for text in texts]
    logits, score = _read(model, pool, paths, lengths, queues, score, 0)
    for at in range(history.shape[1]):
        rows, picked, tokens, scores = [], [], [], []
        for text in np.unique(of).tolist():
            here, place = np.flatnonzero(of == text), texts[text][at]
            firsts = np.array([[forms.tokens_of(word, place.spaced, capital)[0] for word in place.words.tolist()]
                               for capital in (False, True)])  # fmt: skip
            cases = logits[here][:, firsts]
            said = np.logaddexp(cases[:, 0], cases[:, 1])
            rest = np.array([len(forms.tokens_of(word, place.spaced, False)) > 1 for word in place.words.tolist()])
            guess = np.where(rest, forms.rest[place.words], 0.0)
            total = score[here][:, None] + NEURAL * (said + guess) + place.local
            best = np.argsort(-total, axis=None)[:beam]
            best = best[total.ravel()[best] >= total.max() - WITHIN]
            last = at + 1 == len(texts[text])
            for row, word in zip(*np.unravel_index(best, total.shape), strict=True):
                capital = bool(cases[row, 1, word] > cases[row, 0, word])
                form = forms.tokens_of(int(place.words[word]), place.spaced, capital)
                rows.append(here[row])
                picked.append(word)
                scores.append(score[here[row]] + NEURAL * said[row, word] + place.local[word])
                tokens.append([*form, *texts[text][at + 1].before] if not last else form[: len(form) > 1 and len(form)])
        of, paths, lengths, history = of[rows], paths[rows], lengths[rows], history[rows]
        history[:, at], score = picked, np.array(scores)
        logits, score = _read(model, pool, paths, lengths, tokens, score, 1)
        going = np.array([len(texts[text]) > at + 1 for text in of.tolist()])
        for text in np.unique(of[~going]).tolist():
            here = of == text
            weights = np.exp(score[here] - score[here].max())
            for place, mass in enumerate(out[text]):
                np.add.at(mass, history[here, place], weights / weights.sum())
        of, paths, lengths, history = of[going], paths[going], lengths[going], history[going]
        logits, score = logits[going], score[going]
    return out


def _read(
    model: CausalModel, pool: Pool, paths: Int32, lengths: Int64, queues: Sequence[Sequence[int]], score: Float64,
    known: int,
) -> tuple[Float32, Float64]:  # fmt: skip
    """Read the tokens of each row; return the logits after the last, and scores with the tokens but the first known."""
    logits, score = np.empty((len(queues), len(model.embedding)), np.float32), score.copy()
    sizes = np.array([*map(len, queues)])
    for turn in range(sizes.max(initial=0)):
        rows = np.flatnonzero(sizes > turn)
        tokens = np.array([queues[row][turn] for row in rows.tolist()], np.int32)
        if turn >= max(known, 1):
            score[rows] += NEURAL * logits[rows, tokens]
        some = paths[rows]
        logits[rows] = model.read(pool, tokens, some, lengths[rows])
        paths[rows] = some
        lengths[rows] += 1
    return logits, score


class Seen(NamedTuple):
    """The tokens of texts, which of them are released words, int64 [S], and where runs and texts begin among these."""

    tokens: Tokens
    at: Int64
    offsets: Int64
    documents: Int64

    def between(self, place: int) -> tuple[str, bool]:
        """Return the punctuation before a released word, and whether a blank is directly before the word."""
        tokens, last = self.tokens, int(self.at[place])
        text = int(np.searchsorted(tokens.offsets, last, side="right")) - 1
        first = max(int(tokens.offsets[text]), int(self.at[place - 1]) + 1 if place else 0)
        written, spaced = "", False
        for token in range(first, last + 1):
            spaced = token > 0 and bool(tokens.starts[token] > tokens.ends[token - 1])
            if token < last and tokens.classes[token] == PUNCTUATION:
                written += " " * spaced + tokens.text(token)
        return written, spaced


def places_seen(
    forms: Forms, reader: Reader, model: LanguageModel, seen: Seen, released: Int32, law: Candidates, epsilon: float
) -> list[list[Place]]:
    """Return the places of every text with released words, int32 [S], as the trigrams see them."""
    rows, size = law.candidate_rows(epsilon, released), reader.shares.size
    some, unused, texts = room(law.count, WIDTH, size), np.empty(released.size, np.int32), []
    for first, last in itertools.pairwise(seen.documents.tolist()):
        search_runs(
            released, rows, Runs(seen.offsets, np.array([first, last])),
            Channel(law.words, law.emissions, reader.unknown, reader.rho), FAINT, ALL, reader.shares, MEMORY,
            reader.said, model.arrays, some, unused, ALL, unused,
        )  # fmt: skip
        text, begin = [], seen.offsets[first]
        for at in range(begin, seen.offsets[last]):
            there = law.words[rows[at]] >= 0
            words = law.words[rows[at]][there].astype(np.int64)
            shares = dict(zip(some.originals[at - begin].tolist(), some.shares[at - begin].tolist(), strict=True))
            share = np.maximum([shares.get(word, 0.0) for word in words.tolist()], FLOOR)
            law_logs = np.log(np.maximum(law.emissions[rows[at]][there], 1e-300))
            local = TRIGRAM * np.log(share) + LAW * law_logs + PRIOR * np.log(reader.shares[words])
            written, spaced = seen.between(at)
            text.append(Place(words, local, spaced, forms.model.encode(written)))
        texts.append(text)
    return texts


class NeuralReader(TextReader):
    """Reads public texts that a mechanism released, with a causal model as well."""

    def __init__(
        self, causal: CausalModel, mechanism: Mechanism, model: LanguageModel, texts: Sequence[str], policy: TextPolicy,
        registers: Sequence[str] = (),
    ) -> None:  # fmt: skip
        if policy.stop_words not in ("privatize", "keep"):
            raise SettingError(f"stop_words = {policy.stop_words!r}: this reader reads releases that show them.")
        weights = content_weights(mechanism.space, policy.language)
        super().__init__(mechanism, model, texts, policy, weights, registers)
        self.forms = forms_of(causal, mechanism.space, self._reader.shares.tobytes())

    def read(self, epsilon: float) -> TextShares:
        """Return what this reader recovers at an epsilon: minutes for a thousand words."""
        texts = self.places(epsilon, self.released(epsilon))
        return replace(self.shares(self.right(texts, masses(self.forms, texts))), reader=READER)

    def right(self, texts: Sequence[Sequence[Place]], found: Iterable[Sequence[Float64]]) -> Bool:
        """Return where guesses by the masses of every place are right, bool [2, T]: of all words, and by weight."""
        guesses = []
        for text, of_text in zip(texts, found, strict=True):
            for place, mass in zip(text, of_text, strict=True):
                left = mass + FLOOR * np.exp(place.local - place.local.max())  # candidates that the beam dropped
                weighed = left * (self._weights[place.words] + FLOOR)
                guesses.append([place.words[shares.argmax()] for shares in (left, weighed)])
        return np.asarray(np.transpose(guesses) == self._truth)

    def places(self, epsilon: float, released: Int32) -> list[list[Place]]:
        """Return the places of every text, as the trigrams see them."""
        seen = Seen(self._tokens, self._index[self._shown], self._offsets, self._documents)
        law = Candidates(self._mechanism, self._reader.shares, min(WIDTH, self._reader.shares.size), CUT, self._kept,
                         once=True)  # fmt: skip
        return places_seen(self.forms, self._reader, self._model, seen, released, law, epsilon)
