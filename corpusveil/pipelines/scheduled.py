"""A configuration file on a schedule: its releases so far, and the start of due runs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from typing import Literal

import corpusveil
from corpusveil.jobs.beam_runners import goes_on_alone
from corpusveil.pipelines import privatize
from corpusveil.pipelines.schedule import Plan, Schedule, go_on
from corpusveil.pipelines.schedule_metrics import prometheus
from corpusveil.pipelines.settings import Settings, rules
from corpusveil.pipelines.settings.toml import Document
from corpusveil.pipelines.watch import Watch
from corpusveil.sampling.keys import Key
from corpusveil.storage import files, lease
from corpusveil.storage.inputs import root_of
from corpusveil.storage.records import Line, Record, Records
from corpusveil.transforms.risk import EpsilonAtRisk

_ELSEWHERE = ("engine", "schedule")
"""Sections that do not affect which shards can be used."""


def check(document: Document) -> None:
    """Raise UserError for settings that a schedule lacks, or cannot have."""
    settings = document.settings
    if settings.output is None:
        raise document.fault(
            "output", "a schedule makes releases; add this section and the sections that a release needs"
        )
    if settings.key.path is None and settings.key.environment is None:
        raise document.fault(
            "key",
            "a schedule needs the same key for all its releases, or returning texts are noised and spent again; "
            "make a key with 'corpusveil key new PATH' and set key.path",
        )
    if goes_on_alone(settings.engine.options):
        raise document.fault(
            "engine.options", "a schedule waits for its runs; leave out --no_wait_until_finish and --template_location"
        )


def schedule_of(document: Document) -> Schedule:
    """Return the schedule of a file. Raises UserError if the file, or its key, is not fit for a schedule."""
    check(document)
    settings = document.settings
    corpus, output = settings.needed("corpus", "output")
    key = settings.key
    secret = Key.load(key.path) if key.path is not None else Key.from_environment(str(key.environment))
    return Schedule(
        tuple(corpus.input),
        corpus.root or root_of(corpus.input),
        output.path,
        output.records or output.path.rstrip("/") + ".records",
        Records(files.absolute(settings.schedule.state or output.path.rstrip("/") + ".schedule")),
        secret.derive("records"),
        settings.schedule.compare,
        _digest(settings),
    )


def _digest(settings: Settings) -> str:
    """Return a digest of everything that decides whether a shard can be used."""
    told = [corpusveil.__version__, settings.model_dump(mode="json", exclude=set(_ELSEWHERE))]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


class Chosen(Record):
    """``risk.json``: the epsilon that a risk chose for all runs, and a digest of the settings of the choice."""

    asked: Line
    risk: float
    risk_of: Literal["word", "context"]
    epsilon: float
    measured: float
    exact: bool
    plain_ldp: float | None
    model: Line | None


def chosen(settings: Settings, schedule: Schedule, watch: Watch) -> EpsilonAtRisk | None:
    """Return the choice by the settings' risk at the first run; None if epsilon is given.

    It is made once, so that a schedule always has the same epsilon. Another risk, mechanism or space means another
    release, which the schedule refuses.
    """
    (budget,) = settings.needed("budget")
    if budget.risk is None:
        return None
    mechanism = privatize.mechanism_of(settings)
    told = [budget.risk, budget.risk_of, rules.risk_model(settings), mechanism.name, mechanism.parameters()]
    asked = hashlib.sha256(json.dumps([*told, mechanism.space.digest], sort_keys=True).encode()).hexdigest()
    kept = schedule.state.read("risk.json", Chosen)
    if kept is None or kept.asked != asked:
        found = privatize.at_risk(settings, mechanism, watch)
        schedule.state.write("risk.json", Chosen(asked=asked, **dataclasses.asdict(found)))
        return found
    return EpsilonAtRisk(**{one.name: getattr(kept, one.name) for one in dataclasses.fields(EpsilonAtRisk)})


def settings_of(document: Document, schedule: Schedule, plan: Plan) -> Settings:
    """Return the settings of one run: its shards, below their common root, and its own folders."""
    return document.settings.changed(
        corpus={"input": [shard.url for shard in plan.shards], "root": schedule.root},
        output={
            "path": schedule.output_of(plan),
            "records": schedule.records_of(plan),
            "only_release": schedule.release() or document.settings.value("output.only_release"),
        },
    )


def start(document: Document, watch: Watch) -> int:
    """Do all due runs; return the exit status. If it is started twice, one start works and the other says so."""
    schedule = schedule_of(document)
    for private in (schedule.state, Records(files.absolute(schedule.records))):
        private.close()
    held = lease.take(schedule.state.address("lease"))
    if isinstance(held, str):
        watch.warn(f"{document.file}: another run is in progress ({held}); nothing was done.")
        return 0
    with held:
        try:
            status, did = go_on(
                schedule,
                lambda plan: privatize.run(
                    settings_of(document, schedule, plan), watch, risk=chosen(document.settings, schedule, watch)
                ),
                watch.warn,
            )
            if not did:
                watch.say(f"{document.file}: there is nothing new")
        finally:
            if (where := document.settings.schedule.prometheus) is not None:
                files.write_bytes(where, prometheus(schedule.state).encode())
    return status


def status(document: Document) -> Iterator[str]:
    """Yield finished and due runs, in words; nothing is written."""
    schedule = schedule_of(document)
    for number, done in schedule.runs():
        if done is None:
            yield f"run-{number:05d}: {schedule.refusal(number) or 'begun, not finished'}"
        elif done.given_up:
            yield f"run-{number:05d}: abandoned; its shards went into a later run"
        else:
            yield f"run-{number:05d}: {len(done.shards):,} shards, {done.documents:,} documents"
    for sentence in schedule.left_out():
        yield f"left out until it changes: {sentence}"
    failure = schedule.last_failure()
    if failure is not None:
        yield f"the last start failed, {failure}"
    plan = schedule.due()
    if plan is None:
        yield "nothing is due"
    else:
        yield f"{plan.name} is due: {plan.count('new'):,} new and {plan.count('changed'):,} changed shards"
