"""The input of a run: files, folders and globs at any fsspec URL, as a sorted list of shards."""

from __future__ import annotations

import glob
import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from corpusveil.errors import UserError
from corpusveil.storage import files, formats


@dataclass(frozen=True, slots=True)
class InputShard:
    """One input file: its address, its path relative to the common root of all inputs, and its size in bytes."""

    url: str
    relative: str
    size: int


def find_shards(inputs: Sequence[str]) -> list[InputShard]:
    """Return the files that the inputs name, sorted by relative path, each once.

    A folder stands for every file below it that is not hidden. Raises UserError when nothing matches, when a file's
    form is not known, or when the files are of different forms.
    """
    if not inputs:
        raise UserError("No input is named; name files, folders or globs.")
    found: dict[str, int] = {}
    for pattern in inputs:
        matches = _expand(pattern)
        if not matches:
            raise UserError(f"{pattern}: nothing matches; name existing files, a folder or a glob in quotes.")
        found.update(matches)
    by_form: dict[str, str] = {}
    for url in found:
        by_form.setdefault(formats.form_of(url), url)
    if len(by_form) > 1:
        (first, one), (second, other) = list(by_form.items())[:2]
        raise UserError(
            f"The input mixes forms ({one} is {first}, {other} is {second}); run them one form at a time, "
            "for instance with a glob."
        )
    root = posixpath.commonpath([posixpath.dirname(_path(url)) for url in found])
    shards = [InputShard(url, posixpath.relpath(_path(url), root or "."), size) for url, size in found.items()]
    return sorted(shards, key=lambda shard: shard.relative)


def _path(url: str) -> str:
    return str(files.resolve(url)[1])


def _expand(pattern: str) -> dict[str, int]:
    fs, path = files.resolve(pattern)
    if fs.isfile(path):
        paths = [path]
    elif fs.isdir(path):
        paths = [name for name in fs.find(path) if not _hidden(posixpath.relpath(name, path))]
    elif glob.has_magic(path):
        paths = [name for name in fs.glob(path) if fs.isfile(name)]
    else:
        paths = []
    return {fs.unstrip_protocol(name) if "://" in pattern else name: int(fs.size(name)) for name in paths}


def _hidden(relative: str) -> bool:
    return any(part.startswith((".", "_")) for part in relative.split("/"))


def refuse_overlap(inputs: Sequence[str], shards: Sequence[InputShard], output: str, records: str) -> None:
    """Raise UserError when output or records lie where the input lies, or in one another."""
    targets = {"output": _folder(output), "records": _folder(records)}
    if _within(targets["records"], targets["output"]) or _within(targets["output"], targets["records"]):
        raise UserError(f"{records}: the private records may not lie in the output folder, nor it in them.")
    for name, target in targets.items():
        for shard in shards:
            if _within(_folder(shard.url), target):
                raise UserError(f"{shard.url}: this input lies in the {name} folder; choose another folder.")
        for folder in inputs:
            if _within(target, _folder(folder)):
                raise UserError(f"{folder}: the {name} folder would lie in this input; choose another folder.")


def _folder(url: str) -> str:
    fs, path = files.resolve(url)
    return f"{fs.protocol}:{os.path.realpath(path) if files.is_local(url) else path}".rstrip("/")


def _within(inner: str, outer: str) -> bool:
    return inner == outer or inner.startswith(outer + "/")
