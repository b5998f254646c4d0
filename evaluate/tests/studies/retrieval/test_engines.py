"""Engines: scores that are the library's and the formula's, exact cosines, deterministic ties, hostile input."""

from __future__ import annotations

from pathlib import Path

import bm25s
import numpy as np
import pytest

from corpusveil.errors import AddressError, InUseError, NotMadeError, UserError, VersionError
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil_evaluate.statistics.encoders import AveragedVectors
from corpusveil_evaluate.studies.retrieval.bm25 import Bm25
from corpusveil_evaluate.studies.retrieval.dense import Dense, OnDemand
from corpusveil_evaluate.studies.retrieval.ranking import NONE
from tests.contracts.spaces import small_space, words_of

TEXTS = ["The cat sat.", "the dog sat, the dog ran!", "A cat and a dog: 12 cats", "", "birds"]


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
        assert np.array_equal(ranking.scores[0], values[0])
        assert set(ranking.found(0)[ranking.scores[0] > values[0, -1]]) <= set(numbers[0])


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
        found = other.search(texts[:20], 15)
        assert np.array_equal(found.documents, expected.documents)
        assert np.array_equal(found.scores, expected.scores)
    assert isinstance(read._index.scores["data"], np.memmap)
    with pytest.raises(InUseError):
        whole.save(folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(AddressError):
        whole.save(str(tmp_path / "file" / "index"))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "index"]


def test_an_index_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotMadeError):
        Bm25.load(str(tmp_path))
    other = bm25s.BM25(method="bm25+")
    other.index([["a", "b"], ["c"]], show_progress=False)
    other.save(str(tmp_path / "plus"), show_progress=False)
    with pytest.raises(VersionError):
        Bm25.load(str(tmp_path / "plus"))
    (tmp_path / "plus" / "vocab.index.json").write_text('{"a": 0, "b"')
    with pytest.raises(NotMadeError):
        Bm25.load(str(tmp_path / "plus"))


def test_hostile_calls_are_refused() -> None:
    engine = Bm25.of_texts(TEXTS)
    for call, said in [
        (lambda: Bm25.of_texts(["", "12 ?!"]), "no words"),
        (lambda: Bm25.of_texts([]), "no words"),
        (lambda: Bm25.of_texts("one text"), "a list of texts"),
        (lambda: Bm25.of_texts(["a", None]), "with a string for each"),  # type: ignore[list-item]
        (lambda: engine.search("a text"), "a list of texts"),
        (lambda: Dense.of_texts([], AveragedVectors(small_space(5))), "give at least one"),
    ]:
        with pytest.raises(UserError, match=said):
            call()
