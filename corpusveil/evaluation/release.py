"""A release beside its original: what came back, what can be guessed, what a model learns.

Everything is computed from documents that ``match`` found, an even sample where there are many. With the space of the
release its mechanism is asked too, and further epsilons are tried, each with keys that are thrown away.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corpusveil.budget import Budget
from corpusveil.collocations.table import Collocations
from corpusveil.errors import UserError
from corpusveil.evaluation.attackers import attack_words
from corpusveil.evaluation.attribute import infer_attribute
from corpusveil.evaluation.findings import Findings, Measure
from corpusveil.evaluation.language import KneserNey
from corpusveil.evaluation.matching import Matched
from corpusveil.evaluation.models import Model, Predictor, model_of
from corpusveil.evaluation.report import examples_of
from corpusveil.evaluation.similarity import AveragedVectors, Encoder, cosine
from corpusveil.evaluation.statistics import WordList, changed_share, english_share, jaccard, surviving_rare
from corpusveil.evaluation.tasks import Task
from corpusveil.evaluation.utility import MODES, Scores, Summary, baselines, utility
from corpusveil.mechanisms import Mechanism, make
from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.release import Release
from corpusveil.transforms.table import privatize

SHARES = (0.8, 0.2)
GRID_DOCUMENTS = 2000
"""Documents of which each further epsilon is tried, once a seed."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A model that is not fitted twice to the same texts and labels: the modes and attackers share classifiers."""

    model: Model
    _fitted: dict[Any, Predictor] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.model.name

    @property
    def seeded(self) -> bool:
        """Whether two seeds can give two classifiers for the same texts."""
        return self.model.seeded

    def fit(self, train: Task, seed: int) -> Predictor:
        """Return a classifier that was trained on these rows."""
        which = (tuple(train.texts), tuple(train.labels), train.pairs, seed if self.seeded else 0)
        if which not in self._fitted:
            self._fitted[which] = self.model.fit(train, seed)
        return self._fitted[which]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a release, beyond its texts.

    ``label`` and ``attribute`` are columns of the original: what a model should still learn, and what an attacker
    should not. ``epsilons`` are tried besides, which takes ``space`` (of the release, and its ``collocations``).
    """

    label: str | None = None
    attribute: str | None = None
    epsilons: tuple[float, ...] = ()
    seeds: int = 5
    model: str = "tfidf"
    space: Space | None = None
    collocations: Collocations | None = None
    encoder: Encoder | None = None
    counts: str | None = None
    """Public n-gram counts, which a language model is made of; without them it is made of every other original."""

    def __post_init__(self) -> None:
        if self.seeds < 2:
            raise UserError(f"seeds = {self.seeds}: a deviation takes 2 or more.")
        if self.epsilons and self.space is None:
            raise UserError("Further epsilons are tried with the release's space: add --space.")
        if self.model == "vectors" and self.space is None:
            raise UserError("The model 'vectors' averages a space's vectors: add --space.")


def evaluate_release(matched: Matched, manifest: Mapping[str, Any] | None, question: Question) -> Findings:
    """Return what is found. ``manifest`` is the release's, None where the private texts are not a release of ours.

    Raises UserError where manifest and space do not fit, and where a model can't be trained.
    """
    began = time.monotonic()
    if (
        question.space is not None
        and manifest is not None
        and manifest["configuration"]["space"] != question.space.digest
    ):
        raise UserError("--space is not the space of this release, by its digest; name that one.")
    language, held_out = _language(matched, question)
    measures = [*_texts(matched, question, language, held_out)]
    tasks = {name: _task(matched, name) for name in (question.label, question.attribute) if name is not None}
    model = Remembered(model_of(question.model, question.space))
    known = {name: baselines(task, model, range(question.seeds), shares=SHARES) for name, task in tasks.items()}
    privates = [matched.privates] * question.seeds
    measures += _learnt(question, tasks, privates, model, known, None)
    versions: dict[str, Sequence[str]] = {"released": matched.privates}
    notes = [
        f"Classifiers: {question.model}, trained on 80 % and tested on 20 %, {question.seeds} splits by seed."
    ] * bool(tasks)
    if manifest is not None and question.space is not None:
        mechanism = mechanism_of(manifest, question.space)
        given, public = manifest["configuration"]["budget"]["per"] == "token", question.counts is not None
        of_word = _word_epsilon(manifest, matched)
        measures += attack_words(mechanism, of_word, matched.originals, language, given=given, public=public)
        for epsilon in question.epsilons:
            found, text = _tried(matched, manifest, question, epsilon, tasks)
            measures += found
            versions[f"epsilon {epsilon:g}"] = text
    if matched.sampled:
        notes.append(f"An even sample of {len(matched.originals):,} of {matched.documents:,} documents.")
    return Findings(
        "A release beside its original",
        matched.documents,
        len(matched.originals),
        tuple(manifest["guarantee_in_words"]) if manifest else (),
        tuple(manifest["guarantee"]["disclosed"]) if manifest else (),
        tuple(measures),
        examples_of(matched.originals, versions),
        (*notes, _about(language, question)),
        time.monotonic() - began,
        dict(manifest["configuration"]) if manifest else {},
    )


def mechanism_of(manifest: Mapping[str, Any], space: Space) -> Mechanism:
    """Return the mechanism that a manifest names, on its space."""
    told = dict(manifest["configuration"]["mechanism"])
    return make(told.pop("name"), space, **told)


def release_of(manifest: Mapping[str, Any], question: Question, epsilon: float) -> Release:
    """Return a release as the manifest has it, at another epsilon and under a key of its own."""
    assert question.space is not None  # noqa: S101 - who asks for epsilons has given it
    told = manifest["configuration"]
    budget = {name: value for name, value in told["budget"].items() if name != "epsilon"}
    if "weights" in budget:
        budget["weights"] = tuple(tuple(one) for one in budget["weights"])
    policy = TextPolicy(**told["text"])
    mechanism = mechanism_of(manifest, question.space)
    return Release(mechanism, Budget(epsilon, **budget), policy, Key.generate(), question.collocations)


def _word_epsilon(manifest: Mapping[str, Any], matched: Matched) -> float:
    """Return the epsilon of a word: as given, or a document's shared by the words of the median document."""
    budget = manifest["configuration"]["budget"]
    if budget["per"] == "token":
        return float(budget["epsilon"])
    return float(budget["epsilon"]) / max(1.0, float(np.median([len(text.split()) for text in matched.originals])))


