"""The user's files: a cache, and the keys that were made for outputs.

The cache decides outputs (copies of spaces), so it is used only if no other user can have written it: all its folders
and files belong to the user, or to root, and nobody else may write to them. Files from a restored backup, a shared
image or a program of the same user pass this test. Therefore a copy of a space is identified by its content.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from fsspec.implementations.local import LocalFileSystem

from corpusveil.errors import UserError, WorkError, without_queries
from corpusveil.ownership import refuse_others
from corpusveil.storage import disk, files

_NOTE = ".output"
"""The ending of the note next to an output's own key."""


def configuration_path() -> Path:
    """Return the folder of this user's keys: ``corpusveil`` in the XDG folder of configurations."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "corpusveil"


def own_key(output: str, inputs: Sequence[str], corpus: str | None) -> Path:
    """Return the file of the key that was made for an output of a corpus, because none was given.

    Another corpus has another key: under one key, equal documents of both would get equal noise.
    """
    made_for = without_queries(json.dumps([files.absolute(output), sorted(map(files.absolute, inputs)), corpus]))
    return configuration_path() / "keys" / f"{hashlib.sha256(made_for.encode()).hexdigest()[:12]}.key"


def note_output(key: Path, output: str, inputs: Sequence[str]) -> None:
    """Write next to an output's own key for which output and input it was made."""
    note = without_queries(f"{files.absolute(output)}, from {', '.join(map(files.absolute, inputs))}\n")
    files.create_bytes(str(key.with_suffix(_NOTE)), note.encode(), private=True)


def own_keys() -> list[tuple[Path, str | None]]:
    """Return the keys that were made for outputs, and what for; None where a crash left no note of it."""
    made = []
    for key in sorted((configuration_path() / "keys").glob("*.key")):
        note = files.read_if_there(str(key.with_suffix(_NOTE)))
        made.append((key, None if note is None else note.decode("utf-8", "replace").strip()))
    return made


def cache_folder(*parts: str) -> Path:
    """Return a folder of this user's cache, ``CORPUSVEIL_CACHE`` or the XDG folder, created if missing.

    Raises UserError if others may write to it.
    """
    base = os.environ.get("CORPUSVEIL_CACHE")
    folder = Path(base or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "corpusveil")
    try:
        for part in ("", *parts):
            folder = folder / part
            disk.make_folder(str(folder), private=True)
            refuse_others(folder, link=not part)
    except UserError as error:
        raise type(error)(f"{str(error).rstrip('.')}; set CORPUSVEIL_CACHE to a folder of yours.") from None
    return folder


def local_folder(url: str, names: list[str], digest: str) -> Path:
    """Return a local folder with the files ``names`` of ``url``, fetched at most once per machine and content.

    A local ``url`` is used in place. A remote URL is copied into the cache folder, under the name ``digest``, which the
    caller compares with the content. Other processes of the machine wait until the first has finished the copy.
    """
    fs, path = files.resolve(url)
    if isinstance(fs, LocalFileSystem):
        return Path(path)
    target = cache_folder("artifacts") / digest
    if not target.exists():
        try:
            with open(target.with_suffix(".lock"), "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not target.exists():
                    _fetch(url, names, target)
        except OSError as error:
            raise WorkError(f"{target}: the local copy could not be written ({error.strerror}).") from None
    for copied in (target, *(target / name for name in names)):
        refuse_others(copied)
    return target


def _fetch(url: str, names: list[str], target: Path) -> None:
    fetched = target.with_suffix(".part")
    shutil.rmtree(fetched, ignore_errors=True)  # left by a killed copy
    fetched.mkdir(mode=0o700)
    try:
        for name in names:
            files.copy_file(files.join(url, name), str(fetched / name), private=True)
        fetched.rename(target)
    finally:
        shutil.rmtree(fetched, ignore_errors=True)
