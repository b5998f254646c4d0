"""Command lines as separate processes: status, wall and CPU seconds, peak memory of the driver and of all."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

import psutil

from benchmarks import cluster, inputs
from benchmarks.report import Skipped

COMMAND = (sys.executable, "-m", "corpusveil")
_EVERY_SECONDS = 0.1


@dataclass(frozen=True)
class Measured:
    """The cost of one command; memory in MiB."""

    wall: float
    cpu: float
    driver: float
    largest: float
    said: str


def command(*arguments: object) -> Measured:
    """Run one command line of corpusveil to its end. Raises Skipped with its last words when it fails."""
    began = time.perf_counter()
    started = subprocess.Popen(
        [*COMMAND, *map(str, arguments)], cwd=inputs.ROOT, env=cluster.environment(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    peaks = [0.0, 0.0]
    watch = threading.Thread(target=_watch, args=(started.pid, peaks), daemon=True)
    watch.start()
    before = os.times()
    said, failed = started.communicate()
    after = os.times()
    watch.join()
    if started.returncode:
        raise Skipped(f"{' '.join(map(str, arguments[:3]))} ended with {started.returncode}: {failed.strip()[-300:]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Measured(time.perf_counter() - began, cpu, peaks[0], max(peaks), said)


def _watch(pid: int, peaks: list[float]) -> None:
    """Sample resident memory until the process has ended."""
    try:
        driver = psutil.Process(pid)
        while driver.is_running() and driver.status() != psutil.STATUS_ZOMBIE:
            peaks[0] = max(peaks[0], driver.memory_info().rss / 2**20)
            peaks[1] = max([peaks[1], *(_resident(one) for one in driver.children(recursive=True))])
            time.sleep(_EVERY_SECONDS)
    except psutil.Error:
        pass


def _resident(process: psutil.Process) -> float:
    try:
        return float(process.memory_info().rss) / 2**20
    except psutil.Error:
        return 0.0
