"""Signals that end a command: one sentence, status 130 or 143, and no process left, from the first instruction on.

While modules are loaded, no work has begun, and the process exits at once. Later the signal is raised as a
KeyboardInterrupt, so that work ends in order. Libraries may swallow it, and compiled code may delay it, so a thread,
which receives signals at once, ends everything after a few seconds; a second signal makes it do so at once. A run
survives this as it survives a loss of power. Only the standard library is imported before this module.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import sys
import threading
from typing import Any, NoReturn

from corpusveil.cli import temporary

GRACE_SECONDS = 4.0
_CHILDREN_SECONDS = 3.0
_SENTENCES = {
    signal.SIGINT: b"corpusveil: interrupted; run the same command again to continue.\n",
    signal.SIGTERM: b"corpusveil: ended by SIGTERM; run the same command again to continue.\n",
}
_OF_A_TERMINAL = b"\x1b[?25h\n"
"""Shows the cursor, which a bar hides, on a new line: what draws the bar can write nothing any more."""
_ENDED = b"\0"
"""What the end of work writes after the signals: no signal has this number."""


class _State:
    """The state of this process."""

    working = False
    received = False
    said = threading.Event()
    writing = -1
    thread: threading.Thread


def install() -> None:
    """Handle the signals, SIGINT also where a shell started this process in the background and let it be ignored."""
    reading, _State.writing = os.pipe()
    os.set_blocking(_State.writing, False)
    signal.set_wakeup_fd(_State.writing, warn_on_full_buffer=False)
    _State.thread = threading.Thread(target=_end, args=(reading,), daemon=True, name="signals")
    _State.thread.start()
    for number in _SENTENCES:
        signal.signal(number, _handle)
    atexit.register(_ignore)  # the first to be registered is the last to be called


def _ignore() -> None:
    """Let no signal change the status of a finished command any more."""
    for number in _SENTENCES:
        signal.signal(number, signal.SIG_IGN)


def exit_with(status: int) -> NoReturn:
    """Exit with the status of a finished command, or 1 if what it wrote cannot be delivered."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):  # a full disk, or nobody reads it any more: Python would say so at its end
            status = status or 1
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(status)


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
        os.write(_State.writing, _ENDED)
        _State.thread.join(2 * GRACE_SECONDS + 2 * _CHILDREN_SECONDS)


def _handle(number: int, _: Any) -> None:
    first, _State.received = not _State.received, True
    _State.said.wait(GRACE_SECONDS)  # so that this thread has nothing more to say
    if first and _State.working:
        raise KeyboardInterrupt(number)
    _State.thread.join(GRACE_SECONDS)
    os._exit(128 + number)  # the thread may wait for a module that this one was loading


def _end(reading: int) -> None:
    """Wait for a signal, say it, give work a little time, and end this process and all its child processes."""
    while (number := os.read(reading, 1)[0]) not in _SENTENCES:
        pass
    with contextlib.suppress(OSError):
        os.write(2, _OF_A_TERMINAL * os.isatty(2) + _SENTENCES[signal.Signals(number)])
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    _State.said.set()
    if _State.working:
        select.select([reading], [], [], GRACE_SECONDS)  # a second signal, or the end of work
    with contextlib.suppress(Exception):
        _end_children()
    temporary.end()
    os._exit(128 + number)


def _end_children() -> None:
    """End the child processes, with a module that is loaded before the first of them is started.

    This thread loads none: a KeyboardInterrupt during an import of the main thread may leave Python's import lock held.
    """
    if (psutil := sys.modules.get("psutil")) is None:
        return
    children, tracker = psutil.Process().children(recursive=True), sys.modules.get("multiprocessing.resource_tracker")
    if tracker is not None and (fd := tracker._resource_tracker._fd) is not None:  # noqa: SLF001 - no other way to it
        os.dup2(os.open(os.devnull, os.O_WRONLY), fd)  # the end of its pipe ends it; it heeds no SIGTERM
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for child in children:
            with contextlib.suppress(psutil.Error):
                end(child)
        _, children = psutil.wait_procs(children, timeout=_CHILDREN_SECONDS)
