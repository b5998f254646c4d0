"""Files at any fsspec URL: whole or not at all.

A write becomes visible only when it is complete. On a local disk that is a hidden temporary file, flushed to the
disk and renamed; object stores show an object only after its upload has been completed.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import fsspec
from fsspec.implementations.local import LocalFileSystem

from corpusveil.errors import UserError, WorkError

PRIVATE_MODE = 0o600
PUBLIC_MODE = 0o644
_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{32}\.part")


def resolve(url: str) -> tuple[Any, str]:
    """Return the fsspec file system of ``url`` and the path in it."""
    try:
        return cast("tuple[Any, str]", fsspec.core.url_to_fs(url))
    except ImportError as error:
        raise UserError(f"{url}: reading this kind of address needs a package that is missing ({error}).") from None
    except ValueError as error:
        raise UserError(f"{url}: not an address that can be opened ({error}).") from None


def is_local(url: str) -> bool:
    return isinstance(resolve(url)[0], LocalFileSystem)


def join(url: str, *parts: str) -> str:
    """Append path parts to a URL or a local path."""
    return "/".join([url.rstrip("/") or "/", *(part.strip("/") for part in parts)])


def exists(url: str) -> bool:
    fs, path = resolve(url)
    return bool(fs.exists(path))


def size(url: str) -> int | None:
    """Return the size in bytes of the file at ``url``, None when there is none."""
    fs, path = resolve(url)
    try:
        return int(fs.info(path)["size"])
    except FileNotFoundError:
        return None


def listing(url: str) -> list[str]:
    """Return the names (not paths) of the plain files directly in the folder ``url``, sorted; none, no folder: []."""
    fs, path = resolve(url)
    fs.invalidate_cache()
    try:
        entries = fs.ls(path, detail=True)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(entry["name"].rsplit("/", 1)[-1] for entry in entries if entry["type"] == "file")


def open_read(url: str) -> IO[bytes]:
    fs, path = resolve(url)
    try:
        return cast("IO[bytes]", fs.open(path, "rb"))
    except FileNotFoundError:
        raise UserError(f"{url}: there is no such file.") from None
    except PermissionError:
        raise UserError(f"{url}: no permission to read it.") from None
    except IsADirectoryError:
        raise UserError(f"{url}: this is a folder, a file is needed.") from None


def read_bytes(url: str) -> bytes:
    with open_read(url) as file:
        return file.read()


@contextlib.contextmanager
def open_write(url: str, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Open a file that appears at ``url``, complete, when the block ends without an exception.

    ``private`` files get mode 0600 on a local disk.
    """
    fs, path = resolve(url)
    if isinstance(fs, LocalFileSystem):
        with _local_write(path, PRIVATE_MODE if private else PUBLIC_MODE) as file:
            yield file
        return
    with tempfile.SpooledTemporaryFile(max_size=64 << 20) as spool:
        yield cast("IO[bytes]", spool)
        spool.seek(0)
        with fs.open(path, "wb") as remote:
            shutil.copyfileobj(spool, remote, 8 << 20)


@contextlib.contextmanager
def _local_write(path: str, mode: int) -> Iterator[IO[bytes]]:
    folder, name = os.path.split(path)
    make_folder(folder, private=mode == PRIVATE_MODE)
    hidden = os.path.join(folder, f".{name}.{uuid.uuid4().hex}.part")
    try:
        descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except PermissionError:
        raise UserError(f"{folder}: no permission to write here.") from None
    try:
        with os.fdopen(descriptor, "wb", buffering=1 << 20) as file:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # tells sweep that the writer lives
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(hidden, path)
    except OSError as error:
        raise WorkError(f"{path}: could not be written ({error.strerror}).") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(hidden)


def sweep(url: str) -> None:
    """Remove what killed writers left unfinished in a local folder; what another process is writing stays."""
    fs, path = resolve(url)
    if not isinstance(fs, LocalFileSystem) or not os.path.isdir(path):
        return
    for name in filter(_UNFINISHED.fullmatch, os.listdir(path)):
        hidden = os.path.join(path, name)
        with contextlib.suppress(OSError), open(hidden, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(hidden)


def make_folder(path: str, *, private: bool = False) -> None:
    """Create a folder and its parents; a private one is closed to other users."""
    try:
        os.makedirs(path or ".", mode=0o700 if private else 0o755, exist_ok=True)
    except PermissionError:
        raise UserError(f"{path}: no permission to create this folder.") from None
    except (FileExistsError, NotADirectoryError):
        raise UserError(f"{path}: a folder is needed here, and a file of that name is in the way.") from None


def write_bytes(url: str, data: bytes, *, private: bool = False) -> None:
    with open_write(url, private=private) as file:
        file.write(data)


def create_bytes(url: str, data: bytes, *, private: bool = False) -> bool:
    """Write ``data`` only where nothing is yet; say whether this call made the file."""
    fs, path = resolve(url)
    if not isinstance(fs, LocalFileSystem):
        try:
            fs.pipe_file(path, data, mode="create")
        except FileExistsError:
            return False
        return True
    folder = os.path.dirname(path)
    make_folder(folder, private=private)
    hidden = os.path.join(folder, f".{uuid.uuid4().hex}.part")
    with open(hidden, "xb", opener=lambda p, f: os.open(p, f, PRIVATE_MODE if private else PUBLIC_MODE)) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(hidden, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(hidden)
    return True


def remove(url: str) -> None:
    fs, path = resolve(url)
    with contextlib.suppress(FileNotFoundError):
        fs.rm(path)


def cache_folder() -> Path:
    """Return this user's cache folder (``CORPUSVEIL_CACHE``, else the XDG one), created when missing."""
    base = os.environ.get("CORPUSVEIL_CACHE")
    folder = Path(base) if base else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "corpusveil"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def local_folder(url: str, names: list[str], digest: str) -> Path:
    """Return a local folder with the files ``names`` of ``url``, fetched at most once a machine and content.

    A local ``url`` is used where it lies. A remote one is copied under the cache folder, named by ``digest``; the
    processes of one machine wait for the first of them to finish the copy.
    """
    fs, path = resolve(url)
    if isinstance(fs, LocalFileSystem):
        return Path(path)
    target = cache_folder() / "artifacts" / digest
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return target
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            fetched = Path(folder) / "fetched"
            fetched.mkdir()
            for name in names:
                with open_read(join(url, name)) as source, open(fetched / name, "wb") as copy:
                    shutil.copyfileobj(cast("io.BufferedIOBase", source), copy, 8 << 20)
            os.rename(fetched, target)
    return target


def absolute(url: str) -> str:
    """Return a local path made absolute, so that workers elsewhere on the machine find it; a URL as it is."""
    return url if "://" in url else os.path.abspath(url)
