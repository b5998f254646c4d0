"""An attacker who reads context: the mechanism's exact law times a language model over the sentence.

Words are replaced independently, so released words u_1 ... u_n came from w_1 ... w_n with a probability proportional to
``prod_i P[w_i, u_i] p(w_i | w_i-2, w_i-1)``. The language model stands where the prior of the single-word attacker
stands; what context adds is only that where both come from the same text. The search is ``beam_search.py``'s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from corpusveil.errors import BadValueError, DataError, ShapeError
from corpusveil.evaluation.attacks.beam_search import lattice, likeliest_sentence, likeliest_words
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.explanations import explain
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import check_epsilon
from corpusveil.spaces import Space
from corpusveil.spaces.word_prior import Prior
from corpusveil.text.classes import WORD
from corpusveil.text.sentences import sentence_ends
from corpusveil.text.tokens import Tokenizer
from corpusveil.text.word_table import WordTable

NOTHING = -1
"""In a context: before the sentence, or a word that nothing is known about. In a guess: no word of the prior fits."""

Ids = npt.NDArray[np.integer[Any]]
Aim = Literal["words", "sentence"]


class Language(Protocol):
    """A language model over the ids of a space."""

    def log_probabilities(self, contexts: npt.NDArray[np.int64], candidates: Ids) -> npt.NDArray[np.float64]:
        """Return the natural logarithms of p(candidate | context), float64 [n, k].

        ``contexts`` int64 [n, 2] are the two words before, the nearer one last, -1 where there is none;
        ``candidates`` int64 [k] are ids.
        """


class OfWords(Protocol):
    """A language model over ids of its own."""

    def ids(self, words: Sequence[str]) -> Ids:
        """Return the model's ids of words, int [k]; several words may have one, such as that of unknown words."""

    def log_probabilities(self, contexts: npt.NDArray[np.int64], candidates: Ids) -> npt.NDArray[np.float64]:
        """Return what ``Language`` does, for the model's ids; -1 where there is no word before."""


@dataclass(frozen=True, slots=True, eq=False)
class InSpace:
    """A language model with a vocabulary of its own, over the ids of a space: words are matched by their text.

    ``own`` int64 [V + 1] are the model's ids of the space's words, and -1; words that share an id share its probability
    evenly, ``shared`` float64 [V] being the logarithm of how many they are. These are the words that the model lacks:
    what it leaves them is hardly anything where it was made of all words of a text, so they also have their ``prior``,
    float64 [V] (0 for others), after any context.
    """

    model: OfWords
    own: npt.NDArray[np.int64]
    shared: npt.NDArray[np.float64]
    prior: npt.NDArray[np.float64]

    @classmethod
    def of(cls, model: OfWords, space: Space, prior: Prior) -> InSpace:
        own = np.asarray(model.ids(space.vocabulary.words), dtype=np.int64)
        _, which, counts = np.unique(own, return_inverse=True, return_counts=True)
        lacking = np.zeros(len(space))
        lacking[prior.words] = prior.shares
        lacking[counts[which] == 1] = 0.0
        return cls(model, np.append(own, NOTHING), np.log(counts[which]), lacking)

    def log_probabilities(self, contexts: npt.NDArray[np.int64], candidates: Ids) -> npt.NDArray[np.float64]:
        """Return what ``Language`` does."""
        told = self.model.log_probabilities(self.own[contexts], self.own[candidates])  # index -1 is the last: -1
        spoken = np.log1p(-self.prior.sum()) + told - self.shared[candidates]
        with np.errstate(divide="ignore"):
            return np.asarray(np.logaddexp(spoken, np.log(self.prior[candidates])))


