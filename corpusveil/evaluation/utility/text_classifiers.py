"""Classifiers of texts and of pairs of texts: TF-IDF or averaged word vectors, with logistic regression.

A pair (u, v) is the row (u, v, |u - v|, u v). An attacker of this strength is a lower bound on risk, so a table names
its model. scikit-learn comes with the extra ``evaluate`` and is imported when a classifier is fitted.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from corpusveil.errors import BadValueError, DataError, MismatchError, PackageError, UnsetError
from corpusveil.evaluation.utility.labelled_texts import LabelledTexts
from corpusveil.spaces import Space
from corpusveil.text.tokens import Tokenizer
from corpusveil.text.word_table import WordTable

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
    """TF-IDF over 1- and 2-grams of words (sublinear counts, lower case), and logistic regression.

    ``strength`` is scikit-learn's C, ``words`` the longest n-gram, ``rare`` the least number of texts with an n-gram.
    """

    strength: float = 10.0
    words: int = 2
    rare: int = 1
    name: str = "tfidf"
    seeded: bool = False

    def fit(self, train: LabelledTexts, seed: int) -> Predictor:  # noqa: ARG002 - the same for any seed
        """Return the classifier. Raises UserError without scikit-learn, and for texts without a word."""
        made = _sklearn("feature_extraction.text").TfidfVectorizer(
            ngram_range=(1, self.words), min_df=self.rare, sublinear_tf=True, token_pattern=WORD_PATTERN
        )
        try:
            made.fit([*train.texts, *(train.pairs or ())])
        except ValueError:  # an empty vocabulary
            raise DataError(
                f"{train.name}: no word occurs in enough of the texts to train on; give more texts."
            ) from None

        def features(task: LabelledTexts) -> Any:
            return _rows(task, made.transform)

        return _logistic(features, train, self.strength, solver="newton-cg", tol=1e-5)


@dataclass(frozen=True, slots=True)
class Averaged:
    """The mean of the space's vectors of a text's known words (zeros without any), and logistic regression.

    Columns are scaled to deviation 1 over the texts to train on. Words are the space's, one token each.
    """

    space: Space
    strength: float = 1.0
    name: str = "vectors"
    seeded: bool = False

    def fit(self, train: LabelledTexts, seed: int) -> Predictor:  # noqa: ARG002 - the same for any seed
        """Return the classifier. Raises UserError without scikit-learn, and when not every word has a vector."""
        self.space.require_vectors(self.name)
        vocabulary = self.space.vocabulary
        tokenizer = Tokenizer(WordTable.build(vocabulary.text, vocabulary.offsets.astype(np.int64)))

        def features(task: LabelledTexts) -> Any:
            return _rows(task, lambda texts: averages(self.space, tokenizer, texts))

        return _logistic(features, train, self.strength, _sklearn("preprocessing").StandardScaler())


def averages(space: Space, tokenizer: Tokenizer, texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return the mean vector of the known words of each text; float64 [N, d]."""
    tokens = tokenizer.tokenize(texts)
    known = np.flatnonzero(tokens.ids >= 0)
    ends = np.searchsorted(known, tokens.offsets)
    shape = (len(texts), len(space))
    counts = sparse.csr_matrix((np.ones(known.size), tokens.ids[known], ends), shape=shape)
    sums = counts @ np.asarray(space.vectors, dtype=np.float64)
    means: npt.NDArray[np.float64] = sums / np.maximum(np.diff(ends), 1)[:, None]
    return means


def model_of(name: str, space: Space | None = None) -> Model:
    """Return the built-in model of this name: ``tfidf``, or ``vectors`` of a space."""
    if name == "tfidf":
        return Tfidf()
    if name != "vectors":
        raise BadValueError(f"model {name!r}: choose tfidf or vectors.")
    if space is None:
        raise UnsetError("model 'vectors' averages the vectors of a space; give a space.")
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
    features: Callable[[LabelledTexts], Any], train: LabelledTexts, strength: float, *steps: Any, **options: Any
) -> Predictor:
    train.require_classes()
    steps = (*steps, _sklearn("linear_model").LogisticRegression(C=strength, max_iter=ITERATIONS, **options))
    fitted = _sklearn("pipeline").make_pipeline(*steps).fit(features(train), np.array(train.labels))

    def predict(task: LabelledTexts) -> list[str]:
        if (task.pairs is None) != (train.pairs is None):
            raise MismatchError(
                f"{task.name}: it is trained on {('texts' if train.pairs is None else 'pairs')} and tested on "
                "the other kind; give the same kind for both."
            )
        labels: list[str] = fitted.predict(features(task)).tolist()
        return labels

    return predict


def require_sklearn() -> None:
    """Raise UserError if the models' packages are missing."""
    _sklearn("linear_model")


def _sklearn(module: str) -> Any:
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError:
        raise PackageError("Utility and attackers need scikit-learn: pip install 'corpusveil[evaluate]'.") from None
