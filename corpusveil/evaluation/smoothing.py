"""Interpolated Kneser-Ney (Kneser, Ney 1995; Chen, Goodman 1999) of order 3 on flat arrays.

With one discount D per order, ``n1 / (n1 + 2 n2)`` of the counts that it is taken from (0.75 where n1 or n2 is 0):

    P(w | u v) = (c(uvw) - D) / c(uv.)  +  L(uv) P(w | v)
    P(w | v)   = (N(.vw) - D) / N(.v.)  +  L(v) P(w)
    P(w)       = (1 - q) [(N(.w) - D) / N(..)  +  L / (V + 1)]  +  q [w is unknown]

where L is what the discounts leave over. N counts the different words before; what no such word accounts for (the
beginning of a run, and in counts with a least count what they leave out) is one more of them. In complete counts
``c(uv.)`` counts the words that follow; in others it is ``c(uv)``, so that what was left out, and ends of runs, go to
the shorter context. q is the share of word tokens that the vocabulary lacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from corpusveil.compiled import compiled
from corpusveil.errors import UserError

FALLBACK = 0.75
Ids = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts over V words: ``unigrams`` int64 [V]; n-grams int32 [B, 2] and [T, 3] and their counts, int64 [B], [T].

    N-grams that occur less than ``least`` times are left out; ``tokens`` are all words, the unknown ones too.
    """

    unigrams: Counts
    bigrams: tuple[Ids, Counts]
    trigrams: tuple[Ids, Counts]
    least: int
    tokens: int


def discount(counts: Counts) -> float:
    """Return the discount of an order by its counts (Ney, Essen, Kneser 1994)."""
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    return once / (once + 2 * twice) if once and twice else FALLBACK


