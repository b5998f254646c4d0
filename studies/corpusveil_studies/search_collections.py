"""The collections and engines of pyPANTERA's study: known items of a data set, or the user's judged collection."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from corpusveil.collocations.public_texts import public_texts
from corpusveil.errors import AddressError, ConflictError
from corpusveil.storage import files
from corpusveil_studies.bundled_text import passages
from corpusveil_studies.retrieval.bm25 import Bm25
from corpusveil_studies.retrieval.dense import Dense, OnDemand
from corpusveil_studies.retrieval.known_items import known_items
from corpusveil_studies.retrieval.obfuscated_queries import prepared
from corpusveil_studies.retrieval.ranking import Scorer, SearchEngine
from corpusveil_studies.retrieval.ranking_scores import Judgements
from corpusveil_studies.retrieval.trec import Passages, join_judgements, read_qrels, read_queries
from corpusveil_studies.study_data import StudyData

SearchName = Literal["bm25", "dense", "bm25-dense"]
"""The engine and, after the hyphen, the re-ranking client; a single name does both, as in the study."""
JUDGED = "judged"
"""The collection of ``--collection``, ``--queries`` and ``--qrels``."""
BUNDLED = "bundled-passages"
PASSAGE_WORDS = 100


@dataclass(frozen=True, slots=True)
class Size:
    """How many queries of how many terms, over how many documents at most: of known-item search."""

    queries: int
    terms: int
    documents: int


@dataclass(frozen=True, slots=True, eq=False)
class SearchCollection:
    """Q prepared ``queries``, their relevant documents, and for each search an engine and, if different, a client.

    ``missing`` judged passages are not in the collection.
    """

    queries: tuple[str, ...]
    judgements: Judgements
    by: Mapping[SearchName, tuple[SearchEngine, Scorer | None]]
    missing: int = 0


def is_judged(data: StudyData) -> bool:
    """Say whether the user gave a judged collection. Raises UserError for an incomplete one."""
    sources = data.sources
    present = [url is not None for url in (sources.collection, sources.queries, sources.qrels)]
    if any(present) and not all(present):
        raise ConflictError("collection, queries and qrels belong together; give all three or none.")
    return all(present)


def prepare_index(data: StudyData) -> None:
    """Make the BM25 index of the judged collection, once, for all processes. Raises UserError for a remote output."""
    where = _index(data)
    if not os.path.exists(where):
        Bm25.of_batches(_passages(data, keep=False).batches).save(where)


@functools.lru_cache(maxsize=2)
def search_collection(data: StudyData, name: str, searches: tuple[SearchName, ...], size: Size) -> SearchCollection:
    """Return the collection of a name, once per process."""
    if name == JUDGED:
        return _judged(data, searches)
    if name == BUNDLED:
        texts = [passage for text in public_texts() for passage in passages(text, PASSAGE_WORDS)]
        rows = np.random.default_rng(0).permutation(len(texts))[: size.documents]
        texts = [texts[row] for row in np.sort(rows).tolist()]
    else:
        texts = list(data.task(name, size.documents, size.documents).texts)[: size.documents]
    items = known_items(texts, size.queries, terms=size.terms, words_of_queries=data.space().vocabulary)
    return SearchCollection(items.queries, items.judgements, _known_item_engines(data, searches, list(items.documents)))


def _known_item_engines(
    data: StudyData, searches: tuple[SearchName, ...], documents: list[str]
) -> dict[SearchName, tuple[SearchEngine, Scorer | None]]:
    sparse = Bm25.of_texts(documents) if any(search.startswith("bm25") for search in searches) else None
    dense = Dense.of_texts(documents, data.encoder) if any(search.endswith("dense") for search in searches) else None
    return _by(searches, sparse, dense, dense)


def _judged(data: StudyData, searches: tuple[SearchName, ...]) -> SearchCollection:
    sources = data.sources
    assert sources.queries is not None  # noqa: S101 - is_judged
    assert sources.qrels is not None  # noqa: S101 - is_judged
    dense = any(search.endswith("dense") for search in searches)
    passages_of = _passages(data, keep=dense)
    judged = join_judgements(read_queries(sources.queries), read_qrels(sources.qrels), passages_of)
    sparse = Bm25.load(_index(data)) if any(search.startswith("bm25") for search in searches) else None
    whole = None
    if "dense" in searches:
        whole = Dense.of_texts(passages_of.texts(range(len(passages_of))), data.encoder)
    client = whole or (OnDemand(data.encoder, passages_of.texts) if dense else None)
    queries = tuple(prepared(query) for query in judged.queries)
    return SearchCollection(queries, judged.judgements, _by(searches, sparse, whole, client), judged.missing)


def _by(
    searches: tuple[SearchName, ...], sparse: Bm25 | None, dense: Dense | None, client: Scorer | None
) -> dict[SearchName, tuple[SearchEngine, Scorer | None]]:
    engines: dict[SearchName, tuple[SearchEngine, Scorer | None]] = {}
    for search in searches:
        engine = dense if search == "dense" else sparse
        assert engine is not None  # noqa: S101 - made for these searches
        engines[search] = (engine, client if search == "bm25-dense" else None)
    return engines


def _passages(data: StudyData, *, keep: bool) -> Passages:
    assert data.sources.collection is not None  # noqa: S101 - is_judged
    return Passages.open(data.sources.collection, keep=keep)


def _index(data: StudyData) -> str:
    if not files.is_local(data.folder):
        raise AddressError(f"{data.folder}: the index of a collection is mapped from a disk; choose a local output.")
    return files.absolute(data.address("bm25"))
