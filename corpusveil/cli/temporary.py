"""The folder of a command's temporary files, which ends with the command.

Beam leaves a folder after each pipeline, and multiprocessing one (``pymp-…``) after a process that is ended by force.
So each command has a folder of its own in the folder for temporary files, for its worker processes, too. It is removed
at the end, however the command ends; after SIGKILL or a loss of power the next command removes it. A lock on the folder
says whose command still runs.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile

_PREFIX = "corpusveil-run-"
_mine: list[str] = []


def begin() -> None:
    """Let all temporary files of this process and its children be in one new folder, and remove those left over."""
    place = tempfile.gettempdir()
    with contextlib.suppress(OSError):  # without the folder, files are where they would be anyway
        _sweep(place)
        folder = tempfile.mkdtemp(prefix=_PREFIX, dir=place)
        lock = os.open(folder, os.O_RDONLY)  # open as long as this process lives
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(folder):  # a command that began just now took it for a leftover
            return
        _mine.append(folder)
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        atexit.register(end)


def end() -> None:
    """Remove this command's folder, if there is one."""
    for folder in _mine:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(place: str) -> None:
    for entry in os.scandir(place):
        if not (entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False)):
            continue
        with contextlib.suppress(OSError):
            if entry.stat(follow_symlinks=False).st_uid != os.getuid():
                continue
            lock = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(entry.path, ignore_errors=True)
            finally:
                os.close(lock)
