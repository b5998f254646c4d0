"""The events of a run, for programs: one JSON object per line, with numbers and fixed words only.

``CORPUSVEIL_LOG`` names a file (``-``: standard error) to which each process of a run appends its events, drivers and
workers alike, if the variable is set there. A program may instead set a handler and a level for the logger
``corpusveil``. Numbers are computed from the input, so such a log is as private as the records, and events go nowhere
else: Beam's workers, and programs that log everything, have handlers at the root.
"""

from __future__ import annotations

import functools
import logging
import os
import time
import uuid

import orjson

from corpusveil.errors import AddressError
from corpusveil.storage.files import private_opener

VARIABLE = "CORPUSVEIL_LOG"
LOGGER = logging.getLogger("corpusveil")
LOGGER.propagate = False

Number = int | float | None


def new_run() -> str:
    """Return a name for one run of one command; random, so that it discloses nothing."""
    return uuid.uuid4().hex[:16]


def tell(event: str, run: str, **numbers: Number) -> None:
    """Log an event. Its only text is ``event``, a word of the program."""
    if wanted():
        said = {"time": round(time.time(), 3), "run": run, "event": event, "process": os.getpid(), **numbers}
        LOGGER.handle(LOGGER.makeRecord(LOGGER.name, logging.INFO, "", 0, orjson.dumps(said).decode(), (), None))


def wanted() -> bool:
    """Say whether events are logged in this process."""
    _configure()
    return logging.NOTSET < LOGGER.level <= logging.INFO  # whatever Beam does to the root's level, or to all logs


def open_log(path: str) -> None:
    """Let this process and its child processes append their events to a file.

    Raises UserError if it is not writable.
    """
    os.environ[VARIABLE] = path if path == "-" else os.path.abspath(path)
    _configure.cache_clear()
    if (fault := _configure()) is not None:
        raise AddressError(fault)


def given() -> str | None:
    """Return the log that the environment names, or None."""
    return os.environ.get(VARIABLE) or None


@functools.cache
def _configure() -> str | None:
    """Open the log, once per process; return its fault, if any. A worker continues without a log."""
    path = given()
    if path is None:
        return None
    for handler in [each for each in LOGGER.handlers if each.get_name() == VARIABLE]:
        LOGGER.removeHandler(handler)
        handler.close()
    try:
        handler = logging.StreamHandler() if path == "-" else _PrivateFile(path, encoding="utf-8")
    except OSError as error:
        return f"{path}: the log cannot be written here ({error.strerror}); choose another file."
    handler.set_name(VARIABLE)
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    return None


class _PrivateFile(logging.FileHandler):
    """A file of mode 0600; each line is a single write, so that lines of several processes stay whole."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Drop the line: a full disk under the log does not stop the run, and no traceback is shown."""

    def _open(self):  # type: ignore[no-untyped-def] # noqa: ANN202 - what logging opens is its own affair
        return open(self.baseFilename, "a", encoding="utf-8", opener=private_opener)
