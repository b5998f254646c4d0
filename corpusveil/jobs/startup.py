"""How worker processes of this machine begin: forked from a process that has loaded their modules.

That is Python's own fork server, which starts with the first of them. Where forking is not safe (macOS), workers are
interpreters of their own, which load everything by themselves.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from multiprocessing import forkserver
from multiprocessing.context import BaseContext

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
"""The command line puts an interruption off by an alarm."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_LONGEST_FOLDER = 64
"""A socket's name has at most 107 bytes, of which the fork server's own part takes some 35."""


def context() -> BaseContext:
    if sys.platform != "linux" or len(os.fsencode(tempfile.gettempdir())) > _LONGEST_FOLDER:
        return multiprocessing.get_context("spawn")
    forking = multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload(["corpusveil.jobs.preload"])
    with ended_later():
        if _hears_signals():  # the server inherits this: Ctrl+C is its parent's to hear
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        forkserver.ensure_running()
    return forking


@contextlib.contextmanager
def cores_shared_by(workers: int) -> Iterator[None]:
    """Give processes that start in this context their part of the cores: threads of linear algebra would fight."""
    each = str(max(1, (os.cpu_count() or 1) // workers))
    missing = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(missing, each))
    try:
        yield
    finally:
        for name in missing:
            os.environ.pop(name, None)


@contextlib.contextmanager
def ended_later() -> Iterator[None]:
    """Let a signal that ends this process wait for the end of the block, or what just started would outlive it.

    Afterwards the handlers are as before. Spark sets its own, which calls Java, perhaps amid another such call.
    """
    if not _hears_signals():
        yield
        return
    heard: list[int] = []
    before = {each: signal.signal(each, lambda number, _: heard.append(number)) for each in _ENDING}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        for number in heard:
            signal.raise_signal(number)


def _hears_signals() -> bool:
    return threading.current_thread() is threading.main_thread()
