"""What classifiers learn from a release: the label of its texts (utility), and an attribute (attack)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corpusveil.errors import DataError
from corpusveil_evaluate.attacks.attribute_inference import ATTACKERS, ATTRIBUTE_NAMES, Readable
from corpusveil_evaluate.matching import Matched
from corpusveil_evaluate.report.question import Question
from corpusveil_evaluate.statistics.statistic import Figure
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts
from corpusveil_evaluate.utility.text_classifiers import Model
from corpusveil_evaluate.utility.training_modes import (
    BASELINE,
    MODES,
    SCORE_NAMES,
    Score,
    Scores,
    paired_difference,
    scores_in,
)

SHARES = (0.8, 0.2)


@dataclass(frozen=True, slots=True)
class LabelledDocuments:
    """Documents with a label, and their numbers."""

    task: LabelledTexts
    rows: list[int]

    def version(self, privates: Sequence[str]) -> list[str]:
        """Return the private versions of the same documents."""
        return [privates[row] for row in self.rows]


def labelled_documents(matched: Matched, column: str) -> LabelledDocuments:
    """Return the documents that have a value in a column.

    Raises UserError if there are no different values, or if hardly two documents share a value.
    """
    values = matched.columns[column]
    rows = [row for row, value in enumerate(values) if _there(value)]
    task = LabelledTexts([matched.originals[row] for row in rows], [values[row] for row in rows], name=column)
    task.require_classes()
    if 2 * len(task.classes) >= len(rows):
        raise DataError(
            f"{column}: there are {len(task.classes):,} different values among {len(rows):,} documents; a label is "
            "shared by many documents, so name another column."
        )
    return LabelledDocuments(task, rows)


def _there(value: Any) -> bool:
    return value is not None and value == value and value != ""  # noqa: PLR0124 - NaN


def classifier_figures(
    question: Question,
    tasks: Mapping[str, LabelledDocuments],
    privates: Sequence[str],
    model: Model,
    readable: Readable | None = None,
) -> Iterator[Figure]:
    """Yield the scores of one model for label and attribute, over as many splits as there are seeds.

    With ``readable``, a reader's denoising of the release, attackers of the attribute also denoise first, and the
    result is that of the best attacker, never below a simpler attacker or the constant classifier.

    The baselines are the same model on the original texts, with the differences seed by seed, and the constant
    classifier.
    """

    def scored(mode: str, some: LabelledDocuments, texts: Sequence[str]) -> list[Scores]:
        private = some.task.with_texts(texts)
        return [scores_in(mode, some.task, private, model, seed, SHARES) for seed in range(question.asked.seeds)]

    if question.asked.label is not None:
        some = tasks[question.asked.label]
        own = some.version(privates)
        originals = scored(BASELINE, some, own)
        for mode in MODES:
            scores = scored(mode, some, own)
            for by, name in SCORE_NAMES.items():
                yield _figure("utility", f"{name}, {mode.replace('-', ' to ')}", model, by, scores, originals)
        for by, name in SCORE_NAMES.items():
            yield _figure("utility", f"{name}, original to original", model, by, originals)
    if question.asked.attribute is not None:
        some = tasks[question.asked.attribute]
        own = some.version(privates)
        originals = scored(BASELINE, some, own)
        versions = {"": own} if readable is None else {"": own, ", denoised first": readable(own)}
        attacks = {
            f"{who}{how}": scored(mode, some, texts)
            for how, texts in versions.items()
            for who, mode in ATTACKERS.items()
        }
        for attack, scores in attacks.items():
            for by, name in ATTRIBUTE_NAMES.items():
                yield _figure("attack", f"{name}, {attack}", model, by, scores, originals)
        for by, name in ATTRIBUTE_NAMES.items():
            yield _best(name, attacks, model, by)
        for by, name in ATTRIBUTE_NAMES.items():
            yield _figure("attack", f"{name}, from original texts", model, by, originals)


def _over(scores: Sequence[Scores], measure: str) -> list[float]:
    return [getattr(score, measure) for score in scores]


def _figure(
    group: str, name: str, model: Model, by: Score, scores: Sequence[Scores], originals: Sequence[Scores] = ()
) -> Figure:
    """Return the mean over seeds; beside ``originals`` with its deviation, and the difference seed by seed."""
    values, floor = _over(scores, by), float(np.mean(_over(scores, f"floor_{by}")))
    figure = Figure(group, name, float(np.mean(values)), model=model.name, floor=floor, of_input=True)
    if not originals:
        return figure
    difference, low, high = paired_difference(values, _over(originals, by))
    return dataclasses.replace(
        figure, deviation=float(np.std(values, ddof=1)), repeats=len(values), difference=difference, low=low, high=high
    )


def _best(name: str, attacks: Mapping[str, Sequence[Scores]], model: Model, by: Score) -> Figure:
    """Return the best attack, which may be to say the most frequent value."""
    figures = {
        attack: _figure("attack", f"{name}, best attack", model, by, scores) for attack, scores in attacks.items()
    }
    best = max(figures, key=lambda attack: figures[attack].value)
    floor = max(figure.floor or 0.0 for figure in figures.values())
    who = f"{model.name}, {best}" if figures[best].value >= floor else "the most frequent value"
    return dataclasses.replace(figures[best], value=max(figures[best].value, floor), model=who, floor=floor)
