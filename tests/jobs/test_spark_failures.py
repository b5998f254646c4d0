"""What Spark does not do is answered by its cause, in a sentence with a code; what it does is not littered."""

from __future__ import annotations

import subprocess
from collections import deque
from pathlib import Path

import psutil
import pytest

from corpusveil.jobs import java
from corpusveil.jobs.spark import Spark
from tests.calls import refused
from tests.engines.corpora import COMMAND, HANG_SECONDS, Ground, environment, rows, write_corpus
from tests.engines.processes import cluster, free_port, wait_until


def begin(ground: Ground, folder: Path, log: Path, *more: str, **variables: str) -> subprocess.Popen[bytes]:
    source = write_corpus(folder / "in", [rows(5, 1)])
    arguments = [*COMMAND, *ground.arguments(source, folder / "out", "--engine", "spark", *more)]
    arguments[arguments.index("--progress") + 1] = "none"
    with log.open("wb") as said:
        return subprocess.Popen(
            [str(word) for word in arguments], env={**environment(folder), **variables}, stderr=said,
            stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip


def test_no_master_is_said_at_once_with_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark itself would try for a minute and a half, and then name a stopped context."""
    address = f"spark://127.0.0.1:{free_port()}"
    for master in (address, f"spark://127.0.0.1:1,{address.removeprefix('spark://')}"):
        with refused("engine-failed", master):
            Spark(master).check()
    with refused("wrong-value", "HOST:PORT"):
        Spark("spark://127.0.0.1").check()
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr("corpusveil.jobs.spark._submitted", lambda: {"spark.master": address})
    with refused("engine-failed", address):
        Spark().check()


def test_a_java_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho \"Unrecognized VM option 'X'\" >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(java, "_candidates", lambda: iter([program]))
    with refused("missing-package", "Unrecognized VM option 'X'"):
        java.ensure_java()


@pytest.mark.parametrize(
    ("lines", "error", "said"),
    [
        (["Error occurred during initialization of VM", "Could not reserve enough space for 9KB object heap"],
         "[JAVA_GATEWAY_EXITED] x", "(Could not reserve enough space for 9KB object heap); set spark.driver.memory"),
        (['Exception in thread "main" org.apache.spark.SparkException: Master must be x'], "[JAVA_GATEWAY_EXITED] x",
         "(Master must be x); correct"),
        ([], "An error\n: java.lang.IllegalStateException: Cannot call\n\tat x", "(Cannot call); check that spark://h:1"),
    ],
)  # fmt: skip
def test_a_session_that_does_not_start_names_the_cause(lines: list[str], error: str, said: str) -> None:
    assert said in str(java.not_started(RuntimeError(error), "spark://h:1", deque(lines)))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "was killed or lost"),
        (RuntimeError("java.lang.OutOfMemoryError: Java heap space"), "spark.driver.memory"),
        (RuntimeError("Executor lost: Command exited with code 137"), "spark.executor.memoryOverhead"),
        (KeyError("private"), "KeyError"),
    ],
)
def test_a_job_that_fails_names_the_cause(error: Exception, said: str) -> None:
    sentence = str(java.job_failure(error))
    assert said in sentence
    assert "private" not in sentence


@pytest.mark.spark
@pytest.mark.slow
class TestARun:
    @pytest.mark.nightly
    def test_prints_no_lines_of_java(self, ground: Ground, tmp_path: Path) -> None:
        log = tmp_path / "log"
        assert begin(ground, tmp_path, log, "--workers", "1").wait(HANG_SECONDS) == 0
        assert log.read_text() == "starting Spark\n"

    def test_of_too_little_memory_says_so(self, ground: Ground, tmp_path: Path) -> None:
        log = tmp_path / "log"
        given = {"PYSPARK_SUBMIT_ARGS": "--driver-memory 9000000g pyspark-shell"}
        assert begin(ground, tmp_path, log, "--workers", "1", **given).wait(HANG_SECONDS) == 1
        said = log.read_text().splitlines()
        assert len(said) == 2
        assert "(Could not reserve enough space" in said[1]
        assert said[1].endswith("[engine-failed]")

    @pytest.mark.nightly
    def test_waits_for_executors_aloud_and_says_that_its_java_was_killed(self, ground: Ground, tmp_path: Path) -> None:
        log = tmp_path / "log"
        settings = {"executor.memory": "20g", "driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1"}
        given = " ".join(f"--conf spark.{name}={value}" for name, value in settings.items())
        with cluster(tmp_path) as made:
            run = begin(ground, tmp_path, log, "--master", made.url, PYSPARK_SUBMIT_ARGS=f"{given} pyspark-shell")
            try:
                wait_until(lambda: f"waiting for executors: {made.url} " in log.read_text(), every=0.1)
                for child in psutil.Process(run.pid).children(recursive=True):
                    child.kill()
                assert run.wait(HANG_SECONDS) == 1
            finally:
                run.kill()
        assert "The Java of Spark was killed or lost" in log.read_text().splitlines()[-1]
