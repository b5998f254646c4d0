"""Classifiers of texts and of pairs of texts: TF-IDF or averaged word vectors, with logistic regression.

A pair (u, v) is the row (u, v, |u - v|, u v). An attacker of this strength is a lower bound on risk, so a table names
its model. scikit-learn comes with the extra ``evaluate`` and is imported when a classifier is fitted.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from corpusveil.errors import BadValueError, DataError, FormatError, MismatchError, PackageError, UnsetError
from corpusveil.evaluation.statistics.encoders import AveragedVectors
from corpusveil.evaluation.utility.labelled_texts import LabelledTexts
from corpusveil.spaces import Space

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
        made = sklearn("feature_extraction.text").TfidfVectorizer(
            ngram_range=(1, self.words), min_df=self.rare, sublinear_tf=True, token_pattern=WORD_PATTERN
        )
        try:
            made.fit([*train.texts, *(train.pairs or ())])
        except ValueError:  # an empty vocabulary
            raise DataError(
                f"{train.name}: no word occurs in enough of the texts to train on; give more texts."
            ) from None
        return _logistic(made.transform, train, self.strength, solver="newton-cg", tol=1e-5)


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
        scaler = sklearn("preprocessing").StandardScaler()
        return _logistic(AveragedVectors(self.space).encode, train, self.strength, scaler)


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
    features: Callable[[Sequence[str]], Any], train: LabelledTexts, strength: float, *steps: Any, **options: Any
) -> Predictor:
    train.require_classes()
    steps = (*steps, sklearn("linear_model").LogisticRegression(C=strength, max_iter=ITERATIONS, **options))
    fitted = sklearn("pipeline").make_pipeline(*steps).fit(_rows(train, features), np.array(train.labels))

    def predict(task: LabelledTexts) -> list[str]:
        if (task.pairs is None) != (train.pairs is None):
            raise MismatchError(
                f"{task.name}: it is trained on {('texts' if train.pairs is None else 'pairs')} and tested on "
                "the other kind; give the same kind for both."
            )
        labels: list[str] = fitted.predict(_rows(task, features)).tolist()
        return labels

    return predict


def sklearn(module: str = "linear_model") -> Any:
    """Return a module of scikit-learn. Raises UserError without it."""
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError:
        raise PackageError("Utility and attackers need scikit-learn: pip install 'corpusveil[evaluate]'.") from None


@dataclass(frozen=True, slots=True)
class FineTuned:
    """A sequence classifier from ``folder`` (model and tokenizer), all weights trained with AdamW.

    ``epochs``, ``batch`` (rows), ``rate`` (of learning, falling to 0 in a line) and ``length`` (tokens) as usual. The
    seed decides the new head, dropout and the order of rows. Pairs are encoded as pairs.
    """

    folder: str
    epochs: int = 1
    batch: int = 32
    rate: float = 2e-5
    length: int = 256
    seeded: bool = True

    @property
    def name(self) -> str:
        """The folder's name."""
        return os.path.basename(os.path.normpath(self.folder))

    def fit(self, train: LabelledTexts, seed: int) -> Predictor:
        """Return the fine-tuned classifier. Raises UserError without the packages or the folder."""
        if not os.path.isfile(os.path.join(self.folder, "config.json")):
            raise FormatError(f"{self.folder}: config.json is missing; give the folder of a transformers model.")
        try:
            import torch
            import transformers
        except ImportError:
            raise PackageError("Fine-tuning needs PyTorch: pip install 'corpusveil[transformers]'.") from None
        train.require_classes()
        torch.manual_seed(seed)
        classes = train.classes
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder, local_files_only=True)
            model = transformers.AutoModelForSequenceClassification.from_pretrained(
                self.folder, local_files_only=True, num_labels=len(classes), ignore_mismatched_sizes=True
            )
        except (OSError, ValueError):
            raise FormatError(
                f"{self.folder}: transformers cannot read a model and a tokenizer here; give the folder of a model."
            ) from None
        device = "cuda" if torch.cuda.is_available() else "cpu"
        model.to(device).train()
        labels = torch.tensor([classes.index(label) for label in train.labels])
        steps = self.epochs * -(-len(train) // self.batch)
        optimizer = torch.optim.AdamW(model.parameters(), lr=self.rate)
        falling = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / steps))
        random = np.random.default_rng(seed)
        for _ in range(self.epochs):
            order = random.permutation(len(train))
            for start in range(0, len(train), self.batch):
                rows = order[start : start + self.batch]
                batch = self._encoded(tokenizer, train, rows, device)
                optimizer.zero_grad()
                model(**batch, labels=labels[rows].to(device)).loss.backward()
                optimizer.step()
                falling.step()
        model.eval()

        def predict(task: LabelledTexts) -> list[str]:
            predicted: list[str] = []
            with torch.no_grad():
                for start in range(0, len(task), self.batch):
                    rows = np.arange(start, min(start + self.batch, len(task)))
                    logits = model(**self._encoded(tokenizer, task, rows, device)).logits
                    predicted += [classes[number] for number in logits.argmax(-1).tolist()]
            return predicted

        return predict

    def _encoded(self, tokenizer: Any, task: LabelledTexts, rows: Any, device: str) -> Any:
        texts = [task.texts[row] for row in rows]
        pairs = None if task.pairs is None else [task.pairs[row] for row in rows]
        encoded = tokenizer(texts, pairs, truncation=True, max_length=self.length, padding=True, return_tensors="pt")
        return encoded.to(device)


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

    def apart(self) -> Remembered:
        """Return a copy with the classifiers fitted so far; those that it fits later are discarded with it."""
        return Remembered(self.model, dict(self._fitted))

    def fit(self, train: LabelledTexts, seed: int) -> Predictor:
        """Return a classifier that was trained on these rows."""
        which = (tuple(train.texts), tuple(train.labels), train.pairs, seed if self.seeded else 0)
        classifier = self._fitted.pop(which, None) or self.model.fit(train, seed)
        self._fitted[which] = classifier
        if self.most is not None and len(self._fitted) > self.most:
            del self._fitted[next(iter(self._fitted))]
        return classifier
