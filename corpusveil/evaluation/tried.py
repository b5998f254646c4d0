"""What would become of the same documents: other epsilons, other mechanisms, and all of them at equal risk.

Each trial is under keys that are thrown away. Epsilons of two mechanisms mean different things, so each has its own
guarantee beside it, and where there is an exact law the risk: how often the best attacker guesses a word.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corpusveil.errors import UserError
from corpusveil.evaluation.attackers import prior_by
from corpusveil.evaluation.curve import Point, at_equal_risk, point
from corpusveil.evaluation.findings import EQUAL, Measure
from corpusveil.evaluation.language import KneserNey
from corpusveil.evaluation.learning import SHARES, Labelled, Remembered, Version, learnt
from corpusveil.evaluation.prior import INPUTS, Prior, prior_of
from corpusveil.evaluation.question import Question
from corpusveil.evaluation.remade import mechanism_of, release_of, word_epsilon
from corpusveil.evaluation.similarity import cosine
from corpusveil.evaluation.texts import changed
from corpusveil.evaluation.utility import baselines
from corpusveil.mechanisms import Mechanism, make
from corpusveil.transforms.identities import RowNumbers
from corpusveil.transforms.table import privatize

RISK = "words guessed, Bayes-optimal"
COMPARED = ("accuracy, private to private", "similarity of meaning", "attribute, adaptive")
"""Figures that are also shown at equal risk."""


@dataclass(slots=True)
class Trials:
    """What was found: figures, texts of the release's own mechanism under one of the keys, and what was left out."""

    measures: list[Measure] = field(default_factory=list)
    versions: dict[str, Sequence[str]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    promises: list[str] = field(default_factory=list)


def try_others(
    before: Version,
    manifest: Mapping[str, Any],
    question: Question,
    tasks: Mapping[str, Labelled],
    language: KneserNey,
) -> Trials:
    """Privatize documents at each epsilon by each mechanism, as often as there are seeds, and measure.

    ``before`` are the originals, with second texts where those are private too. An epsilon that a mechanism is not
    defined at is left out, and said.
    """
    assert question.space is not None  # noqa: S101 - who asks for epsilons has given it
    trials, points = Trials(), list[Point]()
    own = mechanism_of(manifest, question.space)
    others = [make(name, question.space) for name in question.mechanisms if name != own.name]
    model = Remembered(question.classifiers()[0])
    for one in tasks.values():  # fitted once for all trials, whose own classifiers are forgotten with them
        baselines(one.task, model, range(question.seeds), shares=SHARES)
    prior = prior_by(language, question.space, INPUTS)
    prior = prior if prior.words.size > 1 else prior_of(question.space, INPUTS)
    given = manifest["configuration"]["budget"]["per"] == "token"  # else a word's share is computed from the texts
    trials.promises += [_promise(one, question.epsilons[-1]) for one in (own, *others)] if others else []
    for mechanism in (own, *others):
        for epsilon in question.epsilons:
            try:
                privates = _privates(before, manifest, question, epsilon, mechanism)
                promised = point(mechanism, word_epsilon(manifest, before.texts, epsilon), prior)
            except UserError as error:
                trials.left_out.append(f"{mechanism.name} is left out at epsilon {epsilon:g}: {error}")
                continue
            if mechanism is own:
                trials.versions[f"epsilon {epsilon:g}"] = privates[0].texts
            at: dict[str, Any] = {"epsilon": epsilon, "mechanism": mechanism.name}
            for said in _of_words(promised, prior, public=question.counts is not None):
                trials.measures.append(dataclasses.replace(said, of_input=said.of_input or not given, **at))
            trials.measures += [*_of_texts(before, privates, question, at)]
            trials.measures += [*learnt(question, tasks, privates, model.apart(), epsilon, mechanism.name)]
            points.append(dataclasses.replace(promised, epsilon=epsilon))
    trials.measures += [*_equal(points, trials.measures)]
    return trials


def _promise(mechanism: Mechanism, epsilon: float) -> str:
    """Return what epsilon means to a mechanism; what depends on epsilon is said at the largest one."""
    try:
        told = mechanism.guarantee(epsilon)
    except UserError as error:
        return f"{mechanism.name}: {error}"
    if not told.holds:
        return f"{mechanism.name} promises nothing: {' '.join(told.notes)}"
    return f"{mechanism.name} promises epsilon times the distance, the distance being {told.metric}."


def _privates(
    before: Version, manifest: Mapping[str, Any], question: Question, epsilon: float, mechanism: Mechanism
) -> list[Version]:
    """Return one version a seed, each under a key of its own; first and second texts are told apart by their ids."""
    made = []
    for _ in range(question.seeds):
        release = release_of(manifest, question, epsilon=epsilon, mechanism=mechanism)
        seconds = None if before.seconds is None else privatize(list(before.seconds), release, RowNumbers("second"))
        made.append(Version(privatize(list(before.texts), release, RowNumbers("first")), seconds))
    return made


def _of_words(promised: Point, prior: Prior, *, public: bool) -> Iterator[Measure]:
    """Yield what is known of single words before anything is released; ``public`` is what the prior was made of."""
    by = "exact law" if promised.exact else "100 runs of 100 words"
    yield Measure("curve", "retention of a word (N_w)", promised.retention, model=by, of_input=not public)
    yield Measure("curve", "distinct outputs of 100 (S_w)", promised.distinct, "number", model=by, of_input=not public)
    if promised.risk is not None:
        yield Measure(
            "curve",
            RISK,
            promised.risk,
            model=f"exact law, of the {prior.words.size:,} most frequent words",
            floor=prior.guess,
            of_input=not public,
        )
    if promised.plain_ldp is not None and math.isfinite(promised.plain_ldp):
        yield Measure(
            "curve", "promised for any two words, nats", promised.plain_ldp, "number", model="plain LDP, a word"
        )


def _of_texts(
    before: Version, privates: Sequence[Version], question: Question, at: Mapping[str, Any]
) -> Iterator[Measure]:
    def of(group: str, name: str, told: str, values: list[float]) -> Measure:
        return Measure(
            group, name, float(np.mean(values)), **at, deviation=float(np.std(values, ddof=1)), repeats=len(values),
            model=told, of_input=True,
        )  # fmt: skip

    found = [told for one in privates if (told := changed(before.texts, one.texts)) is not None]
    if len(found) == len(privates):
        yield of("privacy", "words unchanged", "", [1 - one.share for one in found])
    encoder = question.encoder_or_vectors()
    if encoder is not None:
        values = [float(np.mean(cosine(before.texts, one.texts, encoder))) for one in privates]
        yield of("utility", "similarity of meaning", encoder.label, values)


def _equal(points: Sequence[Point], measures: Sequence[Measure]) -> Iterator[Measure]:
    """Yield what each mechanism keeps at equal risk, in ln epsilon between two that were tried, where any has both."""
    for one in at_equal_risk(points):
        at: dict[str, Any] = {"epsilon": one.epsilon, "mechanism": one.mechanism, "risk": one.risk}
        yield Measure(EQUAL, "epsilon", one.epsilon, "number", **at, of_input=True)
        yield Measure(EQUAL, "retention of a word (N_w)", one.retention, **at, of_input=True)
        if one.plain_ldp is not None and math.isfinite(one.plain_ldp):
            yield Measure(EQUAL, "promised for any two words, nats", one.plain_ldp, "number", **at, of_input=True)
        for name in COMPARED:
            known = [m for m in measures if (m.name, m.mechanism) == (name, one.mechanism) and m.epsilon is not None]
            if known:
                places = [math.log(m.epsilon) for m in known if m.epsilon is not None]
                value = float(np.interp(math.log(one.epsilon), places, [m.value for m in known]))
                yield Measure(EQUAL, name, value, **at, of_input=True)
