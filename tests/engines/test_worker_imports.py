"""What a worker process loads before it begins: nothing that only a driver, or another kind of job, needs."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from corpusveil.jobs import startup
from corpusveil.jobs.local import Local
from tests.engines import loaded
from tests.engines.corpora import HANG_SECONDS, ROOT

HEAVY = {"gensim", "apache_beam", "pyspark", "torch", "sklearn", "typer", "rich", "jinja2", "dp_accounting"}


def test_work_needs_none_of_it() -> None:
    """Neither to count nor to release."""
    code = (
        "import sys; from corpusveil.transforms.release import job; from corpusveil.collocations import counting_stages"
    )
    command = [sys.executable, "-c", f"{code}; print(*sys.modules)"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "corpusveil.transforms.release.job" in done.stdout
    assert not HEAVY & set(done.stdout.split())


linux = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux alone")


@linux
def test_local_workers_are_forked_with_everything_loaded_and_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    """And they get the environment of their run, though the process that they are forked from is older."""
    monkeypatch.setattr(startup, "_own", [True])
    counts = []
    for setting in ("0", "1"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(loaded.SETTING, setting)
            patch.setenv("OMP_NUM_THREADS", "1")
            patch.setenv("OPENBLAS_NUM_THREADS", "1")
            engine = Local(2)
            counts.append(engine.run(loaded.tell, [1, 2]))
            engine.close()
    expected = {"ready": 2, "pandas": 0, "forked": 2}
    assert counts == [{**expected, "setting": 0}, {**expected, "setting": 2}]


@linux
def test_a_program_that_uses_corpusveil_keeps_its_fork_server() -> None:
    """Python has one: its children would lack pandas' objects in Arrow, and hear no Ctrl+C."""
    code = "from corpusveil.jobs.startup import context; print(context(2).get_start_method())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "spawn\n"


@linux
def test_the_daemon_of_spark_forks_workers_that_have_loaded_machine_code() -> None:
    """And says nothing but its port on standard output, where Spark reads it."""
    daemon = subprocess.Popen(
        [sys.executable, "-m", "corpusveil.jobs.preload", "pyspark.worker"],
        cwd=ROOT, env={**os.environ, "PYTHON_WORKER_FACTORY_SECRET": "x"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert daemon.stdin
    assert daemon.stdout
    try:
        (port,) = struct.unpack("!i", daemon.stdout.read(4))
        with socket.create_connection(("127.0.0.1", port)) as asked:
            (worker,) = struct.unpack("!i", asked.recv(4, socket.MSG_WAITALL))
            assert "llvmlite" in Path(f"/proc/{worker}/maps").read_text()
    finally:
        daemon.stdin.close()
        daemon.wait(HANG_SECONDS)
