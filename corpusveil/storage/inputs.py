"""The input of a run: files, folders and globs at any fsspec URL, as a sorted list of shards."""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fsspec.implementations.local import LocalFileSystem

from corpusveil.errors import AddressError, DataError, MissingError, SettingError, UserError, without_queries
from corpusveil.storage import failures, files, formats
from corpusveil.storage.failures import failing
from corpusveil.storage.remote import protocols, shown_whole

Address: TypeAlias = str | os.PathLike[str]
"""A path or any fsspec URL, as Python callers give it."""
Listed = dict[str, Any]
Parts = tuple[str, ...]
_LISTED_WHOLE = {"s3", "gs", "abfs"}
"""Stores that list everything below a folder in pages, instead of one folder after the other."""
_LOGS = ("_spark_metadata", "_delta_log", ".hoodie", "metadata")
"""The folders in which a stream of Spark, Delta, Hudi and Iceberg say which files count."""
_ICEBERG = (".metadata.json", ".metadata.json.gz")


@dataclass(frozen=True, slots=True)
class InputShard:
    """One input file: its address, its path relative to the common root of all inputs, and its size in bytes.

    ``stamp`` is the store's description of the file that changes when the file is written again, and ``modified`` the
    time of the last write, in seconds since the epoch, by the clock of the store.
    """

    url: str
    relative: str
    size: int
    stamp: str = ""
    modified: float | None = field(default=None, compare=False)


def addresses(given: Address | Sequence[Address]) -> list[str]:
    """Return one address or several, as a Python caller gives them, as a list of text."""
    several = [given] if isinstance(given, (str, os.PathLike)) else given
    return [files.as_text(address) for address in several]


def find_shards(
    inputs: Sequence[str], root: str | None = None, *, form: str = "", aliens: list[str] | None = None,
    hidden: set[str] | None = None,
) -> list[InputShard]:  # fmt: skip
    """Return the files that the inputs name, sorted by relative path, each once.

    Paths are relative to ``root``, or without it to the lowest folder that contains all files.

    A folder means every file below it, except for names that begin with a dot or an underscore, which have to be named;
    those that are not read are added to ``hidden``. Links to files are followed, because caches of data sets consist of
    them. Raises UserError for whatever else would not be read, or be drawn twice, and for tables whose logs say which
    files count; WorkError if a store cannot be listed. With ``aliens``, files that cannot be read, or not together with
    those of a ``form``, by default that of most, add a sentence there instead of an error.
    """
    if not inputs:
        raise SettingError("There is no input; name files, folders or globs.")
    walk = _Walk(aliens, set() if hidden is None else hidden)
    entries: dict[str, Listed] = {}
    stores: dict[str, str] = {}
    for pattern in inputs:
        matches = walk.expand(pattern)
        stores.setdefault(min(protocols(files.resolve(pattern)[0])), pattern)
        if not matches:
            but = f", but {min(walk.hidden)}, which has to be named" if walk.hidden else ""
            raise MissingError(
                f"{pattern}: this matches no file{but}; name existing files, a folder or a glob in quotes."
            )
        entries.update(matches)
    if len(stores) > 1:
        named, other = list(stores.values())[:2]
        raise DataError(f"The input is on different kinds of store ({named}, {other}); run them separately.")
    walk.refuse_tables()
    entries = walk.of_one_form(walk.each_once(entries), form)
    paths = [_path(url) for url in entries]
    if root is None:
        base = posixpath.commonpath({posixpath.dirname(path) for path in paths})
    else:
        base = _root(root, list(entries))
    shards = [
        InputShard(
            url, posixpath.relpath(path, base or "."), int(entry["size"] or 0), _stamp(entry), files.written(entry)
        )
        for path, (url, entry) in zip(paths, entries.items(), strict=True)
    ]  # fmt: skip
    return sorted(shards, key=lambda shard: shard.relative)


