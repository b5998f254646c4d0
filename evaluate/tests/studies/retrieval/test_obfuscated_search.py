"""Obfuscated search: equal to plain search without noise, worthless at random, and it says what it costs."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from corpusveil.budget import Budget
from corpusveil.errors import BadValueError
from corpusveil.mechanisms import make
from corpusveil.sampling.keys import Key
from corpusveil.transforms.release.release import Release
from corpusveil_evaluate.statistics.encoders import AveragedVectors
from corpusveil_evaluate.studies.profiles import PROFILES
from corpusveil_evaluate.studies.retrieval.bm25 import Bm25
from corpusveil_evaluate.studies.retrieval.dense import Dense
from corpusveil_evaluate.studies.retrieval.obfuscated_queries import (
    Variants,
    obfuscate,
    prepared,
    query_similarity,
)
from corpusveil_evaluate.studies.retrieval.obfuscated_search import score_obfuscated, score_ranking, search_obfuscated
from corpusveil_evaluate.studies.retrieval.ranking import SearchEngine
from corpusveil_evaluate.studies.search_collections import KnownItems, known_items
from tests.contracts.spaces import small_space, words_of

WORDS = words_of(400)
SPACE = small_space(words=WORDS)
KEY = Key(hashlib.sha256(b"search").digest())


def release(epsilon: float = 1.0, mechanism: str = "cmp", **more: Any) -> Release:
    policy = PROFILES["pypantera"].policy()
    budget = more.pop("budget", Budget(epsilon))
    return Release(make(mechanism, SPACE), budget, policy, KEY, **more)


def texts(count: int = 120) -> list[str]:
    """Return texts of 40 words, of 12 which are their own."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(count):
        topic = rng.choice(WORDS, 12, replace=False)
        found.append(" ".join([*rng.permutation(topic), *rng.choice(WORDS, 16), *rng.permutation(topic)]))
    return found


@pytest.fixture(scope="module")
def items() -> KnownItems:
    return known_items(texts(), queries=30)


def engines(items: KnownItems) -> list[SearchEngine]:
    return [Bm25.of_texts(items.documents), Dense.of_texts(items.documents, AveragedVectors(SPACE))]


@pytest.mark.parametrize("mechanism", ["cmp", "santext"])
def test_without_noise_obfuscated_search_is_plain_search(items: KnownItems, mechanism: str) -> None:
    """At an epsilon that keeps every word: the same documents, order and scores, by both engines."""
    variants = obfuscate(items.queries, release(1e6, mechanism), 3)
    assert all(set(some) == {query} for query, some in zip(items.queries, variants.texts, strict=True))
    for engine in engines(items):
        plain = engine.search(items.queries, 20)
        found = search_obfuscated(engine, variants, 20)
        assert np.array_equal(found.reranked.documents, plain.documents)
        assert found.reranked.scores == pytest.approx(plain.scores, abs=2e-6)
        one, other = (score_obfuscated(found, items.judgements), score_ranking(plain, items.judgements))
        assert one == pytest.approx(other)
    assert query_similarity(variants, AveragedVectors(SPACE))["jaccard"] == 1


def test_the_client_ranks_by_the_original_query(items: KnownItems) -> None:
    """By the engine or by another scorer; ranked by a variant it would be another order."""
    sparse, dense = engines(items)
    variants = obfuscate(items.queries, release(2.0), 5)
    for client in (None, dense):
        found = search_obfuscated(sparse, variants, 40, client)
        scorer = client or sparse
        for query, pool in enumerate(found.pools):
            scores = scorer.scores(items.queries[query], pool)
            expected = pool[np.lexsort((pool, -scores))][:40]
            assert found.reranked.found(query).tolist() == expected.tolist()
    wrong = tuple(some[0] for some in variants.texts)
    other = search_obfuscated(sparse, Variants(wrong, variants.texts, 2.0), 40)
    assert not np.array_equal(other.reranked.documents, search_obfuscated(sparse, variants, 40).reranked.documents)


def test_r_variants_cost_r_epsilon() -> None:
    assert obfuscate(["aaaa aaab"], release(2.5), 20).total == 50


def test_variants_have_noise_of_their_own_and_are_the_same_under_one_key() -> None:
    queries = [" ".join(WORDS[:8])] * 2
    one = obfuscate(queries, release(1.0), 6)
    assert one == obfuscate(queries, release(1.0), 6)
    assert len({text for some in one.texts for text in some}) == 12
    assert obfuscate(queries, release(1.0), 3).texts[0] == one.texts[0][:3]
    assert obfuscate(queries, release(1.0), 6, source="other") != one
    with pytest.raises(BadValueError):
        obfuscate(queries, release(duplicates="same-noise"))


def test_queries_are_prepared_as_in_the_study() -> None:
    assert prepared("What is a DL-19 query, 2nd   «Edition» | = ?\tDon't") == "what is a query edition dont"
    assert prepared("12 ...") == ""
