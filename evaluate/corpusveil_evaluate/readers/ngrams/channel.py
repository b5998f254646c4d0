"""What a reader of a release knows: the law by which words were replaced, and the law of words in public text.

The candidates for a released word are the words with the largest product of public share and law over the whole
vocabulary, and always the released word. They are computed once for each word and epsilon that a process meets:
exactly, or from public samples if the law has no closed form. An estimate costs accuracy, never privacy.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from corpusveil.errors import NoClosedForm
from corpusveil.mechanisms import Mechanism
from corpusveil.mechanisms.on_lists import OnLists
from corpusveil.spaces import Space
from corpusveil.spaces.vocabulary import parts
from corpusveil_evaluate.readers.ngrams.explained import explain, explain_sampled
from corpusveil_evaluate.readers.ngrams.fixed import LEAST, ONE, linear, tables
from corpusveil_evaluate.readers.ngrams.lattice_room import Spoken
from corpusveil_evaluate.readers.ngrams.lookup import ROUGH
from corpusveil_evaluate.readers.ngrams.model import LanguageModel
from corpusveil_evaluate.readers.ngrams.word_risk import smoothed

RARE = 2e-5
"""The share of public text up to which a word is rare, and the whole margin protects it; about the 4,500th word."""
_HARDLY = 1e-12
"""What the share of a kept word is multiplied by, so that it takes no candidate's place."""
ALL = np.empty(0)
"""Every word is changed that has a likelier one: without a margin."""


@functools.lru_cache(maxsize=4)
def _ids_of(space: Space, model: LanguageModel) -> npt.NDArray[np.int32]:
    return model.ids(space.vocabulary.words)


def public_shares(space: Space, model: LanguageModel | None) -> tuple[npt.NDArray[np.float64], float]:
    """Return the public probabilities of a space's words, float64 [V], and the share of public text that they cover.

    Counts are those of the model. Words of several parts, and words without a count in the model, have the space's own
    count, if it has one; without a model, all words do.
    """
    counts = np.zeros(len(space)) if space.counts is None else space.counts.astype(np.float64)
    known = None if model is None else model.vocabulary.counts
    whole = float(model.info.get("tokens", 0)) if model is not None else 0.0
    whole = whole or (0.0 if known is None else float(known.sum()))
    if model is not None and known is not None:
        ids = _ids_of(space, model)
        counts = np.where(ids < len(model), np.append(known, 0)[ids], counts)
    prior = smoothed(counts, whole)
    return prior.shares, min(1.0, prior.covered)


