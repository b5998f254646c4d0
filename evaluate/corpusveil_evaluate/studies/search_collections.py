"""The collections and engines of pyPANTERA's study: known items of a data set, or the user's judged collection.

Known-item search finds one half of a document by a query from its other half, where no judged passages are available.
Of each document the second half of its words is indexed. Of some documents, drawn by a seed, the query is the eight
terms of the first half with the highest tf-idf, and the one relevant document is its second half. It does not replace
human judgments: a document is found by the words that its author repeats, and every other document about the same
subject counts as wrong.
"""

from __future__ import annotations

import functools
import math
import os
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from corpusveil.collocations.public_texts import public_texts
from corpusveil.errors import AddressError, DataError, SettingError
from corpusveil.storage import files
from corpusveil_evaluate.studies.bundled_text import passages
from corpusveil_evaluate.studies.retrieval.bm25 import Bm25
from corpusveil_evaluate.studies.retrieval.dense import Dense, OnDemand
from corpusveil_evaluate.studies.retrieval.obfuscated_queries import prepared
from corpusveil_evaluate.studies.retrieval.obfuscated_search import Judgements
from corpusveil_evaluate.studies.retrieval.ranking import Scorer, SearchEngine
from corpusveil_evaluate.studies.retrieval.trec import Passages, join_judgements, read_qrels, read_queries
from corpusveil_evaluate.studies.study_data import StudyData
from corpusveil_evaluate.terms import check_texts

SearchName = Literal["bm25", "dense", "bm25-dense"]
"""The engine and, after the hyphen, the re-ranking client; a single name does both, as in the study."""
JUDGED = "judged"
"""The collection of ``--collection``, ``--queries`` and ``--qrels``."""
BUNDLED = "bundled-passages"
PASSAGE_WORDS = 100
QUERIES, TERMS = 200, 8


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
        raise SettingError("collection, queries and qrels belong together; give all three or none.")
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
    found = list(items.documents)
    sparse = Bm25.of_texts(found) if any(search.startswith("bm25") for search in searches) else None
    dense = Dense.of_texts(found, data.encoder) if any(search.endswith("dense") for search in searches) else None
    return SearchCollection(items.queries, items.judgements, _by(searches, sparse, dense, dense))


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
    terms: int = TERMS,
    words_of_queries: Container[str] | None = None,
) -> KnownItems:
    """Return known-item search over texts: the same for the same texts.

    Words are those of ``prepared`` text, split at blanks; the first half of n has n // 2 of them. tf-idf is ``tf ln(N /
    df)`` over the N first halves; terms are in its order; the alphabet breaks ties. Copies of a text, and texts of
    fewer than two words, are left out; a text whose first half has too few different terms for a query is searched, but
    gives no query. ``words_of_queries``, such as a space's vocabulary, restricts the words of queries: the rarest words
    of a text are names and errors that no space has, and no mechanism replaces those. Raises UserError if fewer than
    ``queries`` queries are possible.
    """
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
    drawn = np.sort(np.random.default_rng(0).choice(able, queries, replace=False)).tolist()

    def query(counts: Counter[str]) -> str:
        weight = {term: count * math.log(len(firsts) / frequency[term]) for term, count in counts.items()}
        return " ".join(sorted(weight, key=lambda term: (-weight[term], term))[:terms])

    seconds = tuple(" ".join(word[len(word) // 2 :]) for word in words)
    return KnownItems(tuple(query(firsts[number]) for number in drawn), seconds, tuple(drawn))
