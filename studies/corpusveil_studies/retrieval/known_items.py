"""Known-item search: find one half of a document by a query from its other half.

A substitute if no judged passages are available. Of each document the second half of its words is indexed. Of some
documents, drawn by a seed, the query is the eight terms of the first half with the highest tf-idf, and the one relevant
document is its second half. It does not replace human judgments: a document is found by the words that its author
repeats, and every other document about the same subject counts as wrong.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np

from corpusveil.errors import BadValueError, DataError
from corpusveil.evaluation.terms import check_texts
from corpusveil_studies.retrieval.obfuscated_queries import prepared
from corpusveil_studies.retrieval.ranking_scores import Judgements

QUERIES, TERMS = 200, 8


@dataclass(frozen=True, slots=True)
class KnownItems:
    """Q ``queries`` over N ``documents``; the i-th query looks for the document ``items[i]``, and no other."""

    queries: tuple[str, ...]
    documents: tuple[str, ...]
    items: tuple[int, ...]

    @property
    def judgements(self) -> Judgements:
        return Judgements([{item: 1} for item in self.items])


def known_items(
    texts: Sequence[str],
    queries: int = QUERIES,
    seed: int = 0,
    terms: int = TERMS,
    words_of_queries: Container[str] | None = None,
) -> KnownItems:
    """Return known-item search over texts: the same for the same texts and seed.

    Words are those of ``prepared`` text, split at blanks; the first half of n has n // 2 of them. tf-idf is ``tf ln(N /
    df)`` over the N first halves; terms are in its order; the alphabet breaks ties. Copies of a text, and texts of
    fewer than two words, are left out; a text whose first half has too few different terms for a query is searched, but
    gives no query. ``words_of_queries``, such as a space's vocabulary, restricts the words of queries: the rarest words
    of a text are names and errors that no space has, and no mechanism replaces those. Raises UserError if fewer than
    ``queries`` queries are possible.
    """
    if min(queries, terms) < 1:
        raise BadValueError(f"{queries} queries of {terms} terms: give at least one of each.")
    words = [list(key) for key in dict.fromkeys(tuple(prepared(text).split()) for text in check_texts(texts))]
    words = [word for word in words if len(word) > 1]
    firsts = [Counter(word[: len(word) // 2]) for word in words]
    if words_of_queries is not None:
        firsts = [Counter({term: n for term, n in first.items() if term in words_of_queries}) for first in firsts]
    able = [number for number, counts in enumerate(firsts) if len(counts) >= terms]
    if len(able) < queries:
        raise DataError(
            f"Known-item search: {len(able):,} of {len(texts):,} texts have {terms} different words in their first "
            f"half, and {queries:,} queries are requested; give more or longer texts, or fewer queries."
        )
    frequency = Counter(term for counts in firsts for term in counts)
    drawn = np.sort(np.random.default_rng(seed).choice(able, queries, replace=False)).tolist()

    def query(counts: Counter[str]) -> str:
        weight = {term: count * math.log(len(firsts) / frequency[term]) for term, count in counts.items()}
        return " ".join(sorted(weight, key=lambda term: (-weight[term], term))[:terms])

    seconds = tuple(" ".join(word[len(word) // 2 :]) for word in words)
    return KnownItems(tuple(query(firsts[number]) for number in drawn), seconds, tuple(drawn))
