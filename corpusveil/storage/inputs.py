"""The input of a run: files, folders and globs at any fsspec URL, as a sorted list of shards."""

from __future__ import annotations

import fnmatch
import glob
import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from fsspec.implementations.local import LocalFileSystem
from fsspec.utils import glob_translate

from corpusveil.errors import AddressError, DataError, MissingError, SettingError
from corpusveil.storage import failures, files, formats
from corpusveil.storage.failures import failing
from corpusveil.storage.remote import protocols

Address: TypeAlias = str | os.PathLike[str]
"""A path or any fsspec URL, as Python callers give it."""
Listed = dict[str, Any]
_LISTED_WHOLE = {"s3", "gs", "abfs"}
"""Stores that list everything below a folder in pages, instead of one folder after the other."""


@dataclass(frozen=True, slots=True)
class InputShard:
    """One input file: its address, its path relative to the common root of all inputs, and its size in bytes.

    ``stamp`` is the store's description of the file that changes when the file is written again, and ``modified`` the
    time of the last write, in seconds since the epoch, by the clock of the store. ``is_link`` says whether it is
    somewhere else on the disk.
    """

    url: str
    relative: str
    size: int
    stamp: str = ""
    modified: float | None = field(default=None, compare=False)
    is_link: bool = field(default=False, compare=False)


NO_MATCH = "this matches no file"
_LAKE = re.compile(r"(?:.*/)?(?:_delta_log|\.hoodie|metadata/[^/]*\.metadata\.json)(?:/.*)?")
"""Folders in a table of Delta, Hudi or Iceberg next to its data."""


def addresses(given: Address | Sequence[Address]) -> list[str]:
    """Return one address or several, as a Python caller gives them, as a list of text."""
    several = [given] if isinstance(given, (str, os.PathLike)) else given
    return [files.as_text(address) for address in several]


def find_shards(
    inputs: Sequence[str], root: str | None = None, *, form: str = "", aliens: list[str] | None = None
) -> list[InputShard]:
    """Return the files that the inputs name, sorted by relative path, each once.

    Paths are relative to ``root``, or without it to the lowest folder that contains all files.

    A folder means every file below it that is not hidden; links to files are followed, because caches of data sets
    consist of them. A listing is complete or an error: a folder that cannot be listed, a link to a folder and one that
    leads nowhere are never left out. Raises UserError if nothing matches, if a file's format is unknown, or if the
    files have different formats or stores; WorkError if a store cannot be listed.

    With ``aliens``, a link that is not followed, a file or folder without the right to read it, and a file that cannot
    be read together with those of a ``form``, by default that of most, add a sentence there instead of an error.
    """
    if not inputs:
        raise SettingError("There is no input; name files, folders or globs.")
    entries: dict[str, Listed] = {}
    stores: dict[str, str] = {}
    for pattern in inputs:
        matches = _expand(pattern, aliens)
        stores.setdefault(min(protocols(files.resolve(pattern)[0])), pattern)
        if not matches:
            raise MissingError(f"{pattern}: {NO_MATCH}; name existing files, a folder or a glob in quotes.")
        entries.update(matches)
    if len(stores) > 1:
        named, other = list(stores.values())[:2]
        raise DataError(f"The input is on different kinds of store ({named}, {other}); run them separately.")
    if aliens is not None:
        odd = _of_other_form(entries, form)
        entries = {url: entry for url, entry in entries.items() if url not in odd}
        aliens += sorted(odd.values())
    by_form: dict[str, str] = {}
    for url in entries:
        by_form.setdefault(formats.form_of(url), url)
    if len(by_form) > 1:
        (first, named), (second, other) = list(by_form.items())[:2]
        raise DataError(
            f"The input mixes formats ({named} is {first}, {other} is {second}); run each format separately, for "
            "instance with a glob."
        )
    paths = [_path(url) for url in entries]
    if root is None:
        base = posixpath.commonpath({posixpath.dirname(path) for path in paths})
    else:
        base = _root(root, list(entries))
    shards = [
        InputShard(
            url, posixpath.relpath(path, base or "."), int(entry["size"] or 0), _stamp(entry), files.written(entry),
            bool(entry.get("islink")),
        )
        for path, (url, entry) in zip(paths, entries.items(), strict=True)
    ]  # fmt: skip
    return sorted(shards, key=lambda shard: shard.relative)


