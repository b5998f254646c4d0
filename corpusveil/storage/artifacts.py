"""Artifacts: folders that are complete when they have an ``_artifact.json``, which describes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict

from corpusveil.storage import files
from corpusveil.storage.records import Line, Record, Records

ARTIFACT = "_artifact.json"


class Description(Record):
    """The description that every artifact has; how it was made, and its content, differ by kind."""

    model_config = ConfigDict(extra="allow")

    kind: Line
    version: int
    tokenizer: Line | None = None
    """The version of the tokenizer that its words were read with."""
    call: str | None = None
    """A digest of everything that decides the artifact."""
    digest: str | None = None


def is_artifact(url: str) -> bool:
    """Say whether an artifact is complete at an address."""
    return files.exists(files.join(url, ARTIFACT))


def described(url: str) -> Description | None:
    """Return the description of the artifact at an address, or None. Raises BadRecordError."""
    return Records(url, private=False).read(ARTIFACT, Description)


def complete(url: str, description: Mapping[str, Any], **style: Any) -> bool:
    """Describe an artifact with complete files, unless a description exists; say whether this call did.

    ``style`` are further arguments of ``json.dumps``.
    """
    return files.create_bytes(files.join(url, ARTIFACT), (json.dumps(description, **style) + "\n").encode())