def _linear(logs: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Return the probabilities of fixed-point logarithms, float64."""
    low, high = tables()
    distinct, which = np.unique(logs, return_inverse=True)
    return np.asarray(np.array([linear(int(value), low, high) for value in distinct])[which])


def changes_of(shares: npt.NDArray[np.float64], margin: float) -> npt.NDArray[np.float64]:
    """Return by what the share of another word is multiplied, for each released word, float64 [V].

    It is exp(-margin) for a rare word. For a more frequent word the margin is smaller in proportion to its share: a
    frequent word is likelier to come from a mistake of the draw, and protecting it would cost more than it saves.
    """
    if not margin:
        return ALL
    nats = margin * np.minimum(1.0, RARE / shares)
    return _linear(np.rint(np.maximum(-nats * ONE, LEAST)).astype(np.int32))


def spoken_of(space: Space, model: LanguageModel, shares: npt.NDArray[np.float64]) -> Spoken:
    """Return the probabilities of a space's words in a model.

    A word that it lacks has its public share in any context.
    """
    low, high = tables()
    said = {number: parts(word) for number, word in enumerate(space.vocabulary.words) if "_" in word}
    said = {number: words for number, words in said.items() if len(words) > 1}
    firsts = _ids_of(space, model).copy()
    firsts[[*said]] = model.ids([words[0] for words in said.values()])
    first = np.where(firsts < len(model), firsts, -1).astype(np.int32)
    inner, before = np.ones(len(space)), np.full(len(space), -2, np.int32)
    last = first.copy()
    for word, words in said.items():
        ids = model.ids(words)
        context = np.where(ids < len(model), ids, -1).astype(np.int32)
        two_before = np.concatenate([[-1], context[:-2]]).astype(np.int32)
        logs = model.score(two_before, context[:-1], ids[1:])
        inner[word] = linear(int(max(logs.sum(), LEAST)), low, high)
        before[word], last[word] = context[-2], context[-1]
    inner[first < 0] = 1.0
    alone, start = (
        np.where(first >= 0, _linear(logs)[first], shares) for logs in (model.arrays.first, model.arrays.start)
    )
    rough = _linear(np.maximum(-np.arange(ROUGH) * (ONE // 32), LEAST).astype(np.int32))
    return Spoken(
        first, alone, start, inner, before, last, _linear(model.arrays.left2), low, high, rough
    )  # fmt: skip


@dataclass(slots=True)
class Candidates:
    """The ``count`` likeliest originals of released words, computed on demand.

    Words whose share is below ``cut`` of the largest share are left out, except the released word. Of ``kept`` words,
    bool [V], which a release does not replace, only the released word itself is a candidate, with law 1. ``once`` says
    that no other words will be asked for.

    ``words`` int32 [R, count], -1 after the last, and ``emissions`` float64 [R, count], the law; a row a released word
    and epsilon. ``exact`` becomes False when public samples estimate the law.
    """

    mechanism: Mechanism
    shares: npt.NDArray[np.float64]
    count: int
    cut: float = 0.0
    kept: npt.NDArray[np.bool_] | None = None
    once: bool = False
    words: npt.NDArray[np.int32] = field(init=False)
    emissions: npt.NDArray[np.float64] = field(init=False)
    exact: bool = field(default=True, init=False)
    _used: int = field(default=0, init=False)
    _rows: dict[float, npt.NDArray[np.int64]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.words = np.empty((0, self.count), np.int32)
        self.emissions = np.empty((0, self.count))

    def candidate_rows(self, epsilon: float, released: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Return the rows of released words, int32 [T] -> int64 [T]."""
        size = len(self.mechanism.space)
        rows = self._rows.get(epsilon)
        if rows is None:
            rows = self._rows[epsilon] = np.full(size, -1, np.int64)
        known = rows[released]
        if known.size == 0 or known.min() >= 0:
            return known
        if self.once or isinstance(self.mechanism, OnLists):
            new = np.unique(released[known < 0]).astype(np.int64)
        else:  # if the law is computed for all inputs of an output, compute it for all outputs
            new = np.flatnonzero(rows < 0)
        self._find(epsilon, new, rows)
        return rows[released]

    def guesses(self, rows: npt.NDArray[np.int64], weights: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
        """Return the best guess of words by their rows alone, int64 [T] -> int32 [T]; a right one counts its weight."""
        each, at = np.unique(rows, return_inverse=True)
        words = self.words[each]
        best = (self.shares[words] * self.emissions[each] * (words >= 0) * weights[words]).argmax(axis=1)
        return np.asarray(words[np.arange(each.size), best][at])

    def _find(self, epsilon: float, new: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> None:
        every = np.arange(len(self.shares))
        shares = self.shares if self.kept is None else self.shares * np.where(self.kept, _HARDLY, 1.0)
        try:
            laws = explain(self.mechanism, epsilon, every, shares, new, self.count)
        except NoClosedForm:
            self.exact = False
            laws = explain_sampled(self.mechanism, epsilon, every, shares, new, self.count)
        words = np.full((new.size, self.count), -1, np.int64)
        words[:, : laws.words.shape[1]] = laws.words
        missing = ((words != new[:, None]).all(axis=1)) & (laws.own > 0)
        words[missing, -1] = new[missing]
        emissions = np.zeros(words.shape)
        emissions[:, : laws.words.shape[1]] = laws.joint / shares[laws.words]
        emissions[missing, -1] = laws.own[missing]
        if self.kept is not None:
            emissions = np.where(self.kept[words], words == new[:, None], emissions)
        if self._used + new.size > len(self.words):
            room = max(2 * len(self.words), self._used + new.size)
            words_before, emissions_before = self.words[: self._used], self.emissions[: self._used]
            self.words, self.emissions = np.empty((room, self.count), np.int32), np.empty((room, self.count))
            self.words[: self._used], self.emissions[: self._used] = words_before, emissions_before
        joint = np.zeros(words.shape)
        joint[:, : laws.words.shape[1]] = laws.joint
        far = (words < 0) | ((joint < self.cut * joint[:, :1]) & (words != new[:, None]))
        words[far] = -1
        front = np.argsort(far, axis=1, kind="stable")
        words, emissions = np.take_along_axis(words, front, 1), np.take_along_axis(emissions, front, 1)
        some = slice(self._used, self._used + new.size)
        self.words[some], self.emissions[some] = words, np.where(words >= 0, emissions, 0.0)
        rows[new] = np.arange(self._used, self._used + new.size)
        self._used += new.size
