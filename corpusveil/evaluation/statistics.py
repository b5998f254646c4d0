"""Privacy and utility statistics of the field: N_w, S_w, PP, LOW, English share and Jaccard.

The definitions are those of Feyisetan, Balle, Drake, Diethe (2020), of Xu et al. (2021) and of Meisenbacher,
Nandakumar, Klymenko, Matthes (2024). Texts are tokenised by corpusveil's own tokeniser (word class, lower case).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from corpusveil.errors import NoClosedForm, UserError
from corpusveil.evaluation.terms import (
    Terms,
    check_pairs,
    check_texts,
    count_words,
    joint_terms,
    terms_of,
    tokenizer_of,
)
from corpusveil.mechanisms import Mechanism
from corpusveil.sampling.draws import DrawKey, Draws
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import check_epsilon
from corpusveil.spaces import Space, Vocabulary
from corpusveil.spaces.vocabulary import read_words
from corpusveil.text.tokens import Tokenizer

RUNS = 100
"""Replacements of a word, as in most studies; Xu et al. (2021) take 1,000."""
RAREST = 1000
AT_ONCE = 1 << 18
"""Tokens that are privatized at once."""
_DRAWS = "5e" * 32


@dataclass(frozen=True, slots=True)
class WordStatistics:
    """What a mechanism makes of single words: means and standard deviations over ``words`` words.

    ``retention`` is N_w, the share (0 to 1) of ``runs`` replacements that are the word itself; ``distinct`` is S_w, the
    number (1 to ``runs``) of different words among them. Deviations divide by the number of words, not one less.
    ``retention_exact`` and ``distinct_exact`` are the expectations by the law, None where it has no closed form.
    """

    retention: float
    retention_deviation: float
    distinct: float
    distinct_deviation: float
    retention_exact: float | None
    distinct_exact: float | None
    runs: int
    words: int

    @property
    def n_w(self) -> float:
        """N_w in percent, as ``puc`` takes it; the exact one where there is one."""
        return 100.0 * (self.retention if self.retention_exact is None else self.retention_exact)

    @property
    def s_w(self) -> float:
        """S_w in percent of the runs, likewise: the studies have 100 of them, so there it is the number."""
        return 100.0 / self.runs * (self.distinct if self.distinct_exact is None else self.distinct_exact)


def word_statistics(
    mechanism: Mechanism,
    epsilon: float,
    words: npt.NDArray[np.integer[Any]],
    runs: int = RUNS,
    key: Key | None = None,
    *,
    exact: bool = True,
) -> WordStatistics:
    """Return N_w and S_w of ``words``, ids int [N], at one epsilon: from ``runs`` replacements of each, and exactly.

    Exactly, N_w is ``P[w, w]`` and S_w is ``sum_v 1 - (1 - P[w, v])^runs``. ``key`` (default: a fresh one) is what is
    drawn with; ``exact=False`` leaves the law out, which some mechanisms take seconds a word for. Raises UserError for
    ids that are no words, and for numbers out of range.
    """
    epsilon = check_epsilon(epsilon)
    if runs < 1 or np.ndim(words) != 1 or not np.size(words):
        raise UserError(f"runs = {runs}, {np.size(words)} words: at least one of each is needed, the words as one row.")
    ids = np.asarray(words)
    for end in (ids.min(), ids.max()):
        mechanism.check_id(int(end))
    draw_key = DrawKey.derive(key or Key.generate(), _DRAWS)
    stays, different = np.empty(ids.size), np.empty(ids.size)
    each = max(1, AT_ONCE // runs)
    for start in range(0, ids.size, each):
        some = ids[start : start + each].astype(np.int32)
        draws = Draws.of_tokens(draw_key, some.size * runs, document=f"statistics {start}")
        out = mechanism.privatize(np.repeat(some, runs), epsilon, draws).reshape(-1, runs)
        stays[start : start + each] = (out == some[:, None]).mean(axis=1)
        out.sort(axis=1)
        different[start : start + each] = 1 + (out[:, 1:] != out[:, :-1]).sum(axis=1)
    law = _exact(mechanism, epsilon, ids, runs) if exact else (None, None)
    return WordStatistics(
        float(stays.mean()), float(stays.std()), float(different.mean()), float(different.std()), *law, runs, ids.size
    )


def _exact(
    mechanism: Mechanism, epsilon: float, ids: npt.NDArray[np.integer[Any]], runs: int
) -> tuple[float | None, float | None]:
    once, times = np.unique(ids, return_counts=True)
    stays, different = np.empty(once.size), np.empty(once.size)
    try:
        for row, word in enumerate(once.tolist()):
            law = np.minimum(mechanism.distribution(word, epsilon), 1.0)
            stays[row] = law[word]
            with np.errstate(divide="ignore"):
                different[row] = -np.expm1(runs * np.log1p(-law)).sum()
    except NoClosedForm:
        return None, None
    return float(stays @ times / ids.size), float(different @ times / ids.size)


def relative(n_w: npt.ArrayLike, s_w: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return N_w : S_w, both in percent, element by element; float64. Means over dimensions are the caller's to take.

    Raises UserError where S_w is not above 0: every word has one output at least.
    """
    above, below = np.asarray(n_w, np.float64), np.asarray(s_w, np.float64)
    if not (below > 0).all():
        raise UserError("s_w: it is above 0, since every word has one output at least.")
    return np.asarray(above / below)


