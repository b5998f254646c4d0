"""The result of a search, and the protocol of a search engine.

Documents are numbers, in the order in which they were indexed. This number breaks ties of scores, so that a ranking
depends only on the texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

DEPTH = 100
"""Results of a query, by our choice: the study does not state it."""
NONE = -1
"""The padding of a ranking with fewer results than requested."""


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The best documents of Q queries, best first.

    ``documents`` int64 [Q, depth] are numbers of documents, -1 after the last result of a query.
    """

    documents: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.documents)

    def found(self, query: int) -> npt.NDArray[np.int64]:
        """Return the results of one query, best first; int64 [n], n at most the depth."""
        row: npt.NDArray[np.int64] = self.documents[query]
        return np.compress(row != NONE, row)


class Scorer(Protocol):
    """Scores how well documents answer a query."""

    def scores(self, query: str, documents: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the score of each of these documents, by number.

        Float64 [n], -inf for a document that is not a result.
        """


class SearchEngine(Scorer, Protocol):
    """A scorer that finds the best of all its documents."""

    def __len__(self) -> int:
        """Return the number of documents."""

    def search(self, queries: Sequence[str], depth: int = DEPTH) -> Ranking:
        """Return the best ``depth`` documents of each query, equal scores by number."""


def best(scores: npt.NDArray[Any], depth: int) -> npt.NDArray[np.int64]:
    """Return which are the ``depth`` highest of scores [n], highest first, equal ones by place; int64.

    Those of -inf are left out.
    """
    places = np.flatnonzero(scores > -np.inf)
    if places.size > depth:
        least = np.partition(scores[places], places.size - depth)[places.size - depth]
        places = places[scores[places] >= least]
    return places[np.argsort(-scores[places], kind="stable")][:depth].astype(np.int64)


def ranked(rows: Sequence[npt.NDArray[np.int64]], depth: int) -> Ranking:
    """Return the ranking of queries' results, each the numbers of documents, best first; cut at ``depth``."""
    documents = np.full((len(rows), depth), NONE, np.int64)
    for row, numbers in zip(documents, rows, strict=True):
        row[: numbers.size] = numbers[:depth]
    return Ranking(documents)
