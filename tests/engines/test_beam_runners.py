"""Prism, which ``beam.Pipeline()`` tries first, and Flink with Beam's job server: two task managers, one killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.metadata import version as version_of
from pathlib import Path

import psutil
import pytest

from tests.contracts.engine import LOOPBACK, BeamContract, installed
from tests.engines.processes import answers, end_session, free_port, start, tree, wait_until
from tests.faults.harm import Bench

pytestmark = [pytest.mark.engines, pytest.mark.slow]
OPEN = ("lang", "lang.reflect", "net", "nio", "text", "time", "util", "util.concurrent", "util.concurrent.atomic")
"""Packages of Java 17 that Flink 1.19 looks into."""
CONFIGURATION = """
jobmanager.rpc.address: 127.0.0.1
jobmanager.rpc.port: {rpc}
rest.address: 127.0.0.1
rest.port: {rest}
taskmanager.host: 127.0.0.1
taskmanager.numberOfTaskSlots: 2
taskmanager.cpu.cores: 1.0
taskmanager.memory.task.heap.size: 256m
taskmanager.memory.task.off-heap.size: 0b
taskmanager.memory.framework.heap.size: 128m
taskmanager.memory.framework.off-heap.size: 128m
taskmanager.memory.network.min: 64m
taskmanager.memory.network.max: 64m
taskmanager.memory.managed.size: 64m
taskmanager.memory.jvm-metaspace.size: 256m
taskmanager.memory.jvm-overhead.min: 64m
taskmanager.memory.jvm-overhead.max: 64m
classloader.resolve-order: parent-first
restart-strategy.type: fixed-delay
restart-strategy.fixed-delay.attempts: 3
restart-strategy.fixed-delay.delay: 1 s
heartbeat.interval: 1000
heartbeat.timeout: 5000
io.tmp.dirs: {folder}
"""


def java(folder: Path, name: str, main: str, *arguments: object) -> subprocess.Popen[bytes]:
    """Start a main class of Flink's or of the job server's."""
    jars = installed("flink/complete").parent
    opened = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in OPEN]
    opened.append("--add-opens=java.base/sun.nio.ch=ALL-UNNAMED")
    program = str(Path(os.environ["JAVA_HOME"]) / "bin" / "java")
    command = [program, *opened, "-Xmx512m", "-XX:MaxDirectMemorySize=256m", "-cp", f"{jars}/*", main]
    return start([*command, *map(str, arguments)], folder, folder / f"{name}.log")


def task_managers(rest: int) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{rest}/overview") as page:
            return int(json.load(page)["taskmanagers"])
    except urllib.error.HTTPError:  # it is starting
        return 0


class TestTwoTaskManagers(BeamContract):
    engine = "flink-cluster"
    runner = "PortableRunner"

    @pytest.fixture(scope="class")
    @classmethod
    def version(cls) -> str:
        jars = installed("flink/complete").parent
        flink, beam = (
            next(jars.glob(f"{name}-*.jar")).stem.rpartition("-")[2]
            for name in ("flink-runtime", "beam-runners-flink-1.19")
        )
        return f"{flink}, Beam's job server {beam}"

    @pytest.fixture(scope="class")
    @classmethod
    def options(cls, server: int) -> tuple[object, ...]:
        job_endpoint = f"--job_endpoint=127.0.0.1:{server}"
        return ("--engine", "beam", "--runner", cls.runner, "--", job_endpoint, LOOPBACK)

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
        folder, rest, port = tmp_path_factory.mktemp("flink"), free_port(), free_port()
        (folder / "config.yaml").write_text(CONFIGURATION.format(rpc=free_port(), rest=rest, folder=folder))
        entry, runner = "entrypoint.StandaloneSessionClusterEntrypoint", "taskexecutor.TaskManagerRunner"
        processes = [java(folder, "master", f"org.apache.flink.runtime.{entry}", "--configDir", folder)]
        try:
            wait_until(lambda: answers(rest), every=0.1)
            for name in ("one", "two"):
                processes.append(java(folder, name, f"org.apache.flink.runtime.{runner}", "--configDir", folder))  # noqa: PERF401 - ended below, also when a later one does not start
            processes.append(java(
                folder, "job-server", "org.apache.beam.runners.flink.FlinkJobServerDriver",
                f"--flink-master=127.0.0.1:{rest}", "--job-host=127.0.0.1", f"--job-port={port}",
                f"--artifacts-dir={folder / 'artifacts'}", "--artifact-port=0", "--expansion-port=0",
            ))  # fmt: skip
            wait_until(lambda: task_managers(rest) == 2 and answers(port), every=0.2)
            yield port
        finally:
            for process in reversed(processes):
                end_session(process)

    def harm(self, worker: int) -> None:
        """Kill the task manager that the worker works for; the worker itself goes on without it."""
        addresses = {
            link.raddr for link in psutil.Process(worker).net_connections("tcp") if link.status == "ESTABLISHED"
        }
        listening = {link.laddr.port: link.pid for link in psutil.net_connections("tcp") if link.status == "LISTEN"}
        above = {listening[address.port] for address in addresses if address.port in listening}
        (manager,) = [pid for pid in above if pid and "TaskManagerRunner" in " ".join(psutil.Process(pid).cmdline())]
        os.kill(manager, signal.SIGKILL)


class TestPrism(BeamContract):
    engine = "prism"
    runner = "PrismRunner"

    @pytest.fixture(scope="class")
    @classmethod
    def version(cls) -> str:
        return version_of("apache-beam")

    @pytest.fixture(scope="class")
    @classmethod
    def options(cls) -> tuple[object, ...]:
        return ("--engine", "beam", "--runner", cls.runner, "--", f"--prism_location={installed('prism')}")

    def test_a_killed_prism(self, bench: Bench, tmp_path: Path) -> None:
        """The runner itself, whose worker is a thread of the command: one sentence, and the same command completes."""
        with bench.held(tmp_path, self.engine, "writing") as (job, worker):
            assert worker in {member.pid for member in tree(job.pid)}
            (prism,) = [member for member in tree(job.pid) if member.name() == "prism"]
            prism.kill()
        assert bench.goes_on(job, tmp_path, self.engine) == "again"
        assert "Prism" not in (tmp_path / "said.log").read_text(), "its log may hold what a worker said"
        bench.all_is_well(tmp_path)
