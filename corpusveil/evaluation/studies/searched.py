"""What the study of pyPANTERA searches, and by what: known items of a data set, or a judged collection of the user."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from corpusveil.errors import UserError
from corpusveil.evaluation.bundled import passages, public_texts
from corpusveil.evaluation.retrieval.bm25 import Bm25
from corpusveil.evaluation.retrieval.dense import Dense, OnDemand
from corpusveil.evaluation.retrieval.known_items import known_items
from corpusveil.evaluation.retrieval.measures import Judgements
from corpusveil.evaluation.retrieval.queries import prepared
from corpusveil.evaluation.retrieval.ranking import Engine, Scorer
from corpusveil.evaluation.retrieval.trec import Passages, join_judgements, read_qrels, read_queries
from corpusveil.evaluation.studies.ground import Ground
from corpusveil.storage import files

Search = Literal["bm25", "dense", "bm25-dense"]
"""Who searches and, after the hyphen, who ranks again; one name alone does both, as in the study."""
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
class Searched:
    """Q prepared ``queries``, what is relevant to them, and for each search an engine and, if another, a client.

    ``missing`` judged passages are not in the collection.
    """

    queries: tuple[str, ...]
    judgements: Judgements
    by: Mapping[Search, tuple[Engine, Scorer | None]]
    missing: int = 0


def is_judged(ground: Ground) -> bool:
    """Say whether the user gave a judged collection. Raises UserError for a part of one."""
    sources = ground.sources
    given = [one is not None for one in (sources.collection, sources.queries, sources.qrels)]
    if any(given) and not all(given):
        raise UserError("--collection, --queries and --qrels belong together; give all three, or none of them.")
    return all(given)


def prepare_index(ground: Ground) -> None:
    """Make the BM25 index of the judged collection, once, for all processes. Raises UserError for a remote output."""
    where = _index(ground)
    if not os.path.exists(where):
        Bm25.of_batches(_passages(ground, keep=False).batches).save(where)


@functools.lru_cache(maxsize=2)
def searched(ground: Ground, name: str, searches: tuple[Search, ...], size: Size) -> Searched:
    """Return what is searched under a name, once a process."""
    if name == JUDGED:
        return _judged(ground, searches)
    if name == BUNDLED:
        texts = [one for text in public_texts() for one in passages(text, PASSAGE_WORDS)]
        rows = np.random.default_rng(0).permutation(len(texts))[: size.documents]
        texts = [texts[row] for row in np.sort(rows).tolist()]
    else:
        texts = list(ground.task(name, size.documents, size.documents).texts)[: size.documents]
    items = known_items(texts, size.queries, terms=size.terms, words_of_queries=ground.space().vocabulary)
    return Searched(items.queries, items.judgements, _known_item_engines(ground, searches, list(items.documents)))


def _known_item_engines(
    ground: Ground, searches: tuple[Search, ...], documents: list[str]
) -> dict[Search, tuple[Engine, Scorer | None]]:
    sparse = Bm25.of_texts(documents) if any(one.startswith("bm25") for one in searches) else None
    dense = Dense.of_texts(documents, ground.encoder) if any(one.endswith("dense") for one in searches) else None
    return _by(searches, sparse, dense, dense)


def _judged(ground: Ground, searches: tuple[Search, ...]) -> Searched:
    sources = ground.sources
    assert sources.queries is not None  # noqa: S101 - is_judged
    assert sources.qrels is not None  # noqa: S101 - is_judged
    dense = any(one.endswith("dense") for one in searches)
    passages_of = _passages(ground, keep=dense)
    judged = join_judgements(read_queries(sources.queries), read_qrels(sources.qrels), passages_of)
    sparse = Bm25.load(_index(ground)) if any(one.startswith("bm25") for one in searches) else None
    whole = None
    if "dense" in searches:
        whole = Dense.of_texts(passages_of.texts(range(len(passages_of))), ground.encoder)
    client = whole or (OnDemand(ground.encoder, passages_of.texts) if dense else None)
    queries = tuple(prepared(query) for query in judged.queries)
    return Searched(queries, judged.judgements, _by(searches, sparse, whole, client), judged.missing)


def _by(
    searches: tuple[Search, ...], sparse: Bm25 | None, dense: Dense | None, client: Scorer | None
) -> dict[Search, tuple[Engine, Scorer | None]]:
    found: dict[Search, tuple[Engine, Scorer | None]] = {}
    for one in searches:
        engine = dense if one == "dense" else sparse
        assert engine is not None  # noqa: S101 - made for these searches
        found[one] = (engine, client if one == "bm25-dense" else None)
    return found


def _passages(ground: Ground, *, keep: bool) -> Passages:
    assert ground.sources.collection is not None  # noqa: S101 - is_judged
    return Passages.open(ground.sources.collection, keep=keep)


def _index(ground: Ground) -> str:
    if not files.is_local(ground.folder):
        raise UserError(f"{ground.folder}: the index of a collection is mapped from a disk; choose a local --output.")
    return files.absolute(ground.address("bm25"))
