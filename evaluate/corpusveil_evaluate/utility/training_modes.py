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
from typing import Literal, TypedDict, Unpack, get_args

import numpy as np
from scipy import stats

from corpusveil.errors import BadValueError, MismatchError, ShapeError, not_a_choice
from corpusveil_evaluate.statistics.statistic import register
from corpusveil_evaluate.utility.labelled_texts import SHARES, LabelledTexts
from corpusveil_evaluate.utility.text_classifiers import Model, Remembered

Mode = Literal["private-private", "private-original", "original-private"]
MODES: tuple[Mode, ...] = get_args(Mode)
Score = Literal["accuracy", "macro_f1"]
SCORES: tuple[Score, ...] = get_args(Score)
SCORE_NAMES: dict[Score, str] = {"accuracy": "accuracy", "macro_f1": "macro F1"}
"""The scores in reports, and their names."""
FEWEST = 5
"""Seeds; the studies have three to five."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a classifier, and of a constant classifier on the same rows; all from 0 to 1.

    F1 as in scikit-learn: over the labels that occur or are predicted, 0 for a label that is never right. The constant
    classifier predicts the most frequent label of the training rows (ties: the first in the alphabet).
    """

    accuracy: float
    macro_f1: float
    floor_accuracy: float
    floor_macro_f1: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Scores of one measure over seeds: of private texts, of the original ones, and of the constant classifier."""

    mode: str
    model: str
    measure: Score
    seeds: tuple[int, ...]
    scores: tuple[Scores, ...]
    originals: tuple[Scores, ...]

    @property
    def values(self) -> tuple[float, ...]:
        """One per seed."""
        return tuple(getattr(score, self.measure) for score in self.scores)

    @property
    def baselines(self) -> tuple[float, ...]:
        """The same model, trained and tested on the original texts; one per seed."""
        return tuple(getattr(original, self.measure) for original in self.originals)

    @property
    def floors(self) -> tuple[float, ...]:
        """The constant classifier; one per seed."""
        return tuple(getattr(score, f"floor_{self.measure}") for score in self.scores)

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def deviation(self) -> float:
        """The standard deviation over seeds (n - 1 in the denominator), nan for a single seed."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else math.nan

    @property
    def baseline(self) -> float:
        return float(np.mean(self.baselines))

    @property
    def floor(self) -> float:
        return float(np.mean(self.floors))


def train_and_test(train: LabelledTexts, test: LabelledTexts, model: Model, seed: int = 0) -> Scores:
    """Train on some rows and score on others."""
    return score(model.fit(train, seed)(test), test.labels, train.labels)


def score(predicted: Sequence[str], labels: Sequence[str], trained: Sequence[str]) -> Scores:
    """Score predicted labels against the true ones; ``trained`` are the labels that the model was trained on."""
    often = Counter(trained)
    constant = [min(often, key=lambda label: (-often[label], label))] * len(labels)
    accuracy, floor = (float(np.mean(np.array(some) == np.array(labels))) for some in (predicted, constant))
    return Scores(accuracy, macro_f1(predicted, labels), floor, macro_f1(constant, labels))


def macro_f1(predicted: Sequence[str], labels: Sequence[str]) -> float:
    """Return the mean over labels of 2 TP / (predicted + true), of labels that occur or are predicted."""
    right = Counter(label for label, guess in zip(labels, predicted, strict=True) if label == guess)
    both = Counter(labels) + Counter(predicted)
    return float(np.mean([2 * right[label] / both[label] for label in both]))


class Options(TypedDict, total=False):
    """The scoring; by default by accuracy, with at least ``FEWEST`` seeds, split by ``SHARES``."""

    measure: Score
    fewest: int
    shares: Sequence[float]
    originals: Sequence[Scores] | None


