"""Interpolated Kneser-Ney (Kneser, Ney 1995; Chen, Goodman 1999) of order 3 on sorted flat arrays.

With one discount D per order, ``n1 / (n1 + 2 n2)`` of its counts (0.75 if n1 or n2 is 0):

    P(w | u v) = (c(uvw) - D) / c(uv.)  +  L(uv) P(w | v)
    P(w | v)   = (N(.vw) - D) / N(.v.)  +  L(v) P(w)
    P(w)       = (1 - q) [(N(.w) - D) / N(..)  +  L / (V + 1)]  +  q [w is unknown]

where L is the mass that the discounts free. N counts the different preceding words; occurrences without such a word (at
the beginning of a run, and those that counts with a least count leave out) add one more. In complete counts ``c(uv.)``
counts the words that follow; in others it is ``c(uv)``, so that omitted n-grams, and ends of runs, count for the
shorter context. q is the share of word tokens that the vocabulary lacks.

A bigram's key is its two ids plus one, 21 bits each, times an odd constant modulo 2^64: its order among bigrams.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corpusveil.arrays import Float64, Int32, Int64, UInt64
from corpusveil.collocations.collocation_table import KEY_BITS
from corpusveil.collocations.ngrams import MULTIPLIER, unpacked
from corpusveil.errors import ArtifactError

FALLBACK = 0.75
ORDER = 3
BITS = KEY_BITS // ORDER


def keys_of(first: Int32, second: Int32) -> UInt64:
    """Return the keys of bigrams, uint64."""
    packed = (first.astype(np.uint64) + np.uint64(1)) << np.uint64(BITS) | (second.astype(np.uint64) + np.uint64(1))
    return np.asarray(packed * np.uint64(MULTIPLIER))


def words_of(keys: UInt64) -> tuple[Int32, Int32]:
    """Return the two words of each key."""
    _, ids = unpacked(keys, ORDER)
    return ids[:, 0], ids[:, 1]


@dataclass(frozen=True, slots=True)
class Discounts:
    """The numbers of counts of an order that are 1 and 2, which determine its discount (Ney, Essen, Kneser 1994)."""

    once: int = 0
    twice: int = 0

    @classmethod
    def from_counts(cls, counts: Int64) -> Discounts:
        return cls(int((counts == 1).sum()), int((counts == 2).sum()))

    @property
    def value(self) -> float:
        return self.once / (self.once + 2 * self.twice) if self.once and self.twice else FALLBACK


@dataclass(frozen=True, slots=True)
class Range:
    """The n-grams of one range of keys: B bigrams by key, and T trigrams by the key of their first two words, then id.

    ``suffixes`` are S trigrams by the key of their last two words. UInt64 uint64, counts int64.
    """

    bigrams: UInt64
    counts2: Int64
    contexts: UInt64
    words: Int32
    counts3: Int64
    suffixes: UInt64
    suffix_counts: Int64


@dataclass(frozen=True, slots=True)
class Level:
    """The smoothed form of a range.

    Of B bigrams ``before`` int64 are N(.vw), ``left`` float64 L(uv), ``starts`` int64 [B + 1] where the trigrams after
    each begin; of T trigrams ``words`` int32 are their last words and ``shares`` float64 what the counts add.
    """

    bigrams: UInt64
    before: Int64
    left: Float64
    starts: Int64
    words: Int32
    shares: Float64


def level(counted: Range, discount: float, *, complete: bool) -> Level:
    """Smooth the trigrams of a range, and count the words before bigrams.

    ``complete`` says that no trigram was left out. Raises UserError if a trigram's bigrams are missing.
    """
    context, suffix = _find(counted.bigrams, counted.contexts), _find(counted.bigrams, counted.suffixes)
    size = counted.bigrams.size
    totals = np.bincount(context, counted.counts3, size)
    totals = totals if complete else np.maximum(totals, counted.counts2)
    shares = (counted.counts3 - discount) / totals[context]
    left = np.clip(1.0 - np.bincount(context, shares, size), 0.0, 1.0)
    accounted = np.bincount(suffix, counted.suffix_counts, size)
    before = np.bincount(suffix, minlength=size) + (counted.counts2 > accounted)
    starts = np.concatenate([[0], np.cumsum(np.bincount(context, minlength=size))])
    return Level(counted.bigrams, before.astype(np.int64), left, starts.astype(np.int64), counted.words, shares)


def _find(keys: UInt64, wanted: UInt64) -> npt.NDArray[np.int64]:
    places = np.searchsorted(keys, wanted)
    if wanted.size and (not keys.size or (keys[np.minimum(places, keys.size - 1)] != wanted).any()):
        raise ArtifactError(
            "These counts are damaged, since a trigram is counted and its bigrams are not; count again."
        )
    return np.asarray(places, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Sums:
    """Of V words: how many different bigrams begin and end with each, their N(.vw) and their counts; int64 [V] each."""

    begin: Int64
    totals: Int64
    end: Int64
    ended: Int64

    @classmethod
    def from_counts(cls, made: Level, counts2: Int64, size: int) -> Sums:
        first, second = words_of(made.bigrams)
        begin, end = np.bincount(first, minlength=size), np.bincount(second, minlength=size)
        totals, ended = np.bincount(first, made.before, size), np.bincount(second, counts2, size)
        return cls(begin, totals.astype(np.int64), end, ended.astype(np.int64))


@dataclass(frozen=True, slots=True)
class Words:
    """Probabilities of words without context, ``first`` float64 [V + 1], unknown word last, and L(v), ``left`` [V].

    ``start`` float64 [V + 1] is the probability that a word begins a run: nine parts of how often it had no preceding
    word, and one part of its frequency. ``first`` counts preceding words, so it is far too small for this.
    """

    first: Float64
    start: Float64
    left: Float64
    begin: Int64
    totals: Int64
    discount: float

    @classmethod
    def from_counts(cls, sums: Sums, discount: float, unigrams: Int64, tokens: int) -> Words:
        """Smooth words: ``unigrams`` int64 [V] are their counts, ``tokens`` those of all words, unknown ones too."""
        size = unigrams.size
        before = sums.end + (unigrams > sums.ended)
        whole = max(int(before.sum()), 1)
        own = Discounts.from_counts(before).value
        shares = np.where(before > 0, (before - own) / whole, 0.0)
        unknown = max(0.0, 1.0 - float(unigrams.sum()) / max(tokens, 1))
        first = (1.0 - unknown) * (np.append(shares, 0.0) + max(0.0, 1.0 - float(shares.sum())) / (size + 1))
        first[size] += unknown
        with np.errstate(invalid="ignore", divide="ignore"):
            left = np.where(sums.totals > 0, np.clip(discount * sums.begin / sums.totals, 0.0, 1.0), 1.0)
        begun = np.append(unigrams - sums.ended, 0)
        whole = max(int(begun.sum()), 1)
        start = (1.0 - unknown) * (0.9 * begun / whole + 0.1 * np.append(unigrams, 0.5) / (unigrams.sum() + 0.5))
        start[size] += unknown
        return cls(first, start, left, sums.begin, sums.totals, discount)

    def bigrams(self, keys: UInt64, before: Int64) -> Float64:
        """Return P(w | v) of bigrams, float64."""
        first, second = words_of(keys)
        share = (before - self.discount) / self.totals[first]
        return np.asarray(share + self.left[first] * self.first[second])
