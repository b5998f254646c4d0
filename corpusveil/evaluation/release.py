"""A release beside its original: what came back, what can be guessed, what a model learns.

Everything is computed from documents that ``match`` found, an even sample where there are many. With the space of the
release its mechanism is asked too, and further epsilons are tried, each with keys that are thrown away.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corpusveil.budget import Budget
from corpusveil.collocations.table import Collocations
from corpusveil.errors import UserError
from corpusveil.evaluation.attackers import attack_words
from corpusveil.evaluation.attribute import infer_attribute, relative_gain
from corpusveil.evaluation.findings import Findings, Measure
from corpusveil.evaluation.language import KneserNey
from corpusveil.evaluation.matching import Matched
from corpusveil.evaluation.models import Model, Predictor, model_of
from corpusveil.evaluation.puc import puc
from corpusveil.evaluation.report import examples_of
from corpusveil.evaluation.similarity import AveragedVectors, Encoder, cosine
from corpusveil.evaluation.statistics import (
    ChangedShare,
    WordList,
    changed_share,
    english_share,
    jaccard,
    surviving_rare,
)
from corpusveil.evaluation.tasks import Task
from corpusveil.evaluation.terms import count_words
from corpusveil.evaluation.utility import MODES, Summary, baselines, utility
from corpusveil.mechanisms import Mechanism, make
from corpusveil.sampling.keys import Key
from corpusveil.sampling.weights import check_epsilon
from corpusveil.spaces import Space
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.release import Release
from corpusveil.transforms.table import privatize

SHARES = (0.8, 0.2)
CROSSED = 1000
"""Documents that the private text of another one is held against."""
GRID_DOCUMENTS = 2000
"""Documents of which each further epsilon is tried, once a seed."""
DAMAGED = "The release's manifest is damaged, or of another version of corpusveil; restore it."


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
        object.__setattr__(self, "epsilons", tuple(sorted({check_epsilon(one) for one in self.epsilons})))
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
    told = {} if manifest is None else manifest["configuration"]
    for name, given in (("space", question.space), ("collocations", question.collocations)):
        if manifest is not None and given is not None and told.get(name) != given.digest:
            raise UserError(f"--{name}: not the {name} of this release, by digest; name the release's own.")
    tasks = {name: _task(matched, name) for name in (question.label, question.attribute) if name is not None}
    if not count_words(matched.originals)[1]:
        raise UserError("The originals have no words, so there is nothing to be measured.")
    language, held_out = _language(matched, question)
    measures = [*_texts(matched, question, language, held_out)]
    model = Remembered(model_of(question.model, question.space))
    measures += _learnt(question, tasks, [matched.privates] * question.seeds, model, None)
    rows = _spread(len(matched.originals), GRID_DOCUMENTS)
    some = [matched.originals[row] for row in rows]
    versions: dict[str, Sequence[str]] = {"released": [matched.privates[row] for row in rows]}
    counted = [*_left_out(matched, tasks)]
    notes = [
        f"Classifiers: {question.model}, trained on 80 % and tested on 20 %, {question.seeds} splits by seed."
    ] * bool(tasks)
    if manifest is not None and question.space is not None:
        mechanism = mechanism_of(manifest, question.space)
        given, public = manifest["configuration"]["budget"]["per"] == "token", question.counts is not None
        of_word = _word_epsilon(manifest, matched)
        measures += attack_words(mechanism, of_word, matched.originals, language, given=given, public=public)
        for epsilon in question.epsilons:
            model = Remembered(model_of(question.model, question.space))
            found, text = _tried(some, manifest, question, epsilon, model, tasks, rows)
            measures += found
            versions[f"epsilon {epsilon:g}"] = text
    measures += [*composites(measures)]
    (notes if question.counts is not None else counted).append(_about(language, question))
    return Findings(
        "A release beside its original",
        matched.documents,
        len(matched.originals),
        _guarantee(manifest) if manifest else (),
        tuple(manifest["guarantee"]["disclosed"]) if manifest else (),
        tuple(measures),
        examples_of(some, versions),
        tuple(notes),
        tuple(counted),
        time.monotonic() - began,
        dict(told),
    )


def composites(measures: Sequence[Measure]) -> Iterator[Measure]:
    """Yield what the studies weigh together, where all its parts are there: relative gain, and PUC at three alphas."""
    found = {one.name: one for one in measures if one.epsilon is None}
    useful, whole = (found.get(f"accuracy, {name} to {name}") for name in ("private", "original"))
    attack, known = (found.get(f"attribute, {name}") for name in ("adaptive", "from original texts"))
    if useful and whole and attack and known and whole.value > 0 and known.value > 0:
        floors = relative_gain(useful.floor or 0.0, whole.value, attack.floor or 0.0, known.value)
        yield Measure(
            "attack", "relative gain", relative_gain(useful.value, whole.value, attack.value, known.value), "number",
            note=f"utility kept less attack kept, by accuracy; constant classifiers have {floors:.3g}", of_input=True,
        )  # fmt: skip
    names = (
        "retention of a word (N_w)",
        "distinct outputs of 100 (S_w)",
        "words changed (PP)",
        "similarity of meaning",
    )
    parts = [found.get(name) for name in (*names, "rarest words that survive (LOW)")]
    if useful and whole and whole.value > 0 and all(parts):
        n_w, s_w, pp, cs, low = (part.value for part in parts if part)
        if cs < 0:
            return
        for alpha in (0.75, 0.5, 0.25):
            score = puc(100 * useful.value, 100 * whole.value, 100 * n_w, s_w, 100 * pp, 100 * cs, 100 * low, alpha)
            yield Measure("privacy", f"PUC, alpha {alpha:g}", score, "number", note="of 100", of_input=True)


def _guarantee(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the manifest promises; before it, that a published key was used, where it was."""
    return (*([f"{manifest['warning']}."] if manifest.get("warning") else []), *manifest["guarantee_in_words"])


