"""What a run says while it goes on, for programs: one JSON object a line, numbers and fixed words only.

The logger ``corpusveil`` gets every event. ``CORPUSVEIL_LOG`` names a file that each process of a run adds its events
to, ``-`` standard error: driver and workers alike, wherever the variable reaches them. Numbers are computed from the
input, so such a log is as private as the records.
"""

from __future__ import annotations

import functools
import logging
import os
import time
import uuid

import orjson

from corpusveil.errors import AddressError
from corpusveil.storage.files import PRIVATE_MODE

VARIABLE = "CORPUSVEIL_LOG"
LOGGER = logging.getLogger("corpusveil")

Number = int | float | None


def new_run() -> str:
    """Return a name for one run of one command; random, so that it says nothing."""
    return uuid.uuid4().hex[:16]


def tell(event: str, run: str, **numbers: Number) -> None:
    """Say that something happened. There is no way to say text here but by ``event``, a word of the program."""
    if wanted():
        said = {"time": round(time.time(), 3), "run": run, "event": event, "process": os.getpid(), **numbers}
        LOGGER.handle(LOGGER.makeRecord(LOGGER.name, logging.INFO, "", 0, orjson.dumps(said).decode(), (), None))


def wanted() -> bool:
    """Say whether anybody listens to events in this process."""
    _configure()
    return LOGGER.getEffectiveLevel() <= logging.INFO  # also where Beam's own log is switched off with all others


def open_log(path: str) -> None:
    """Let this process and those that it starts add their events to a file. Raises UserError when that can't be."""
    os.environ[VARIABLE] = path if path == "-" else os.path.abspath(path)
    _configure.cache_clear()
    if (fault := _configure()) is not None:
        raise AddressError(fault)


def given() -> str | None:
    """Return what the environment names, None where it names no log."""
    return os.environ.get(VARIABLE) or None


@functools.cache
def _configure() -> str | None:
    """Open the log, once a process; return what is wrong with it. A worker goes on without: its work is not its log."""
    path = given()
    if path is None:
        return None
    for handler in [one for one in LOGGER.handlers if one.get_name() == VARIABLE]:
        LOGGER.removeHandler(handler)
        handler.close()
    try:
        handler = logging.StreamHandler() if path == "-" else _PrivateFile(path)
    except OSError as error:
        return f"{path}: the log cannot be written here ({error.strerror}); choose another file."
    handler.set_name(VARIABLE)
    handler.setFormatter(logging.Formatter("%(message)s"))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    return None


class _PrivateFile(logging.FileHandler):
    """A file of mode 0600 that lines are added to; each is one write, so that those of several processes stay whole."""

    def __init__(self, path: str) -> None:
        super().__init__(path, encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Lose the line: a full disk under the log is no reason to stop, and no traceback is shown."""

    def _open(self):  # type: ignore[no-untyped-def] # noqa: ANN202 - what logging opens is its own affair
        return open(
            self.baseFilename, "a", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, PRIVATE_MODE)
        )
