"""Classifiers of texts and of pairs of texts: TF-IDF or averaged word vectors, with logistic regression.

Graded labels are predicted by ridge regression. A pair (u, v) is the row (u, v, |u - v|, u v). An attacker of this
strength is a lower bound on risk, so a table names its model. scikit-learn comes with the extra ``evaluate`` and is
imported when a classifier is fitted.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from corpusveil.errors import DataError, PackageError, SettingError
from corpusveil.spaces import Space
from corpusveil_evaluate.statistics.encoders import AveragedVectors
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts

Predictor = Callable[[LabelledTexts], list[str]]
"""Texts in, a label each out."""

ITERATIONS = 1000
WORD_PATTERN = r"(?u)\b\w+\b"
"""The words of TF-IDF; unlike scikit-learn's default, they include single letters."""


class Model(Protocol):
    """A model that can be fitted to a task."""

    @property
    def name(self) -> str:
        """Its name in tables."""

    @property
    def seeded(self) -> bool:
        """Whether two seeds can give two classifiers for the same texts."""

    def fit(self, train: LabelledTexts, seed: int) -> Predictor:
        """Return a classifier that was trained on these rows."""


@dataclass(frozen=True, slots=True)
class Tfidf:
    """TF-IDF over 1- and 2-grams of words (sublinear counts, lower case), and logistic regression."""

    name: str = "tfidf"
    seeded: bool = False

    def fit(self, train: LabelledTexts, seed: int) -> Predictor:  # noqa: ARG002 - the same for any seed
        """Return the classifier. Raises UserError without scikit-learn, and for texts without a word."""
        made = sklearn("feature_extraction.text").TfidfVectorizer(
            ngram_range=(1, 2), sublinear_tf=True, token_pattern=WORD_PATTERN
        )
        try:
            made.fit([*train.texts, *(train.pairs or ())])
        except ValueError:  # an empty vocabulary
            raise DataError(
                f"{train.name}: no word occurs in enough of the texts to train on; give more texts."
            ) from None
        return _logistic(made.transform, train, 10.0, solver="newton-cg", tol=1e-5)


@dataclass(frozen=True, slots=True)
class Averaged:
    """The mean of the space's vectors of a text's known words (zeros without any), and logistic regression.

    Columns are scaled to deviation 1 over the texts to train on. Words are the space's, one token each.
    """

    space: Space
    name: str = "vectors"
    seeded: bool = False

    def fit(self, train: LabelledTexts, seed: int) -> Predictor:  # noqa: ARG002 - the same for any seed
        """Return the classifier. Raises UserError without scikit-learn, and when not every word has a vector."""
        scaler = sklearn("preprocessing").StandardScaler()
        return _logistic(AveragedVectors(self.space).encode, train, 1.0, scaler)


def model_of(name: str, space: Space | None = None) -> Model:
    """Return the built-in model of this name: ``tfidf``, or ``vectors`` of a space."""
    if name == "tfidf":
        return Tfidf()
    if name != "vectors":
        raise SettingError(f"model {name!r}: choose tfidf or vectors.")
    if space is None:
        raise SettingError("model 'vectors' averages the vectors of a space; give a space.")
    return Averaged(space)


def _rows(task: LabelledTexts, features: Callable[[Sequence[str]], Any]) -> Any:
    """Return the features of texts, [N, d], or of pairs, [N, 4 d]."""
    u = features(task.texts)
    if task.pairs is None:
        return u
    v = features(task.pairs)
    if sparse.issparse(u):
        return sparse.hstack([u, v, abs(u - v), u.multiply(v)], format="csr")
    return np.hstack([u, v, np.abs(u - v), u * v])


def _logistic(
    features: Callable[[Sequence[str]], Any], train: LabelledTexts, strength: float, *steps: Any, **options: Any
) -> Predictor:
    train.require_classes()
    linear = sklearn("linear_model")
    last = linear.Ridge() if train.graded else linear.LogisticRegression(C=strength, max_iter=ITERATIONS, **options)
    labels = np.array(train.labels, dtype=np.float64 if train.graded else None)
    fitted = sklearn("pipeline").make_pipeline(*steps, last).fit(_rows(train, features), labels)

    def predict(task: LabelledTexts) -> list[str]:
        if (task.pairs is None) != (train.pairs is None):
            raise SettingError(
                f"{task.name}: it is trained on {('texts' if train.pairs is None else 'pairs')} and tested on "
                "the other kind; give the same kind for both."
            )
        return [str(label) for label in fitted.predict(_rows(task, features)).tolist()]

    return predict


def sklearn(module: str = "linear_model") -> Any:
    """Return a module of scikit-learn. Raises UserError without it."""
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError:
        raise PackageError("Utility and attackers need scikit-learn: pip install scikit-learn.") from None


@dataclass(frozen=True, slots=True)
class Remembered:
    """A model that is not fitted twice to the same texts and labels: the modes and attackers share classifiers.

    The ``most`` recently used classifiers are kept; None keeps all.
    """

    model: Model
    _fitted: dict[Any, Predictor] = field(default_factory=dict, compare=False)
    most: int | None = None

    @property
    def name(self) -> str:
        """Its name in tables."""
        return self.model.name

    @property
    def seeded(self) -> bool:
        """Whether two seeds can give two classifiers for the same texts."""
        return self.model.seeded

    def fit(self, train: LabelledTexts, seed: int) -> Predictor:
        """Return a classifier that was trained on these rows."""
        which = (tuple(train.texts), tuple(train.labels), train.pairs, seed if self.seeded else 0)
        classifier = self._fitted.pop(which, None) or self.model.fit(train, seed)
        self._fitted[which] = classifier
        if self.most is not None and len(self._fitted) > self.most:
            del self._fitted[next(iter(self._fitted))]
        return classifier
