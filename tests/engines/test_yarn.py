"""YARN: a resource manager and two node managers on loopback run the packed environment in cluster mode.

The command's process is Spark's driver in a container of a node: what it says is in the container's logs, and the
submission ends with status 1 where the command ends with 2.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, ClassVar
from xml.sax.saxutils import escape

import psutil
import pytest

from corpusveil.jobs.java import ensure_java
from tests.contracts.engine import WITH_WORKERS, EngineContract, installed, no_cluster
from tests.deployment.packing import SUBMIT, pack
from tests.engines.corpora import make_ground
from tests.engines.processes import SMALL, finished, free_port, kill_tree, start, wait_until
from tests.faults.harm import OPTIONS, Bench

pytestmark = [pytest.mark.engines, pytest.mark.slow]

ADDRESSES = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
LOST_AFTER = 5000
"""Milliseconds without a heartbeat, after which a node is lost with its containers."""
LOG = """log4j.rootLogger=INFO,c
log4j.appender.c=org.apache.log4j.ConsoleAppender
log4j.appender.c.layout=org.apache.log4j.SimpleLayout
"""


@dataclass
class Yarn:
    """The processes of a cluster, of 2 GB a node; its file system is this machine's."""

    folder: Path
    packed: Path
    jars: Path
    java: Path = field(default_factory=ensure_java)
    common: dict[str, Any] = field(default_factory=dict)
    nodes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    manager: subprocess.Popen[bytes] | None = None

    def configured(self, name: str, **more: Any) -> Path:
        """Write the configuration of a process; return its folder."""
        place = self.folder / name
        place.mkdir()
        settings = {**self.common, **{f"yarn.nodemanager.{key}": value for key, value in more.items()}}
        text = "".join(
            f"<property><name>{key}</name><value>{escape(str(value))}</value></property>"
            for key, value in settings.items()
        )
        for file in ("core-site.xml", "yarn-site.xml"):
            (place / file).write_text(f"<configuration>{text}</configuration>")
        (place / "log4j.properties").write_text(LOG)
        return place

    def daemon(self, name: str, kind: str, **more: Any) -> subprocess.Popen[bytes]:
        """Start a process of the cluster."""
        place = self.configured(name, **more)
        options = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{place}:{self.jars}/*")
        command = [str(self.java / "bin" / "java"), *options, f"org.apache.hadoop.yarn.server.{kind}"]
        return start(command, self.folder, self.folder / f"{name}.log", JAVA_HOME=str(self.java))

    def start(self) -> None:
        """Start the resource manager."""
        self.common = {
            "fs.defaultFS": "file:///",
            "hadoop.tmp.dir": self.folder / "tmp",
            "yarn.scheduler.minimum-allocation-mb": 128,
            "yarn.scheduler.capacity.root.queues": "default",
            "yarn.scheduler.capacity.root.default.capacity": 100,
            "yarn.scheduler.capacity.maximum-am-resource-percent": 1,
            "yarn.nm.liveness-monitor.expiry-interval-ms": LOST_AFTER,
            "yarn.resourcemanager.nm.liveness-monitor.interval-ms": 1000,
            **{f"yarn.resourcemanager.{name}": f"127.0.0.1:{free_port()}" for name in ADDRESSES},
        }
        self.configured("client")
        self.manager = self.daemon("manager", "resourcemanager.ResourceManager")
        self.complete()

    def complete(self) -> None:
        """Start node managers until two live; return when they are registered."""
        while sum(node.poll() is None for node in self.nodes) < 2:
            name = f"node{len(self.nodes)}"
            addresses = {key: f"127.0.0.1:{free_port()}" for key in ("localizer.address", "collector-service.address")}
            more = {
                "address": "127.0.0.1:0", "webapp.address": "127.0.0.1:0", **addresses,
                "local-dirs": self.folder / name / "local", "log-dirs": self.folder / "logs" / name,
                "resource.memory-mb": 2048, "resource.cpu-vcores": 2, "user-home-dir": self.folder,
                "pmem-check-enabled": "false", "vmem-check-enabled": "false",
                "disk-health-checker.max-disk-utilization-per-disk-percentage": 100,  # a full disk is not its concern
            }  # fmt: skip
            self.nodes.append(self.daemon(name, "nodemanager.NodeManager", **more))
        log = self.folder / "manager.log"
        registered = "registered with capability"
        wait_until(lambda: log.read_text(errors="replace").count(registered) == len(self.nodes), every=0.2)

    def submit(self, arguments: list[str], folder: Path, *settings: str) -> subprocess.Popen[bytes]:
        """Start the submission of docs/clusters.md, with the environment that a node's processes would have."""
        import pyspark

        home = Path(pyspark.__file__).parent
        shared = {name: os.environ[name] for name in ("CORPUSVEIL_HOLD", "PYTHONPATH") if name in os.environ}
        wanted = [
            f"{where}.{name}={value}"
            for name, value in {**shared, "SPARK_LOCAL_IP": "127.0.0.1"}.items()
            for where in ("spark.yarn.appMasterEnv", "spark.executorEnv")
        ]
        wanted += [f"spark.pyspark.python=./{self.packed.name}", f"spark.yarn.jars=local:{home}/jars/*", *settings]
        command = [
            str(home / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", "cluster",
            "--files", str(self.packed), *SMALL, *(word for pair in wanted for word in ("--conf", pair)),
            str(SUBMIT), *arguments,
        ]  # fmt: skip
        here = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": "", "PYSPARK_DRIVER_PYTHON": ""}
        conf = str(self.folder / "client")
        return start(command, folder, folder / "said.log", HADOOP_CONF_DIR=conf, SPARK_HOME=str(home), **here)

    def containers(self, folder: Path) -> tuple[list[Path], list[Path]]:
        """Return the folders with the logs of a submission's drivers, one an attempt, and of its executors."""
        (number,) = set(re.findall(r"application(_\d+_\d+)", (folder / "said.log").read_text()))
        folders = (self.folder / "logs").glob(f"*/application{number}/container*")
        places = sorted(folders, key=lambda place: place.name)
        drivers = [place for place in places if place.name.endswith("_000001")]
        return drivers, [place for place in places if place not in drivers]


