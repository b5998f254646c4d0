"""The local engine: shard tasks on the processes of this machine."""

from __future__ import annotations

import functools
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import fsspec

from corpusveil.errors import SettingError, check_whole, worker_killed
from corpusveil.jobs import startup
from corpusveil.storage.engine import Here

_AHEAD, _CALLS = 3, 4096
"""Calls that wait for each process, so that none waits; with more tasks than calls, several form one."""


def _begin(environment: dict[str, str], stores: dict[str, Any]) -> None:
    """Take the environment and fsspec's settings of the run, ignore Ctrl+C, which the parent hears, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(environment)
    fsspec.config.conf.clear()
    fsspec.config.conf.update(stores)
    parent = multiprocessing.parent_process()

    def wait() -> None:  # a pool's workers would wait for work for ever, however their parent ended
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


_loaded = functools.lru_cache(maxsize=1)(pickle.loads)


def _call(function: bytes, tasks: Sequence[Any]) -> None:
    """Call a pickled function, which a worker loads once, on some tasks."""
    for task in tasks:
        _loaded(function)(task)


@dataclass(slots=True)
class Local:
    """The engine that runs tasks in ``workers`` processes of this machine; in this process if there is one.

    Processes start when first needed, serve later runs, and end with the engine. Raises UserError for fewer than 1.

    >>> cv.privatize_corpus("reviews.csv", "private-local", release, id="id", engine=cv.Local(workers=2)).shards
    1
    """

    workers: int = 1
    _pool: ProcessPoolExecutor | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_whole("workers", self.workers)

    def slots(self) -> int:
        return self.workers

    def run(self, function: Callable[[Any], object], tasks: Sequence[Any]) -> None:
        """Run ``function`` on every task. Raises WorkError when a worker dies."""
        if self.workers == 1:
            Here().run(function, tasks)
            return
        if multiprocessing.current_process().daemon:
            raise SettingError("workers: this is a daemon process, which may start no others; set workers to 1.")
        if self._pool is None:
            with startup.cores_shared_by(self.workers):
                given = (dict(os.environ), fsspec.config.conf)
            self._pool = ProcessPoolExecutor(self.workers, startup.context(), _begin, given)
        try:
            self._do(self._pool, function, tasks)
        except BrokenProcessPool:
            self.close()
            raise worker_killed() from None
        except Exception:  # whatever a task raised: the others must not go on to write for a run that has failed
            self.close()
            raise
        except BaseException:  # Ctrl+C: nobody waits for what is being done
            for process in list((self._pool._processes or {}).values()):  # noqa: SLF001 - Python 3.14 has a method
                process.kill()
            self.close()
            raise

    def _do(self, pool: ProcessPoolExecutor, function: Any, tasks: Sequence[Any]) -> None:
        """Let processes do tasks, of which only a few are submitted at a time."""
        size = 1 + len(tasks) // _CALLS
        called = pickle.dumps(function)
        waiting = (pool.submit(_call, called, tasks[at : at + size]) for at in range(0, len(tasks), size))
        with startup.cores_shared_by(self.workers), startup.ended_later():  # of processes that start now
            running = set(islice(waiting, _AHEAD * self.workers))
        while running:
            done: set[Future[None]]
            done, running = wait(running, return_when=FIRST_COMPLETED)
            running.update(islice(waiting, len(done)))
            for future in done:
                future.result()

    def close(self) -> None:
        """Wait for running tasks, leave the others, and end the processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def __del__(self) -> None:
        """End the processes with the engine: a pool that is forgotten instead can fail while the interpreter ends."""
        self.close()
