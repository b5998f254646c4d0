"""Search with obfuscated queries (pyPANTERA: De Faveri, Faggioli, Ferro 2024; after Faggioli and Ferro 2024).

The engine, which is not trusted, sees only the private variants of a query. The union of its results is the pool R; the
client, who knows the original query, ranks R by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corpusveil_studies.retrieval.obfuscated_queries import Variants
from corpusveil_studies.retrieval.ranking import DEPTH, Ranking, Scorer, SearchEngine, best, check_depth, ranked


@dataclass(frozen=True, slots=True, eq=False)
class Obfuscated:
    """The results for Q queries.

    ``pools`` are the documents R found by any variant of a query, in ascending order, int64 [n] each; ``reranked`` the
    best of them by the original query; ``engine`` and ``client`` are the labels of the engines for search and
    re-ranking.
    """

    pools: tuple[npt.NDArray[np.int64], ...]
    reranked: Ranking
    engine: str
    client: str


def search_obfuscated(
    engine: SearchEngine, variants: Variants, depth: int = DEPTH, client: Scorer | None = None, kept: int | None = None
) -> Obfuscated:
    """Search with every variant, ``depth`` results each, and rank the union of them by the original query.

    ``client`` is by default the engine itself, as in the study, where one dense model does both; for BM25 this means
    that the client knows the frequencies of words in the collection. The client keeps the best ``kept`` of the pool, by
    default as many as one variant found. Documents that the client cannot score stay in the pool and are not ranked. A
    variant that occurs several times is searched once.
    """
    depth, kept = check_depth(depth), check_depth(depth if kept is None else kept)
    scorer: Scorer = engine if client is None else client
    once = {text: row for row, text in enumerate(dict.fromkeys(variant for some in variants.texts for variant in some))}
    results = engine.search(list(once), depth)
    pools, rows = [], []
    for query, some in zip(variants.queries, variants.texts, strict=True):
        pool = np.unique(np.concatenate([results.found(once[variant]) for variant in some]))
        scores = scorer.scores(query, pool)
        places = best(scores, kept)
        pools.append(pool)
        rows.append((pool[places], scores[places]))
    return Obfuscated(tuple(pools), ranked(rows, kept), engine.label, scorer.label)
