"""A configuration file on a schedule: its releases so far, and the start of due runs."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from corpusveil.display import several
from corpusveil.errors import (
    BadShardsError,
    ChangedError,
    CorpusveilError,
    MismatchError,
    NoFileError,
    OtherRunError,
    UserError,
)
from corpusveil.pipelines.flows import flows
from corpusveil.pipelines.privatize import privatize
from corpusveil.pipelines.resolve import key_of, records_of, refuse_published, resolve, state_of
from corpusveil.pipelines.schedule import PlannedRun, Schedule, find_usable
from corpusveil.pipelines.schedule_state import LEFT_OUT, SUMMARY, LeftOut, StartSummary
from corpusveil.pipelines.settings import Settings, needed
from corpusveil.pipelines.settings.toml import Document
from corpusveil.pipelines.starts import Start, noted
from corpusveil.pipelines.watch import Watch
from corpusveil.storage import files, lease
from corpusveil.storage.inputs import root_of
from corpusveil.storage.records import Records
from corpusveil.transforms.handshake import versions
from corpusveil.transforms.release.manifest import read_manifest
from corpusveil.transforms.release.release import AnyRelease, differences, named
from corpusveil.transforms.release.risk import EpsilonAtRisk, risk_of

_ELSEWHERE = ("engine", "schedule")
"""Sections that do not affect which shards can be used."""


def check(document: Document) -> None:
    """Raise UserError for settings that a schedule lacks or cannot have, and for private files in a public place."""
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
    refuse_published(settings)


def schedule_of(document: Document) -> Schedule:
    """Return the schedule of a file. Raises UserError if the file, or its key, is not fit for a schedule."""
    check(document)
    settings = document.settings
    corpus, output = needed(settings.corpus, "corpus"), needed(settings.output, "output")
    return Schedule(
        tuple(corpus.input),
        corpus.root or root_of(corpus.input),
        output.path,
        records_of(output),
        Records(files.absolute(state_of(settings))),
        key_of(settings.key).derive("records"),
        _digest(document.written),
        settings.schedule.seconds("settle"),
        output.page,
        corpus.id is not None or output.duplicates == "same-noise",
        settings.schedule.left_out == "fail",
    )


def _digest(settings: Settings) -> str:
    """Return a digest of everything that decides whether a shard can be used, of settings as written."""
    decisive = [versions()["corpusveil"], settings.model_dump(mode="json", exclude=set(_ELSEWHERE))]
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


def settings_of(document: Document, schedule: Schedule, plan: PlannedRun) -> Settings:
    """Return the settings of one run: its shards, below their common root, and its own folders."""
    return document.settings.changed(
        corpus={"input": [shard.url for shard in plan.shards], "root": schedule.root},
        output={"path": schedule.output_of(plan), "records": schedule.records_of(plan)},
    )


def refuse_other(release: AnyRelease, document: Document, schedule: Schedule) -> bool:
    """Raise UserError, which names the changed settings, if earlier runs made another release.

    Say otherwise whether this is the first run of the release.
    """
    earlier = schedule.summary()
    if earlier.release in ("", release.name):
        return not earlier.release
    changed = []
    with contextlib.suppress(CorpusveilError):  # the earlier release was moved
        manifest = read_manifest(schedule.output_of(PlannedRun(earlier.last, (), {})))
        then = _decisive(manifest["configuration"], manifest["key_fingerprint"], risk_of(manifest))
        now = _decisive(release.configuration(), release.key.fingerprint(), release.risk)
        changed = differences(then, now)
    unnamed = "the configuration, the space, the key or the version of corpusveil is not that of the earlier runs"
    raise MismatchError(
        f"{document.file}: {'; '.join(changed) or unnamed}. Set this as before to continue the schedule; or choose "
        "another output.path to begin another schedule, which releases all shards again and spends in addition."
    )


def _decisive(configuration: Mapping[str, Any], fingerprint: str, risk: EpsilonAtRisk | None) -> dict[str, Any]:
    """Return everything that decides a release, by the names of settings."""
    decisive = {"the fingerprint of the key": fingerprint, **named(configuration)}
    if risk is not None:
        del decisive["budget.epsilon"]
        decisive["budget.risk"] = risk.risk
    return decisive


def start(document: Document, watch: Watch) -> int:
    """Do all due runs; return the exit status. If it is started twice, one start works and the other says so.

    Raises WorkError if the other one hangs.
    """
    check(document)
    settings, state = document.settings.schedule, Records(files.absolute(state_of(document.settings)))
    with noted(state, os.path.abspath(document.file), settings.metrics) as noting:
        schedule = schedule_of(document)
        for private in (schedule.state, Records(files.absolute(schedule.records))):
            private.close()
        held = lease.take(state.address(lease.FOLDER))
        if isinstance(held, lease.Busy):
            noting.holder = str(held)
            if held.hangs(settings.seconds("longest")):
                raise OtherRunError(
                    f"{document.file}: another run hangs ({held}); nothing was done. End its process, and start again, "
                    "or set schedule.longest to what a start may take."
                )
            watch.warn(f"{document.file}: another run is in progress ({held}); nothing was done.")
        else:
            with held:
                _tell_ignored(document, watch)
                noting.status = _go_on(
                    schedule, functools.partial(_privatize, document, schedule, watch), watch, noting
                )
    return noting.status


def _go_on(schedule: Schedule, privatize: Callable[[PlannedRun], Any], watch: Watch, start: Start) -> int:
    """Do all due runs, one by one; return the exit status, and note in ``start`` what was done.

    ``privatize`` does one run, or raises an error, which leaves its plan for the next start. Shards whose data cannot
    be used are left out, and named by each start; all others are released.
    """
    began, changed = False, set[int]()
    while (plan := (ahead := schedule.next()).plan) is not None:
        began, start.due = True, len(plan.shards)
        watch.warn(f"{plan.name}: {plan.batch()}")
        if emptied := sum(plan.why[shard.relative] == "changed" and not shard.size for shard in plan.shards):
            shards = several(emptied, "changed shard is", "changed shards are")
            watch.warn(f"warning: {shards} empty now, and replaced by a release without documents.")
        if not schedule.has_ids and (documents := schedule.released_before(plan)):
            watch.warn(
                f"warning: up to {several(documents, 'document')} of changed shards get other noise than before, and "
                "spend again: without an id, a row that moved is another document. Name the column that identifies "
                "documents (id)."
            )
        try:
            if not schedule.is_released(plan):
                privatize(plan)
        except BadShardsError as error:
            schedule.leave_out(plan, error.sentences)
            continue
        except ChangedError as error:
            if plan.number in changed:
                raise
            changed.add(plan.number)
            watch.warn(f"once more: {error}")
            continue
        except NoFileError:
            lost = [plan.number for plan, _ in schedule.ahead().abandoned]
            if plan.number not in lost and not schedule.is_released(plan):
                raise
            continue  # a shard was removed since the plan: the others are in the next run
        start.add(plan.name, schedule.finish(plan))
    schedule.write_index()
    left_out = ahead.left_out.sentences()
    start.left_out, start.due = len(left_out), 0
    for sentence in left_out:
        watch.warn(f"left out: {sentence}")
    if ahead.left_out.shards:
        watch.warn(
            "A shard is left out until it or the settings change; to try it again as it is, remove "
            f"{schedule.state.address(LEFT_OUT)}."
        )
    if ahead.waiting:
        shards = several(ahead.waiting, "shard was", "shards were")
        watch.warn(f"{shards} written too recently, and left for a later start")
    if not began:
        watch.say("there is nothing new")
    return UserError.exit_status if left_out and schedule.left_out_fails else 0


def _tell_ignored(document: Document, watch: Watch) -> None:
    """Name the steps of a file that follow a release, which only ``corpusveil run`` does."""
    names = [flow.name for flow in flows()]
    after = flows()[names.index("privatize") + 1 :]
    if ignored := [f"[{flow.name}]" for flow in after if flow.is_wanted(document.settings)]:
        watch.warn(f"warning: a schedule does not do {' and '.join(ignored)}; do it with the releases that it makes.")


def _privatize(document: Document, schedule: Schedule, watch: Watch, plan: PlannedRun) -> None:
    resolved = resolve(settings_of(document, schedule, plan))
    privatize(resolved, watch, announced=refuse_other(resolved.run.release, document, schedule))


def without_left_out(document: Document, watch: Watch) -> Settings:
    """Return settings without the shards that the schedule of a file leaves out, which are named."""
    settings = document.settings
    corpus = needed(settings.corpus, "corpus")
    state, root, used = Records(state_of(settings)), corpus.root or root_of(corpus.input), list[str]()
    left_out = state.read(LEFT_OUT, LeftOut)
    if left_out is None:
        return settings
    shards, aliens = find_usable(corpus.input, root, state.read(SUMMARY, StartSummary) or StartSummary())
    for sentence in aliens:
        watch.warn(f"left out: {sentence}")
    unusable = left_out.shards if left_out.settings == _digest(document.written) else {}
    for shard in shards:
        size, stamp, _, sentence = unusable.get(shard.relative, (None, "", "", ""))
        if (size, stamp) == (shard.size, shard.stamp):
            watch.warn(f"left out: {sentence}")
        else:
            used.append(shard.url)
    return settings.changed(corpus={"input": used, "root": root}) if used else settings


def status(document: Document) -> Iterator[str]:
    """Yield finished and due runs, in words; nothing is written. Raises UserError if the input is not there."""
    schedule = schedule_of(document)
    runs = schedule.runs()
    if earlier := min(runs, default=1) - 1:
        total = schedule.summary()
        sizes = f"{several(total.released, 'shard')}, {several(total.documents, 'document')}"
        yield f"{several(earlier, 'earlier run')}; {sizes} in all"
    for number, done in runs.items():
        if done is None:
            yield f"run-{number:05d}: begun, not finished"
        elif done.given_up:
            yield f"run-{number:05d}: abandoned{done.why and f': {done.why}'}"
        else:
            yield f"run-{number:05d}: {several(len(done.shards), 'shard')}, {several(done.documents, 'document')}"
    if (busy := lease.holder(schedule.state.address(lease.FOLDER))) is not None:
        yield f"{'hangs' if busy.hangs(document.settings.schedule.seconds('longest')) else 'in progress'}: {busy}"
    ahead = schedule.ahead()
    for sentence in ahead.left_out.sentences():
        yield f"left out: {sentence}"
    for plan, why in ahead.abandoned:
        yield f"{plan.name} will be abandoned: {why}"
    if ahead.waiting:
        waiting = several(ahead.waiting, "shard waits until it is", "shards wait until they are")
        yield f"{waiting} {document.settings.schedule.settle} old"
    if ahead.plan is None:
        yield "nothing is due"
    else:
        plan = ahead.plan
        yield f"{plan.name} is due: {plan.batch()}"
