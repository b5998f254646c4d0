"""What a step of the collocation flow leaves behind says about itself, in ``_artifact.json``, written last."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from importlib import metadata
from typing import Any, Literal

from corpusveil.choices import HYPHENS, Hyphens
from corpusveil.errors import UserError
from corpusveil.storage import files, lease
from corpusveil.storage.shapes import fits, line, parsed
from corpusveil.text.classes import TOKENIZER_VERSION

ARTIFACT = "_artifact.json"
WORK = "work"
"""Where a step keeps what it has not finished, in the folder of its artefact."""
VERSION = 1
Kind = Literal["counts", "collocations", "tokens", "vectors"]
_MADE_BY = {"counts": "count", "collocations": "score", "tokens": "tokenize", "vectors": "train"}


def is_artifact(url: str) -> bool:
    """Say whether an artefact is complete at an address."""
    return files.exists(files.join(url, ARTIFACT))


@contextlib.contextmanager
def claimed(url: str, kind: Kind, call: str) -> Iterator[dict[str, Any] | None]:
    """Hold the folder of an artefact; yield its description where this very call finished it before, else None.

    ``call`` is a digest of everything that decides the artefact. What this run and killed ones did not finish is gone
    when the artefact is complete. Raises UserError when another call made what is there, WorkError when another run is
    in progress.
    """
    with lease.hold(files.join(url, lease.FOLDER)):
        told = read_artifact(url, kind) if is_artifact(url) else None
        if told is not None and told.get("call") != call:
            raise UserError(
                f"{url}: an artefact is here already, of another call or other input; choose another --output."
            )
        yield told
        if is_artifact(url):
            files.remove_folder(files.join(url, WORK))
            files.sweep(url, below=True)


def remove_others(folder: str, ending: str) -> None:
    """Remove what an interrupted run over another corpus, in another number of parts, left in a folder."""
    for name in files.listing(folder):
        if not name.endswith(ending):
            files.remove(files.join(folder, name))


def read_artifact(url: str, kind: Kind) -> dict[str, Any]:
    """Return the description of an artefact.

    Raises UserError when none is there, when it is of another kind or version, and when another version of the
    tokenizer made it, whose words would not be those of this one.
    """
    address, command = files.join(url, ARTIFACT), f"corpusveil {_MADE_BY[kind]}"
    if not files.exists(address):
        raise UserError(f"{url}: there are no {kind} here (no {ARTIFACT}); make them with '{command}'.")
    told: dict[str, Any] = parsed(files.read_bytes(address))
    if not fits(told, {"kind": line, "version": int}) or not line(told.get("tokenizer", "")):
        raise UserError(f"{address}: this description is damaged; make it again with '{command}'.")
    found, version = told["kind"], told["version"]
    if (found, version) != (kind, VERSION):
        raise UserError(f"{url}: this is {found} version {version}, not {kind} version {VERSION}.")
    if told.get("tokenizer", TOKENIZER_VERSION) != TOKENIZER_VERSION:
        raise UserError(
            f"{url}: made by tokenizer {told['tokenizer']}, and this is {TOKENIZER_VERSION}; "
            f"make it again with '{command}'."
        )
    return told


def reading_of(url: str, told: dict[str, Any]) -> tuple[Hyphens, bool]:
    """Return how text was read for an artefact: its hyphens, and whether n-grams go over abbreviations' full stops.

    Artefacts of before these were said parted words at hyphens, and n-grams at abbreviations.
    """
    hyphens, over_stops = told.get("hyphens", "split"), told.get("over_stops", False)
    if hyphens not in HYPHENS or not isinstance(over_stops, bool):
        raise UserError(f"{files.join(url, ARTIFACT)}: this description is damaged; make it again.")
    return hyphens, over_stops


def write_artifact(url: str, kind: Kind, call: str, told: dict[str, Any]) -> dict[str, Any]:
    """Write the description of an artefact, whose files are all there, and return it; ``call`` as in ``claimed``."""
    by = f"corpusveil {metadata.version('corpusveil')}"
    description = {"kind": kind, "version": VERSION, "by": by, "tokenizer": TOKENIZER_VERSION, "call": call, **told}
    files.write_bytes(files.join(url, ARTIFACT), (json.dumps(description, indent=1) + "\n").encode())
    return description
