"""The description of an artifact of a flow over public text, in ``_artifact.json``, written last."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any, Literal, NamedTuple

from corpusveil.choices import HYPHENS, Hyphens
from corpusveil.errors import AddressError, ArtifactError, VersionError
from corpusveil.storage import files, lease
from corpusveil.storage.artifacts import ARTIFACT, COMMANDS, complete, description_of, is_artifact
from corpusveil.storage.durable import once
from corpusveil.text.classes import TOKENIZER_VERSION
from corpusveil.text.languages import rule, version_of

WORK = "work"
"""The place of a step's unfinished work, in the folder of its artifact."""
VERSION = 1
Kind = Literal["counts", "collocations", "tokens", "vectors", "model", "store"]


def make_once(
    url: str,
    kind: Kind,
    call: str,
    make: Callable[[], dict[str, Any]],
    check: Callable[[dict[str, Any]], object] = lambda _: None,
) -> dict[str, Any]:
    """Make an artifact unless the same call finished it before, and return its description, which is written last.

    ``call`` is a digest of everything that decides the artifact. ``make`` writes its files, and returns the fields of
    its description. ``check`` refuses a description from before if the input has changed. Unfinished work of this run
    and of killed runs is removed when the artifact is complete. Raises UserError if another call made the artifact,
    WorkError if another run is in progress.
    """

    def claim() -> dict[str, Any] | None:
        earlier = read_artifact(url, kind) if is_artifact(url) else None
        if earlier is not None:
            if earlier.get("call") != call:
                raise AddressError(
                    f"{url}: this folder already has an artifact of another call or input; choose another output."
                )
            check(earlier)
        return earlier

    def do(_: lease.Lease) -> dict[str, Any]:
        by = f"corpusveil {metadata.version('corpusveil')}"
        fields = {"kind": kind, "version": VERSION, "by": by, "tokenizer": TOKENIZER_VERSION, "call": call, **make()}
        complete(url, fields, indent=1)
        return fields

    def tidy(_: dict[str, Any]) -> None:
        files.remove_folder(files.join(url, WORK))
        files.sweep(url, below=True)

    return once(url, claim, do, tidy)


def remove_others(folder: str, ending: str) -> None:
    """Remove the work of an interrupted run over another corpus, in another number of parts."""
    for name in files.listing(folder):
        if not name.endswith(ending):
            files.remove(files.join(folder, name))


def read_artifact(url: str, kind: Kind) -> dict[str, Any]:
    """Return an artifact's description. Raises UserError without one, and for another kind, version or tokenizer."""
    description = description_of(url, kind, VERSION)
    fields = description.as_dict()
    version = TOKENIZER_VERSION + version_of(fields.get("language"))
    if description.tokenizer != version:
        raise VersionError(
            f"{url}: this was made with tokenizer {description.tokenizer}, and this is {version}; make it again with "
            f"'corpusveil {COMMANDS[kind]}'."
        )
    return fields


class ReadingOptions(NamedTuple):
    """How text was read for an artifact: whether hyphens split or join words, and the language."""

    hyphens: Hyphens = "split"
    language: str | None = None

    def fields(self) -> dict[str, Any]:
        return {"hyphens": self.hyphens} | of_language(self.language)


def reading_of(url: str, fields: dict[str, Any]) -> ReadingOptions:
    """Return how text was read for an artifact."""
    hyphens, language = fields.get("hyphens"), fields.get("language")
    if hyphens not in HYPHENS or not (language is None or rule(language, "name")):
        raise ArtifactError(f"{files.join(url, ARTIFACT)}: this description is damaged; make it again.")
    return ReadingOptions(hyphens, language)


def of_language(language: str | None) -> dict[str, str]:
    """Return the fields of a description for the language in which text was read."""
    return {} if language is None else {"language": language, "tokenizer": TOKENIZER_VERSION + version_of(language)}
