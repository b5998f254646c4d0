"""Search by vectors: cosine of query and document, by any ``Encoder`` of ``similarity.py``.

The study has Contriever; the label of a figure names its encoder. Scores are rounded to six decimals, since
the last ones depend on how many queries are multiplied at once and would break ties by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from corpusveil.errors import DataError
from corpusveil_evaluate.statistics.encoders import Encoder
from corpusveil_evaluate.statistics.similarity import BATCH
from corpusveil_evaluate.studies.retrieval.ranking import DEPTH, Ranking, best, ranked
from corpusveil_evaluate.terms import check_texts

AT_ONCE = 64
"""Queries that are compared with all documents at once."""
DECIMALS = 6


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """An exact index of N documents: all of their vectors, float32 [N, d], of length 1.

    A text that has nothing to encode is never a result, and as a query it has none.
    """

    encoder: Encoder
    _vectors: npt.NDArray[np.float32] = field(repr=False)

    @classmethod
    def of_texts(cls, texts: Sequence[str], encoder: Encoder) -> Dense:
        """Encode the documents: 4 d bytes each stay in memory. Raises UserError without documents."""
        if not len(check_texts(texts, "documents")):
            raise DataError("There are no documents to search; give at least one.")
        return cls(encoder, _unit(texts, encoder))

    def __len__(self) -> int:
        return len(self._vectors)

    def search(self, queries: Sequence[str], depth: int = DEPTH) -> Ranking:
        """Return the nearest documents of each query."""
        check_texts(queries, "queries")
        rows = []
        for start in range(0, len(queries), AT_ONCE):
            vectors = _unit(queries[start : start + AT_ONCE], self.encoder)
            for vector, scores in zip(vectors, vectors @ self._vectors.T, strict=True):
                rows.append(best(self._sound(vector, self._vectors, scores), depth))
        return ranked(rows, depth)

    def scores(self, query: str, documents: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the cosines of some documents; -inf where either has nothing to encode."""
        vectors = self._vectors[documents]
        (vector,) = _unit([query], self.encoder)
        return self._sound(vector, vectors, vectors @ vector)

    @staticmethod
    def _sound(
        query: npt.NDArray[np.float32], vectors: npt.NDArray[np.float32], products: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float64]:
        there = query.any() & vectors.any(axis=1)
        return np.where(there, np.round(products.astype(np.float64), DECIMALS) + 0.0, -np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class OnDemand:
    """A dense scorer that encodes a document when it is first asked for: for re-ranking what another engine found.

    ``text`` gives the texts of documents by number. The vectors of all that were ever asked for stay in memory.
    """

    encoder: Encoder
    text: Callable[[Sequence[int]], Sequence[str]]
    _known: dict[int, npt.NDArray[np.float32]] = field(default_factory=dict, init=False, repr=False)

    def scores(self, query: str, documents: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the cosines of these documents; -inf where either has nothing to encode."""
        numbers = np.asarray(documents, np.int64).tolist()
        if not numbers:
            return np.empty(0)
        missing = [number for number in dict.fromkeys(numbers) if number not in self._known]
        if missing:
            self._known.update(zip(missing, _unit(self.text(missing), self.encoder), strict=True))
        pool = Dense(self.encoder, np.stack([self._known[number] for number in numbers]))
        return pool.scores(query, np.arange(len(numbers)))


def _unit(texts: Sequence[str], encoder: Encoder) -> npt.NDArray[np.float32]:
    """Return the vectors of texts, of length 1 or of zeros; float32 [n, d]."""
    parts = [encoder.encode(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
    vectors = np.concatenate(parts).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: npt.NDArray[np.float32] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit
