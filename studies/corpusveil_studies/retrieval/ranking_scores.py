"""Recall, nDCG and reciprocal rank of rankings, as trec_eval computes them.

With g the judged grade (0 where nothing was judged, and for grades below 0), i the rank from 1 and T the threshold:

    recall@k = documents of grade >= T among the first k / all documents of grade >= T
    nDCG@k   = sum over i <= k of g(i) / log2(i + 1), divided by that of the best possible order
    RR@k     = 1 / rank of the first document of grade >= T, 0 where there is none among the first k

The gain is linear in the grade, which is what trec_eval's ``ndcg_cut`` has, and so the figures of the TREC track;
2^g - 1, as in other tools, gives other figures for grades above 1. In the TREC 2019 track a passage of grade 2 or 3
counts as relevant for recall and reciprocal rank, grade 1 ("related") does not; nDCG takes all grades.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from corpusveil.errors import BadValueError, DataError, ShapeError
from corpusveil_studies.retrieval.obfuscated_search import Obfuscated
from corpusveil_studies.retrieval.ranking import NONE, Ranking

RECALL_AT, NDCG_AT, RECIPROCAL_AT = 100, 10, 10
DL19_THRESHOLD = 2
"""The least grade that counts as relevant in the TREC 2019 deep learning track, passages, outside of nDCG."""


@dataclass(frozen=True, slots=True)
class Judgements:
    """The relevant documents of each of Q queries.

    ``grades`` has for each query the grade of its judged documents, by number; documents that are not in the index have
    any numbers below -1: they count as never found. ``threshold`` is the least grade that is relevant.
    """

    grades: Sequence[Mapping[int, int]]
    threshold: int = 1

    def __post_init__(self) -> None:
        if self.threshold < 1:
            raise BadValueError(f"threshold = {self.threshold}: give the least relevant grade, 1 or more.")
        if any(NONE in some for some in self.grades):
            raise BadValueError("Document -1 is judged; give missing documents numbers below -1.")

    def __len__(self) -> int:
        return len(self.grades)

    def relevant(self, query: int) -> set[int]:
        """Return the documents that are relevant to one query."""
        return {number for number, grade in self.grades[query].items() if grade >= self.threshold}


@dataclass(frozen=True, slots=True)
class RetrievalScores:
    """Measures of Q queries, one a query, 0 to 1; nan for a query without a relevant document.

    ``pool_recall`` is the recall of all of R, however large; of a plain search R is its ranking. ``recall`` is that of
    the first 100 of the ranking, ``ndcg`` nDCG@10, ``reciprocal`` of the whole ranking and ``reciprocal_10`` of its
    first 10. ``pool`` is the number of documents in R.
    """

    pool_recall: npt.NDArray[np.float64]
    recall: npt.NDArray[np.float64]
    ndcg: npt.NDArray[np.float64]
    reciprocal: npt.NDArray[np.float64]
    reciprocal_10: npt.NDArray[np.float64]
    pool: npt.NDArray[np.float64] = field(repr=False)

    @property
    def queries(self) -> int:
        """The number of queries in a mean: those with relevant documents."""
        return int((~np.isnan(self.recall)).sum())

    def means(self) -> dict[str, float]:
        """Return the mean of each measure, under its name in tables."""
        judged = ~np.isnan(self.recall)
        return {name: float(getattr(self, at)[judged].mean()) for at, name in NAMES.items()}


NAMES: Mapping[str, str] = {
    "pool_recall": "recall of R",
    "recall": f"recall@{RECALL_AT} re-ranked",
    "ndcg": f"nDCG@{NDCG_AT}",
    "reciprocal": "MRR",
    "reciprocal_10": f"MRR@{RECIPROCAL_AT}",
    "pool": "documents in R",
}


def recall(ranked: npt.NDArray[np.int64], relevant: set[int]) -> float:
    """Return the share of the relevant documents that was found; nan if there are none."""
    return len(relevant.intersection(ranked.tolist())) / len(relevant) if relevant else math.nan


def ndcg(ranked: npt.NDArray[np.int64], grades: Mapping[int, int], cut: int = NDCG_AT) -> float:
    """Return nDCG of the first ``cut`` documents, linear gains; nan where no grade is above 0."""
    ideal = _dcg(sorted(grades.values(), reverse=True)[:cut])
    return _dcg([grades.get(number, 0) for number in ranked[:cut].tolist()]) / ideal if ideal else math.nan


def _dcg(grades: Sequence[int]) -> float:
    return sum(max(grade, 0) / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))


def reciprocal_rank(ranked: npt.NDArray[np.int64], relevant: set[int], cut: int | None = None) -> float:
    """Return 1 / rank of the first relevant document, 0 without one; nan where nothing is relevant."""
    if not relevant:
        return math.nan
    return next((1 / rank for rank, number in enumerate(ranked[:cut].tolist(), 1) if number in relevant), 0.0)


def score_ranking(ranking: Ranking, judged: Judgements) -> RetrievalScores:
    """Score a plain search; its recall of R is that of the whole ranking."""
    return _scored([ranking.found(query) for query in range(len(ranking))], ranking, judged)


def score_obfuscated(search: Obfuscated, judged: Judgements) -> RetrievalScores:
    """Score a search with obfuscated queries: recall of the pools, other measures of the client's ranking."""
    return _scored(search.pools, search.reranked, judged)


def _scored(pools: Sequence[npt.NDArray[np.int64]], ranking: Ranking, judged: Judgements) -> RetrievalScores:
    if len(ranking) != len(judged) or not len(judged):
        raise ShapeError(
            f"{len(ranking):,} queries were searched and {len(judged):,} are judged; give the same queries."
        )
    rows = []
    for query, pool in enumerate(pools):
        ranked, relevant = ranking.found(query), judged.relevant(query)
        rows.append((
            recall(pool, relevant), recall(ranked[:RECALL_AT], relevant), ndcg(ranked, judged.grades[query]),
            reciprocal_rank(ranked, relevant), reciprocal_rank(ranked, relevant, RECIPROCAL_AT), pool.size,
        ))  # fmt: skip
    columns = np.array(rows, np.float64).T
    if np.isnan(columns[1]).all():
        raise DataError("No query has a relevant document, so there is nothing to find; give other judgments.")
    return RetrievalScores(*columns)