def utility(
    original: LabelledTexts,
    privates: Sequence[Sequence[str] | LabelledTexts],
    mode: Mode,
    model: Model,
    seeds: Sequence[int] | None = None,
    **options: Unpack[Options],
) -> Summary:
    """Score a model over private versions of a task, one for each seed.

    ``privates`` are releases of the same rows under as many keys (never publish more than one), each as texts, or as a
    task if second texts are private too. A seed decides the training and, unless a split is given, the split; the i-th
    seed belongs to the i-th key. ``seeds`` are 0, 1, ... by default, at least ``fewest``. ``originals`` are
    ``baselines`` of the same seeds, if known. Raises UserError if the rows are not those of the original.
    """
    measure, shares = options.get("measure", "accuracy"), options.get("shares", SHARES)
    originals = options.get("originals")
    seeds, fewest = tuple(range(len(privates)) if seeds is None else seeds), options.get("fewest", FEWEST)
    if len(seeds) != len(privates) or len(set(seeds)) < len(seeds):
        raise ShapeError(
            f"{len(seeds)} seeds for {len(privates)} private versions; give a different seed for each version."
        )
    if len(seeds) < max(fewest, 1):
        raise BadValueError(f"{len(seeds)} seeds: at least {fewest} are needed, each with a release under its own key.")
    if mode not in MODES:
        raise not_a_choice("mode", mode, MODES)
    if measure not in SCORES:
        raise not_a_choice("measure", measure, SCORES)
    if originals is None:
        originals = baselines(original, model, seeds, shares=shares)
    elif len(originals) != len(seeds):
        raise ShapeError(f"{len(originals)} baselines for {len(seeds)} seeds; give a baseline for each seed.")
    on_originals, scores = Remembered(model, most=1), []
    for private, seed in zip(privates, seeds, strict=True):
        versions = {"original": original, "private": _released(original, private)}
        source, target = (versions[name] for name in mode.split("-"))
        train, test = original.train_and_test(seed, shares)
        fitted = on_originals if source is original else model
        scores.append(train_and_test(source.take(train), target.take(test), fitted, seed))
    return Summary(mode, model.name, measure, seeds, tuple(scores), tuple(originals))


def baselines(
    original: LabelledTexts, model: Model, seeds: Sequence[int], *, shares: Sequence[float] = SHARES
) -> tuple[Scores, ...]:
    """Return the scores of a model trained and tested on the original texts, one per seed."""
    on_originals, scores = Remembered(model, most=1), []
    for seed in seeds:
        train, test = (original.take(rows) for rows in original.train_and_test(seed, shares))
        scores.append(train_and_test(train, test, on_originals, seed))
    return tuple(scores)


def _released(original: LabelledTexts, private: Sequence[str] | LabelledTexts) -> LabelledTexts:
    if not isinstance(private, LabelledTexts):
        return original.with_texts(private)
    if private.labels != original.labels or (private.pairs is None) != (original.pairs is None):
        raise MismatchError(
            f"{original.name}: the labels of the private version differ; give the same rows in the same order."
        )
    return original.with_texts(private.texts, private.pairs)


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean of paired differences, and its 95 % interval (Student's t)."""

    mean: float
    low: float
    high: float


def paired_difference(first: Sequence[float], second: Sequence[float]) -> PairedDifference:
    """Compare scores seed by seed, first minus second.

    The interval covers noise and training on these texts. It does not cover the choice of texts; and if seeds split the
    rows anew, training sets overlap, and the interval is somewhat too narrow.
    """
    if len(first) != len(second) or len(first) < 2:
        raise ShapeError(f"{len(first)} and {len(second)} values: give at least two pairs.")
    apart = np.subtract(first, second)
    mean, error = float(apart.mean()), float(apart.std(ddof=1)) / math.sqrt(apart.size)
    half = float(stats.t.ppf(0.975, apart.size - 1)) * error
    return PairedDifference(mean, mean - half, mean + half)


register("accuracy, private to private", group="utility", tile=True,
    floor="always the most frequent label")  # fmt: skip
