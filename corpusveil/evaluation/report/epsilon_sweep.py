"""The same documents at other epsilons, by other mechanisms, and at equal risk.

Each trial has throwaway keys. Epsilons of two mechanisms mean different things, so each is shown with its guarantee
and, if it has an exact law, the risk: how often the best attacker guesses a word.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corpusveil.errors import UserError
from corpusveil.evaluation.attacks.risk_curve import Point, at_equal_risk, point
from corpusveil.evaluation.attacks.word_attacks import BAYES_OPTIMAL, prior_by
from corpusveil.evaluation.language.kneser_ney import KneserNey
from corpusveil.evaluation.report.classifier_figures import SHARES, LabelledDocuments, Version, classifier_figures
from corpusveil.evaluation.report.evaluation_options import EvaluationOptions
from corpusveil.evaluation.report.findings import EQUAL
from corpusveil.evaluation.report.manifest_release import mechanism_of, release_of, word_epsilon
from corpusveil.evaluation.statistics.encoders import Encoder
from corpusveil.evaluation.statistics.figure import Figure
from corpusveil.evaluation.statistics.registry import compared, statistics
from corpusveil.evaluation.statistics.statistic import Evidence, Reading
from corpusveil.evaluation.statistics.word_statistics import N_W, S_W
from corpusveil.evaluation.utility.remembered import Remembered
from corpusveil.evaluation.utility.training_modes import baselines
from corpusveil.mechanisms import Mechanism, make
from corpusveil.mechanisms.risk import Prior
from corpusveil.transforms.identities import RowNumbers
from corpusveil.transforms.table import privatize

PLAIN_LDP = "promised for any two words, nats"


@dataclass(slots=True)
class Trials:
    """The results: figures, texts of the release's own mechanism under one of the keys, and notes on omissions."""

    measures: list[Figure] = field(default_factory=list)
    versions: dict[str, Sequence[str]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    promises: list[str] = field(default_factory=list)


def sweep_epsilons(
    before: Version,
    manifest: Mapping[str, Any],
    options: EvaluationOptions,
    tasks: Mapping[str, LabelledDocuments],
    language: KneserNey,
) -> Trials:
    """Privatize documents at each epsilon by each mechanism, as often as there are seeds, and measure.

    ``before`` are the originals, with second texts where those are private too. An epsilon at which a mechanism is not
    defined is left out, with a note.
    """
    assert options.space is not None  # noqa: S101 - who asks for epsilons has given it
    trials, points = Trials(), list[Point]()
    own = mechanism_of(manifest, options.space)
    others = [make(name, options.space) for name in options.mechanisms if name != own.name]
    model = Remembered(options.classifiers()[0])
    for task in tasks.values():  # fitted once for all trials; the classifiers of a trial are discarded with it
        baselines(task.task, model, range(options.seeds), shares=SHARES)
    prior = prior_by(language, options.space)
    epsilon_given = (
        manifest["configuration"]["budget"]["per"] == "token"
    )  # otherwise a word's share is computed from the texts
    trials.promises += [_promise(candidate, options.epsilons[-1]) for candidate in (own, *others)] if others else []
    for mechanism in (own, *others):
        for epsilon in options.epsilons:
            try:
                privates = _privates(before, manifest, options, epsilon, mechanism)
                promised = point(mechanism, word_epsilon(manifest, before.texts, epsilon), prior, estimate=False)
            except UserError as error:
                trials.left_out.append(f"{mechanism.name} is left out at epsilon {epsilon:g}: {error}")
                continue
            if mechanism is own:
                trials.versions[f"epsilon {epsilon:g}"] = privates[0].texts
            at: dict[str, Any] = {"epsilon": epsilon, "mechanism": mechanism.name}
            for of_word in _of_words(promised, prior, public=options.counts is not None):
                trials.measures.append(
                    dataclasses.replace(of_word, of_input=of_word.of_input or not epsilon_given, **at)
                )
            trials.measures += [*_of_texts(before, privates, options.encoder_or_vectors(), at)]
            trials.measures += [*classifier_figures(options, tasks, privates, model.apart(), epsilon, mechanism.name)]
            points.append(dataclasses.replace(promised, epsilon=epsilon))
    trials.measures += [*_equal(points, trials.measures)]
    return trials


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
    before: Version, manifest: Mapping[str, Any], options: EvaluationOptions, epsilon: float, mechanism: Mechanism
) -> list[Version]:
    """Return one version for each seed, each under its own key; ids distinguish first and second texts."""
    made = []
    for _ in range(options.seeds):
        release = release_of(manifest, options, epsilon=epsilon, mechanism=mechanism)
        seconds = None if before.seconds is None else privatize(list(before.seconds), release, RowNumbers("second"))
        made.append(Version(privatize(list(before.texts), release, RowNumbers("first")), seconds))
    return made


def _of_words(promised: Point, prior: Prior, *, public: bool) -> Iterator[Figure]:
    """Yield the figures of single words that need no release; ``public`` says whether the prior is public."""
    by = "exact law" if promised.exact else "100 runs of 100 words"
    yield Figure("curve", N_W.name, promised.retention, model=by, of_input=not public)
    yield Figure("curve", S_W.name, promised.distinct, S_W.unit, model=by, of_input=not public)
    if promised.risk is not None:
        yield Figure(
            "curve",
            BAYES_OPTIMAL.name,
            promised.risk,
            model=f"exact law, any of {prior.words.size:,} words",
            floor=prior.guess,
            of_input=not public,
        )
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
