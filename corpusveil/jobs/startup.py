"""How worker processes of this machine begin: forked from a process that has loaded their modules.

That is Python's own fork server, which starts with the first of them. Where forking is not safe (macOS), workers are
interpreters of their own, which load everything by themselves.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing.context import BaseContext

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_LONGEST_FOLDER = 64
"""A socket's name has at most 107 bytes, of which the fork server's own part takes some 35."""


def context() -> BaseContext:
    if sys.platform != "linux" or len(os.fsencode(tempfile.gettempdir())) > _LONGEST_FOLDER:
        return multiprocessing.get_context("spawn")
    forking = multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload(["corpusveil.jobs.preload"])
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
