"""How worker processes of this machine are started: forked from a process that has loaded what all of them need.

That process is Python's own fork server, one for each process that has workers. It is started with the first of them
and ends when the process that started it does. Workers are interpreters of their own instead, which load everything by
themselves, where forking is not safe (macOS), where the fork server is not (CVE-2022-42919), and where the cores are
parted in another way than when the fork server was started: OpenBLAS reads that once, when it is loaded.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing.context import BaseContext

LOADED = ("corpusveil.jobs.quiet_start", "corpusveil.jobs.no_pandas", "corpusveil.jobs.preload")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_LONGEST_FOLDER = 64
"""A socket's name has at most 107 bytes, of which the fork server's own part takes some 35."""
_began_with: list[tuple[str | None, ...]] = []
"""How the cores were parted when the fork server was started, if it was."""


_own: list[bool] = []


def own_process() -> None:
    """Let workers of this process be forked: no other code in it uses Python's fork server, of which there is one."""
    _own.append(True)


def context(workers: int) -> BaseContext:
    """Return what to start so many worker processes with."""
    sound = sys.platform == "linux" and sys.version_info >= (3, 11, 1)
    if not (_own and sound) or len(os.fsencode(tempfile.gettempdir())) > _LONGEST_FOLDER:
        return multiprocessing.get_context("spawn")
    with _threads_shared_by(workers):
        parted = tuple(os.environ.get(name) for name in _THREADS)
    if not _began_with:
        _began_with.append(parted)
        multiprocessing.get_context("forkserver").set_forkserver_preload(list(LOADED))
    return multiprocessing.get_context("forkserver" if _began_with == [parted] else "spawn")


@contextlib.contextmanager
def starting(workers: int) -> Iterator[None]:
    """Give processes that are started here their part of the cores, and a fork server this process' modules.

    Linear algebra's own threads would fight for the cores. Modules are found as they are here (``sys.path``).
    """
    with _threads_shared_by(workers), _set(PYTHONPATH=os.pathsep.join(sys.path), PYTHONSAFEPATH="1"):
        yield


def environment(workers: int) -> dict[str, str]:
    """Return the environment of so many workers, which a fork server's is not where it has changed since."""
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
