"""Artefacts: folders that are complete when ``_artifact.json`` is there, which says what they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict

from corpusveil.storage import files
from corpusveil.storage.records import Line, Record, Records

ARTIFACT = "_artifact.json"


class Description(Record):
    """What every artefact says of itself; how it was made, and what is in it, differs by kind."""

    model_config = ConfigDict(extra="allow")

    kind: Line
    version: int
    tokenizer: Line | None = None
    """The version of the tokenizer that its words were read with."""
    call: str | None = None
    """A digest of everything that decides the artefact."""
    digest: str | None = None


def is_artifact(url: str) -> bool:
    """Say whether an artefact is complete at an address."""
    return files.exists(files.join(url, ARTIFACT))


def described(url: str) -> Description | None:
    """Return what the artefact at an address says, None where none is. Raises BadRecordError."""
    return Records(url, private=False).read(ARTIFACT, Description)


def complete(url: str, told: Mapping[str, Any], **style: Any) -> bool:
    """Describe an artefact whose files are all there, where none is yet; say whether this call did.

    ``style`` is what ``json.dumps`` is told beside.
    """
    return files.create_bytes(files.join(url, ARTIFACT), (json.dumps(told, **style) + "\n").encode())
