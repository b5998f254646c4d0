"""A Spark standalone cluster on loopback: one master and workers of one core each."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from corpusveil.jobs.java import ensure_java
from tests.deployment.packing import SUBMIT
from tests.engines.processes import free_port, kill_tree, wait_until

WORKERS = 2
HOST = "127.0.0.1"


def bin_folder() -> Path:
    """Return the folder with Spark's own commands."""
    import pyspark

    return Path(pyspark.__file__).parent / "bin"


def bare(home: Path) -> dict[str, str]:
    """Return an environment in which Python finds no packages of a user, and nothing of this project."""
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ}
    return {**kept, "SPARK_LOCAL_IP": HOST, "SPARK_NO_DAEMONIZE": "1", "HOME": str(home), "PYTHONNOUSERSITE": "1"}


def submit(packed: Path, master: str, *settings: str) -> list[str]:
    """Return the submission of a command line with a packed environment, as docs/clusters.md has it."""
    told = [str(bin_folder() / "spark-submit"), "--master", master, "--files", str(packed)]
    for name, python in (("", f"./{packed.name}"), ("driver.", str(packed))):
        told += ["--conf", f"spark.pyspark.{name}python={python}"]
    return [*told, *settings, str(SUBMIT)]


@contextlib.contextmanager
def standalone(folder: Path, given: dict[str, str]) -> Iterator[str]:
    """Start a cluster; yield its address. Its processes are stopped at the end.

    Raises UserError without a Java.
    """
    ensure_java()
    port = free_port()
    address = f"spark://{HOST}:{port}"
    deploy = "org.apache.spark.deploy"
    roles = {"master": [f"{deploy}.master.Master", "--host", HOST, "--port", str(port), "--webui-port", "0"]}
    for number in range(WORKERS):
        own = ["--host", HOST, "--cores", "1", "--memory", "1g", "--webui-port", "0"]
        place = ["--work-dir", str(folder / f"worker{number}")]
        roles[f"worker{number}"] = [f"{deploy}.worker.Worker", *own, *place, address]
    with contextlib.ExitStack() as stack:
        for name, arguments in roles.items():
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            command = [str(bin_folder() / "spark-class"), *arguments]
            started = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=given)
            stack.callback(kill_tree, started)
            words = "New state: ALIVE" if name == "master" else "Successfully registered"
            wait_until(lambda log=folder / f"{name}.log", words=words: words in log.read_text(errors="replace"))
        yield address
