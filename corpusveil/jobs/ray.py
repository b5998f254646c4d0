"""The Ray engine: one task of Ray a shard task."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from corpusveil.errors import GO_ON, ConflictError, CorpusveilError, EngineError, below_least, worker_killed
from corpusveil.storage.engine import Measured, total
from corpusveil.transforms.handshake import SameVersions
from corpusveil.transforms.ray import opened, require_ray, sealed

LOCAL = "local"
_AHEAD = 1000
"""Tasks that wait at Ray, so that a cluster may grow for them."""
_CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Ray:
    """Runs tasks on Ray: the one that this process uses, otherwise the cluster at ``address``, otherwise its own.

    ``address`` is ``HOST:PORT``, ``auto``, or ``ray://HOST:PORT``; the default is ``RAY_ADDRESS``. ``workers`` is the
    number of processes of an own Ray, on this machine; the default is all cores.
    """

    address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise below_least("workers", self.workers, 1)
        if self.workers is not None and self._where() != LOCAL:
            raise ConflictError(
                f"workers = {self.workers}: the cluster at {self._where()} has its own; leave this out."
            )

    def _where(self) -> str:
        """Return the address. Ray's own default is what any user of the machine wrote to its temporary folder."""
        return self.address or os.environ.get("RAY_ADDRESS") or LOCAL

    def check(self) -> None:
        """Raise UserError without Ray."""
        require_ray("the engine ray")

    def slots(self) -> int:
        return max(1, int(self._ray().cluster_resources().get("CPU", 1)))

    def run(self, function: Callable[[Any], Measured | None], tasks: Sequence[Any]) -> dict[str, int]:
        """Run ``function`` on every task; return the sums of what it measured.

        Ray tries the task of a killed worker again, three times. Raises WorkError if a task then fails, or for the
        reason that it raised.
        """
        ray = self._ray()
        data, key = sealed(SameVersions.of(function))
        try:
            return total(_results(ray, ray.remote(_do), ray.put(data), key, iter(tasks)))
        except ray.exceptions.RayError as error:
            raise _failure(ray, error) from None

    def _ray(self) -> Any:
        """Return Ray, connected. Raises WorkError if that fails."""
        ray = require_ray("the engine ray")
        if ray.is_initialized():
            return ray
        where, options = self._where(), {}
        if where == LOCAL:  # its folder has sockets, logs and what does not fit into memory; Ray opens it to everybody
            folder = tempfile.mkdtemp(prefix="ray-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            atexit.register(ray.shutdown)  # what is registered last is called first
            options = {"num_cpus": self.workers, "include_dashboard": False, "_temp_dir": folder}
        own = signal.getsignal(signal.SIGTERM)
        try:
            host, _, port = where.removeprefix("ray://").rpartition(":")
            if host and port.isdecimal():  # where nothing answers, Ray waits ten minutes
                socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
            ray.init(where, log_to_driver=False, logging_level=logging.ERROR, **options)
        except Exception as error:  # noqa: BLE001 - Ray raises what it likes
            why = " ".join(str(error).split())[:200].rstrip(".")
            raise EngineError(f"Ray ({where}) did not answer ({type(error).__name__}: {why}); check address.") from None
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, own)  # Ray replaces the program's handler
        return ray


def _do(data: bytes, key: bytes, task: Any) -> Measured | None:
    measured: Measured | None = opened(data, key)(task)
    return measured


def _results(ray: Any, do: Any, data: Any, key: bytes, tasks: Iterator[Any]) -> Iterator[Measured | None]:
    """Yield what the tasks return, as they end; when one fails, the others are ended."""
    running = [do.remote(data, key, task) for task in islice(tasks, _AHEAD)]
    try:
        while running:
            done, running = ray.wait(running)
            running += [do.remote(data, key, task) for task in islice(tasks, len(done))]
            yield from ray.get(done)
    finally:
        for task in running:
            ray.cancel(task)
        if running:
            ray.wait(running, num_returns=len(running))


def _failure(ray: Any, error: Exception) -> CorpusveilError:
    """Return why tasks failed: what they raised on purpose, otherwise a sentence."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, CorpusveilError):
        return cause
    if isinstance(error, (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError)):
        return worker_killed()
    why = f"{type(cause or error).__name__}."
    if "No module named 'corpusveil" in str(error):
        why = "The workers do not have corpusveil; install it on every machine of the cluster."
    return EngineError(f"The Ray job failed: {why} {GO_ON}")