def _of_other_form(entries: Iterable[str], form: str) -> dict[str, str]:
    """Return sentences about the files that are not of a form, or that of most; none if no file has a form."""
    odd, by_form = dict[str, str](), dict[str, list[str]]()
    for url in entries:
        try:
            by_form.setdefault(_readable_form(url), []).append(url)
        except (AddressError, DataError) as error:
            odd[url] = str(error)
    if not by_form:
        return {}
    mine = form if form in by_form else max(sorted(by_form), key=lambda each: len(by_form[each]))
    for other, urls in by_form.items():
        advice = f"this file is {other}, and the others are {mine}; convert or move it."
        odd |= {} if other == mine else {url: str(DataError(f"{url}: {advice}")) for url in urls}
    return odd


def _readable_form(url: str) -> str:
    """Return the form of a file. Raises AddressError, DataError or AddressError if it is of no use."""
    fs, path = files.resolve(url)
    if isinstance(fs, LocalFileSystem) and not os.access(path, os.R_OK):
        raise AddressError(f"{url}: there is no permission to read this file; give it to this user.")
    return formats.form_of(url)


def _stamp(entry: Listed) -> str:
    names = ("ETag", "etag", "generation", "LastModified", "last_modified", "updated", "mtime", "created")
    return " ".join(str(entry[name]) for name in names if entry.get(name) is not None)


def _root(root: str, urls: Sequence[str]) -> str:
    base = _path(root).rstrip("/")
    store = protocols(files.resolve(root)[0])
    for url in urls:
        if not _path(url).startswith(base + "/") or protocols(files.resolve(url)[0]) != store:
            raise AddressError(f"{url}: this input is not in the root {root}; name a folder above all inputs.")
    return base or _path(root)


def folder_of(shards: Sequence[InputShard]) -> str:
    """Return the address of the folder at which the relative paths of shards begin."""
    return files.absolute(shards[0].url.removesuffix(shards[0].relative))


def root_of(inputs: Sequence[str]) -> str:
    """Return the lowest folder that contains all inputs, by name only, so that it does not depend on existing files."""
    folders = []
    for pattern in inputs:
        path = _path(pattern)
        parts = path.split("/")
        fixed = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
        is_folder = fixed == len(parts) and not any(path.endswith(suffix) for suffix in formats.SUFFIXES)
        folders.append("/".join(parts if is_folder else parts[: min(fixed, len(parts) - 1)]) or "/")
    fs = files.resolve(inputs[0])[0]
    return _address(inputs[0], fs, posixpath.commonpath(folders))


def _path(url: str) -> str:
    """Return the path in a store; on a disk without ``..``, so that relative paths have none either."""
    fs, path = files.resolve(url)
    return posixpath.normpath(path) if isinstance(fs, LocalFileSystem) else str(path)


def _expand(pattern: str, aliens: list[str] | None = None) -> dict[str, Listed]:
    fs, path = files.resolve(pattern)
    there = files.info(pattern)
    with failing(pattern, "listed"):
        entries: list[Listed] = []
        marks_folder = there is not None and pattern.endswith("/") and not there["size"]
        if there is not None and there["type"] != "directory" and not marks_folder:
            entries = [there]
        elif there is not None:
            below = {posixpath.relpath(entry["name"], path): entry for entry in _below(fs, path, aliens)}
            _refuse_lake(pattern, fs, path, below)
            entries = [entry for name, entry in below.items() if not _hidden(name)]
        elif glob.has_magic(path):
            _refuse_lake(pattern, fs, posixpath.dirname(re.split(r"[*?[]", path, maxsplit=1)[0]))
            entries = _matching(fs, path, aliens)
        if not entries and not isinstance(fs, LocalFileSystem):
            _require_bucket(fs, path.split("*", 1)[0].rstrip("/"), pattern)
    return {_address(pattern, fs, entry["name"]): entry for entry in entries}


