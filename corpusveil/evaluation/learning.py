"""What classifiers learn from a release: the label of its texts (utility), and an attribute (attack)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corpusveil.errors import UserError
from corpusveil.evaluation.attribute import ATTACKERS, infer_attribute
from corpusveil.evaluation.findings import Measure
from corpusveil.evaluation.matching import Matched
from corpusveil.evaluation.models import Model, Predictor
from corpusveil.evaluation.question import Question
from corpusveil.evaluation.tasks import Task
from corpusveil.evaluation.utility import MODES, Summary, baselines, paired_difference, utility
from corpusveil.evaluation.utility import Measure as Score

SHARES = (0.8, 0.2)
BY: dict[Score, tuple[str, str]] = {
    "accuracy": ("accuracy", "attribute"),
    "macro_f1": ("macro F1", "attribute (macro F1)"),
}
"""What figures of label and attribute are called."""


@dataclass(frozen=True, slots=True)
class Version:
    """What became of all documents; ``seconds`` are second texts, None where they stay as they are."""

    texts: Sequence[str]
    seconds: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Remembered:
    """A model that is not fitted twice to the same texts and labels: the modes and attackers share classifiers.

    ``most`` classifiers are kept, those that were asked for last; None keeps all.
    """

    model: Model
    _fitted: dict[Any, Predictor] = field(default_factory=dict, compare=False)
    most: int | None = None

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.model.name

    @property
    def seeded(self) -> bool:
        """Whether two seeds can give two classifiers for the same texts."""
        return self.model.seeded

    def apart(self) -> Remembered:
        """Return the same with what is fitted so far; what it fits from now on goes when it goes."""
        return Remembered(self.model, dict(self._fitted))

    def fit(self, train: Task, seed: int) -> Predictor:
        """Return a classifier that was trained on these rows."""
        which = (tuple(train.texts), tuple(train.labels), train.pairs, seed if self.seeded else 0)
        found = self._fitted.pop(which, None) or self.model.fit(train, seed)
        self._fitted[which] = found
        if self.most is not None and len(self._fitted) > self.most:
            del self._fitted[next(iter(self._fitted))]
        return found


@dataclass(frozen=True, slots=True)
class Labelled:
    """Documents that have a label, and their numbers."""

    task: Task
    rows: list[int]

    def version(self, private: Version) -> Task:
        """Return the same documents as they became; second texts stay where the task has none or they are not given."""
        seconds = None if self.task.pairs is None else private.seconds
        return self.task.with_texts(
            [private.texts[row] for row in self.rows], None if seconds is None else [seconds[row] for row in self.rows]
        )

    def among(self, rows: Sequence[int]) -> Labelled:
        """Return those of some documents, which are then numbered from 0."""
        place = {row: at for at, row in enumerate(rows)}
        here = [(at, place[row]) for at, row in enumerate(self.rows) if row in place]
        return Labelled(self.task.take(np.array([at for at, _ in here], np.int64)), [row for _, row in here])


def labelled(matched: Matched, column: str, second: str | None = None) -> Labelled:
    """Return the documents that have a value in a column, and of pairs both texts.

    Raises UserError where there is nothing to tell apart, and where hardly two documents share a value.
    """
    values = matched.columns[column]
    others = None if second is None else matched.columns[second]
    rows = [row for row, value in enumerate(values) if _there(value) and (others is None or _there(others[row]))]
    pairs = None if others is None else [str(others[row]) for row in rows]
    task = Task([matched.originals[row] for row in rows], [values[row] for row in rows], pairs, name=column)
    task.require_classes()
    if 2 * len(task.classes) >= len(rows):
        raise UserError(
            f"{column}: {len(task.classes):,} different values among {len(rows):,} documents; a label is one that many "
            "documents share."
        )
    return Labelled(task, rows)


def _there(value: Any) -> bool:
    return value is not None and value == value and value != ""  # noqa: PLR0124 - NaN


def learnt(
    question: Question,
    tasks: Mapping[str, Labelled],
    privates: Sequence[Version],
    model: Model,
    epsilon: float | None = None,
    mechanism: str = "",
) -> Iterator[Measure]:
    """Yield what one model learns of label and attribute, over as many private versions as there are seeds.

    Beside it stand the same model on the original texts and the difference to it, seed by seed, and the constant
    classifier. At a further epsilon utility is that of the first mode only.
    """
    known = {name: baselines(one.task, model, range(question.seeds), shares=SHARES) for name, one in tasks.items()}
    if question.label is not None:
        some, originals = tasks[question.label], known[question.label]
        texts = [some.version(one) for one in privates]
        for mode in MODES if epsilon is None else MODES[:1]:
            told = utility(some.task, texts, mode, model, shares=SHARES, originals=originals, fewest=2)
            for by, (name, _) in BY.items():
                yield _figure("utility", f"{name}, {mode.replace('-', ' to ')}", told, by, epsilon, mechanism)
        for by, (name, _) in BY.items() if epsilon is None else ():
            yield _baseline("utility", f"{name}, original to original", told, by)
    if question.attribute is not None:
        some, originals = tasks[question.attribute], known[question.attribute]
        texts = [some.version(one) for one in privates]
        for attacker in ATTACKERS:
            found = infer_attribute(some.task, texts, attacker, model, shares=SHARES, originals=originals, fewest=2)
            for by, (_, name) in BY.items():
                yield _figure("attack", f"{name}, {attacker}", found.summary, by, epsilon, mechanism)
        for by, (_, name) in BY.items() if epsilon is None else ():
            yield _baseline("attack", f"{name}, from original texts", found.summary, by)


def _figure(group: str, name: str, told: Summary, by: Score, epsilon: float | None, mechanism: str) -> Measure:
    told = dataclasses.replace(told, measure=by)
    less = paired_difference(told.values, told.baselines)
    return Measure(
        group, name, told.mean, epsilon=epsilon, mechanism=mechanism, deviation=told.deviation, repeats=len(told.seeds),
        model=told.model, floor=told.floor, difference=less.mean, low=less.low, high=less.high, of_input=True,
    )  # fmt: skip


def _baseline(group: str, name: str, told: Summary, by: Score) -> Measure:
    told = dataclasses.replace(told, measure=by)
    return Measure(group, name, told.baseline, model=told.model, floor=told.floor, of_input=True)
