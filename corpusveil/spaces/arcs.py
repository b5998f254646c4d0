"""Spaced lists: a word's arc on a ring is as wide as the word is frequent in public text, or as harmless.

On a ring, noise moves a word by cells, and the word that owns the cell where it ends comes out. With one cell for each
word, replacements are drawn alike from all neighbors, so that rare words come out as often as frequent words. With

    s_w  proportional to  (c_w + 1/2)^A f_w

cells for word w (c its public count, f a public factor), frequent words keep themselves, rare words hide among many
others, and a release looks more like text. Counts and factors are public, so this is a choice of the metric, and every
guarantee holds in the new distance (``mechanisms.md`` §19). A = 0 without factors is the plain ring.

The smallest arc has ``SMALLEST`` cells, so that rounding hardly changes the widths; but a ring has at most ``DENSEST``
cells for each word, so that a table of their owners stays in a processor's cache. All is computed in decimals, so that
a space is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from corpusveil.arrays import Int64
from corpusveil.errors import BadTypeError, BadValueError, ConflictError, DataError, UnsetError
from corpusveil.sampling.weights import power
from corpusveil.spaces.space import MOST_CELLS
from corpusveil.spaces.vectors import LARGEST_FACTOR
from corpusveil.spaces.vocabulary import Vocabulary

SMALLEST, DENSEST = 4, 16
FACTOR = 4.0
"""The factor of a word that is called sensitive or harmless without one."""
Factors = Collection[str] | Mapping[str, float] | None


@dataclass(frozen=True, slots=True)
class Spacing:
    """The power A of public counts, and the factors by which arcs of words are wider, or below 1, narrower."""

    power: float
    factors: Mapping[str, float]

    @classmethod
    def of(cls, spacing: float, sensitive: Factors, harmless: Factors, lists: int) -> Spacing | None:
        """Return the spacing of a space; None if every word has one cell. Raises UserError for bad values."""
        if isinstance(spacing, bool) or not isinstance(spacing, (int, float)) or not 0 <= spacing <= 1:
            raise BadValueError(f"spacing = {spacing}: give a number from 0 (none) to 1; 0.5 is usual.")
        narrow, wide = dict(_pairs("sensitive", sensitive)), dict(_pairs("harmless", harmless))
        if both := narrow.keys() & wide.keys():
            raise ConflictError(f"{len(both):,} words are both sensitive and harmless; leave each out of one of them.")
        factors = wide | {word: 1 / factor for word, factor in narrow.items()}
        if not spacing and not factors:
            return None
        if not lists:
            raise ConflictError("spacing: arcs are on lists, and lists = 0; give 1 or more, or leave spacing out.")
        return cls(float(spacing), factors)

    def arcs(self, vocabulary: Vocabulary) -> Int64:
        """Return the cells of each word; int64 [V]. Raises UserError without counts, and for too many words."""
        size, counts = len(vocabulary), vocabulary.counts
        if 2 * size > MOST_CELLS:
            raise DataError(
                f"spacing: a ring of arcs has at most {MOST_CELLS:,} cells, too few for {size:,} words; keep at most "
                f"{MOST_CELLS // 2:,} words, or leave spacing out."
            )
        if self.power and counts is None:
            raise UnsetError(
                f"spacing = {self.power:g} needs public counts of the words; give counts, such as the output of "
                "'corpusveil count'."
            )
        every = [0] * size if counts is None or not self.power else counts.tolist()
        of_count = {count: power(Decimal(count) + Decimal("0.5"), self.power) for count in set(every)}
        with localcontext(prec=50):
            widths = [
                of_count[count] * Decimal(self.factors.get(word, 1.0))
                for word, count in zip(vocabulary.words, every, strict=True)
            ]
            least, total = min(widths), sum(widths, Decimal(0))
            most = min(DENSEST * size, MOST_CELLS) - size  # rounding adds less than one cell to each word
            unit = min(SMALLEST / least, most / total)
            return np.array([max(1, round(width * unit)) for width in widths], dtype=np.int64)

    def note(self, arcs: Int64) -> dict[str, Any]:
        """Return a description's fields for these arcs."""
        wide = sum(factor > 1 for factor in self.factors.values())
        named = f", {len(self.factors) - wide:,} sensitive and {wide:,} harmless words" if self.factors else ""
        sentence = (
            f"Spacing {self.power:g}{named}: a word has {arcs.min():,} to {arcs.max():,} of {arcs.sum():,} cells of a "
            f"ring, {arcs.mean():.1f} in the mean; for ring-geometric, a step is a mean arc."
        )
        return {"spacing": self.power, "spacing_note": sentence}


def _pairs(name: str, words: Factors) -> Iterable[tuple[str, float]]:
    """Return words and factors, ``FACTOR`` where none is given. Raises UserError for anything else."""
    if isinstance(words, str):
        raise BadTypeError(f"{name}: give a list of words, or words with factors, not one text.")
    pairs = words.items() if isinstance(words, Mapping) else ((word, FACTOR) for word in words or ())
    for word, factor in pairs:
        number = isinstance(factor, (int, float)) and 1 / LARGEST_FACTOR <= factor <= LARGEST_FACTOR
        if not isinstance(word, str) or not number:
            raise BadValueError(
                f"{name}: give words, or words with factors from 1/{LARGEST_FACTOR:g} to {LARGEST_FACTOR:g}."
            )
        yield word, float(factor)
