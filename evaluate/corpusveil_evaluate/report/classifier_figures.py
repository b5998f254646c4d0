"""What classifiers learn from a release: the label of its texts (utility), and an attribute (attack)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corpusveil.errors import DataError
from corpusveil_evaluate.attacks.attribute_inference import ATTACKERS, ATTRIBUTE_NAMES, Readable, infer_attribute
from corpusveil_evaluate.matching import Matched
from corpusveil_evaluate.report.question import Question
from corpusveil_evaluate.statistics.statistic import Figure
from corpusveil_evaluate.utility.labelled_texts import LabelledTexts
from corpusveil_evaluate.utility.text_classifiers import Model
from corpusveil_evaluate.utility.training_modes import (
    MODES,
    SCORE_NAMES,
    Score,
    Summary,
    baselines,
    paired_difference,
    utility,
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
    known = {
        name: baselines(documents.task, model, range(question.asked.seeds), shares=SHARES)
        for name, documents in tasks.items()
    }
    if question.asked.label is not None:
        some, originals = tasks[question.asked.label], known[question.asked.label]
        texts = [some.version(privates)] * question.asked.seeds
        for mode in MODES:
            summary = utility(some.task, texts, mode, model, shares=SHARES, originals=originals, fewest=2)
            for by, name in SCORE_NAMES.items():
                yield _figure("utility", f"{name}, {mode.replace('-', ' to ')}", summary, by)
        for by, name in SCORE_NAMES.items():
            yield _baseline("utility", f"{name}, original to original", summary, by)
    if question.asked.attribute is not None:
        some, originals = tasks[question.asked.attribute], known[question.asked.attribute]
        versions = {"": some.version(privates)}
        if readable is not None:
            versions[", denoised first"] = readable(versions[""])
        seeds, known_scores = question.asked.seeds, {"shares": SHARES, "originals": originals, "fewest": 2}
        attacks = {
            f"{who}{how}": infer_attribute(some.task, [version] * seeds, who, model, **known_scores)  # type: ignore[arg-type]
            for how, version in versions.items()
            for who in ATTACKERS
        }
        for attack, summary in attacks.items():
            for by, name in ATTRIBUTE_NAMES.items():
                yield _figure("attack", f"{name}, {attack}", summary, by)
        for by, name in ATTRIBUTE_NAMES.items():
            yield _best(name, attacks, by)
        for by, name in ATTRIBUTE_NAMES.items():
            yield _baseline("attack", f"{name}, from original texts", summary, by)


def _figure(group: str, name: str, summary: Summary, by: Score) -> Figure:
    summary = dataclasses.replace(summary, measure=by)
    less = paired_difference(summary.values, summary.baselines)
    return Figure(
        group, name, summary.mean, deviation=summary.deviation,
        repeats=len(summary.seeds), model=summary.model, floor=summary.floor, difference=less.mean, low=less.low,
        high=less.high, of_input=True,
    )  # fmt: skip


def _best(name: str, attacks: Mapping[str, Summary], by: Score) -> Figure:
    """Return the best attack, which may be to say the most frequent value."""
    scores = {attack: dataclasses.replace(summary, measure=by) for attack, summary in attacks.items()}
    best = max(scores, key=lambda attack: scores[attack].mean)
    summary = scores[best]
    floor = max(summary.floor for summary in scores.values())
    model = f"{summary.model}, {best}" if summary.mean >= floor else "the most frequent value"
    return Figure("attack", f"{name}, best attack", max(summary.mean, floor), model=model, floor=floor, of_input=True)


def _baseline(group: str, name: str, summary: Summary, by: Score) -> Figure:
    summary = dataclasses.replace(summary, measure=by)
    return Figure(group, name, summary.baseline, model=summary.model, floor=summary.floor, of_input=True)