def logs(containers: list[Path]) -> str:
    """Return what containers said."""
    return "".join((place / name).read_text() for place in containers for name in ("stdout", "stderr"))


@dataclass
class YarnBench(Bench):
    """Runs on the local engine as commands, and all others as submissions."""

    yarn: Any = None

    def start(self, folder: Path, engine: str, *more: object) -> subprocess.Popen[bytes]:
        if engine == "local":
            return super().start(folder, engine, *more)
        self.yarn.complete()
        return self.yarn.submit(self.arguments(folder, engine, *more), folder, *self.settings)


@pytest.fixture(scope="class")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    folder, jars = tmp_path_factory.mktemp("yarn"), installed("yarn/version").with_name("jars")
    made = Yarn(folder, pack(folder / "packed"), jars)
    try:
        made.start()
        yield made
    finally:
        for process in filter(None, (*made.nodes, made.manager)):
            kill_tree(process)


class TestYarn(EngineContract):
    engine = "yarn"
    cluster: ClassVar[Yarn]

    @pytest.fixture(scope="class")
    @classmethod
    def version(cls) -> str:
        return f"{version_of('pyspark')}, Hadoop {installed('yarn/version').read_text().strip()}"

    @pytest.fixture(scope="class")
    @classmethod
    def options(cls) -> tuple[object, ...]:
        return ("--engine", "spark")

    @pytest.fixture(scope="class")
    @classmethod
    def bench(cls, plan: Path, yarn: Yarn, options: Any, tmp_path_factory: pytest.TempPathFactory) -> Bench:
        folder = tmp_path_factory.mktemp("bench")
        engines = {**OPTIONS, cls.engine: options, WITH_WORKERS: options}
        made = YarnBench(make_ground(folder), plan, no_cluster, options=engines, yarn=yarn)
        made.undisturbed("local", folder)
        cls.cluster = yarn
        return made

    def harm(self, worker: int) -> None:
        """Kill the node manager of the process, with all its containers, as a machine that loses its power."""
        numbers = [parent.pid for parent in psutil.Process(worker).parents()]
        (node,) = [node for node in self.cluster.nodes if node.pid in numbers]
        kill_tree(node)

    def refused(self, bench: Bench, folder: Path, *more: object) -> tuple[str, str]:
        """YARN starts a refused command once more, and the submission says no more than that it failed."""
        status = finished(bench.start(folder, self.engine, *more))
        drivers, executors = self.cluster.containers(folder)
        said = logs(drivers)
        assert status == 1, said
        assert "Traceback" not in said
        (sentence,) = {line for line in said.splitlines() if line.startswith("corpusveil: ")}
        assert sentence not in (folder / "said.log").read_text()
        return sentence, said + logs(executors)

    def test_a_driver_whose_node_is_killed_is_started_again(self, bench: Bench, tmp_path: Path) -> None:
        """YARN's second attempt resumes what the first began, on the other node."""
        with bench.held(tmp_path, self.engine, "manifest") as (job, driver):
            self.harm(driver)
        assert bench.goes_on(job, tmp_path, self.engine) == "went on"
        bench.all_is_well(tmp_path)
        drivers, _ = self.cluster.containers(tmp_path)
        assert [place.name[-9:-7] for place in drivers] == ["01", "02"]