def mechanism_of(manifest: Mapping[str, Any], space: Space) -> Mechanism:
    """Return the mechanism that a manifest names, on its space."""
    told = dict(manifest["configuration"]["mechanism"])
    try:
        return make(told.pop("name"), space, **told)
    except (TypeError, ValueError):
        raise UserError(DAMAGED) from None


def release_of(manifest: Mapping[str, Any], question: Question, epsilon: float) -> Release:
    """Return a release as the manifest has it, at another epsilon and under a key of its own."""
    assert question.space is not None  # noqa: S101 - who asks for epsilons has given it
    told = manifest["configuration"]
    mechanism = mechanism_of(manifest, question.space)
    try:
        budget = Budget(**{**told["budget"], "epsilon": epsilon})
        policy = TextPolicy(**told["text"])
    except (TypeError, ValueError):
        raise UserError(DAMAGED) from None
    return Release(mechanism, budget, policy, Key.generate(), question.collocations)


def _word_epsilon(manifest: Mapping[str, Any], matched: Matched) -> float:
    """Return the epsilon of a word: as given, or a document's shared by the words of the median document."""
    budget = manifest["configuration"]["budget"]
    if budget["per"] == "token":
        return float(budget["epsilon"])
    return float(budget["epsilon"]) / max(1.0, float(np.median([len(text.split()) for text in matched.originals])))


def _texts(matched: Matched, question: Question, language: KneserNey, held_out: slice) -> Iterator[Measure]:
    """Yield what the texts alone say."""
    before, after = matched.originals, matched.privates
    changed = _changed(before, after)
    if changed is not None:
        note = f"of {changed.left_out:,} documents the words can't be paired, so they are left out"
        note = note if changed.left_out else ""
        yield Measure("privacy", "words unchanged", 1 - changed.share, note=note, of_input=True)
        yield Measure("privacy", "words changed (PP)", changed.share, of_input=True)
    rare = surviving_rare(before, after)
    yield Measure(
        "privacy", "rarest words that survive (LOW)", rare, note="of the 1,000 rarest of the original", of_input=True
    )
    yield Measure("privacy", "shared words (Jaccard)", float(np.nanmean(jaccard(before, after))), of_input=True)
    encoder = _encoder(question)
    if encoder is not None:
        close = float(np.mean(cosine(before, after, encoder)))
        some = [at for at in _spread(len(before), CROSSED) if before[at] != before[at - 1]]
        crossed = cosine([before[at] for at in some], [after[at - 1] for at in some], encoder) if some else np.ones(1)
        yield Measure(
            "utility", "similarity of meaning", close, model=encoder.label, floor=float(np.mean(crossed)),
            note="floor: with the private text of another document", of_input=True,
        )  # fmt: skip
    words = None if question.space is None else WordList.of_space(question.space)
    for name, texts in (("original", before), ("private", after)):
        if words is not None and count_words(texts)[1]:
            share = english_share(texts, words)
            yield Measure("language", f"words of the list, {name}", share, model=words.label, of_input=True)
        if not count_words(texts[held_out])[1]:
            continue
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


def _left_out(matched: Matched, tasks: Mapping[str, _Labelled]) -> Iterator[str]:
    """Yield what was not looked at."""
    if matched.sampled:
        yield f"An even sample of {matched.chosen:,} of {matched.documents:,} documents."
    if matched.missing:
        yield f"{matched.missing:,} of {matched.chosen:,} documents are not in the release and are left out."
    if matched.unreadable:
        yield f"{matched.unreadable:,} rows of the original can't be read and are left out."
    for name, labelled in tasks.items():
        if without := len(matched.originals) - len(labelled.rows):
            yield f"{without:,} documents have no value in the column {name}; classifiers leave them out."


