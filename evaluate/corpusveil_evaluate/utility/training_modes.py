"""The utility of private texts: models trained and tested on them, in the three modes of the studies.

``private-private``: trained and tested on private texts (Meisenbacher et al. 2024); ``private-original``: trained on
private texts, tested on the original; ``original-private``: trained on the original, tested on private texts
(pyPANTERA: De Faveri, Faggioli, Ferro 2024). Every figure has two baselines: the same model on the original texts, and
a classifier that always predicts the most frequent training label. Utility at that floor is no utility.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy import stats

from corpusveil_evaluate.statistics.statistic import register
from corpusveil_evaluate.utility.labelled_texts import SHARES, LabelledTexts
from corpusveil_evaluate.utility.text_classifiers import Model, sklearn

Mode = Literal["private-private", "private-original", "original-private"]
MODES: tuple[Mode, ...] = get_args(Mode)
Score = Literal["accuracy", "macro_f1"]
SCORE_NAMES: dict[Score, str] = {"accuracy": "accuracy", "macro_f1": "macro F1"}
"""The scores in reports, and their names."""
BASELINE = "original-original"


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a classifier, and of a constant classifier on the same rows; all from 0 to 1.

    F1 as in scikit-learn: over the labels that occur or are predicted, 0 for a label that is never right. The constant
    classifier predicts the most frequent label of the training rows (ties: the first in the alphabet). Of graded labels
    accuracy is the mean of Pearson's and Spearman's correlation, as for STS-B, a constant's is 0, and F1 is missing.
    """

    accuracy: float
    macro_f1: float
    floor_accuracy: float
    floor_macro_f1: float


def scores_in(
    mode: str,
    original: LabelledTexts,
    private: LabelledTexts,
    model: Model,
    seed: int,
    shares: Sequence[float] = SHARES,
) -> Scores:
    """Train and test a model in a mode, or as the ``BASELINE``; by the seed, on its split if there is none."""
    rows, tasks = original.train_and_test(seed, shares), {"original": original, "private": private}
    train, test = (tasks[name].take(some) for name, some in zip(mode.split("-"), rows, strict=True))
    return train_and_test(train, test, model, seed)


def train_and_test(train: LabelledTexts, test: LabelledTexts, model: Model, seed: int = 0) -> Scores:
    """Train on some rows and score on others."""
    predicted = model.fit(train, seed)(test)
    if train.graded:
        return Scores(_correlation(predicted, test.labels), math.nan, 0.0, math.nan)
    return score(predicted, test.labels, train.labels)


def score(predicted: Sequence[str], labels: Sequence[str], trained: Sequence[str]) -> Scores:
    """Score predicted labels against the true ones; ``trained`` are the labels that the model was trained on."""
    often = Counter(trained)
    constant = [min(often, key=lambda label: (-often[label], label))] * len(labels)
    accuracy, floor = (float(np.mean(np.array(some) == np.array(labels))) for some in (predicted, constant))
    f1, floor_f1 = (
        float(sklearn("metrics").f1_score(labels, some, average="macro", zero_division=0))
        for some in (predicted, constant)
    )
    return Scores(accuracy, f1, floor, floor_f1)


def _correlation(predicted: Sequence[str], labels: Sequence[str]) -> float:
    one, other = (np.array(some, dtype=np.float64) for some in (predicted, labels))
    if not np.ptp(one) or not np.ptp(other):
        return 0.0
    return float(stats.pearsonr(one, other)[0] + stats.spearmanr(one, other)[0]) / 2


def paired_difference(first: Sequence[float], second: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of first minus second, seed by seed, and its 95 % interval (Student's t), for two seeds or more.

    The interval covers noise and training on these texts. It does not cover the choice of texts; and if seeds split the
    rows anew, training sets overlap, and the interval is somewhat too narrow.
    """
    apart = np.subtract(first, second)
    mean, error = float(apart.mean()), float(apart.std(ddof=1)) / math.sqrt(apart.size)
    half = float(stats.t.ppf(0.975, apart.size - 1)) * error
    return mean, mean - half, mean + half


register("accuracy, private to private", group="utility", tile=True,
    floor="always the most frequent label")  # fmt: skip