@dataclass(slots=True)
class _Walk:
    """One walk over all inputs: what it leaves out, and the folders that may have the log of a table."""

    aliens: list[str] | None
    hidden: set[str]
    suspects: dict[str, tuple[str, Any]] = field(default_factory=dict)
    """By folder, the address that led to it, and its store."""

    def expand(self, pattern: str) -> dict[str, Listed]:
        """Return the files that an address names, by their own addresses."""
        fs, path = files.resolve(pattern)
        there = files.info(pattern)
        marks_folder = there is not None and pattern.endswith("/") and not there["size"]
        if there is not None and there["type"] != "directory" and not marks_folder:
            root, entries = posixpath.dirname(path), [there] if self._is_fit(fs, there, {()}) else []
        else:
            root, parts = (path, ("**", "*")) if there is not None else _parts(fs, path)
            entries = list(self._below(fs, root, parts, pattern)) if parts else []
        folders = {root} if shown_whole(fs) else set()
        if isinstance(fs, LocalFileSystem):
            links = (each["name"] for each in entries if each.get("islink"))
            folders = {root, os.path.realpath(root), *(os.path.dirname(os.path.realpath(link)) for link in links)}
        for folder in folders:
            above = folder
            while above and above not in self.suspects:
                self.suspects[above] = pattern, fs
                above = posixpath.dirname(above)
        return {_address(pattern, fs, entry["name"]): entry for entry in entries}

    def refuse_tables(self) -> None:
        """Raise DataError if a folder, or one above it, has the log of a table."""
        for folder, (pattern, fs) in self.suspects.items():
            with contextlib.suppress(AddressError), failing(pattern, "listed"):  # above what this user may read
                if any(_has_log(fs, folder, name) for name in _LOGS):
                    raise DataError(
                        f"{pattern}: this is of a table of Delta, Iceberg or Hudi, or of a stream of Spark, in whose "
                        "folder there can be files of deleted and replaced rows; write its present rows into another "
                        "folder by DuckDB, Spark or Polars."
                    )

    def each_once(self, entries: dict[str, Listed]) -> dict[str, Listed]:
        """Return the files each once. Raises AddressError for a second name of one, such as a link."""
        names: dict[object, str] = {}
        once: dict[str, Listed] = {}
        for url, entry in sorted(entries.items()):
            try:
                other = names.setdefault(_identity(url), url)
            except AddressError as error:
                self._leave_out(error)
                continue
            if other == url:
                once[url] = entry
            elif _path(other) != _path(url):
                once.pop(other, None)
                why = f"{url}: this is the same file as {other}, and would be drawn twice; name or keep one of them."
                self._leave_out(AddressError(why))
        return once

    def of_one_form(self, entries: dict[str, Listed], form: str) -> dict[str, Listed]:
        """Return the readable files of one form: of ``form`` if a file has it, otherwise of the most frequent form."""
        by_form: dict[str, list[str]] = {}
        for url in entries:
            try:
                by_form.setdefault(formats.suffix_of_file(url), []).append(url)
            except DataError as error:
                self._leave_out(error)
        if not by_form:
            raise DataError((self.aliens or [""])[0])
        mine = form if form in by_form else max(sorted(by_form), key=lambda each: len(by_form[each]))
        for other in sorted(by_form.keys() - {mine}):
            for url in by_form[other]:
                why = (
                    f"this file is {other}, and {by_form[mine][0]} is {mine}; name one format, for instance by a glob."
                )
                self._leave_out(DataError(f"{url}: {why}"))
        return {url: entries[url] for url in by_form[mine]}

    def _below(self, fs: Any, root: str, parts: Parts, pattern: str) -> Iterator[Listed]:
        """Yield the files below a folder whose names match the parts, ``**`` any number of names.

        A listing that fails is an error; fsspec's own ``glob`` and ``walk`` leave out its folder.
        """
        waiting = [(root, _opened(parts))]
        while waiting:
            at, wanted = waiting.pop()
            is_whole = bool(protocols(fs) & _LISTED_WHOLE) and any(left[0] == "**" for left in wanted)
            with failing(_address(pattern, fs, at), "listed"):
                entries = _list(fs, at, is_whole=is_whole)
            for entry in entries:
                path, left = at, wanted
                for name in entry["name"].removeprefix(at).strip("/").split("/"):
                    if name in _LOGS:
                        self.suspects[path] = pattern, fs
                    path, before = posixpath.join(path, name), left
                    left = _after(name, before)
                    if left and name.startswith((".", "_")) and (name[0] == "." or "=" not in name):
                        left = _after(name, {each for each in before if each and each[0][0] == name[0]})
                        self.hidden |= set() if left else {_address(pattern, fs, path)}
                    if not left:
                        break
                if entry["type"] == "directory":
                    waiting += [(path, deeper)] if (deeper := left - {()}) and not is_whole else []
                elif left and self._is_fit(fs, entry, left):
                    yield entry

    def _is_fit(self, fs: Any, entry: Listed, left: set[Parts]) -> bool:
        """Say whether an entry is a file that is named, and not only on the way to one."""
        path = entry["name"]
        if not isinstance(fs, LocalFileSystem):
            return () in left and entry["type"] == "file" and not path.endswith("/")  # as stores mark folders
        if left == {()} if os.path.isdir(path) else () not in left and os.path.exists(path):
            return False
        if os.path.isfile(path) and os.access(path, os.R_OK):
            return True
        self._leave_out(AddressError(
            f"{path}: this is not a readable file, but a pipe, a device, a link to a folder or to nothing, or without "
            "permission; repair or remove it, or name the target of the link as another input."
        ))  # fmt: skip
        return False

    def _leave_out(self, error: UserError) -> None:
        if self.aliens is None:
            raise error
        self.aliens.append(str(error))


