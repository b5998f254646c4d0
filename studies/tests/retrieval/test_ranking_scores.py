"""Recall, nDCG and reciprocal rank: by hand, against scikit-learn, and on what is not there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from corpusveil.errors import BadValueError, DataError, ShapeError
from corpusveil_studies.retrieval.obfuscated_search import Obfuscated
from corpusveil_studies.retrieval.ranking import Ranking, ranked
from corpusveil_studies.retrieval.ranking_scores import (
    Judgements,
    ndcg,
    recall,
    reciprocal_rank,
    score_obfuscated,
    score_ranking,
)


def ranking(*rows: list[int], depth: int = 100) -> Ranking:
    return ranked([(np.array(row, np.int64), -np.arange(len(row))) for row in rows], depth)


def test_ndcg_by_hand_has_linear_gains() -> None:
    """Grades 0, 3, 1 at ranks 1 to 3, and a 2 that was not found. With 2^g - 1 it would be another number."""
    found, grades = np.array([5, 6, 7]), {6: 3, 7: 1, 8: 2}
    ideal = 3 + 2 / math.log2(3) + 1 / 2
    assert ndcg(found, grades) == pytest.approx((3 / math.log2(3) + 1 / 2) / ideal)
    exponential = (7 / math.log2(3) + 1 / 2) / (7 + 3 / math.log2(3) + 1 / 2)
    assert abs(ndcg(found, grades) - exponential) > 0.01
    assert ndcg(found, grades, cut=1) == 0
    assert ndcg(np.array([6, 8, 7]), grades) == 1
    assert ndcg(found, {6: 1, 9: -2}) == pytest.approx(1 / math.log2(3))


@pytest.mark.parametrize("cut", [1, 5, 10])
def test_ndcg_is_that_of_scikit_learn(cut: int) -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        grades, scores = rng.integers(0, 4, 30), rng.permutation(30)
        if not grades.any():
            continue
        found = np.argsort(-scores)
        expected = ndcg_score([grades], [scores], k=cut)
        assert ndcg(found, dict(enumerate(grades.tolist())), cut) == pytest.approx(expected)


def test_recall_and_reciprocal_rank_by_hand() -> None:
    found = np.array([4, 2, 9])
    assert recall(found, {2, 9, 11, 12}) == 0.5
    assert reciprocal_rank(found, {9, 2}) == 0.5
    assert reciprocal_rank(found, {9}, cut=2) == 0
    assert reciprocal_rank(found, {1}) == 0
    assert math.isnan(recall(found, set()))
    assert math.isnan(reciprocal_rank(found, set()))
    assert math.isnan(ndcg(found, {}))


def test_recall_of_the_pool_is_not_recall_at_100() -> None:
    """The pool has both relevant documents, the ranked list the one that the client put within its depth."""
    pool = np.arange(300)
    order = np.concatenate([np.arange(50), np.arange(51, 300), [50]])
    found = Obfuscated((pool,), ranked([(order, -np.arange(300))], 300), "engine", "client")
    scores = score_obfuscated(found, Judgements([{3: 1, 50: 1}]))
    assert scores.means() == pytest.approx({
        "recall of R": 1, "recall@100 re-ranked": 0.5, "nDCG@10": 1 / math.log2(5) / (1 + 1 / math.log2(3)),
        "MRR": 0.25, "MRR@10": 0.25, "documents in R": 300,
    })  # fmt: skip


def test_the_threshold_of_dl19_leaves_grade_1_out_of_all_but_ndcg() -> None:
    judged = [{1: 1, 2: 2}]
    graded = score_ranking(ranking([1, 2]), Judgements(judged, threshold=2))
    plain = score_ranking(ranking([1, 2]), Judgements(judged))
    assert (graded.reciprocal[0], plain.reciprocal[0]) == (0.5, 1)
    assert graded.ndcg[0] == plain.ndcg[0] < 1
    assert score_ranking(ranking([1]), Judgements(judged, threshold=2)).recall[0] == 0


def test_queries_with_nothing_to_find_are_left_out_and_counted() -> None:
    scores = score_ranking(ranking([1, 2], [3], []), Judgements([{2: 1}, {3: 0}, {9: 1}]))
    assert scores.queries == 2
    assert scores.means()["MRR"] == 0.25
    with pytest.raises(DataError):
        score_ranking(ranking([1]), Judgements([{1: 0}]))


def test_documents_that_are_not_there_count_as_never_found() -> None:
    scores = score_ranking(ranking([7], depth=5), Judgements([{7: 1, -2: 1, -3: 3}]))
    assert scores.recall[0] == pytest.approx(1 / 3)
    assert scores.ndcg[0] == pytest.approx(1 / (3 + 1 / math.log2(3) + 1 / 2))
    with pytest.raises(BadValueError, match="below -1"):
        Judgements([{-1: 1}])


def test_queries_and_judgements_are_the_same_ones() -> None:
    with pytest.raises(ShapeError, match="2 queries were searched and 1 are judged"):
        score_ranking(ranking([1], [2]), Judgements([{1: 1}]))
    with pytest.raises(BadValueError, match="1 or more"):
        Judgements([{1: 1}], threshold=0)
