"""Retrieval: collections from files, engines, scores, obfuscated search, and variants that are read together."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pytest
from sklearn.metrics import ndcg_score

import corpusveil as cv
from corpusveil.budget import Budget
from corpusveil.errors import (
    AddressError,
    MissingError,
    SettingError,
    UserError,
    VersionError,
)
from corpusveil.mechanisms import make_mechanism
from corpusveil.sampling.keys import Key
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.transforms.release.release import Release
from corpusveil_evaluate.readers.ngrams.channel import Candidates
from corpusveil_evaluate.readers.ngrams.word_risk import prior_of
from corpusveil_evaluate.statistics.encoders import AveragedVectors
from corpusveil_evaluate.studies.profiles import PROFILES
from corpusveil_evaluate.studies.retrieval.bm25 import Bm25
from corpusveil_evaluate.studies.retrieval.dense import Dense, OnDemand
from corpusveil_evaluate.studies.retrieval.obfuscated_queries import (
    Variants,
    combine,
    obfuscate,
)
from corpusveil_evaluate.studies.retrieval.obfuscated_search import (
    NAMES,
    Judgements,
    Obfuscated,
    score_obfuscated,
    score_ranking,
    search_obfuscated,
)
from corpusveil_evaluate.studies.retrieval.ranking import NONE, Ranking, SearchEngine, ranked
from corpusveil_evaluate.studies.retrieval.trec import Passages, join_judgements, read_qrels, read_queries
from corpusveil_evaluate.studies.search_collections import KnownItems, known_items
from tests.contracts.spaces import small_space, words_of

ROWS = [("10", "the goldfish grows"), ("7", "wifi\tand bluetooth"), ("x9", "nothing of this")]


def tsv(rows: list[tuple[str, str]], end: str = "\n") -> bytes:
    return "".join(f"{identity}\t{text}{end}" for identity, text in rows).encode()


def collection(folder: Path, form: str) -> str:
    path = folder / f"collection.{form}"
    if form.startswith("tsv"):
        data = tsv(ROWS, "\r\n" if form == "tsv" else "\n")
        path.write_bytes(gzip.compress(data) if form.endswith("gz") else data)
    else:
        path.write_text("".join(json.dumps({"id": one, "text": text}) + "\n" for one, text in ROWS))
    return str(path)


@pytest.mark.parametrize("form", ["tsv", "tsv.gz", "jsonl"])
def test_a_collection_is_the_same_in_every_form(tmp_path: Path, form: str) -> None:
    """Also where it is streamed into an index, and where texts are asked for by number."""
    url = collection(tmp_path, form)
    passages = Passages.open("file://" + url, keep=True)
    assert passages.ids.to_pylist() == ["10", "7", "x9"]
    assert passages.texts([2, 0]) == ["nothing of this", "the goldfish grows"]
    assert passages.numbers(["x9", "8", "10"]) == [2, -1, 0]
    engine = Bm25.of_batches(passages.batches)
    assert engine.search(["bluetooth"], 2).found(0).tolist() == [1]
    with pytest.raises(SettingError, match="keep=True"):
        Passages.open(url).texts([0])


def test_judgements_are_joined_by_id(tmp_path: Path) -> None:
    """Judged passages that are missing stay in the denominators, queries without judgments are left out."""
    (tmp_path / "qrels.txt").write_text("1 0 10 3\n1 0 7 1\r\n\n1 0 gone 2\n3 Q0 x9 2\n4 0 x9 2\n")
    (tmp_path / "queries.tsv").write_bytes(tsv([("3", "of this"), ("2", "unjudged"), ("1", "goldfish")]))
    passages = Passages.open(collection(tmp_path, "tsv"))
    qrels = read_qrels(str(tmp_path / "qrels.txt"))
    assert qrels["1"] == {"10": 3, "7": 1, "gone": 2}
    judged = join_judgements(read_queries(str(tmp_path / "queries.tsv")), qrels, passages)
    assert (judged.ids, judged.queries, judged.missing) == (("3", "1"), ("of this", "goldfish"), 1)
    assert judged.judgements.grades == [{2: 2}, {0: 3, 1: 1, -2: 2}]
    assert judged.judgements.threshold == 2
    found = score_ranking(Bm25.of_batches(passages.batches).search(judged.queries), judged.judgements)
    assert found["recall"] == 0.75


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("c.tsv", b"1\tone\n\nno tab here\n", "c.tsv, line 3: this is not an id, a tab and a text"),
        ("c.tsv", b"1\tone\n \ttwo\n", "line 2: this is not an id"),
        ("c.tsv", b"1\tone\n2\t\xff\xfe\n", "line 2: not valid UTF-8"),
        ("c.tsv", b"1\tone\n1\ttwo\n", "an id occurs twice"),
        ("c.tsv", b"\n\n", "no passages"),
        ("c.tsv.gz", b"1\tone\n" * 9, "this gzip file is damaged"),
        ("c.jsonl", b'{"id": "1", "text": "a"}\n{"id": "2"}\n', "row 2: has no column 'text'"),
        ("c.jsonl", b'{"id": "1", "text": "a"}\n{"id": "  ", "text": "a"}\n', "row 2: the id or the text is missing"),
        ("c.doc", b"", "does not say the format of this file"),
    ],
)  # fmt: skip
def test_a_broken_collection_is_named_in_one_sentence(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UserError, match=said) as caught:
        Passages.open(str(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_bm25_scores_are_those_of_the_library() -> None:
    """To the last bit, of random documents; and its ranking, as far as scores differ."""
    rng = np.random.default_rng(3)
    words = words_of(80)
    documents = [rng.choice(words, rng.integers(1, 30)).tolist() for _ in range(300)]
    library = bm25s.BM25(k1=0.9, b=0.4, method="lucene")
    library.index(documents, show_progress=False)
    engine = Bm25.of_texts([" ".join(one) for one in documents])
    for _ in range(20):
        query = sorted(rng.choice(words, 5).tolist())
        scores = library.get_scores(query)
        assert np.array_equal(engine.scores(" ".join(query), np.arange(300)), scores.astype(np.float64))
        ranking = engine.search([" ".join(query)], 10)
        numbers, values = library.retrieve([query], k=10, show_progress=False)
        found = ranking.found(0)
        assert np.array_equal(scores[found], values[0])
        assert set(found[scores[found] > values[0, -1]]) <= set(numbers[0])


def test_equal_scores_go_by_the_number_of_the_document() -> None:
    engine = Bm25.of_texts(["no", "cat", "cat cat", "cat", "no", "cat"])
    ranking = engine.search(["cat", "zebra", ""], 3)
    assert ranking.documents.tolist() == [[2, 1, 3], [NONE] * 3, [NONE] * 3]
    assert ranking.found(1).size == 0
    assert engine.search(["cat"], 50).found(0).tolist() == [2, 1, 3, 5]
    space = build_space(Vectors(["east", "north"], np.array([[1, 0], [0, 1]], np.float32)))
    dense = Dense.of_texts(["north", "east", "", "east east", "north east", "east"], AveragedVectors(space))
    assert dense.search(["east"], 4).documents.tolist() == [[1, 3, 5, 4]]
    many = dense.search(["east"] * 130, 4).documents
    assert (many == many[0]).all()


def test_dense_scores_are_cosines_and_nothing_is_no_result() -> None:
    words = words_of(40)
    space = small_space(words=words)
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(words, 6)) for _ in range(50)] + ["", "Unknown 12"]
    encoder = AveragedVectors(space)
    dense = Dense.of_texts(texts, encoder)
    query = " ".join(words[:4])
    vectors = encoder.encode(texts).astype(np.float64)
    vector = encoder.encode([query])[0].astype(np.float64)
    expected = vectors[:50] @ vector / np.linalg.norm(vectors[:50], axis=1) / np.linalg.norm(vector)
    assert dense.scores(query, np.arange(50)) == pytest.approx(expected, abs=2e-6)
    assert dense.scores(query, np.array([50, 51])).tolist() == [-np.inf, -np.inf]
    ranking = dense.search([query, "?!"], 60)
    assert ranking.found(0).tolist() == np.argsort(-np.round(expected, 6), kind="stable").tolist()
    assert ranking.found(1).size == 0
    asked: list[int] = []

    def text(numbers: object) -> list[str]:
        asked.extend(numbers)  # type: ignore[call-overload]
        return [texts[number] for number in numbers]  # type: ignore[attr-defined]

    demand = OnDemand(encoder, text)
    some = np.array([3, 50, 7, 3])
    assert np.array_equal(demand.scores(query, some), dense.scores(query, some))
    demand.scores(query, np.array([7, 9]))
    assert asked == [3, 50, 7, 9]
    assert demand.scores(query, np.array([], np.int64)).size == 0


def test_an_index_in_batches_and_from_the_disk_is_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    texts = [" ".join(rng.choice(words_of(50), 8)) for _ in range(90)]
    whole = Bm25.of_texts(texts)
    cut = Bm25.of_batches(lambda: (texts[start : start + 7] for start in range(0, 90, 7)))
    folder = str(tmp_path / "index")
    whole.save(folder)
    read = Bm25.load(folder)
    assert len(whole) == len(cut) == len(read) == 90
    expected = whole.search(texts[:20], 15)
    for other in (cut, read):
        assert np.array_equal(other.search(texts[:20], 15).documents, expected.documents)
        assert np.array_equal(other.scores(texts[0], np.arange(90)), whole.scores(texts[0], np.arange(90)))
    assert isinstance(read._index.scores["data"], np.memmap)
    with pytest.raises(AddressError):
        whole.save(folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(AddressError):
        whole.save(str(tmp_path / "file" / "index"))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "index"]


def test_an_index_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingError):
        Bm25.load(str(tmp_path))
    other = bm25s.BM25(method="bm25+")
    other.index([["a", "b"], ["c"]], show_progress=False)
    other.save(str(tmp_path / "plus"), show_progress=False)
    with pytest.raises(VersionError):
        Bm25.load(str(tmp_path / "plus"))
    (tmp_path / "plus" / "vocab.index.json").write_text('{"a": 0, "b"')
    with pytest.raises(MissingError):
        Bm25.load(str(tmp_path / "plus"))


def ranking(*rows: list[int], depth: int = 100) -> Ranking:
    return ranked([np.array(row, np.int64) for row in rows], depth)


@pytest.mark.parametrize("seed", range(3))
def test_ndcg_is_that_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    grades, scores = rng.integers(0, 4, 30), rng.permutation(30)
    found = score_ranking(ranking(np.argsort(-scores).tolist()), Judgements([dict(enumerate(grades.tolist()))]))
    assert found["ndcg"] == pytest.approx(ndcg_score([grades], [scores], k=10))


def test_recall_of_the_pool_is_not_recall_at_100() -> None:
    """The pool has both relevant documents, the ranked list the one that the client put within its depth."""
    pool = np.arange(300)
    order = np.concatenate([np.arange(50), np.arange(51, 300), [50]])
    found = Obfuscated((pool,), ranked([order], 300))
    scores = score_obfuscated(found, Judgements([{3: 1, 50: 1}]))
    assert scores == pytest.approx({
        "pool_recall": 1, "recall": 0.5, "ndcg": 1 / math.log2(5) / (1 + 1 / math.log2(3)),
        "reciprocal": 0.25, "reciprocal_10": 0.25, "pool": 300,
    })  # fmt: skip
    assert scores.keys() == NAMES.keys()


def test_the_threshold_of_dl19_leaves_grade_1_out_of_all_but_ndcg() -> None:
    judged = [{1: 1, 2: 2}]
    graded = score_ranking(ranking([1, 2]), Judgements(judged, threshold=2))
    plain = score_ranking(ranking([1, 2]), Judgements(judged))
    assert (graded["reciprocal"], plain["reciprocal"]) == (0.5, 1)
    assert graded["ndcg"] == plain["ndcg"] < 1
    assert score_ranking(ranking([1]), Judgements(judged, threshold=2))["recall"] == 0


WORDS = words_of(400)
SPACE = small_space(words=WORDS)
KEY = Key(hashlib.sha256(b"search").digest())


def release(epsilon: float = 1.0, mechanism: str = "cmp", **more: Any) -> Release:
    policy = PROFILES["pypantera"].policy()
    budget = more.pop("budget", Budget(epsilon))
    return Release(make_mechanism(mechanism, SPACE), budget, policy, key=KEY, **more)


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


def test_variants_have_noise_of_their_own_and_are_the_same_under_one_key() -> None:
    queries = [" ".join(WORDS[:8])] * 2
    one = obfuscate(queries, release(1.0), 6)
    assert one.total == 6.0
    assert one == obfuscate(queries, release(1.0), 6)
    assert len({text for some in one.texts for text in some}) == 12
    assert obfuscate(queries, release(1.0), 3).texts[0] == one.texts[0][:3]
    assert obfuscate(queries, release(1.0), 6, source="other") != one
    with pytest.raises(SettingError):
        obfuscate(queries, release(duplicates="same-noise"), 2)


@pytest.mark.parametrize(("name", "epsilon"), [("ring-geometric", 0.7), ("tem", 6.0)])
@pytest.mark.parametrize("known", [40, 12])
def test_what_they_say_is_the_product_of_their_laws(name: str, epsilon: float, known: int) -> None:
    """Against all words: the same where all are looked at, and of a dozen nearly always; one variant alone is not."""
    space = small_space(words=words_of(40))
    mechanism, shares = cv.mechanism(name, space), prior_of(space).shares
    law = mechanism.distributions(np.arange(40), epsilon)
    rng = np.random.default_rng(0)
    truth = rng.choice(40, 200, p=shares)
    released = np.array([rng.choice(40, 5, p=law[word] / law[word].sum()) for word in truth]).astype(np.int32)
    scores = np.log(shares)[:, None] + np.log(law)[:, released].sum(axis=2)  # [V, R]
    found = combine(Candidates(mechanism, shares, known), epsilon, released, 8)
    same = float((found.words[:, 0] == scores.argmax(axis=0)).mean())
    assert same == 1.0 if known == 40 else same > 0.9
    if known == 40:
        expected = np.exp(scores - np.log(shares)[:, None])
        for place in range(5):
            several = expected[found.words[place], place]
            np.testing.assert_allclose(found.emissions[place], several / several.max(), rtol=1e-6)
    alone = combine(Candidates(mechanism, shares, known), epsilon, released[:, :1], 8)
    assert (found.words[:, 0] == truth).mean() > (alone.words[:, 0] == truth).mean() + 0.1
