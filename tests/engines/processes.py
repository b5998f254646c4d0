"""Processes that a test starts and ends: whole trees of them, and a Spark cluster on loopback."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.engines.corpora import COMMAND, HANG_SECONDS, ROOT, environment

SUBMIT = ROOT / "corpusveil" / "jobs" / "submit.py"
SHARED_MASTER = "local[2]"
"""Of the Spark session that the tests of a process share."""
SMALL = (
    "--conf", "spark.executor.memory=512m", "--conf", "spark.driver.memory=512m", "--conf", "spark.ui.enabled=false",
)  # fmt: skip


def start(
    command: list[str], home: Path, log: Path, given: dict[str, str] | None = None, **more: str
) -> subprocess.Popen[bytes]:
    """Start a command in its own session, with its output in ``log``; ``given`` is its environment, if not this one."""
    known = environment(home) if given is None else given
    with log.open("wb") as said:
        return subprocess.Popen(
            command, env=known | more, cwd=home, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip


def start_command(arguments: list[str], home: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start a command line of corpusveil."""
    return start([*COMMAND, *arguments], home, log)


def done(output: Path) -> int:
    """Return how many tasks of an output are recorded as done."""
    folder = output.with_name(f"{output.name}.records") / "shards"
    return len(list(folder.glob("part-*.json"))) if folder.exists() else 0


def tree(pid: int) -> list[psutil.Process]:
    """Return a process and all that descend from it."""
    try:
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """End a started process and all its descendants with SIGKILL, as a machine that loses its power does."""
    members = tree(process.pid)
    for member in members:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.send_signal(signal.SIGKILL)
    process.wait(HANG_SECONDS)
    psutil.wait_procs(members, timeout=HANG_SECONDS)


def wait_until(true: Callable[[], bool], seconds: float = HANG_SECONDS, every: float = 0.005) -> None:
    """Wait for something to come true; fail the test when it does not."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(every)


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


_CONNECT_PORT = "spark.connect.grpc.binding.port"


def shared_session() -> Any:
    """Return the Spark session that the tests of a process share, as corpusveil starts it; its Java serves Connect."""
    from pyspark import SparkContext

    from corpusveil.jobs.spark import spark_session

    active = SparkContext._active_spark_context
    if active is not None and active.getConf().get(_CONNECT_PORT) is None:
        stop_spark()  # which another test began
        active = None
    with pytest.MonkeyPatch.context() as patch:
        settings = (
            "spark.plugins=org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address=127.0.0.1", f"{_CONNECT_PORT}={free_port()}",
        )  # fmt: skip
        patch.setenv("PYSPARK_SUBMIT_ARGS", " ".join([f"--conf {setting}" for setting in settings] + ["pyspark-shell"]))
        if active is None and SparkContext._jvm is not None:  # Java has read its options already
            for name, _, value in (setting.partition("=") for setting in settings):
                SparkContext._jvm.java.lang.System.setProperty(name, value)
        return spark_session(SHARED_MASTER)


def stop_spark(but: str = "") -> None:
    """Stop the Spark session of this process, unless it has this master."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkContext._active_spark_context
    if active is not None and active.master != but:
        SparkSession.builder.getOrCreate().stop()


class Cluster:
    """A standalone Spark cluster: a master and two workers of one core each, on loopback or another address.

    Its processes have this environment and this Python, or what is ``given``.
    """

    def __init__(self, folder: Path, host: str = "127.0.0.1", given: dict[str, str] | None = None) -> None:
        import pyspark

        self.folder = folder
        self.host = host
        python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        self.given = environment(folder, **python) if given is None else given
        self.home = Path(pyspark.__file__).parent
        self.url = f"spark://{host}:{free_port(host)}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self._started: list[subprocess.Popen[bytes]] = []

    def place(self, number: int) -> tuple[list[str], str]:
        """Return what a worker's command begins with, and the address that it is known by."""
        del number
        return [], self.host

    def _spark_class(
        self, name: str, log: str, *arguments: str, prefix: Sequence[str] = (), host: str | None = None
    ) -> subprocess.Popen[bytes]:
        process = start(
            [*prefix, str(self.home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments],
            self.folder, self.folder / log, self.given, SPARK_HOME=str(self.home), SPARK_DAEMON_MEMORY="256m",
            SPARK_LOCAL_IP=host or self.host,
        )  # fmt: skip
        self._started.append(process)
        return process

    def start(self) -> None:
        """Start master and workers; return when both workers are registered."""
        port = self.url.rsplit(":", 1)[1]
        log = self.folder / "master.log"
        self._spark_class("master.Master", "master.log", "--host", self.host, "--port", port, "--webui-port", "0")
        wait_until(lambda: "New state: ALIVE" in log.read_text(errors="replace"), every=0.1)
        for number in range(2):
            prefix, host = self.place(number)
            self.workers.append(
                self._spark_class(
                    "worker.Worker", f"worker{number}.log", "--host", host, "--webui-port", "0", "--cores", "1",
                    "--memory", "768m", "--work-dir", str(self.folder / f"work{number}"), self.url,
                    prefix=prefix, host=host,
                )
            )  # fmt: skip
        wait_until(lambda: log.read_text(errors="replace").count("Registering worker") == 2, every=0.1)

    def submit(self, arguments: list[str], log: Path, *settings: str) -> subprocess.Popen[bytes]:
        """Start ``spark-submit`` of the job that the package brings, with further settings of Spark."""
        told = [*SMALL, *settings]
        for name in ("host", "bindAddress"):
            told += ["--conf", f"spark.driver.{name}={self.host}"]
        command = [str(self.home / "bin" / "spark-submit"), "--master", self.url, *told, str(SUBMIT), *arguments]
        return start(command, self.folder, log, self.given, SPARK_HOME=str(self.home), SPARK_LOCAL_IP=self.host)

    def stop(self) -> None:
        """End every process of the cluster."""
        for process in reversed(self._started):
            kill_tree(process)


def answers(port: int) -> bool:
    """Say whether something listens on a port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def finished(process: subprocess.Popen[bytes]) -> int:
    """Wait for what ``start`` started; return its status, with nothing left of it."""
    try:
        return process.wait(HANG_SECONDS)
    finally:
        end_session(process)


def end_session(process: subprocess.Popen[bytes]) -> None:
    """End what ``start`` started, whatever state it is in."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(HANG_SECONDS)
