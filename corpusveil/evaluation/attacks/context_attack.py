"""An attacker who uses context: the mechanism's law times a language model over the sentence, by denoise's search.

Words are replaced independently, so released words u_1 ... u_n came from w_1 ... w_n with a probability proportional to
``prod_i P[w_i, u_i] p(w_i | w_i-2, w_i-1)``. Law, public shares, model and search are those of ``denoise``: this
attacker's guess is the text denoised without a margin. If the mechanism has no exact law, public samples estimate it,
and the figures of this attacker are lower bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusveil.errors import DataError, ShapeError
from corpusveil.language.channel import ALL, Candidates, public_shares, spoken_of
from corpusveil.language.denoise import CUT, LEAST, Search
from corpusveil.language.lattice import search_runs
from corpusveil.language.lattice_room import LONGEST, Room, Spoken, room
from corpusveil.language.model import LanguageModel
from corpusveil.mechanisms import Mechanism
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import check_epsilon
from corpusveil.spaces import Space
from corpusveil.text.classes import WORD
from corpusveil.text.sentences import sentence_ends
from corpusveil.text.tokens import Tokenizer
from corpusveil.text.word_table import WordTable

THOROUGH = Search(candidates=64, width=40)
"""An attacker has time: more candidates than the default of ``denoise``."""

Ids = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Recovery:
    """Shares of the attacked words, 0 to 1.

    ``unchanged``: the released word is the original; ``by_frequency``: the original is the most frequent word, whatever
    was released; ``by_law``: the best guess from the word alone is right; ``by_search``: the search over the sentence
    is right. ``error`` is the standard error of ``given_back``, for independent sentences.
    """

    words: int
    sentences: int
    unchanged: float
    by_frequency: float
    by_law: float
    by_search: float
    error: float

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
        """The share that the search over sentences recovers beyond single words.

        Below 0 if it is the weaker attacker.
        """
        return self.by_search - self.without_context


@dataclass(slots=True)
class ContextAttacker:
    """Reconstructs sentences from their released words; ``search`` is the width of the search.

    Candidates come from the whole vocabulary and always include the released word. No margin keeps a released word.
    """

    mechanism: Mechanism
    epsilon: float
    model: LanguageModel
    search: Search = THOROUGH
    _said: Spoken = field(init=False, repr=False)
    _candidates: Candidates = field(init=False, repr=False)
    _room: Room = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        space = self.mechanism.space
        shares, _ = public_shares(space, self.model)
        count = min(self.search.candidates, len(space))
        self._said = spoken_of(space, self.model, shares)
        self._candidates = Candidates(self.mechanism, shares, count, CUT)
        self._room = room(count, self.search.width)

    @property
    def most_frequent(self) -> int:
        """The word that a blind reader guesses."""
        return int(self._candidates.shares.argmax())

    def guesses(self, released: Sequence[Ids]) -> list[npt.NDArray[np.int32]]:
        """Return the likeliest originals of each sentence, int32, as many as released words.

        A sentence is ids, -1 for a word that was not replaced by the mechanism; it stays, and is not used as context.
        """
        whole, ends = _joined(released)
        return _split(self._guessed(whole, ends, alone=False), ends)

    def attack(self, originals: Sequence[Ids], released: Sequence[Ids]) -> Recovery:
        """Attack sentences, and count recovered words over the places where both are words of the space."""
        if [len(original) for original in originals] != [len(one) for one in released]:
            raise ShapeError("The released sentences differ in length from the originals; give both word by word.")
        (truth, ends), (seen, _) = _joined(originals), _joined(released)
        both = (truth >= 0) & (seen >= 0)
        words = int(both.sum())
        if not words:
            raise DataError("The mechanism replaced no word of these sentences; there is nothing to attack.")
        constant = np.full(truth.size, self.most_frequent, np.int32)
        guesses = (seen, constant, self._guessed(seen, ends, alone=True), self._guessed(seen, ends, alone=False))
        right = [both & (guess == truth) for guess in guesses]
        unchanged, by_frequency, by_law, by_search = (float(one.sum()) / words for one in right)
        simpler = max(range(3), key=lambda one: right[one].sum())
        some = len(originals)
        which = np.repeat(np.arange(some), np.diff(ends, prepend=0))
        gained = right[3].astype(np.float64) - right[simpler]
        gained -= (by_search - max(unchanged, by_frequency, by_law)) * both
        more = np.bincount(which, gained, some)
        error = math.sqrt(some / (some - 1) * float((more**2).sum())) / words if some > 1 else math.nan
        return Recovery(words, some, unchanged, by_frequency, by_law, by_search, error)

    def _guessed(self, seen: npt.NDArray[np.int32], ends: npt.NDArray[np.int64], *, alone: bool) -> Any:
        out = seen.copy()
        at = np.flatnonzero(seen >= 0)
        if not at.size:
            return out
        self.mechanism.check_id(int(seen.max()))
        rows = self._candidates.rows(self.epsilon, seen[at])
        if alone:
            out[at] = self._candidates.words[rows, 0]
            return out
        sentence = np.searchsorted(ends, at, side="right")
        begins = np.ones(at.size, np.bool_)
        begins[1:] = (np.diff(at) > 1) | (np.diff(sentence) > 0)
        first = np.maximum.accumulate(np.where(begins, np.arange(at.size), 0))
        begins |= (np.arange(at.size) - first) % LONGEST == 0
        found = np.empty(at.size, np.int32)
        search_runs(
            out[at], rows, np.append(np.flatnonzero(begins), at.size), self._candidates.words,
            self._candidates.emissions, np.zeros(len(self.mechanism.space)), 0.0, LEAST, self.search.aim == "sentence",
            ALL, self._said, self.model.arrays, self._room, found,
        )  # fmt: skip
        out[at] = found
        return out


def _joined(sentences: Sequence[Ids]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return the ids of all sentences, int32 [T], and where each ends, int64 [D]."""
    whole = [np.asarray(one, dtype=np.int32) for one in sentences]
    return np.concatenate([np.empty(0, np.int32), *whole]), np.cumsum([one.size for one in whole], dtype=np.int64)


def _split(whole: npt.NDArray[np.int32], ends: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int32]]:
    return list(np.split(whole, ends[:-1])) if ends.size else []


def released_words(
    mechanism: Mechanism, epsilon: float, originals: Sequence[Ids], key: Key
) -> list[npt.NDArray[np.int32]]:
    """Replace the words of sentences as a release would, for an attack on them; ids of -1 stay."""
    whole, ends = _joined(originals)
    known = np.flatnonzero(whole >= 0)
    draws = Draws.of_tokens(DrawKey.derive(key, "33" * 32), known.size)
    whole[known] = mechanism.privatize(whole[known], epsilon, draws)
    return _split(whole, ends)


def sentence_ids(space: Space, texts: Sequence[str]) -> list[Ids]:
    """Return the words of each sentence of some texts as ids, int32; -1 for a word that the space lacks.

    Numbers, punctuation, and sentences without a word are left out.
    """
    vocabulary = space.vocabulary
    table = WordTable.build(vocabulary.text, vocabulary.offsets.astype(np.int64))
    tokens = Tokenizer(table, space.hyphens or "split").tokenize(texts)
    after = np.concatenate([[0], np.cumsum(sentence_ends(tokens))])[:-1]  # sentences before each token
    words = np.flatnonzero(tokens.classes == WORD)
    cuts = np.flatnonzero(np.diff(after[words])) + 1
    return list(np.split(tokens.ids[words], cuts)) if words.size else []
