"""Files at any fsspec URL: whole or not at all.

A write becomes visible only when it is complete (``disk.py``, ``remote.py``). What a store answers is never taken from
a cache: other processes write too.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import io
import os
import posixpath
import re
import time
from collections.abc import Iterator
from datetime import datetime
from typing import IO, Any, cast

import fsspec
from fsspec.implementations.local import LocalFileSystem

from corpusveil.errors import AddressError, MissingError, of_other_type
from corpusveil.storage import disk, failures, remote
from corpusveil.storage.failures import failing
from corpusveil.storage.remote import protocols, shown_whole

_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{32}\.part")
_BUFFER = 1 << 20
_COPIED = 8 << 20
_CONFLICTS = re.compile("ConditionalRequestConflict|OperationAborted|409")
_TAKEN = re.compile("PreconditionFailed|412|BlobAlreadyExists|UnauthorizedBlobOverwrite")
_CREATE_SECONDS = 20.0
_PLAIN_SCHEMES = {"s3a": "s3", "gcs": "gs", "az": "abfs", "abfss": "abfs"}
_disk = functools.cache(LocalFileSystem)
_SYNONYM = re.compile(rf"^({'|'.join(_PLAIN_SCHEMES)})(?=://)")


def resolve(url: str) -> tuple[Any, str]:
    """Return the fsspec file system of ``url`` and the path in it.

    The instance of an object store is one without a cache of listings. Raises UserError for an address that can't be
    opened or whose package is missing.
    """
    _refuse_name(url)
    scheme, is_url, rest = url.partition("://")
    if not is_url and not url.startswith("data:"):  # as fsspec has it, in a quarter of the time
        try:
            return _disk(), str(LocalFileSystem._strip_protocol(url))  # noqa: SLF001
        except FileNotFoundError:
            raise MissingError(f"{url}: the current folder was removed; change to one that is there.") from None
    options = {"use_listings_cache": False} if scheme in failures.EXTRAS else {}
    try:
        fs, path = cast("tuple[Any, str]", fsspec.core.url_to_fs(url, **options))
    except Exception as error:  # noqa: BLE001 - a client is made, which looks for credentials
        raise failures.sentence(error, url, "read") from None
    if is_url and not isinstance(fs, LocalFileSystem) and {".", ".."} & set(rest.split("/")):
        raise AddressError(f"{url}: '.' and '..' have no meaning in a store; write the address without them.")
    return fs, path


def _refuse_name(url: str) -> None:
    """Raise UserError for an address that fsspec takes for another one, and for one that can't be written down."""
    try:
        url.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(url).decode("utf-8", "backslashreplace")
        raise AddressError(f"{shown}: this name is not valid UTF-8; rename the file or folder.") from None
    if "::" in url:
        raise AddressError(
            f"{url}: a name with '::' would be read as a chain of addresses and cannot be used; rename it."
        )


def is_local(url: str) -> bool:
    return isinstance(resolve(url)[0], LocalFileSystem)


def join(url: str, *parts: str) -> str:
    """Append path parts to a URL or a local path."""
    return "/".join([url.rstrip("/") or "/", *(part.strip("/") for part in parts)])


def lies_in(url: str, folder: str) -> bool:
    """Say whether an address is below a folder, and no part of it leads up again."""
    below = url.removeprefix(folder.rstrip("/") + "/")
    return below != url and ".." not in below.split("/")


def info(url: str) -> dict[str, Any] | None:
    """Return what the file system says about ``url`` (``type``, ``size``), None when nothing is there.

    Raises UserError for a bucket that is missing.
    """
    fs, path = resolve(url)
    fs.invalidate_cache()
    with failing(url, "read"):
        return cast("dict[str, Any] | None", failures.called(None, fs.info, path))


def exists(url: str) -> bool:
    return info(url) is not None


def is_file(url: str) -> bool:
    """Say whether ``url`` is a file, or a link to one: no folder, and nothing that can be waited for."""
    there = info(url)
    return there is not None and there["type"] == "file"


