"""Classifiers that are fitted once, for several modes, attackers and cells that train on the same texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from corpusveil.evaluation.utility.labelled_texts import LabelledTexts
from corpusveil.evaluation.utility.text_classifiers import Model, Predictor


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
