"""How many words a reader who knows a language model recovers: measured on public text that no count has read.

Nothing private is read. Real sentences are released under a published key and attacked by the search of ``denoise``
(``lattice.py``), which lets the words of a text support each other, and by a reader of single words. Which of the two
reads better is decided on one half of the texts, and counted on the other, and the reverse: the better of two figures
of the same text would be too high by chance. Words that the space lacks are resampled, as in a release by default, and
guesses of them do not count.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.budget import Budget
from corpusveil.errors import DataError
from corpusveil.kernel.prepared import prepare
from corpusveil.mechanisms import Mechanism
from corpusveil.sampling.draws import RESAMPLE, DrawKey, Draws
from corpusveil.sampling.grid import grid_value
from corpusveil.sampling.keys import Key
from corpusveil.text.classes import NUMBER, WORD
from corpusveil.text.policy import DEFAULT, TextPolicy
from corpusveil.text.tokens import string_buffers
from corpusveil_evaluate.readers.content_words import content_weights, stop_words_of
from corpusveil_evaluate.readers.ngrams.channel import ALL, Candidates
from corpusveil_evaluate.readers.ngrams.denoise import (
    CUT,
    LEAST,
    MEMORY,
    THOROUGH,
    Denoiser,
    Reader,
    places_of,
    reader_of,
)
from corpusveil_evaluate.readers.ngrams.lattice import Runs, search_runs
from corpusveil_evaluate.readers.ngrams.lattice_bigrams import Channel
from corpusveil_evaluate.readers.ngrams.model import LanguageModel
from corpusveil_evaluate.readers.ngrams.word_risk import TRIGRAMS

WORDS = 24_000
"""The most words of a text that are attacked; further texts are left out."""
FEWEST = 1000
"""The least number of words of the space in the texts."""
PART = 200
"""The tokens of a part of a text: figures of parts are independent, or almost."""
FEWEST_PARTS = 10
"""The least number of parts of a register whose share is looked at."""
MOST_ERROR = 0.02
"""The largest standard error of a share of content words."""
GRID = [grid_value(index) for index in range(-8 * 8, 6 * 8 + 1)]
_PUBLIC = b"corpusveil: public sentences, released to measure what readers recover"


@dataclass(frozen=True, slots=True)
class ReadShare:
    """The share of the ``words`` that the better reader recovers, and its standard error."""

    share: float
    error: float
    words: int


@dataclass(frozen=True, slots=True)
class TextShares(ReadShare):
    """What readers recover of all words of a text, and of ``content`` words who care for these alone.

    ``highest`` is the register of which they recover most content words, this share and its standard error; ``reader``
    says with what they read.
    """

    content: ReadShare
    highest: tuple[str, float, float] | None = None
    reader: str = TRIGRAMS


def reader_of_texts(
    mechanism: Mechanism, model: LanguageModel, texts: Sequence[str], policy: TextPolicy,
    content: npt.NDArray[np.float64] | None = None, registers: Sequence[str] = (),
) -> TextReader:  # fmt: skip
    """Return a reader of public texts that no count has read, perhaps each of a register."""
    if not texts:
        raise DataError("There is no text; give public texts of your kind.")
    policy = replace(policy, language=mechanism.space.read_in(policy.language))
    weights = content_weights(mechanism.space, policy.language) if content is None else content
    return TextReader(mechanism, model, texts, policy, weights, registers)


def precise(read: TextShares) -> TextShares:
    """Return what readers recover. Raises DataError if the texts are too few to say so."""
    error, words = read.content.error, read.content.words
    if error > MOST_ERROR:
        raise DataError(
            f"The public texts have {words:,} content words, which tell a share with a standard error of "
            f"{100 * error:.1f} points, and at most {100 * MOST_ERROR:g} are allowed; give about "
            f"{math.ceil((error / MOST_ERROR) ** 2)} times as much text."
        )
    return read


class TextReader:
    """Reads public texts that a mechanism released, at any epsilon; what does not depend on it is prepared once."""

    def __init__(
        self, mechanism: Mechanism, model: LanguageModel, texts: Sequence[str], policy: TextPolicy,
        weights: npt.NDArray[np.float64], registers: Sequence[str] = (),
    ) -> None:  # fmt: skip
        space = mechanism.space
        self._mechanism, self._model, self._weights = mechanism, model, weights
        self._reader: Reader = reader_of(Denoiser(mechanism, Budget(1.0), DEFAULT, model, THOROUGH))
        data, documents = string_buffers(pa.array(texts, pa.large_string()))
        tokens = prepare(space, policy).tokenizer.tokens(data, documents)
        in_space = (tokens.classes == WORD) & (tokens.ids >= 0) & (tokens.ids < len(space))
        drawn = {WORD: policy.unknown_words == "resample", NUMBER: policy.numbers == "resample"}
        is_place = in_space | np.isin(tokens.classes, [kind for kind, resampled in drawn.items() if resampled])
        index, starts = places_of(tokens, is_place)
        run = np.repeat(np.arange(starts.size - 1), np.diff(starts))
        enough = int(np.searchsorted(np.cumsum(in_space[index]), WORDS))
        few = run <= run[enough] if enough < run.size else np.ones(run.size, np.bool_)
        index, run = index[few], run[few]
        text = np.searchsorted(tokens.offsets, index, side="right") - 1
        self._tokens, self._index = tokens, index
        self._truth = np.where(in_space[index], tokens.ids[index], -1).astype(np.int32)
        self._part = np.cumsum(np.diff(text * len(tokens) + (index - tokens.offsets[text]) // PART, prepend=-1) != 0)
        self._register = np.array(registers or [""] * len(texts))[text]
        key = Key(hashlib.sha256(_PUBLIC).digest())
        self._key = DrawKey.derive(key, hashlib.sha256(data.tobytes()).hexdigest())
        if (count := int((self._truth >= 0).sum())) < FEWEST:
            raise DataError(
                f"The public texts have {count:,} words that are in the space; give texts in the words of the space, "
                f"and at least {FEWEST:,} of these."
            )
        sums = np.cumsum(self._reader.unknown)
        uniform = uniform_of(Draws.of_tokens(self._key, index.size, document="text"), RESAMPLE)
        self._drawn = np.minimum(np.searchsorted(sums, uniform * sums[-1], side="right"), len(space) - 1)
        stops = np.append(stop_words_of(space, policy.language) & policy.parts_stop_words(), False)[self._truth]
        keeps = policy.stop_words == "keep"
        self._kept = stop_words_of(space, policy.language) if keeps else None
        self._clear, self._public = stops & keeps, stops & (policy.stop_words not in ("keep", "privatize"))
        # A mask ends a run; what stands before and after a dropped word are neighbors.
        self._shown = np.flatnonzero(~stops) if policy.stop_words in ("mask", "drop") else np.arange(stops.size)
        run = (run + (np.cumsum(stops) if policy.stop_words == "mask" else 0))[self._shown]
        begins = np.flatnonzero(np.diff(run, prepend=-1))
        self._offsets = np.append(begins, run.size)
        self._documents = np.searchsorted(text[self._shown][begins], np.arange(len(texts) + 1))
        self._documents[-1] = begins.size

    def read(self, epsilon: float) -> TextShares:
        """Return what readers recover at an epsilon."""
        released = self.released(epsilon)
        right = np.zeros((4, self._truth.size), np.bool_)
        right[:, self._shown] = self.guesses(epsilon, released) == self._truth[self._shown]
        return self.shares(right)

    def released(self, epsilon: float) -> npt.NDArray[np.int32]:
        """Return the released words that a reader sees, int32 [S]."""
        known = np.flatnonzero(self._truth >= 0)
        released = np.array(self._drawn, np.int32)
        drawn = self._mechanism.privatize(self._truth[known], epsilon, Draws.of_tokens(self._key, known.size))
        released[known] = drawn
        return np.where(self._clear, self._truth, np.where(self._public, self._drawn, released))[self._shown]

    def guesses(self, epsilon: float, released: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return the guesses of words seen, int32 [4, S]: from context and alone, of all words and by weight."""
        reader, size = self._reader, len(self._mechanism.space)
        law = Candidates(self._mechanism, reader.shares, min(THOROUGH.breadth, size), CUT, self._kept, once=True)
        guesses = np.empty((4, released.size), np.int32)
        with reader.lock:
            rows = law.candidate_rows(epsilon, released)
            search_runs(
                released, rows, Runs(self._offsets, self._documents),
                Channel(law.words, law.emissions, reader.unknown, reader.rho), LEAST, ALL, reader.shares, MEMORY,
                reader.said, self._model.arrays, reader.room, guesses[0], self._weights, guesses[2],
            )  # fmt: skip
        guesses[1], guesses[3] = law.guesses(rows, np.ones(size)), law.guesses(rows, self._weights)
        guesses[2] = np.where(guesses[2] < 0, guesses[3], guesses[2])
        return guesses

    def shares(self, right: npt.NDArray[np.bool_]) -> TextShares:
        """Return the shares of what guesses are right of, bool [2 r, T]: of r readers of all words, and by weight."""
        known, half = np.flatnonzero(self._truth >= 0), len(right) // 2
        part, ones, weights = self._part[known], np.ones(known.size), self._weights[self._truth[known]]
        every = share_of(hits_of(right[:half, known], ones, part), ones, part)
        hits, register = hits_of(right[half:, known], weights, part), self._register[known]
        of_each = {name: register == name for name in np.unique(register).tolist() if name}
        of_each = {name: some for name, some in of_each.items() if np.unique(part[some]).size >= FEWEST_PARTS}
        shares = {name: share_of(hits[some], weights[some], part[some]) for name, some in of_each.items()}
        most = max(shares, key=lambda name: shares[name].share, default=None)
        highest = None if most is None else (most, shares[most].share, shares[most].error)
        return TextShares(every.share, every.error, every.words, share_of(hits, weights, part), highest)


def hits_of(
    right: npt.NDArray[np.bool_], weight: npt.NDArray[np.float64], part: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return where the reader is right who is better on one half of the parts, on the other half; and the reverse."""
    odd = part % 2 == 1
    hits = np.empty(weight.size, np.bool_)
    for half in (odd, ~odd):
        hits[half] = right[int((right * weight)[:, ~half].sum(axis=1).argmax())][half]
    return hits


def share_of(hits: npt.NDArray[Any], weight: npt.NDArray[np.float64], part: npt.NDArray[np.int64]) -> ReadShare:
    """Return the share of a weight where a reader is right, and its standard error by independent parts."""
    whole = float(weight.sum()) or 1.0
    share = float((hits * weight).sum()) / whole
    residues = np.bincount(part, (hits - share) * weight)
    error = math.sqrt(float((residues**2).sum())) / whole
    return ReadShare(share, error, int((weight > 0).sum()))


def uniform_of(draws: Draws, purpose: int) -> npt.NDArray[np.float64]:
    """Return a number from 0 to below 1 for each token, float64 [T]."""
    return (draws.uint64(purpose) >> np.uint64(11)).astype(np.float64) * 2.0**-53
