"""Artifacts: folders that are complete when they have an ``_artifact.json``, which describes them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from pydantic import ConfigDict

from corpusveil.errors import AddressError, ArtifactError, MissingError, SettingError, VersionError, replaced
from corpusveil.storage import files
from corpusveil.storage.records import Line, Record, Records

ARTIFACT = "_artifact.json"
COMMANDS = {
    "counts": "count",
    "collocations": "score",
    "tokens": "tokenize",
    "vectors": "train",
    "model": "evaluate model",
}
"""The commands that make artifacts; for a kind that is not here, its name."""


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
    """Return the description of the artifact at an address, or None. Raises ArtifactError."""
    return Records(url, private=False).read(ARTIFACT, Description)


def description_of(url: str, kind: str, version: int = 1) -> Description:
    """Return the description of the artifact at an address, which has this kind and version.

    Raises UserError for a folder without an artifact, and for one that is damaged or of another kind or version.
    """
    be, what = ("are", kind) if kind.endswith("s") else ("is", f"a {kind}")
    make = f"'corpusveil {COMMANDS.get(kind, kind)}' makes {what}."
    try:
        description = described(url)
    except ArtifactError as error:
        raise ArtifactError(f"{error} {make}") from None
    if description is None:
        raise MissingError(f"{url}: there {be} no {kind} here (no {ARTIFACT}); {make}")
    if description.kind != kind:
        raise SettingError(f"{url}: this artifact is of the kind {description.kind[:40]}, not {what}; {make}")
    if description.version != version:
        raise VersionError(
            f"{url}: the {kind} here {be} of version {description.version}, and this release of corpusveil reads "
            f"{version}; make {what} again, or use the release that made this."
        )
    return description


def complete(url: str, description: Mapping[str, Any], **style: Any) -> bool:
    """Describe an artifact with complete files, unless a description exists; say whether this call did.

    ``style`` are further arguments of ``json.dumps``.
    """
    return files.create_bytes(files.join(url, ARTIFACT), (json.dumps(description, **style) + "\n").encode())


D = TypeVar("D", bound=Any)
"""An artifact with a ``digest`` of its content, in memory."""


class Saved(Generic[D]):
    """A kind of artifacts that are pickled as their address and digest, such as spaces.

    Attributes:
        kind: the kind, which is also the command that makes one.
        version: the version that this release writes and reads.
        opened: artifacts that this process opened, by address and digest.
    """

    def __init__(self, kind: str, version: int = 1) -> None:
        self.kind, self.version = kind, version
        self.opened: dict[tuple[str, str], D] = {}
        self._lock = threading.Lock()

    def read(self, url: str) -> dict[str, Any]:
        """Return the description of the artifact at an address, in its order. Raises UserError as description_of."""
        description = description_of(url, self.kind, self.version)
        if not re.fullmatch("[0-9a-f]{64}", str(description.digest)):
            raise self.damaged(url, f"{ARTIFACT} has no digest")
        info: dict[str, Any] = json.loads(files.read_bytes(files.join(url, ARTIFACT)))
        return info

    def damaged(self, where: str, how: str) -> ArtifactError:
        """Return the error of damaged files."""
        return ArtifactError(
            f"{where}: this {self.kind} is damaged ({how.rstrip('.')}); copy it again from an undamaged copy, or build "
            "it again."
        )

    def require(self, url: str, digest: str) -> None:
        """Raise UserError unless the artifact at an address has this digest; its other fields may differ."""
        try:
            there = getattr(described(url), "digest", None)
        except ArtifactError:
            there = None
        if there is None:
            raise self.damaged(url, f"{ARTIFACT} has no digest")
        if there != digest:
            where = files.join(url, ARTIFACT)
            raise AddressError(
                f"{where}: another artifact is saved here, and it is never overwritten; choose another folder."
            )

    def reopen(self, load: Callable[[str], D], url: str, digest: str) -> D:
        """Return the artifact that was pickled as (``url``, ``digest``), opened once in this process."""
        with self._lock:
            if (url, digest) not in self.opened:
                artifact = load(url)
                if artifact.digest != digest:
                    raise replaced(url, self.kind)
                self.opened[url, digest] = artifact
            return self.opened[url, digest]
