"""Before a worker begins: it agrees with the driver on versions, and loads nothing that only another process needs."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from corpusveil.errors import VersionError
from corpusveil.jobs.beam import Beam
from corpusveil.jobs.spark import Spark
from corpusveil.transforms import handshake
from corpusveil.transforms.handshake import SameVersions, python_fault, refuse_other_python, versions
from tests.calls import refused
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


FORKED = f"""
import json, os
from corpusveil.jobs import startup
from corpusveil.jobs.local import Local
from {loaded.__name__} import SETTING, tell
startup._own = [True]
for os.environ[SETTING] in "01":
    engine = Local(2)
    print(json.dumps(engine.run(tell, [1, 2])))
    engine.close()
"""


@linux
def test_local_workers_are_forked_with_everything_loaded() -> None:
    """And they get the environment of their run, though the process that they are forked from is older."""
    once = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", FORKED], cwd=ROOT, env=once, capture_output=True, text=True, check=True
    )
    expected = {"ready": 2, "forked": 2}
    counts = [json.loads(line) for line in done.stdout.splitlines()]
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


def touch(path: str) -> None:
    """Do a task: leave a file."""
    Path(path).touch()


@pytest.fixture(params=[pytest.param(Spark(), marks=pytest.mark.spark), Beam()], ids=["spark", "beam"])
def engine(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.xdist_group("spark")
def test_other_versions_are_named(engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which package, which version there and here; no task is begun."""
    driver = {**versions(), "pyarrow": "0.1.2", "corpusveil": "9.9"}
    monkeypatch.setattr(SameVersions, "of", classmethod(lambda cls, function: cls(function, driver)))
    with refused("engine-failed", "0.1.2", "for 9.9", "same environment"):
        engine.run(touch, [str(tmp_path / "a"), str(tmp_path / "b")])
    assert not list(tmp_path.iterdir())


def test_what_is_compared() -> None:
    """Python by its minor version, and each package that output bytes may depend on; one that is missing differs."""
    found: Mapping[str, str] = versions()
    assert set(found) == {"python", *handshake.PACKAGES}
    assert found["python"].count(".") == 1
    assert found["corpusveil"] == f"{metadata.version('corpusveil')} (code {handshake.code()})"
    with refused("engine-failed", "gensim"):
        SameVersions(print, {**found, "gensim": "none"})(1)


MINE = versions()["python"]
SAID = {
    "An exception was thrown from the Python worker:\n  Traceback\npyspark.errors.exceptions.base.PySparkRuntimeError: "
    "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11, PySpark cannot "
    "run with different minor versions.": "A worker runs Python 3.9, ",
    'Job aborted due to stage failure: Lost task 0.0: java.io.IOException: Cannot run program "/opt/none/python": '
    "error=2, No such file or directory\n\tat java.base/java.lang.ProcessBuilder": "the program /opt/none/python, ",
    "org.apache.spark.SparkException: \nError from python worker:\n  Traceback (most recent call last):\n    File "
    "\"/opt/x/lib/python3.8/runpy.py\", line 185\n  TypeError: 'type' object": "A worker runs Python 3.8 in which ",
}
"""What Spark 4 says when a worker's Python is another one, is not there, and is too old for PySpark, cut short."""


class TestAnotherPython:
    def test_on_this_machine_is_refused_before_anything_starts(self, tmp_path: Path) -> None:
        """By a sentence that names both versions and the variable to set."""
        other = tmp_path / "python3.9"
        other.write_text("#!/bin/sh\necho 3.9\n")
        other.chmod(0o755)
        with refused(VersionError.code, f"PYSPARK_PYTHON = {other}", "Python 3.9", f"Python {MINE}"):
            refuse_other_python(SimpleNamespace(master="local[2]", pythonExec=str(other)))

    def test_what_spark_says_becomes_a_sentence(self) -> None:
        """It was the name of an exception; Spark's own has up to 258 lines."""
        for said, expected in SAID.items():
            sentence = str(python_fault(said))
            for part in (expected, f"Python {MINE} with corpusveil", "PYSPARK_PYTHON"):
                assert part in sentence
            assert "\n" not in sentence
        assert python_fault("An error of another kind") is None
