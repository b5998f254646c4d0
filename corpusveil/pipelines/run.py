"""All steps of a configuration file, in order, resuming after an interruption."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from corpusveil.errors import InUseError, UnknownError
from corpusveil.pipelines import collocations, denoise, model, privatize, space
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.settings.fields import declared
from corpusveil.pipelines.settings.toml import Document
from corpusveil.pipelines.watch import Watch
from corpusveil.storage import files
from corpusveil.storage.artifacts import is_artifact
from corpusveil.storage.inputs import find_shards
from corpusveil.storage.records import Record, Records

NOTE = "_step.json"
"""The request of a step, in the folder of its artefact, written before it begins."""
NOTE_VERSION = 2
_WHERE = ("engine",)
"""Sections that change nothing of an artefact."""


class Note(Record):
    """``_step.json``: a digest of the settings of a step."""

    version: int | None = None
    step: str = ""
    settings: str


@dataclass(frozen=True, slots=True)
class Flow:
    """A part of a run: its command, whether the settings request it, its output, and its function.

    ``artefact`` is None if the function itself knows whether it is done. ``reads`` are the files that it reads and no
    earlier step makes.
    """

    name: str
    is_wanted: Callable[[Settings], bool]
    artefact: Callable[[Settings], str | None]
    do: Callable[[Settings, Watch], Any]
    reads: Callable[[Document], list[list[Any]] | None] = lambda _: None


def _shards(document: Document) -> list[list[Any]]:
    """Return the names and sizes of the shards of the public corpus."""
    return [[one.relative, one.size] for one in find_shards(document.settings.value("collocations.input"))]


def _vectors(document: Document) -> list[list[Any]] | None:
    """Return the names and sizes of given vectors."""
    paths = [document.settings.value("space.vectors"), document.written.value("space.vectors")]
    return [[written, files.size(path)] for path, written in zip(*paths, strict=True)] or None


def _given(*places: str) -> Callable[[Settings], bool]:
    """Return whether settings have all of these."""
    return lambda settings: all(settings.value(place) for place in places)


def _at(place: str) -> Callable[[Settings], str | None]:
    """Return what settings have at a place."""
    return lambda settings: settings.value(place)


FLOWS = (
    Flow(
        "count",
        _given("collocations.input", "collocations.counts"),
        _at("collocations.counts"),
        collocations.count,
        _shards,
    ),
    Flow("score", _given("collocations.counts", "collocations.table"), _at("collocations.table"), collocations.score),
    Flow(
        "tokenize",
        _given("collocations.input", "collocations.tokens"),
        _at("collocations.tokens"),
        collocations.tokenize,
        _shards,
    ),
    Flow("model", _given("model.path"), _at("model.path"), model.build),
    Flow("train", _given("embeddings.vectors"), _at("embeddings.vectors"), collocations.train),
    Flow(
        "space",
        lambda settings: settings.space is not None and bool(space.vectors_of(settings)),
        _at("space.path"),
        space.build,
        _vectors,
    ),
    Flow("privatize", _given("output.path"), lambda _: None, privatize.run),
    Flow("denoise", _given("denoise.path"), lambda _: None, denoise.run),
)
"""The parts of a run, in their order."""


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a run for one document.

    ``digest`` covers everything that decides its artefact, including earlier steps.
    """

    flow: Flow
    artefact: str | None
    digest: str

    @property
    def name(self) -> str:
        """Its command."""
        return self.flow.name


def steps(document: Document, flows: Sequence[Flow] = FLOWS) -> Iterator[Step]:
    """Yield the steps of a document, in order.

    The origin of an artefact is recorded with paths as in the file, so that the whole folder can be moved.
    """
    before = ""
    for flow in flows:
        if flow.is_wanted(document.settings):
            told = [before, flow.name, _asked(document.written, flow.name), flow.reads(document)]
            before = hashlib.sha256(json.dumps(told).encode()).hexdigest()
            yield Step(flow, flow.artefact(document.settings), before)


def _asked(settings: Settings, command: str) -> dict[str, Any]:
    """Return the settings of a command that are not defaults, except those of the engine."""
    of_command = [one for one in declared(Settings) if command in one.commands and one.name not in _WHERE]
    values = {one.place: settings.value(one.place) for one in of_command}
    return {one.place: values[one.place] for one in of_command if values[one.place] != one.default}


def run(
    document: Document, watch: Watch | None = None, *, only: str | None = None, flows: Sequence[Flow] = FLOWS
) -> None:
    """Do every step of a document, or ``only`` one, unless it is done.

    Raises UserError if an artefact was made in another way.
    """
    watch = watch or Watch()
    planned = list(steps(document, flows))
    if only is not None and only not in (names := [step.name for step in planned]):
        raise UnknownError(f"{only}: there is no such step in {document.file}, which has the steps {', '.join(names)}.")
    for step in planned:
        if only in (None, step.name):
            _do(step, document.settings, watch)


def _do(step: Step, settings: Settings, watch: Watch) -> None:
    if step.artefact is not None and not _is_to_do(step, step.artefact):
        watch.warn(f"{step.name}: {step.artefact} already exists")
        return
    watch.warn(f"{step.name}:")
    step.flow.do(settings, watch)
    if step.artefact is not None:
        _note(step, step.artefact)


def _is_to_do(step: Step, artefact: str) -> bool:
    """Say whether a step must be done.

    If no run, or only a run of an earlier version, recorded the artefact, the step itself decides: it recognizes its
    own artefact.
    """
    noted = Records(artefact, private=False).read(NOTE, Note)
    complete = is_artifact(artefact)
    if noted is None:
        if not complete:
            _note(step, artefact)
        return True
    if noted.version != NOTE_VERSION:
        return True
    if noted.settings != step.digest:
        raise InUseError(
            f"{artefact}: this was made with other settings or another corpus; choose another output for the step "
            f"{step.name}, or remove this."
        )
    return not complete


def _note(step: Step, artefact: str) -> None:
    records, note = Records(artefact, private=False), Note(version=NOTE_VERSION, step=step.name, settings=step.digest)
    if files.read_if_there(records.address(NOTE)) != note.data():
        records.write(NOTE, note)
