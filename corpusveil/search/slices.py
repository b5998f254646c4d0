"""Threads for compiled loops, each over its slice of rows; the loops release the GIL.

Python's threads, not numba's: a process that used those can't be forked.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

_inside = threading.local()
"""Marks the pool's own threads, which must not wait for the pool."""


def in_slices(n: int, kernel: Callable[..., Any], *arguments: Any) -> None:
    """Run ``kernel(*arguments, low, high)`` over n rows, a slice a thread.

    If such a kernel calls it, it does all rows itself.
    """
    threads = 1 if getattr(_inside, "here", False) else _threads()
    if threads == 1:
        kernel(*arguments, 0, n)
        return
    pool, edges = _pool(os.getpid()), np.linspace(0, n, threads + 1).astype(int).tolist()
    for call in [pool.submit(kernel, *arguments, low, high) for low, high in pairwise(edges)]:
        call.result()


@functools.cache
def _pool(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - threads do not survive a fork
    return ThreadPoolExecutor(_threads(), initializer=_enter)


def _enter() -> None:
    _inside.here = True


def _threads() -> int:
    """Return the number of threads to use: the number of cores, or fewer if the BLAS has a limit."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    setting = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores, int(setting))) if setting.isdigit() else cores
