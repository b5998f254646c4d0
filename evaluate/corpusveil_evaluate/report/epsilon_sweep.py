"""The same documents at other epsilons, by other mechanisms, and at equal risk.

Each trial has throwaway keys. Epsilons of two mechanisms mean different things, so each is shown with its guarantee
and, if it has an exact law, the risk: how often the best attacker guesses a word.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from corpusveil.errors import UserError
from corpusveil.mechanisms import Mechanism, make
from corpusveil.mechanisms.risk import Prior
from corpusveil.transforms.identities import RowNumbers
from corpusveil.transforms.table import privatize
from corpusveil_evaluate.attacks.equal_risk import Point, at_equal_risk, point
from corpusveil_evaluate.attacks.word_attacks import BAYES_OPTIMAL, CONTENT_OPTIMAL, prior_by
from corpusveil_evaluate.report.classifier_figures import SHARES, LabelledDocuments, Version, classifier_figures
from corpusveil_evaluate.report.findings import EQUAL, Gathered
from corpusveil_evaluate.report.manifest_release import mechanism_of, release_of, word_epsilon
from corpusveil_evaluate.report.question import Question
from corpusveil_evaluate.statistics.encoders import Encoder
from corpusveil_evaluate.statistics.perplexity import KneserNey
from corpusveil_evaluate.statistics.statistic import Evidence, Figure, Reading, compared, statistics
from corpusveil_evaluate.statistics.word_statistics import N_W, S_W
from corpusveil_evaluate.utility.text_classifiers import Remembered
from corpusveil_evaluate.utility.training_modes import baselines

PLAIN_LDP = "promised for any two words, nats"


def sweep_epsilons(
    gathered: Gathered,
    before: Version,
    manifest: Mapping[str, Any],
    question: Question,
    tasks: Mapping[str, LabelledDocuments],
    language: KneserNey,
) -> None:
    """Privatize documents at each epsilon by each mechanism, as often as there are seeds, and gather what is measured.

    ``before`` are the originals, with second texts where those are private too. An epsilon at which a mechanism is not
    defined is left out, with a note.
    """
    assert question.space is not None  # noqa: S101 - who asks for epsilons has given it
    points, tried = list[Point](), list[Figure]()
    own = mechanism_of(manifest, question.space)
    others = [make(name, question.space) for name in dict.fromkeys(question.asked.mechanisms) if name != own.name]
    model = Remembered(question.classifiers()[0])
    for task in tasks.values():  # fitted once for all trials; the classifiers of a trial are discarded with it
        baselines(task.task, model, range(question.asked.seeds), shares=SHARES)
    prior = prior_by(language, question.space)
    epsilon_given = (
        manifest["configuration"]["budget"]["per"] == "token"
    )  # otherwise a word's share is computed from the texts
    gathered.notes += [_promise(candidate, question.epsilons[-1]) for candidate in (own, *others)] if others else []
    for mechanism in (own, *others):
        for epsilon in question.epsilons:
            try:
                privates = _privates(before, manifest, question, epsilon, mechanism)
                promised = point(mechanism, word_epsilon(manifest, before.texts, epsilon), prior, estimate=False)
            except UserError as error:
                gathered.counted.append(f"{mechanism.name} is left out at epsilon {epsilon:g}: {error}")
                continue
            if mechanism is own:
                gathered.versions[f"epsilon {epsilon:g}"] = privates[0].texts
            at: dict[str, Any] = {"epsilon": epsilon, "mechanism": mechanism.name}
            for of_word in _of_words(promised, prior, public=question.asked.counts is not None):
                tried.append(dataclasses.replace(of_word, of_input=of_word.of_input or not epsilon_given, **at))
            tried += [*_of_texts(before, privates, question.encoder_or_vectors(), at)]
            tried += [*classifier_figures(question, tasks, privates, model.apart(), epsilon, mechanism.name)]
            points.append(dataclasses.replace(promised, epsilon=epsilon))
    gathered.measures += [*tried, *_equal(points, tried)]


def _promise(mechanism: Mechanism, epsilon: float) -> str:
    """Return the meaning of epsilon for a mechanism; parts that depend on epsilon are stated at the largest."""
    try:
        guarantee = mechanism.guarantee(epsilon)
    except UserError as error:
        return f"{mechanism.name}: {error}"
    if not guarantee.holds:
        return f"{mechanism.name} has no guarantee: {' '.join(guarantee.notes)}"
    return f"{mechanism.name} promises epsilon times the distance, the distance being {guarantee.metric}."


def _privates(
    before: Version, manifest: Mapping[str, Any], question: Question, epsilon: float, mechanism: Mechanism
) -> list[Version]:
    """Return one version for each seed, each under its own key; ids distinguish first and second texts."""
    made = []
    for _ in range(question.asked.seeds):
        release = release_of(manifest, question, epsilon=epsilon, mechanism=mechanism)
        seconds = None if before.seconds is None else privatize(list(before.seconds), release, RowNumbers("second"))
        made.append(Version(privatize(list(before.texts), release, RowNumbers("first")), seconds))
    return made


def _of_words(promised: Point, prior: Prior, *, public: bool) -> Iterator[Figure]:
    """Yield the figures of single words that need no release; ``public`` says whether the prior is public."""
    by = "exact law" if promised.exact else "100 runs of 100 words"
    yield Figure("curve", N_W.name, promised.retention, model=by, of_input=not public)
    yield Figure("curve", S_W.name, promised.distinct, S_W.unit, model=by, of_input=not public)
    for name, share in ((BAYES_OPTIMAL.name, promised.risk), (CONTENT_OPTIMAL.name, promised.content_risk)):
        if share is not None:
            law = f"exact law, any of {prior.words.size:,} words"
            floor = prior.guess if name == BAYES_OPTIMAL.name else None
            yield Figure("curve", name, share, model=law, floor=floor, of_input=not public)
    if promised.plain_ldp is not None and math.isfinite(promised.plain_ldp):
        yield Figure("curve", PLAIN_LDP, promised.plain_ldp, "number", model="plain LDP, a word")


def _of_texts(
    before: Version, privates: Sequence[Version], encoder: Encoder | None, at: Mapping[str, Any]
) -> Iterator[Figure]:
    """Yield mean and deviation over private versions of each statistic that all versions have."""
    versions = [Evidence(before.texts, version.texts, encoder=encoder) for version in privates]
    for statistic in statistics():
        all_readings = [statistic.value(version) for version in versions] if statistic.swept else []
        readings = [reading for reading in all_readings if reading is not None]
        if readings and len(readings) == len(all_readings):
            values = [reading.value for reading in readings]
            mean = Reading(float(np.mean(values)), readings[0].model)
            yield statistic.measure(mean, deviation=float(np.std(values, ddof=1)), repeats=len(values), **at)


def _equal(points: Sequence[Point], measures: Sequence[Figure]) -> Iterator[Figure]:
    """Yield what each mechanism keeps at equal risk, interpolated in ln epsilon between two tried epsilons."""
    for at_risk in at_equal_risk(points):
        at: dict[str, Any] = {"epsilon": at_risk.epsilon, "mechanism": at_risk.mechanism, "risk": at_risk.risk}
        yield Figure(EQUAL, "epsilon", at_risk.epsilon, "number", **at, of_input=True)
        yield Figure(EQUAL, N_W.name, at_risk.retention, **at, of_input=True)
        if at_risk.all_words is not None:
            yield Figure(EQUAL, BAYES_OPTIMAL.name, at_risk.all_words, **at, of_input=True)
        if at_risk.plain_ldp is not None and math.isfinite(at_risk.plain_ldp):
            yield Figure(EQUAL, PLAIN_LDP, at_risk.plain_ldp, "number", **at, of_input=True)
        for name in (statistic.name for statistic in compared()):
            known = [
                m for m in measures if (m.name, m.mechanism) == (name, at_risk.mechanism) and m.epsilon is not None
            ]
            if known:
                places = [math.log(m.epsilon) for m in known if m.epsilon is not None]
                value = float(np.interp(math.log(at_risk.epsilon), places, [m.value for m in known]))
                yield Figure(EQUAL, name, value, **at, of_input=True)