def size(url: str) -> int | None:
    """Return the size in bytes of the file at ``url``, None when there is none."""
    there = info(url)
    return None if there is None or there["type"] == "directory" else int(there["size"])


def written(there: dict[str, Any]) -> float | None:
    """Return the time of the last write in what a file system says, in seconds since the epoch, by its own clock."""
    names = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
    when = next((there[name] for name in names if there.get(name) is not None), None)
    when = datetime.fromisoformat(when) if isinstance(when, str) else when  # Google's
    return when.timestamp() if isinstance(when, datetime) else when


def listing(url: str, *, folders: bool = False) -> list[str]:
    """Return the names (not paths) of the plain files directly in the folder ``url``, sorted; none, no folder: [].

    With ``folders``, return those of everything in it.
    """
    if not folders:
        return sorted(sizes(url))
    own, entries = posixpath.basename(resolve(url)[1].rstrip("/")), _entries(url)
    inside = (entry["name"].rstrip("/").rsplit("/", 2) for entry in entries)
    return sorted(parts[-1] for parts in inside if parts[-2:-1] == [own])


def sizes(url: str) -> dict[str, int]:
    """Return the sizes of the plain files directly in the folder ``url`` by their names; none, no folder: {}."""
    files = (entry for entry in _entries(url) if entry["type"] == "file")
    there = {posixpath.basename(entry["name"]): int(entry["size"] or 0) for entry in files}
    return {name: size for name, size in there.items() if name}  # consoles mark a folder by an object without a name


def _entries(url: str) -> list[dict[str, Any]]:
    fs, path = resolve(url)
    fs.invalidate_cache()
    with failing(url, "listed"):
        entries: list[dict[str, Any]] = failures.called([], fs.ls, path, detail=True)
        if "abfs" in protocols(fs) and [entry["name"] for entry in entries] == [path]:
            # adlfs lists only an object in the folder's own name, if there is one.
            below = fs.find(path, detail=True, withdirs=True).values()
            return [entry for entry in below if posixpath.dirname(entry["name"]) == path]
    return entries


def refuse_hub(url: str) -> None:
    """Raise UserError for an address at the Hugging Face Hub, where each write would be a commit."""
    if url.startswith("hf://"):
        raise AddressError(
            f"{url}: every file written to the Hub is a commit of its own; write to a folder or store, and upload "
            "the finished release in one commit (hf upload USER/NAME FOLDER --repo-type dataset)."
        )


def open_read(url: str) -> IO[bytes]:
    """Open a file for reading. It reads whole, or raises UserError or WorkError, never OSError."""
    fs, path = resolve(url)
    if isinstance(fs, LocalFileSystem):
        return io.BufferedReader(remote.Reader(fs, path, path), _BUFFER)
    return io.BufferedReader(remote.Reader(fs, path, url), _BUFFER * 8)


def read_bytes(url: str) -> bytes:
    with open_read(url) as file:
        return file.read()


def read_if_there(url: str) -> bytes | None:
    """Return a small file's content, None when there is none."""
    fs, path = resolve(url)
    with failing(url, "read"):
        # For a parallel read, S3's client first requests the size, and if there is no such object, a listing
        is_parallel = "s3" in protocols(fs) and hasattr(fs, "_cat_file_concurrent")
        options = {"max_concurrency": 1} if is_parallel else {}
        return cast("bytes | None", failures.called(None, fs.cat_file, path, **options))