@dataclass(frozen=True, slots=True)
class ChangedShare:
    """PP: ``share`` (0 to 1) of ``words`` word tokens of the originals that changed; 0 where there are none.

    ``left_out`` of ``texts`` pairs are not looked at, since their tokens could not be put side by side.
    """

    share: float
    words: int
    texts: int
    left_out: int


def changed_share(
    originals: Sequence[str], privates: Sequence[str], among: Container[str] | None = None
) -> ChangedShare:
    """Return PP, the share of the originals' words that changed, by position; ``among`` given, of these words only.

    Two texts are laid side by side where they have equally many tokens (what stands where a word stood may be
    anything), else where they have equally many words; else they are left out, and counted. Capitals are no change.
    Raises UserError unless each original has its private text, and where all of them had to be left out.
    """
    check_pairs(originals, privates)
    vocabulary, (before, after) = joint_terms(originals, privates)
    wanted = np.array([among is None or word in among for word in vocabulary.words] + [False])
    lengths = np.diff(before.offsets)
    whole = lengths == np.diff(after.offsets)
    words, others = before.words(), after.words()
    by_words = ~whole & (np.diff(words.offsets) == np.diff(others.offsets))
    found = changed = 0
    for one, other, kept in ((before, after, whole), (words, others, by_words)):
        first, second = _of(one, kept), _of(other, kept)
        word = wanted[first]  # -1, which is no word, is the last
        found += int(word.sum())
        changed += int((word & (first != second)).sum())
    left_out = int((~(whole | by_words)).sum())
    if left_out == len(originals):
        raise UserError("No private text has as many words or tokens as its original, so no word can be compared.")
    return ChangedShare(changed / found if found else 0.0, found, len(originals), left_out)


def _of(terms: Terms, kept: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    return terms.ids[np.repeat(kept, np.diff(terms.offsets))]


def surviving_rare(originals: Sequence[str], privates: Sequence[str], rarest: int = RAREST) -> float:
    """Return LOW: of the ``rarest`` least frequent words of the originals, the share (0 to 1) that the privates have.

    Ties go by the alphabet (code points). Of fewer different words all are taken. The two need not be pairs.
    """
    check_texts(originals, "originals")
    check_texts(privates, "privates")
    if rarest < 1:
        raise UserError(f"rarest = {rarest}: it is at least 1.")
    vocabulary, _ = count_words(originals)
    if not len(vocabulary):
        raise UserError("The originals have no words; give texts with words.")
    assert vocabulary.counts is not None  # noqa: S101 - for the types
    order = np.argsort(vocabulary.counts, kind="stable")[:rarest]  # ids of equal counts are in alphabetical order
    there = np.zeros(len(vocabulary), np.bool_)
    there[terms_of(privates, tokenizer_of(vocabulary)).words().ids] = True
    return float(there[order].mean())


@dataclass(frozen=True, slots=True)
class WordList:
    """A list of words, and the ``label`` that a figure by it carries: the share means nothing without it."""

    label: str
    tokenizer: Tokenizer

    @classmethod
    def of_words(cls, words: Sequence[str], label: str) -> Self:
        """Take given words; a word's case does not matter."""
        return cls(f"{label}, {len(words):,} words", tokenizer_of(Vocabulary.from_words(list(dict.fromkeys(words)))))

    @classmethod
    def of_file(cls, url: str) -> Self:
        """Read a list with one word a line; its name is the label, without its folder."""
        return cls.of_words(read_words(url), f"list {url.rsplit('/', 1)[-1]}")

    @classmethod
    def of_space(cls, space: Space) -> Self:
        """Take the words of a space. What a mechanism over the same space writes is in it by construction."""
        return cls.of_words(space.vocabulary.words, f"space {space.digest[:12]}")


def english_share(texts: Sequence[str], words: WordList) -> float:
    """Return the share (0 to 1) of word tokens that a list of words has. Raises UserError where texts have no words."""
    _, total = count_words(check_texts(texts))
    if not total:
        raise UserError("The texts have no words, so no share of them can be in a list.")
    return terms_of(texts, words.tokenizer).words().ids.size / total


def jaccard(originals: Sequence[str], privates: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return for each pair of texts the Jaccard index of their sets of words, 0 to 1; float64 [D]. 1 if both are empty.

    Raises UserError unless each original has its private text.
    """
    check_pairs(originals, privates)
    vocabulary, (before, after) = joint_terms(originals, privates)
    size = max(1, len(vocabulary))
    first, second = before.pairs(size), after.pairs(size)

    def per_text(pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.bincount(pairs // size, minlength=len(originals))

    both = per_text(np.intersect1d(first, second, assume_unique=True))
    union = per_text(first) + per_text(second) - both
    return np.where(union == 0, 1.0, both / np.maximum(union, 1))
