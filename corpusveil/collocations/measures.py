"""How much more often than by chance words are adjacent: PMI and similar measures, on tables of counts.

With N words in all, an n-gram x₁…x_k that occurs c times and words that occur c₁…c_k times; E = c₁⋯c_k / N^(k-1) is the
expectation under independence.

* ``pmi``: log2(c / E) = log2(N^(k-1) c / (c₁⋯c_k)); equations (5) and (6) of Meisenbacher, Chevli, Matthes (2024).
* ``npmi``: pmi / (-(k - 1) log2(c / N)), from -1 to 1 (Bouma 2009, for two words).
* ``t``: (c - E) / √c (Church, Gale, Hanks, Hindle 1991).
* ``llr``: 2 Σ O ln(O / E), negative where c < E. For two words over their 2 × 2 table (Dunning 1993); for more over the
  two cells *is the n-gram* and *is not*, expecting E and N - E: a table of 2^k cells would need the counts of n-grams
  with gaps, which are not counted.
* ``chi2``: Pearson's Σ (O - E)² / E over the same cells, negative where c < E (Church, Gale 1991; Manning, Schütze
  1999).
* ``jaccard``: c / (c₁ + ⋯ + c_k - (k - 1) c), from 0 to 1: of the places where either of two words occurs, the share
  where they are adjacent (Jaccard 1912).
* ``log-dice``: 14 + log2(k c / (c₁ + ⋯ + c_k)), at most 14 and the same in a corpus of any size (Rychlý 2008).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.arrays import Float64
from corpusveil.choices import MEASURES, Measure
from corpusveil.collocations.public_texts import of_gensim
from corpusveil.errors import ArtifactError, SettingError, check_whole, not_a_choice
from corpusveil.spaces.vocabulary import read_words
from corpusveil.text.languages import function_words

ConnectorRule = Literal["strict", "edges"]
"""``strict``: no connector anywhere. ``edges``: no connector at the beginning or end ("chain of events" is kept)."""


def connector_words(url: str | None = None, language: str | None = None) -> frozenset[str]:
    """Return connector words: gensim's for English, function words of a language, or the lines of a file."""
    if url is not None:
        return frozenset(word.lower() for word in read_words(url))
    if language not in (None, "en"):
        return function_words(language)
    return frozenset(of_gensim("models.phrases").ENGLISH_CONNECTOR_WORDS)


SCHEMA = pa.schema([("ngram", pa.string()), ("n", pa.int8()), ("count", pa.int64()), ("score", pa.float64())])