@dataclass(frozen=True, slots=True)
class _Labelled:
    """Documents that have a label, and their numbers."""

    task: Task
    rows: list[int]

    def of(self, texts: Sequence[str]) -> list[str]:
        """Return those of all texts that have a label."""
        return [texts[row] for row in self.rows]

    def among(self, rows: Sequence[int]) -> _Labelled:
        """Return those of some documents, which are then numbered from 0."""
        place = {row: at for at, row in enumerate(rows)}
        here = [(at, place[row]) for at, row in enumerate(self.rows) if row in place]
        return _Labelled(self.task.take(np.array([at for at, _ in here], np.int64)), [row for _, row in here])


def _task(matched: Matched, column: str) -> _Labelled:
    values = matched.columns[column]
    rows = [row for row, value in enumerate(values) if value is not None and value == value and value != ""]  # noqa: PLR0124 - NaN
    task = Task([matched.originals[row] for row in rows], [values[row] for row in rows], name=column)
    task.require_classes()
    if 2 * len(task.classes) >= len(rows):
        raise UserError(
            f"{column}: {len(task.classes):,} different values among {len(rows):,} documents; a label is one that many "
            "documents share."
        )
    return _Labelled(task, rows)


def _spread(rows: int, most: int) -> list[int]:
    """Return at most so many row numbers, evenly spread: a corpus can be sorted by its labels."""
    return [at * rows // min(rows, most) for at in range(min(rows, most))]


def _changed(before: Sequence[str], after: Sequence[str]) -> ChangedShare | None:
    """Return which words changed; None where no words can be laid side by side."""
    try:
        changed = changed_share(before, after)
    except UserError:  # all are left out
        return None
    return changed if changed.words else None


def _encoder(question: Question) -> Encoder | None:
    return question.encoder or (None if question.space is None else AveragedVectors(question.space, centred=True))


def _learnt(
    question: Question, tasks: Mapping[str, _Labelled], privates: Sequence[Sequence[str]], model: Model,
    epsilon: float | None,
) -> Iterator[Measure]:  # fmt: skip
    """Yield what classifiers learn of label and attribute."""
    known = {name: baselines(one.task, model, range(question.seeds), shares=SHARES) for name, one in tasks.items()}
    if question.label is not None:
        labelled, originals = tasks[question.label], known[question.label]
        texts = [labelled.of(one) for one in privates]
        for mode in MODES if epsilon is None else MODES[:1]:
            told = utility(labelled.task, texts, mode, model, shares=SHARES, originals=originals, fewest=2)
            yield _figure("utility", f"accuracy, {mode.replace('-', ' to ')}", told, epsilon)
        if epsilon is None:
            yield _baseline("utility", "accuracy, original to original", told)
    if question.attribute is not None:
        labelled, originals = tasks[question.attribute], known[question.attribute]
        texts = [labelled.of(one) for one in privates]
        for attacker in ("static", "adaptive"):
            found = infer_attribute(labelled.task, texts, attacker, model, shares=SHARES, originals=originals, fewest=2)
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
    before: Sequence[str], manifest: Mapping[str, Any], question: Question, epsilon: float, model: Model,
    tasks: Mapping[str, _Labelled], rows: Sequence[int],
) -> tuple[list[Measure], list[str]]:  # fmt: skip
    """Return what is found at another epsilon, over as many keys as seeds, and the texts under one of them."""
    privates = [privatize(before, release_of(manifest, question, epsilon)) for _ in range(question.seeds)]
    measures: list[Measure] = []

    def add(group: str, name: str, told: str, values: list[float]) -> None:
        measures.append(
            Measure(
                group, name, float(np.mean(values)), epsilon=epsilon, deviation=float(np.std(values, ddof=1)),
                repeats=len(values), model=told, of_input=True,
            )
        )  # fmt: skip

    changed = [found for text in privates if (found := _changed(before, text)) is not None]
    if len(changed) == len(privates):
        add("privacy", "words unchanged", "", [1 - one.share for one in changed])
    encoder = _encoder(question)
    if encoder is not None:
        add(
            "utility", "similarity of meaning", encoder.label,
            [float(np.mean(cosine(before, text, encoder))) for text in privates],
        )  # fmt: skip
    few = {name: labelled.among(rows) for name, labelled in tasks.items()}
    measures += _learnt(question, few, privates, model, epsilon)
    return measures, privates[0]
