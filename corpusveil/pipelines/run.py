"""All steps of a configuration file, in order. Each recognizes finished work, and resumes after an interruption."""

from __future__ import annotations

from corpusveil.errors import SettingError
from corpusveil.pipelines.flows import flows
from corpusveil.pipelines.settings.toml import Document
from corpusveil.pipelines.watch import Watch


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
            flow.do(document.settings, watch)