def _texts(matched: Matched, question: Question, language: KneserNey, held_out: slice) -> Iterator[Measure]:
    """Yield what the texts alone say."""
    before, after = matched.originals, matched.privates
    changed = changed_share(before, after)
    note = (
        f"of {changed.left_out:,} documents the words can't be paired, so they are left out" if changed.left_out else ""
    )
    if not math.isnan(changed.share):
        yield Measure("privacy", "words unchanged", 1 - changed.share, note=note, of_input=True)
        yield Measure("privacy", "words changed (PP)", changed.share, of_input=True)
    rare = surviving_rare(before, after)
    yield Measure(
        "privacy", "rarest words that survive (LOW)", rare, note="of the 1,000 rarest of the original", of_input=True
    )
    yield Measure("privacy", "shared words (Jaccard)", float(np.nanmean(jaccard(before, after))), of_input=True)
    encoder = question.encoder or (None if question.space is None else AveragedVectors(question.space))
    if encoder is not None:
        close = float(np.mean(cosine(before, after, encoder)))
        yield Measure("utility", "similarity of meaning", close, model=encoder.label, of_input=True)
    words = None if question.space is None else WordList.of_space(question.space)
    for name, texts in (("original", before), ("private", after)):
        if words is not None:
            share = english_share(texts, words)
            yield Measure("language", f"words of the list, {name}", share, model=words.label, of_input=True)
        value = language.perplexity(texts[held_out]).value
        yield Measure("language", f"perplexity, {name}", value, "number", model="Kneser-Ney, 3 words", of_input=True)