def _parts(fs: Any, pattern: str) -> tuple[str, Parts]:
    """Return the folder at which a glob begins, and what the names below it match; of an address, nothing."""
    parts = pattern.split("/")
    first = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    below = (*parts[first:], "*") if parts[-1] == "**" else tuple(parts[first:])
    return "/".join(parts[:first]) or fs.root_marker, below


def _opened(parts: Parts) -> set[Parts]:
    """Return the parts, and those without ``**`` at the beginning, which matches no name, too."""
    return {parts} | (_opened(parts[1:]) if parts[:1] == ("**",) else set())


def _after(name: str, wanted: set[Parts]) -> set[Parts]:
    """Return the parts of the pattern that remain inside a folder of this name; no parts if the name itself matches."""
    left = set[Parts]()
    for parts in filter(None, wanted):
        if parts[0] == "**":
            left |= _opened(parts)
        elif fnmatch.fnmatchcase(name, parts[0]):
            left |= _opened(parts[1:])
    return left


def _has_log(fs: Any, folder: str, name: str) -> bool:
    log = posixpath.join(folder, name)
    return fs.exists(log) and (name != "metadata" or any(each["name"].endswith(_ICEBERG) for each in _list(fs, log)))


def _identity(url: str) -> object:
    """Return an identity that is equal for all names of a file: on a disk, after links, mounts and ``..``."""
    fs, path = files.resolve(url)
    if not isinstance(fs, LocalFileSystem):
        return url
    try:
        there = os.stat(path)
    except OSError:  # removed meanwhile, which who reads it says
        return url
    return there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns


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
    return files.absolute(without_queries(shards[0].url).removesuffix(shards[0].relative))


def root_of(inputs: Sequence[str]) -> str:
    """Return the lowest folder that contains all inputs, by name only, so that it does not depend on existing files."""
    fs = files.resolve(inputs[0])[0]
    folders = []
    for root, below in (_parts(fs, _path(pattern)) for pattern in inputs):
        folders.append(posixpath.dirname(root) if not below and root.endswith(formats.SUFFIXES) else root)
    return _address(inputs[0], fs, posixpath.commonpath(folders))


def _path(url: str) -> str:
    """Return the path in a store; without a query, and on a disk without ``..``, so that relative paths have none."""
    fs, path = files.resolve(url)
    return posixpath.normpath(path) if isinstance(fs, LocalFileSystem) else without_queries(path)


def _list(fs: Any, folder: str, *, is_whole: bool = False) -> list[Listed]:
    """Return the entries of a folder, or all that is below it, none if it is not there."""
    if is_whole:
        with_marks = "abfs" in protocols(fs)
        return list(failures.called({}, fs.find, folder, detail=True, withdirs=with_marks).values())
    return list(failures.called([], fs.ls, folder, detail=True))


def _address(pattern: str, fs: Any, name: str) -> str:
    """Return the address of a file that a pattern found: plain if local, else with the pattern's scheme and account."""
    if isinstance(fs, LocalFileSystem):
        return name
    scheme, _, rest = pattern.partition("://")
    authority = rest.split("/", 1)[0]
    if "@" in authority:  # abfs://container@account...: the account is not part of a path in the store
        return f"{scheme}://{authority}/{name.lstrip('/').split('/', 1)[1]}"
    return str(fs.unstrip_protocol(name))


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
    refuse_within(inputs, shards, output, "output")
    refuse_within(inputs, shards, records, "records")


def refuse_within(inputs: Sequence[str], shards: Sequence[InputShard], url: str, name: str) -> None:
    """Raise UserError if the folder of this name is inside the input, or the input inside it."""
    target = _folder(url)
    for shard in shards:
        if _within(_folder(shard.url), target):
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