@dataclass(frozen=True, slots=True)
class Recovery:
    """Shares of the attacked words, 0 to 1.

    ``unchanged``: the released word is the original, so that not guessing at all is right; ``by_law``: by the
    Bayes-optimal guess from the word alone; ``by_search``: by the search over the sentence; ``covered``: the original
    is in the prior at all. ``error`` is the standard error of ``given_back``, sentences being independent.
    """

    words: int
    sentences: int
    unchanged: float
    by_law: float
    by_search: float
    covered: float
    error: float

    @property
    def without_context(self) -> float:
        """What the better of the attackers recovers who look at single words: by the law, or by not guessing at all."""
        return max(self.by_law, self.unchanged)

    @property
    def with_context(self) -> float:
        """What the best of the three attackers recovers."""
        return max(self.by_search, self.without_context)

    @property
    def given_back(self) -> float:
        """What the search over sentences recovers beyond single words; below 0 where it is the weaker attacker."""
        return self.by_search - self.without_context


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Of U released words: the inputs that explain each best, int64 [U, C], -1 behind the last; log P, float64."""

    words: npt.NDArray[np.int64]
    logs: npt.NDArray[np.float64]
    rows: dict[int, int]

    def of(self, released: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        row = self.rows[released]
        some = self.words[row] >= 0
        return self.words[row][some], self.logs[row][some]


@dataclass(frozen=True, slots=True, eq=False)
class ContextAttacker:
    """Reconstructs sentences from their released words.

    ``candidates``: so many inputs are considered at each place, those of the largest posterior under the ``prior``,
    and the released word itself; ``width``: so many histories are followed. Larger is stronger and slower. ``aim`` is
    the likeliest ``sentence`` as a whole, or at each place the likeliest of the ``words``, which gets more of them
    right. Where the mechanism has no exact law, an attack raises NoClosedForm.
    """

    mechanism: Mechanism
    epsilon: float
    prior: Prior
    language: Language
    candidates: int = 50
    width: int = 100
    aim: Aim = "words"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        for name, value in (("candidates", self.candidates), ("width", self.width)):
            if value < 1:
                raise BadValueError(f"{name} = {value}: it is 1 or more.")
        if self.aim not in ("words", "sentence"):
            raise BadValueError(f"aim = {self.aim!r}: it may be words or sentence.")

    def guesses(self, released: Sequence[Ids]) -> list[npt.NDArray[np.int64]]:
        """Return the likeliest originals of each sentence, int64, as many as released words.

        A sentence is ids, -1 for a word that was not replaced by the mechanism; that stays, and is no context.
        """
        table = self._table(released)
        return [self._search(sentence, table) for sentence in released]

    def attack(self, originals: Sequence[Ids], released: Sequence[Ids]) -> Recovery:
        """Attack sentences and say how much was recovered, over the places where both are words of the space."""
        if [len(original) for original in originals] != [len(one) for one in released]:
            raise ShapeError("The released sentences have other lengths than the originals; give them word by word.")
        table = self._table(released)
        inputs = set(self.prior.words.tolist())
        counts = np.zeros((len(originals), 5), dtype=np.int64)
        for number, (original, sentence) in enumerate(zip(originals, released, strict=True)):
            both = (np.asarray(original) >= 0) & (np.asarray(sentence) >= 0)
            truth, seen = np.asarray(original)[both], np.asarray(sentence)[both]
            alone = np.array([table.words[table.rows[one], 0] for one in seen.tolist()], dtype=np.int64)
            found = self._search(sentence, table)[both]
            known = sum(word in inputs for word in truth.tolist())
            right = [int((guess == truth).sum()) for guess in (seen, alone, found)]
            counts[number] = truth.size, *right, known
        words, *shares = counts.sum(axis=0).tolist()
        if not words:
            raise DataError("No word of these sentences was replaced by the mechanism; there is nothing to attack.")
        unchanged, by_law, by_search, covered = (share / words for share in shares)
        simpler, share = (counts[:, 2], by_law) if by_law >= unchanged else (counts[:, 1], unchanged)
        more = counts[:, 3] - simpler - (by_search - share) * counts[:, 0]
        some = len(originals)
        error = math.sqrt(some / (some - 1) * float((more**2).sum())) / words if some > 1 else math.nan
        return Recovery(words, some, unchanged, by_law, by_search, covered, error)

    def _table(self, released: Sequence[Ids]) -> _Candidates:
        whole = np.concatenate([np.asarray(one, dtype=np.int64) for one in released] or [np.empty(0, np.int64)])
        outputs = np.unique(whole[whole >= 0])
        if not outputs.size:
            return _Candidates(np.empty((0, 1), np.int64), np.empty((0, 1)), {})
        self.mechanism.check_id(int(outputs[-1]))
        found = explain(self.mechanism, self.epsilon, self.prior.words, self.prior.shares, outputs, self.candidates)
        shares = np.zeros(len(self.mechanism.space))
        shares[self.prior.words] = self.prior.shares
        missing = (found.words != outputs[:, None]).all(axis=1) & (found.own > 0)
        words = np.column_stack([found.words, np.where(missing, outputs, NOTHING)])
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.column_stack([np.log(found.joint / shares[found.words]), np.log(found.own)])
        return _Candidates(words, logs, {output: row for row, output in enumerate(outputs.tolist())})

    def _search(self, released: Ids, table: _Candidates) -> npt.NDArray[np.int64]:
        empty = (np.empty(0, np.int64), np.empty(0))
        places = [table.of(output) if output >= 0 else empty for output in np.asarray(released).tolist()]
        steps = lattice(places, self._spoken, self.width, NOTHING)
        return likeliest_words(steps) if self.aim == "words" else likeliest_sentence(steps)

    def _spoken(self, contexts: npt.NDArray[np.int64], words: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        logs = np.asarray(self.language.log_probabilities(contexts, words), dtype=np.float64)
        if logs.shape != (len(contexts), words.size) or np.isnan(logs).any() or (logs == math.inf).any():
            raise ShapeError(f"The language model gave no log-probabilities of shape {(len(contexts), words.size)}.")
        return logs


def released_words(mechanism: Mechanism, epsilon: float, originals: Sequence[Ids], key: Key) -> list[Ids]:
    """Replace the words of sentences as a release would, for an attack on them; ids of -1 stay."""
    whole = np.concatenate([np.asarray(original, dtype=np.int32) for original in originals] or [np.empty(0, np.int32)])
    known = np.flatnonzero(whole >= 0)
    draws = Draws.of_tokens(DrawKey.derive(key, "33" * 32), known.size)
    whole[known] = mechanism.privatize(whole[known], epsilon, draws)
    ends = np.cumsum([len(original) for original in originals])[:-1]
    return list(np.split(whole, ends)) if len(originals) else []


def sentence_ids(space: Space, texts: Sequence[str]) -> list[Ids]:
    """Return the words of each sentence of some texts as ids, int32; -1 for a word that the space has not.

    Numbers and punctuation are left out, and so are sentences without a word.
    """
    vocabulary = space.vocabulary
    table = WordTable.build(vocabulary.text, vocabulary.offsets.astype(np.int64))
    tokens = Tokenizer(table, space.hyphens or "split").tokenize(texts)
    after = np.concatenate([[0], np.cumsum(sentence_ends(tokens))])[:-1]  # sentences before each token
    words = np.flatnonzero(tokens.classes == WORD)
    cuts = np.flatnonzero(np.diff(after[words])) + 1
    return list(np.split(tokens.ids[words], cuts)) if words.size else []
