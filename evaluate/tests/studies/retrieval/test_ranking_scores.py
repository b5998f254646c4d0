"""Recall, nDCG and reciprocal rank: by hand, against scikit-learn, and on what is not there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from corpusveil_evaluate.studies.retrieval.obfuscated_search import (
    NAMES,
    Judgements,
    Obfuscated,
    score_obfuscated,
    score_ranking,
)
from corpusveil_evaluate.studies.retrieval.ranking import Ranking, ranked


def ranking(*rows: list[int], depth: int = 100) -> Ranking:
    return ranked([(np.array(row, np.int64), -np.arange(len(row))) for row in rows], depth)


def test_measures_by_hand_and_gains_are_linear() -> None:
    """Grades 0, 3, 1 at ranks 1 to 3, and a 2 that was not found. With 2^g - 1 nDCG would be another number."""
    found = score_ranking(ranking([5, 6, 7]), Judgements([{6: 3, 7: 1, 8: 2, 9: -2}]))
    ideal = 3 + 2 / math.log2(3) + 1 / 2
    assert found["ndcg"] == pytest.approx((3 / math.log2(3) + 1 / 2) / ideal)
    exponential = (7 / math.log2(3) + 1 / 2) / (7 + 3 / math.log2(3) + 1 / 2)
    assert abs(found["ndcg"] - exponential) > 0.01
    assert (found["recall"], found["reciprocal"]) == pytest.approx((2 / 3, 1 / 2))


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
    found = Obfuscated((pool,), ranked([(order, -np.arange(300))], 300))
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