def _refuse_lake(pattern: str, fs: Any, folder: str, below: Iterable[str] = ()) -> None:
    """Raise UserError for a table whose log says which of its files count: by folders in it, and files below it."""
    above = [folder, *map(str, Path(folder).parents)] if isinstance(fs, LocalFileSystem) else [folder]
    logs = (f"{at}/{name}" for at in above for name in ("_delta_log", ".hoodie"))
    if any(map(_LAKE.fullmatch, below)) or any(map(fs.exists, logs)):
        raise DataError(
            f"{pattern}: this is of a table of Delta, Iceberg or Hudi, in whose folder there can be files of deleted "
            "and replaced rows; write its present rows into another folder by DuckDB, Spark or Polars."
        )


def _list(fs: Any, folder: str) -> list[Listed]:
    """Return the entries of a folder; fsspec's own ``glob`` and ``walk`` leave out one whose listing fails."""
    try:
        return list(fs.ls(folder, detail=True))
    except (FileNotFoundError, NotADirectoryError) as error:
        if failures.names_no_bucket(error):
            raise
        return []


def _require_bucket(fs: Any, path: str, url: str) -> None:
    """Raise an error if it is the bucket that is missing."""
    _list(fs, path)
    if "gs" in protocols(fs):  # Google's client does not say what is missing
        try:
            fs.ls(path.split("/", 1)[0], max_results=1)
        except FileNotFoundError:
            raise failures.missing_bucket(url) from None


def _below(fs: Any, folder: str, aliens: list[str] | None) -> Iterator[Listed]:
    if protocols(fs) & _LISTED_WHOLE:
        entries = fs.find(folder, detail=True, withdirs="abfs" in protocols(fs))  # without Azure's marks of folders
        yield from (entry for entry in entries.values() if _is_file(entry))
        return
    waiting = [folder]
    while waiting:
        at = waiting.pop()
        if at != folder and isinstance(fs, LocalFileSystem) and not os.access(at, os.R_OK | os.X_OK):
            _leave_out(AddressError(f"{at}: there is no permission to list this folder; give it to this user."), aliens)
            continue
        for entry in fs.ls(at, detail=True):
            name = posixpath.basename(entry["name"].rstrip("/"))
            if name.startswith("."):
                yield from [entry] * (name == ".hoodie")  # by which a table is known
                continue
            is_link = entry.get("islink") and not _hidden(posixpath.relpath(entry["name"], folder))
            if is_link and (lost := _lost(entry["name"])) is not None:
                _leave_out(lost, aliens)
            elif entry["type"] == "directory":
                waiting.append(entry["name"])
            elif _is_file(entry):
                yield entry


def _leave_out(error: AddressError, aliens: list[str] | None) -> None:
    if aliens is None:
        raise error
    aliens.append(str(error))


def _lost(link: str) -> AddressError | None:
    """Return the error about a link to a folder, which could lead in a circle, or about one that leads nowhere."""
    if os.path.isdir(link):
        return AddressError(f"{link}: links to folders are not followed; name the folder itself as a further input.")
    if not os.path.exists(link):
        return AddressError(f"{link}: this link leads to no file; restore the file, or remove the link.")
    return None


