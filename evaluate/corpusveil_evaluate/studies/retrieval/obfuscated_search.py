"""Search with obfuscated queries, and its measures.

After pyPANTERA (De Faveri, Faggioli, Ferro 2024) and Faggioli and Ferro (2024): the engine, which is not trusted, sees
only the private variants of a query. The union of its results is the pool R; the client, who knows the original query,
ranks R by it.

Measures are trec_eval's (ir_measures). The gain of nDCG is linear in the grade; 2^g - 1, as in other tools, gives other
figures for grades above 1. In the TREC 2019 track a passage of grade 2 or 3 counts as relevant for recall and
reciprocal rank, grade 1 ("related") does not; nDCG takes all grades.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ir_measures
import numpy as np
import numpy.typing as npt
from ir_measures import RR, R, SetR, nDCG

from corpusveil.errors import DataError
from corpusveil_evaluate.studies.retrieval.obfuscated_queries import Variants
from corpusveil_evaluate.studies.retrieval.ranking import DEPTH, Ranking, Scorer, SearchEngine, best, ranked

RECALL_AT, NDCG_AT, RECIPROCAL_AT = 100, 10, 10
DL19_THRESHOLD = 2
"""The least grade that counts as relevant in the TREC 2019 deep learning track, passages, outside of nDCG."""


@dataclass(frozen=True, slots=True, eq=False)
class Obfuscated:
    """The results for Q queries.

    ``pools`` are the documents R found by any variant of a query, in ascending order, int64 [n] each; ``reranked`` the
    best of them by the original query.
    """

    pools: tuple[npt.NDArray[np.int64], ...]
    reranked: Ranking


def search_obfuscated(
    engine: SearchEngine, variants: Variants, depth: int = DEPTH, client: Scorer | None = None, kept: int | None = None
) -> Obfuscated:
    """Search with every variant, ``depth`` results each, and rank the union of them by the original query.

    ``client`` is by default the engine itself, as in the study, where one dense model does both; for BM25 this means
    that the client knows the frequencies of words in the collection. The client keeps the best ``kept`` of the pool, by
    default as many as one variant found. Documents that the client cannot score stay in the pool and are not ranked. A
    variant that occurs several times is searched once.
    """
    kept = depth if kept is None else kept
    scorer: Scorer = engine if client is None else client
    once = {text: row for row, text in enumerate(dict.fromkeys(variant for some in variants.texts for variant in some))}
    results = engine.search(list(once), depth)
    pools, rows = [], []
    for query, some in zip(variants.queries, variants.texts, strict=True):
        pool = np.unique(np.concatenate([results.found(once[variant]) for variant in some]))
        pools.append(pool)
        rows.append(pool[best(scorer.scores(query, pool), kept)])
    return Obfuscated(tuple(pools), ranked(rows, kept))


@dataclass(frozen=True, slots=True)
class Judgements:
    """The relevant documents of each of Q queries.

    ``grades`` has for each query the grade of its judged documents, by number; documents that are not in the index have
    any numbers below -1: they count as never found. ``threshold`` is the least grade that is relevant.
    """

    grades: Sequence[Mapping[int, int]]
    threshold: int = 1

    def __len__(self) -> int:
        return len(self.grades)


NAMES: Mapping[str, str] = {
    "pool_recall": "recall of R",
    "recall": f"recall@{RECALL_AT} re-ranked",
    "ndcg": f"nDCG@{NDCG_AT}",
    "reciprocal": "MRR",
    "reciprocal_10": f"MRR@{RECIPROCAL_AT}",
    "pool": "documents in R",
}
"""The measures, and their names in tables."""


def score_ranking(ranking: Ranking, judged: Judgements) -> dict[str, float]:
    """Score a plain search; its recall of R is that of the whole ranking."""
    return _scored([ranking.found(query) for query in range(len(ranking))], ranking, judged)


def score_obfuscated(search: Obfuscated, judged: Judgements) -> dict[str, float]:
    """Score a search with obfuscated queries: recall of the pools, other measures of the client's ranking."""
    return _scored(search.pools, search.reranked, judged)


def _scored(pools: Sequence[npt.NDArray[np.int64]], ranking: Ranking, judged: Judgements) -> dict[str, float]:
    """Return the measures, means from 0 to 1 over the queries with a relevant document."""
    least = judged.threshold
    judgements = {
        str(query): {str(number): max(grade, 0) for number, grade in grades.items()}
        for query, grades in enumerate(judged.grades)
        if max(grades.values(), default=0) >= least
    }
    if not judgements:
        raise DataError("No query has a relevant document, so there is nothing to find; give other judgments.")

    def run(found: Sequence[npt.NDArray[np.int64]]) -> dict[str, dict[str, float]]:
        return {
            query: {str(one): -float(at) for at, one in enumerate(found[int(query)].tolist())} for query in judgements
        }

    ranked = {"recall": R(rel=least) @ RECALL_AT, "ndcg": nDCG @ NDCG_AT, "reciprocal": RR(rel=least),
              "reciprocal_10": RR(rel=least) @ RECIPROCAL_AT}  # fmt: skip
    of_ranking = ir_measures.calc_aggregate(
        ranked.values(), judgements, run([ranking.found(query) for query in range(len(ranking))])
    )
    of_pools = ir_measures.calc_aggregate([SetR(rel=least)], judgements, run(pools))
    size = float(np.mean([pools[int(query)].size for query in judgements]))
    return {
        "pool_recall": of_pools[SetR(rel=least)], "pool": size,
        **{name: of_ranking[measure] for name, measure in ranked.items()},
    }  # fmt: skip
