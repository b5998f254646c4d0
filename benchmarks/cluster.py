"""A Spark standalone cluster on loopback: one master, two workers of one core each."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import inputs
from benchmarks.report import Skipped
from corpusveil.jobs.java import ensure_java

WORKERS = 2
PATIENCE = 60
HOST = "127.0.0.1"


def bin_folder() -> Path:
    """Return the folder with Spark's own commands."""
    import pyspark

    return Path(pyspark.__file__).parent / "bin"


def environment() -> dict[str, str]:
    """Return what the command line, alone or submitted, and Spark's own processes are started with."""
    mine = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": HOST, "PYTHONPATH": str(inputs.ROOT)}
    return {**os.environ, **mine, "SPARK_NO_DAEMONIZE": "1"}


@contextlib.contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """Start a cluster; yield its address. What was started here is stopped at the end.

    Raises UserError where there is no Java.
    """
    ensure_java()
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
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
            started = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment())
            stack.callback(_stop, started)
            _await(folder / f"{name}.log", "New state: ALIVE" if name == "master" else "Successfully registered")
        yield address


def _await(log: Path, words: str) -> None:
    until = time.monotonic() + PATIENCE
    while words not in log.read_text(encoding="utf-8", errors="replace"):
        if time.monotonic() > until:
            raise Skipped(f"the cluster's {log.stem} did not start within {PATIENCE} s.")
        time.sleep(0.2)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
