"""All steps of a configuration file, in order. Each recognizes finished work, and resumes after an interruption."""

from __future__ import annotations

import pkgutil

from corpusveil.errors import SettingError
from corpusveil.pipelines.flows import Flow, flows
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.settings.toml import Document
from corpusveil.pipelines.watch import Watch
from corpusveil.storage.artifacts import is_artifact
from corpusveil.storage.records import Record, Records

NOTE = "_call.json"


class Note(Record):
    """``_call.json``, in the folder of an artifact that does not record its call: a digest of that."""

    call: str


def run(document: Document, watch: Watch | None = None, *, only: str | None = None) -> None:
    """Do the steps of a document, or ``only`` one. Raises UserError for an artifact that was made otherwise."""
    watch = watch or Watch()
    wanted = [flow for flow in flows() if flow.is_wanted(document.settings)]
    if not wanted:
        every = ", ".join(flow.name for flow in flows())
        raise SettingError(f"{document.file}: there is nothing to do; add the settings of a step ({every}).")
    if only is not None and only not in (names := [flow.name for flow in wanted]):
        raise SettingError(f"{only}: there is no such step in {document.file}, which has the steps {', '.join(names)}.")
    for flow in wanted:
        if only in (None, flow.name):
            watch.warn(f"{flow.name}:")
            _do(flow, document.settings, watch)


def _do(flow: Flow, settings: Settings, watch: Watch) -> None:
    if flow.call is None or flow.artifact is None:
        flow.do(settings, watch)
        return
    records = Records(settings.value(flow.artifact), private=False)
    note = Note(call=pkgutil.resolve_name(flow.call)(settings))
    if is_artifact(records.url) and records.read(NOTE, Note) == note:
        watch.warn(f"{records.url}: already complete; nothing was done.")
    else:
        flow.do(settings, watch)
        records.write(NOTE, note)