@contextlib.contextmanager
def open_write(url: str, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Open a file that appears at ``url``, complete, when the block ends without an exception.

    ``private`` files get mode 0600 on a local disk.
    """
    refuse_hub(url)
    fs, path = resolve(url)
    is_local = isinstance(fs, LocalFileSystem)
    with disk.writing(path, private=private) if is_local else remote.writing(fs, path, url) as file:
        yield file


def sweep(url: str, name: str = "", *, below: bool = False) -> None:
    """Remove what killed writers left unfinished in a local folder, of one name or of any, and in all ``below`` it.

    What another process is writing stays.
    """
    fs, path = resolve(url)
    if not isinstance(fs, LocalFileSystem):
        return
    for folder, folders, names in os.walk(path):
        for unfinished in filter(_UNFINISHED.fullmatch, names):
            if name and not unfinished.startswith(f".{name[: disk.SHOWN]}."):
                continue
            hidden = os.path.join(folder, unfinished)
            with contextlib.suppress(OSError), open(hidden, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(hidden)
        if not below:
            folders.clear()


def missing_folders(url: str) -> list[str]:
    """Return the local folders, the uppermost first, that would have to be made for one; none at a store."""
    fs, path = resolve(url)
    return disk.missing_folders(path) if isinstance(fs, LocalFileSystem) else []


def refuse_links(*urls: str) -> None:
    """Raise UserError where one of these is a symbolic link on a local disk: it leads who writes there elsewhere."""
    for url in urls:
        fs, path = resolve(url)
        if isinstance(fs, LocalFileSystem) and os.path.islink(path.rstrip("/")):
            raise AddressError(
                f"{path}: this is a symbolic link, which is not followed; replace it by a folder, or choose "
                "another path."
            )


def write_bytes(url: str, data: bytes, *, private: bool = False) -> None:
    with open_write(url, private=private) as file:
        file.write(data)


def copy_file(source: str, url: str, *, private: bool = False) -> None:
    """Copy a file to an address, where it appears whole; a little of it is in memory at a time."""
    with open_read(source) as file, open_write(url, private=private) as sink:
        while data := file.read(_COPIED):
            sink.write(data)


def create_bytes(url: str, data: bytes, *, private: bool = False) -> bool:
    """Write ``data`` only where no file exists; say whether the file is this call's. Of several at once, one makes it.

    An object store decides it: S3 and Azure by ``If-None-Match``, Google by ``ifGenerationMatch``. If its answer is
    lost, the client asks again, as NFS does, and is refused because of the file that it made itself. So a file with
    exactly this content counts as this call's. Where only one of several callers may go on, the content or the name
    needs a random part.
    """
    refuse_hub(url)
    fs, path = resolve(url)
    is_local = isinstance(fs, LocalFileSystem)
    made = disk.create(path, data, private=private) if is_local else _create(fs, path, data, url)
    return made or read_if_there(url) == data


def _create(fs: Any, path: str, data: bytes, url: str) -> bool:
    end = time.monotonic() + _CREATE_SECONDS
    with failing(url, "written"):
        if not shown_whole(fs):
            fs.makedirs(posixpath.dirname(path), exist_ok=True)
        while True:
            try:
                fs.pipe_file(path, data, mode="create")
            except Exception as error:
                codes = failures.codes_of(error)
                if _TAKEN.search(codes) or (isinstance(error, FileExistsError) and not codes):
                    return False
                if not _CONFLICTS.search(codes) or time.monotonic() > end:  # adlfs takes any conflict for a file
                    raise
                time.sleep(0.2)  # another conditional write is just being decided
            else:
                return True


def remove(url: str) -> None:
    """Remove a file if it is there."""
    refuse_hub(url)
    fs, path = resolve(url)
    with failing(url, "removed"), contextlib.suppress(FileNotFoundError):
        fs.rm_file(path)


def remove_folder(url: str) -> None:
    """Remove a folder and everything in it if it is there."""
    refuse_hub(url)
    fs, path = resolve(url)
    with failing(url, "removed"), contextlib.suppress(FileNotFoundError):
        fs.rm(path, recursive=True)


def as_text(url: str | os.PathLike[str]) -> str:
    """Return an address that a Python caller gave as text; pathlib's is one. Raises UserError for anything else."""
    try:
        return os.fspath(url)
    except TypeError:
        raise of_other_type("address", url, "text or a path") from None


def absolute(url: str) -> str:
    """Return a local path made absolute, so that workers elsewhere on the machine find it; a URL in its plain form."""
    fs, path = resolve(url)
    if isinstance(fs, LocalFileSystem):
        return os.path.abspath(path)
    return _SYNONYM.sub(lambda scheme: _PLAIN_SCHEMES[scheme[0]], url).rstrip("/")