def _matching(fs: Any, pattern: str, aliens: list[str] | None) -> list[Listed]:
    """Return the files that a glob matches; only folders that its parts match are listed, ``**`` means any depth."""
    parts = pattern.split("/")
    first = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    root = "/".join(parts[:first]) or fs.root_marker
    if any("**" in part for part in parts):
        whole = re.compile(glob_translate(pattern))
        entries = [entry for entry in _below(fs, root, aliens) if whole.match(entry["name"])]
        return [entry for entry in entries if "/." not in entry["name"][len(root.rstrip("/")) :]]
    folders = [root]
    for part in parts[first:-1]:
        matched = [entry for folder in folders for entry in _list(fs, folder) if _fits(entry, part)]
        folders = [entry["name"].rstrip("/") for entry in matched if not _is_file(entry)]
    entries = [entry for folder in folders for entry in _list(fs, folder) if _fits(entry, parts[-1])]
    for entry in entries:
        if entry.get("islink") and not os.path.isdir(entry["name"]) and (lost := _lost(entry["name"])) is not None:
            _leave_out(lost, aliens)
    return list(filter(_is_file, entries))


def _fits(entry: Listed, part: str) -> bool:
    """Say whether a name matches a part of a glob; as in a shell, a leading dot has to be explicit."""
    name = entry["name"].rstrip("/").rsplit("/", 1)[-1]
    return fnmatch.fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))


def _is_file(entry: Listed) -> bool:
    """Say whether an entry of a listing is a file: not a folder, a broken link, or an object that marks a folder."""
    if entry.get("islink"):
        return os.path.isfile(entry["name"])
    return entry["type"] == "file" and not entry["name"].endswith("/")


def _address(pattern: str, fs: Any, name: str) -> str:
    """Return the address of a file that a pattern found: plain if local, else with the pattern's scheme and account."""
    if isinstance(fs, LocalFileSystem):
        return name
    scheme, _, rest = pattern.partition("://")
    authority = rest.split("/", 1)[0]
    if "@" in authority:  # abfs://container@account...: the account is not part of a path in the store
        return f"{scheme}://{authority}/{name.lstrip('/').split('/', 1)[1]}"
    return str(fs.unstrip_protocol(name))


def _hidden(relative: str) -> bool:
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in relative.split("/"))


def lies_in_input(output: str, given: str, written: Sequence[str]) -> bool:
    """Say whether a folder is in an input, or whether a glob matches a file that is written to the folder."""
    folder, pattern = files.absolute(output).rstrip("/"), files.absolute(given.rstrip("/"))
    names = [f"{folder}/{name}" for name in written]
    return f"{folder}/".startswith(f"{pattern}/") or (
        glob.has_magic(pattern) and any(re.fullmatch(glob_translate(pattern), name) for name in names)
    )


def refuse_nested(private: str, what: str, public: str, *, whole: bool = True) -> None:
    """Raise UserError if something private is in a public folder, or if it is ``whole``, that folder in it.

    Links are resolved.
    """
    folder = _folder(public)
    places = _folder(private), folder
    if _within(*places) or (whole and _within(*reversed(places))):
        raise AddressError(
            f"{private}: {what} and the output folder {public}, which is for the public, contain each other; move "
            "one of them."
        )


def refuse_overlap(inputs: Sequence[str], shards: Sequence[InputShard], output: str, records: str) -> None:
    """Raise UserError if output or records are inside the input, or inside each other."""
    refuse_nested(records, "the private records", output)
    targets = {"output": _folder(output), "records": _folder(records)}
    folders = {shard.url if shard.is_link else posixpath.dirname(shard.url): shard for shard in reversed(shards)}
    for name, target in targets.items():
        for folder, shard in folders.items():
            if _within(_folder(folder), target):
                raise AddressError(f"{shard.url}: this input is in the {name} folder; choose another folder.")
        for folder in inputs:
            if _within(target, _folder(folder)):
                raise AddressError(f"{folder}: the {name} folder would be in this input; choose another folder.")


def _folder(url: str) -> str:
    fs, path = files.resolve(url)
    plain = os.path.realpath(path) if isinstance(fs, LocalFileSystem) else re.sub("/+", "/", path).strip("/")
    return f"{min(protocols(fs))}:{plain}".rstrip("/")


def _within(inner: str, outer: str) -> bool:
    return inner == outer or inner.startswith(outer + "/")