DIGITS = 27
"""Binary digits of a score."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """The n-grams to keep: they occur ``min_count`` times and score at least ``threshold``, in units of ``measure``.

    ``connectors`` are words such as *of* that a collocation may not have: anywhere (``rule="strict"``), or at its ends
    (``"edges"``). Raises UserError for values out of range.

    >>> cv.Scoring("npmi", threshold=0.3, connectors=frozenset({"of", "the"}), rule="edges").min_count
    1
    """

    measure: Measure = "pmi"
    threshold: float = 2.0
    min_count: int = 1
    connectors: frozenset[str] = frozenset()
    rule: ConnectorRule = "strict"

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise not_a_choice("measure", self.measure, MEASURES)
        if not np.isfinite(self.threshold):
            raise SettingError(f"threshold = {self.threshold}: give a finite number.")
        check_whole("min_count", self.min_count)
        if self.rule not in ("strict", "edges"):
            raise SettingError(f"connectors rule = {self.rule!r}: choose strict or edges.")


@dataclass(frozen=True, slots=True)
class Unigrams:
    """How often each word occurs: ``words`` large_string [V], ``counts`` int64 [V]; ``total`` is N."""

    words: pa.Array
    counts: npt.NDArray[np.int64]
    total: int


def scored(tables: Iterable[pa.Table], unigrams: Unigrams, scoring: Scoring) -> Iterator[pa.Table]:
    """Yield ``ngram, n, count, score`` of the kept n-grams. Raises UserError if its words are not counted."""
    connectors = pa.array(sorted(scoring.connectors), pa.large_string())
    for table in tables:
        for n in sorted(set(table["n"].to_pylist()) - {1}):
            rows = table.filter(pc.and_(pc.equal(table["n"], n), pc.greater_equal(table["count"], scoring.min_count)))
            if rows.num_rows:
                yield _kept(rows.combine_chunks(), n, unigrams, scoring, connectors)


def _kept(rows: pa.Table, n: int, unigrams: Unigrams, scoring: Scoring, connectors: pa.Array) -> pa.Table:
    ngrams = rows["ngram"].cast(pa.large_string()).combine_chunks()
    ngrams = ngrams if isinstance(ngrams, pa.Array) else pa.concat_arrays(ngrams.chunks)
    words = pc.split_pattern(ngrams, " ")
    if not pc.all(pc.equal(pc.list_value_length(words), n)).as_py():
        raise ArtifactError(
            "These counts are damaged: an n-gram has another number of words than its row says; count again."
        )
    parts = [pc.list_element(words, k) for k in range(n)]
    counts = rows["count"].to_numpy()
    single = np.empty((n, len(counts)), dtype=np.int64)
    for k, part in enumerate(parts):
        positions = pc.index_in(part, value_set=unigrams.words)
        if positions.null_count:
            raise ArtifactError("These counts are damaged: an n-gram has a word that is not counted; count again.")
        single[k] = unigrams.counts[positions.to_numpy()]
    scores = score(counts, single, unigrams.total, scoring.measure)
    keep = scores >= scoring.threshold
    looked_at = parts if scoring.rule == "strict" else [parts[0], parts[-1]]
    for part in looked_at:
        keep &= ~pc.is_in(part, value_set=connectors).to_numpy(zero_copy_only=False)
    table = pa.table([rows["ngram"], rows["n"], rows["count"], pa.array(scores)], schema=SCHEMA)
    return table.filter(pa.array(keep))


def score(counts: Any, single: Any, total: int, measure: Measure) -> Float64:
    """Return the scores of n-grams: ``counts`` int64 [G], ``single`` int64 [k, G] of their words; float64 [G].

    They have 27 binary digits (eight decimal ones), since processors differ in the last digits of logarithms.
    """
    mantissa, exponent = np.frexp(_exact(counts, single, total, measure))
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, DIGITS)), exponent - DIGITS))


def _exact(counts: Any, single: Any, total: int, measure: Measure) -> Float64:
    c = np.asarray(counts, dtype=np.float64)
    words = np.asarray(single, dtype=np.float64)
    k = len(words)
    if measure == "jaccard":
        return np.asarray(c / (words.sum(axis=0) - (k - 1) * c))
    if measure == "log-dice":
        return np.asarray(14 + np.log2(k * c / words.sum(axis=0)))
    pmi = np.log2(c) + (k - 1) * np.log2(float(total)) - np.log2(words).sum(axis=0)
    if measure == "pmi":
        return np.asarray(pmi)
    if measure == "npmi":
        return np.asarray(pmi / ((k - 1) * (np.log2(float(total)) - np.log2(c))))
    expected = words[0] * (words[1:] / float(total)).prod(axis=0)
    if measure == "t":
        return np.asarray((c - expected) / np.sqrt(c))
    sign = np.where(c < expected, -1.0, 1.0)
    more = c - expected
    cells: tuple[Float64, ...] = (expected, total - expected)
    if k == 2:
        first, second = words
        cells = (expected, total - first - second + expected, first - expected, second - expected)
    if measure == "chi2":
        inverse = (np.divide(1.0, e, out=np.zeros_like(e), where=e > 0) for e in cells)  # 0 for a cell that is empty
        return np.asarray(sign * more * more * sum(inverse))
    signs = (1, 1, -1, -1) if k == 2 else (1, -1)
    return np.asarray(2 * sign * sum(_divergence(e, d * more) for e, d in zip(cells, signs, strict=True)))


def _divergence(expected: Float64, more: Float64) -> Float64:
    """Return O ln(O / E) - (O - E) for O = E + ``more``: never below 0, so that rounding errors do not add up."""
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.maximum(more / expected, -1.0)
        direct = (1 + x) * np.log1p(x) - x
        near = x * x * (0.5 - x * (1 / 6 - x / 12))
        return expected * np.where(np.abs(x) < 1e-4, near, np.where(x <= -1, 1.0, direct))


def ordered(table: pa.Table) -> pa.Table:
    """Return a table of scores in its order: falling score, n, n-gram."""
    return table.take(pc.sort_indices(table, [("score", "descending"), ("n", "ascending"), ("ngram", "ascending")]))
