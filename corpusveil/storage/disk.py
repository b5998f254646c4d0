"""Files of a local disk: hidden until they are complete, flushed, and then renamed; and the folders that hold them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import uuid
from collections.abc import Iterator
from typing import IO

from corpusveil.errors import AddressError, WorkError, file_in_the_way, not_writable
from corpusveil.storage.failures import failing

PRIVATE_MODE = 0o600
_PUBLIC_MODE = 0o644
_ATTEMPTS = 100
SHOWN = 50  # characters of a name in that of its unfinished file, which must not be too long itself
_BUFFER = 1 << 20


@contextlib.contextmanager
def writing(path: str, *, private: bool) -> Iterator[IO[bytes]]:
    """Open a file that appears at ``path``, complete, when the block ends without an exception."""
    try:
        with _hidden(path, private=private) as (file, hidden):
            yield file
            _flush(file)
            os.replace(hidden, path)
            _flush_folder(os.path.dirname(path))
    except OSError as error:
        raise WorkError(f"{path}: could not be written ({error.strerror}).") from error


@contextlib.contextmanager
def _hidden(path: str, *, private: bool) -> Iterator[tuple[IO[bytes], str]]:
    """Open a hidden file next to ``path`` under a name of its own, which is gone at the end of the block.

    Its lock tells ``sweep`` that its writer lives. Another process may sweep it before the lock is had, or remove the
    folder while it is empty: then it is made again.
    """
    folder, name = os.path.split(path)
    hidden = os.path.join(folder, f".{name[:SHOWN]}.{uuid.uuid4().hex}.part")
    mode = PRIVATE_MODE if private else _PUBLIC_MODE
    for _ in range(_ATTEMPTS):
        make_folder(folder, private=private)
        try:
            descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        except FileNotFoundError:
            continue
        except PermissionError:
            raise not_writable(folder) from None
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            break
        os.close(descriptor)
    else:
        raise WorkError(
            f"{folder}: this folder or its files are removed repeatedly by another program; run the same command again."
        )
    try:
        with os.fdopen(descriptor, "wb", buffering=_BUFFER) as file:
            yield file, hidden
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(hidden)


def _flush(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _flush_folder(path: str) -> None:
    """Let the names in a folder survive a loss of power, as their files do."""
    with contextlib.suppress(OSError):  # a file system that flushes no folders
        descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def create(path: str, data: bytes, *, private: bool) -> bool:
    """Write a file only where none exists; say whether this call did."""
    with failing(path, "written"), _hidden(path, private=private) as (file, hidden):
        file.write(data)
        _flush(file)
        try:
            os.link(hidden, path)
        except FileExistsError:
            return False
        _flush_folder(os.path.dirname(path))
    return True


def missing_folders(path: str) -> list[str]:
    """Return the folders, the uppermost first, that would have to be made for one."""
    missing: list[str] = []
    while path and not os.path.isdir(path):
        missing.insert(0, path)
        path = os.path.dirname(path)
    return missing


def make_folder(path: str, *, private: bool = False) -> None:
    """Create a folder and its parents, which only this user writes to; a private one is closed to others altogether."""
    path = path.rstrip("/") or path[:1] or "."
    try:
        for level in missing_folders(path):
            with contextlib.suppress(FileExistsError, FileNotFoundError):  # others make and remove folders meanwhile
                os.mkdir(level, 0o700 if private and level == path else 0o755)
                _flush_folder(os.path.dirname(level))
            if os.path.lexists(level) and not os.path.isdir(level):
                raise file_in_the_way(path)
    except PermissionError:
        raise AddressError(f"{path}: there is no permission to create this folder.") from None
    except OSError as error:
        raise WorkError(f"{path}: this folder could not be created ({error.strerror}).") from None
