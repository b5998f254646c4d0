"""Signals that end a command: one sentence, status 130 or 143, and no process left, from the first instruction on.

While modules are loaded, no work has begun, and the process exits at once. Later the signal is raised as a
KeyboardInterrupt, so that work ends in order. Libraries may swallow it, and compiled code may delay it, so a thread
that also receives the signal ends everything after a few seconds; a second signal does so at once. A run survives this
as it survives a loss of power. Only the standard library is imported before this module.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from typing import Any, NoReturn

from corpusveil.cli import temporary

GRACE_SECONDS = 4.0
_CHILDREN_SECONDS = 3.0
_SENTENCES = {
    signal.SIGINT: b"corpusveil: interrupted; run the same command again to continue.\n",
    signal.SIGTERM: b"corpusveil: ended by SIGTERM; run the same command again to continue.\n",
}


class _State:
    """The state of this process."""

    working = False
    received = 0
    has_said = False
    saying = threading.RLock()


def install() -> None:
    """Handle the signals, SIGINT also where a shell started this process in the background and let it be ignored."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reading,), daemon=True, name="signals").start()
    for number in _SENTENCES:
        signal.signal(number, _handle)
    atexit.register(_ignore)  # the first to be registered is the last to be called


def _ignore() -> None:
    """Let no signal change the status of a finished command: only the interpreter's shutdown remains."""
    for number in _SENTENCES:
        signal.signal(number, signal.SIG_IGN)


def work_begins() -> None:
    """From now on, a signal ends work in order."""
    _State.working = True


def is_own_process() -> bool:
    """Say whether this process runs a command and nothing else, rather than a program that calls the command line."""
    return _State.working


def work_ends() -> None:
    """Exit with the status of the signal, if one was received."""
    _State.working = False
    if _State.received:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        _leave(_State.received)


def _handle(number: int, _: Any) -> None:
    second = bool(_State.received)
    _State.received = _State.received or number
    _say(number)
    if second or not _State.working:
        _leave(_State.received)
    raise KeyboardInterrupt(number)


def _watch(reading: int) -> None:
    while True:
        for number in os.read(reading, 64):
            if number in _SENTENCES:
                _say(number)
                time.sleep(GRACE_SECONDS)
                _leave(number)


def _say(number: int) -> None:
    """Print the sentence, once; later messages of this process are suppressed.

    The signal and the thread may both get here; the second waits until output is suppressed.
    """
    with _State.saying:
        if not _State.has_said:
            _State.has_said = True
            with contextlib.suppress(OSError):
                os.write(2, _SENTENCES[signal.Signals(number)])
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _leave(number: int) -> NoReturn:
    """End this process and all its child processes."""
    with contextlib.suppress(Exception):
        _end_children()
    temporary.end()
    os._exit(128 + number)


def _end_children() -> None:
    import psutil

    children = psutil.Process().children(recursive=True)
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for child in children:
            with contextlib.suppress(psutil.Error):
                end(child)
        _, children = psutil.wait_procs(children, timeout=_CHILDREN_SECONDS)