def _level(
    contexts: npt.NDArray[np.int64], counts: Counts, size: int, least: Counts | None = None
) -> tuple[Counts, Floats, Floats]:
    """Return row starts [size + 1], the discounted shares of entries sorted by context, and what contexts leave."""
    totals = np.bincount(contexts, counts, size)
    totals = totals if least is None else np.maximum(totals, least)
    shares = (counts - discount(counts)) / totals[contexts] if counts.size else np.empty(0)
    left = 1.0 - np.bincount(contexts, shares, size)
    starts = np.concatenate([[0], np.cumsum(np.bincount(contexts, minlength=size))])
    return starts.astype(np.int64), shares.astype(np.float64), np.clip(left, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Smoothed:
    """The probabilities in compressed rows.

    ``first`` float64 [V + 1] are those without context, of the unknown word last. Word v is followed by
    ``next2[starts2[v]:starts2[v + 1]]``, in order; an entry is a bigram, and its number that of a context of the next
    order, likewise. ``shares`` are what is added, ``left`` what the shorter context is multiplied with.
    """

    first: Floats
    starts2: Counts
    next2: Ids
    shares2: Floats
    left2: Floats
    starts3: Counts
    next3: Ids
    shares3: Floats
    left3: Floats

    @classmethod
    def build(cls, counted: Counted) -> Self:
        """Smooth counts. Raises UserError where a trigram's bigrams are missing."""
        size = counted.unigrams.size
        two, counts2 = _sorted(*counted.bigrams)
        keys = two[:, 0].astype(np.int64) * size + two[:, 1]
        three, counts3 = _sorted(*counted.trigrams)
        context, suffix = _find(keys, three[:, 0], three[:, 1], size), _find(keys, three[:, 1], three[:, 2], size)
        pairs = keys.size
        complete = counted.least == 1
        starts3, shares3, left3 = _level(context, counts3, pairs, None if complete else counts2)
        before2 = np.bincount(suffix, minlength=pairs) + (counts2 > np.bincount(suffix, counts3, pairs))
        starts2, shares2, left2 = _level(two[:, 0].astype(np.int64), before2, size)
        ends = two[:, 1].astype(np.int64)
        before1 = np.bincount(ends, minlength=size) + (counted.unigrams > np.bincount(ends, counts2, size))
        _, shares1, left1 = _level(np.zeros(size, np.int64), before1, 1)
        unknown = max(0.0, 1.0 - counted.unigrams.sum() / max(counted.tokens, 1))
        first = (1.0 - unknown) * (np.append(shares1, 0.0) + left1[0] / (size + 1))
        first[size] += unknown
        return cls(
            first, starts2, two[:, 1].copy(), shares2, left2, starts3, three[:, 2].copy(), shares3, left3
        )  # fmt: skip

    def probabilities(self, before: Ids, last: Ids, words: Ids) -> Floats:
        """Return ``P(word | before last)`` token by token; int32 [T] each, -1 where there is none; float64 [T]."""
        out = np.empty(words.size)
        _score(before, last, words, *self._arrays(), out)
        return out

    def table(self, contexts: Ids, candidates: Ids) -> Floats:
        """Return the probability of each candidate after each context; [N, 2] and [K] -> float64 [N, K]."""
        different, where = np.unique(candidates, return_inverse=True)
        places = np.full(self.first.size, -1, np.int64)
        places[different] = np.arange(different.size)
        out = np.empty((len(contexts), different.size))
        out[:] = self.first[different]
        _fill(contexts, places, *self._arrays()[1:], out)
        return out if np.array_equal(different, candidates) else out[:, where]

    def _arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return (
            self.first, self.starts2, self.next2, self.shares2, self.left2,
            self.starts3, self.next3, self.shares3, self.left3,
        )  # fmt: skip


def _sorted(ids: Ids, counts: Counts) -> tuple[Ids, Counts]:
    order = np.lexsort(ids.T[::-1])
    return ids[order], counts[order]


def _find(keys: npt.NDArray[np.int64], first: Ids, second: Ids, size: int) -> npt.NDArray[np.int64]:
    wanted = first.astype(np.int64) * size + second
    found = np.searchsorted(keys, wanted)
    if wanted.size and (not keys.size or (keys[np.minimum(found, keys.size - 1)] != wanted).any()):
        raise UserError("A trigram is counted whose bigrams are not; these counts are damaged: count again.")
    return found


@compiled
def _entry(start: int, end: int, words: Any, word: int) -> Any:
    """Return where a word stands among ``words[start:end]``, in order, or -1."""
    low, high = start, end
    while low < high:
        middle = (low + high) >> 1
        if words[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low if low < end and words[low] == word else -1


@compiled
def _score(
    before: Any, last: Any, words: Any, first: Any, starts2: Any, next2: Any, shares2: Any, left2: Any,
    starts3: Any, next3: Any, shares3: Any, left3: Any, out: Any,
) -> None:  # fmt: skip
    for t in range(words.size):
        u, v, w = before[t], last[t], words[t]
        p = first[w]
        if v >= 0:
            p *= left2[v]
            at = _entry(starts2[v], starts2[v + 1], next2, w)
            if at >= 0:
                p += shares2[at]
            pair = _entry(starts2[u], starts2[u + 1], next2, v) if u >= 0 else -1
            if pair >= 0:
                p *= left3[pair]
                at = _entry(starts3[pair], starts3[pair + 1], next3, w)
                if at >= 0:
                    p += shares3[at]
        out[t] = p


@compiled
def _fill(
    contexts: Any, places: Any, starts2: Any, next2: Any, shares2: Any, left2: Any,
    starts3: Any, next3: Any, shares3: Any, left3: Any, out: Any,
) -> None:  # fmt: skip
    for row in range(contexts.shape[0]):
        u, v = contexts[row, 0], contexts[row, 1]
        if v < 0:
            continue
        pair = _entry(starts2[u], starts2[u + 1], next2, v) if u >= 0 else -1
        left = left2[v] * (left3[pair] if pair >= 0 else 1.0)
        for k in range(out.shape[1]):
            out[row, k] *= left
        left = left3[pair] if pair >= 0 else 1.0
        for at in range(starts2[v], starts2[v + 1]):
            k = places[next2[at]]
            if k >= 0:
                out[row, k] += left * shares2[at]
        if pair >= 0:
            for at in range(starts3[pair], starts3[pair + 1]):
                k = places[next3[at]]
                if k >= 0:
                    out[row, k] += shares3[at]
