"""All steps of a configuration file, in order, resuming after an interruption."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from corpusveil.errors import AddressError, SettingError
from corpusveil.pipelines.flows import Flow, flows, options_of
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.settings.toml import Document
from corpusveil.pipelines.watch import Watch
from corpusveil.storage import files
from corpusveil.storage.artifacts import is_artifact
from corpusveil.storage.inputs import find_shards
from corpusveil.storage.records import Record, Records

NOTE = "_step.json"
"""The request of a step, in the folder of its artifact, written before it begins."""


class Note(Record):
    """``_step.json``: a digest of the settings of a step."""

    step: str
    settings: str


def _sizes(document: Document, place: str | None) -> list[list[Any]] | None:
    if place == "collocations.input":
        return [[shard.relative, shard.size] for shard in find_shards(document.settings.value(place))]
    if place == "space.vectors":
        paths = [document.settings.value(place), document.written.value(place)]
        return [[written, files.size(path)] for path, written in zip(*paths, strict=True)] or None
    return None


@dataclass(frozen=True, slots=True)
class FlowStep:
    """A part of a run for one document; ``digest`` covers all that decides its artifact, with earlier steps."""

    flow: Flow
    artifact: str | None
    digest: str


def steps(document: Document) -> Iterator[FlowStep]:
    """Yield the steps of a document, in order, with paths as in the file, so that its folder can be moved."""
    before = ""
    for flow in flows():
        if flow.is_wanted(document.settings):
            origin = [before, flow.name, _asked(document.written, flow), _sizes(document, flow.reads)]
            before = hashlib.sha256(json.dumps(origin).encode()).hexdigest()
            yield FlowStep(flow, document.settings.value(flow.artifact) if flow.artifact else None, before)


def _asked(settings: Settings, flow: Flow) -> dict[str, Any]:
    """Return the settings of a flow that are not defaults, except those of the engine."""
    asked = {}
    for setting in options_of(flow.command or flow.name, in_files=True).values():
        value = settings.value(setting.place)
        if setting.name != "engine" and value != setting.default:
            asked[setting.place] = value
    return asked


def run(document: Document, watch: Watch | None = None, *, only: str | None = None) -> None:
    """Do the steps of a document, or ``only`` one, unless done. Raises UserError for an artifact made otherwise."""
    watch = watch or Watch()
    planned = list(steps(document))
    if not planned:
        every = ", ".join(flow.name for flow in flows())
        raise SettingError(f"{document.file}: there is nothing to do; add the settings of a step ({every}).")
    if only is not None and only not in (names := [step.flow.name for step in planned]):
        raise SettingError(f"{only}: there is no such step in {document.file}, which has the steps {', '.join(names)}.")
    for step in planned:
        if only in (None, step.flow.name):
            _do(step, document.settings, watch)


def _do(step: FlowStep, settings: Settings, watch: Watch) -> None:
    if step.artifact is not None and not _is_to_do(step, step.artifact):
        watch.warn(f"{step.flow.name}: {step.artifact} already exists")
        return
    watch.warn(f"{step.flow.name}:")
    step.flow.do(settings, watch)
    if step.artifact is not None:
        _note(step, step.artifact)


def _is_to_do(step: FlowStep, artifact: str) -> bool:
    """Say whether a step must be done; one that no run recorded recognizes its own artifact."""
    noted = Records(artifact, private=False).read(NOTE, Note)
    complete = is_artifact(artifact)
    if noted is None:
        if not complete:
            _note(step, artifact)
        return True
    if noted.settings != step.digest:
        raise AddressError(
            f"{artifact}: this was made with other settings or another corpus; choose another output for the step "
            f"{step.flow.name}, or remove this."
        )
    return not complete


def _note(step: FlowStep, artifact: str) -> None:
    records, note = Records(artifact, private=False), Note(step=step.flow.name, settings=step.digest)
    if files.read_if_there(records.address(NOTE)) != note.data():
        records.write(NOTE, note)
