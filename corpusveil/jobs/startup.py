"""How processes begin: the workers of this machine, and processes in which only corpusveil works.

Workers are forked from a process that has loaded what all of them need: Python's own fork server, one for each process
that has workers. It is started with the first of them and ends when the process that started it does. Workers are
interpreters of their own instead, which load everything by themselves, where forking is not safe (macOS), where the
fork server is not (CVE-2022-42919), and where the cores are shared in another way than when the fork server was
started: OpenBLAS reads that once, when it is loaded.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import BaseContext
from types import TracebackType

import psutil  # with which cli.signals, too, ends the processes that are started from here on

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_LONGEST_FOLDER = 64
"""A socket's name has at most 107 bytes, of which the fork server's own part takes some 35."""
_began_with: list[tuple[str | None, ...]] = []
"""How the cores were shared when the fork server was started, if it was."""
_own: list[bool] = []


def own_process(workers: int = 1) -> None:
    """Begin a process that runs a command alone: no other code in it uses Python's only fork server.

    With ``workers``, the fork server starts now, and loads what they need while this process loads what it needs.
    """
    _own.append(True)
    if workers > 1 and context(workers).get_start_method() == "forkserver":
        resource_tracker.ensure_running()  # it lets this thread hear interrupts again
        with starting(workers), deaf_to_interrupts():
            forkserver.ensure_running()
        atexit.register(_end_fork_server)


def _end_fork_server() -> None:
    """End the fork server of a command that has ended: it could still be loading, with the command's output open."""
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            child.terminate()


def context(workers: int) -> BaseContext:
    """Return the multiprocessing context that starts this number of worker processes."""
    sound = sys.platform == "linux" and sys.version_info >= (3, 11, 1)
    if not (_own and sound) or len(os.fsencode(tempfile.gettempdir())) > _LONGEST_FOLDER:
        return multiprocessing.get_context("spawn")
    with _threads_shared_by(workers):
        shared = tuple(os.environ.get(name) for name in _THREADS)
    if not _began_with:
        _began_with.append(shared)
        multiprocessing.get_context("forkserver").set_forkserver_preload(["corpusveil.jobs.preload"])
    return multiprocessing.get_context("forkserver" if _began_with == [shared] else "spawn")


@contextlib.contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Let processes that are started here not hear Ctrl+C, which a terminal sends to all: it is for their parent."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def starting(workers: int) -> Iterator[None]:
    """Give processes that are started here their part of the cores, and a fork server this process' modules.

    Linear algebra's own threads would fight for the cores. Modules are found as they are here (``sys.path``).
    """
    with _threads_shared_by(workers), _set(PYTHONPATH=os.pathsep.join(sys.path), PYTHONSAFEPATH="1"):
        yield


def environment(workers: int) -> dict[str, str]:
    """Return the environment of this number of workers; that of a fork server may be older."""
    with _threads_shared_by(workers):
        return dict(os.environ)


def _threads_shared_by(workers: int) -> contextlib.AbstractContextManager[None]:
    each = str(max(1, (os.cpu_count() or 1) // workers))
    return _set(**{name: each for name in _THREADS if name not in os.environ})


@contextlib.contextmanager
def _set(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def end_quietly() -> None:
    """Let a worker whose command ended while the worker started end without a traceback.

    A fork server may fork a worker that was requested before the command was interrupted. The worker then finds the
    command's semaphores and pipes gone. Errors in a worker's tasks do not come this way: they reach the command.
    """
    show = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, (FileNotFoundError, EOFError, ConnectionError)):
            show(kind, error, trace)

    sys.excepthook = hook