def _language(matched: Matched, question: Question) -> tuple[KneserNey, slice]:
    """Return a language model, and which documents it has not seen."""
    if question.counts is not None:
        return KneserNey.of_counts(question.counts), slice(None)
    if len(matched.originals) < 2:
        raise UserError("One document is too few to be evaluated.")
    return KneserNey.of_texts(matched.originals[::2]), slice(1, None, 2)


def _about(language: KneserNey, question: Question) -> str:
    source = "public counts" if question.counts else "every other original, and measured on the others"
    return f"Language model: interpolated Kneser-Ney of three words, {language.unknown:,} words, made of {source}."


def _task(matched: Matched, column: str) -> Task:
    return Task(matched.originals, [str(value) for value in matched.columns[column]], name=column)


def _learnt(
    question: Question, tasks: Mapping[str, Task], privates: Sequence[Sequence[str]], model: Model,
    known: Mapping[str, Sequence[Scores]], epsilon: float | None,
) -> Iterator[Measure]:  # fmt: skip
    """Yield what classifiers learn of label and attribute."""
    if question.label is not None:
        task = tasks[question.label]
        for mode in MODES if epsilon is None else MODES[:1]:
            told = utility(task, privates, mode, model, shares=SHARES, originals=known[question.label], fewest=2)
            yield _figure("utility", f"accuracy, {mode.replace('-', ' to ')}", told, epsilon)
        if epsilon is None:
            yield _baseline("utility", "accuracy, original to original", told)
    if question.attribute is not None:
        task = tasks[question.attribute]
        for attacker in ("static", "adaptive"):
            found = infer_attribute(
                task, privates, attacker, model, shares=SHARES, originals=known[question.attribute], fewest=2
            )
            yield _figure("attack", f"attribute, {attacker}", found.summary, epsilon)
        if epsilon is None:
            yield _baseline("attack", "attribute, from original texts", found.summary)


def _figure(group: str, name: str, told: Summary, epsilon: float | None) -> Measure:
    return Measure(
        group, name, told.mean, epsilon=epsilon, deviation=told.deviation, repeats=len(told.seeds), model=told.model,
        floor=told.floor, of_input=True,
    )  # fmt: skip


def _baseline(group: str, name: str, told: Summary) -> Measure:
    return Measure(group, name, told.baseline, model=told.model, floor=told.floor, of_input=True)


def _tried(
    matched: Matched, manifest: Mapping[str, Any], question: Question, epsilon: float, tasks: Mapping[str, Task]
) -> tuple[list[Measure], list[str]]:  # fmt: skip
    """Return what is found at another epsilon, over as many keys as seeds, and the texts under one of them."""
    some = slice(GRID_DOCUMENTS)
    before = matched.originals[some]
    privates = [privatize(before, release_of(manifest, question, epsilon)) for _ in range(question.seeds)]
    encoder = question.encoder or AveragedVectors(question.space) if question.space else None
    repeated: list[tuple[str, str, str, Callable[[list[str]], float]]] = [
        ("privacy", "words unchanged", "", lambda text: 1 - changed_share(before, text).share),
    ]
    if encoder is not None:
        repeated.append(
            (
                "utility",
                "similarity of meaning",
                encoder.label,
                lambda text: float(np.mean(cosine(before, text, encoder))),
            )
        )
    measures = []
    for group, name, told, figure in repeated:
        values = [figure(text) for text in privates]
        measures.append(
            Measure(
                group, name, float(np.mean(values)), epsilon=epsilon, deviation=float(np.std(values, ddof=1)),
                repeats=len(values), model=told, of_input=True,
            )
        )  # fmt: skip
    rows = np.arange(len(before))
    few = {name: task.take(rows) for name, task in tasks.items()}
    model = Remembered(model_of(question.model, question.space))
    known = {name: baselines(task, model, range(question.seeds), shares=SHARES) for name, task in few.items()}
    measures += _learnt(question, few, privates, model, known, epsilon)
    return measures, privates[0]
