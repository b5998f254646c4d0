"""What Spark does not do is answered by its cause, in a sentence with a code; what it does is not littered."""

from __future__ import annotations

import re
import subprocess
import sys

import psutil
import pytest

from corpusveil.jobs import java, submit
from corpusveil.jobs.spark import REDACTION
from corpusveil.transforms.handshake import versions
from tests.engines.corpora import HANG_SECONDS, ROOT


def test_a_session_that_does_not_start_names_the_cause_and_what_to_do() -> None:
    fault = "An error\n: java.lang.IllegalArgumentException: System memory 9 must be at least 471859200.\n\tat x"
    for error, cause in (("[JAVA_GATEWAY_EXITED] x", "above"), (fault, "(System memory 9 must be at least 471859200)")):
        sentence = str(java.failure(RuntimeError(error), "local[9]", started=False))
        assert cause in sentence, error
        assert "spark.driver.memory" in sentence
        assert "the master, local[9]" in sentence
    fault = "An error\n: x.Y: [INVALID_EXECUTOR_MEMORY.CONFIG_MEMORY] Executor memory 9 must be at least 4.\n\tat x"
    sentence = str(java.failure(RuntimeError(fault), "local[9]", started=False))
    assert "Executor memory 9 must be at least 4" in sentence
    assert "spark.executor.memory" in sentence
    assert "spark.driver.memory" not in sentence


def test_the_driver_of_a_submit_ends_with_its_java() -> None:
    """Before anything is loaded that could notice it: a parent that starts the program and is killed."""
    watches = "import os, runpy; parent = os.getppid(); print(os.getpid(), flush=True); "
    watches += f"runpy.run_path({submit.__file__!r})"
    starts = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    command = [sys.executable, "-c", starts, f"{watches}['end_with'](parent)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        driver = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        assert psutil.wait_procs([driver], timeout=HANG_SECONDS)[1] == []


def test_the_page_and_the_code_keep_credentials_out_of_event_logs() -> None:
    """By the names of the variables that the page hands to executors, and of the other stores."""
    page = (ROOT / "docs/clusters.md").read_text()
    (given,) = re.findall(r"spark\.redaction\.regex='(.+)'", page)
    assert given == REDACTION[1]
    names = set(re.findall(r"spark\.executorEnv\.(\w+)", page)) | {
        "spark.hadoop.fs.s3a.access.key", "AWS_SESSION_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS",
        "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_SAS_TOKEN", "CORPUSVEIL_KEY",
    }  # fmt: skip
    assert [name for name in sorted(names) if not re.search(given, name)] == []


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "was killed or lost"),
        (type("Py4JError", (Exception,), {})("An error occurred while calling o1.x"), "was killed or lost"),
        (RuntimeError("java.lang.OutOfMemoryError: Java heap space"), "spark.driver.memory"),
        (RuntimeError("Job aborted: Master removed our application: FAILED"), "could not start executors"),
        (RuntimeError("Cannot call methods on a stopped SparkContext"), "executors on spark://h:1"),
        (RuntimeError("Max number of executor failures (3) reached"), "could not start executors"),
        (RuntimeError("Executor lost: Command exited with code 137"), "spark.executor.memoryOverhead"),
        (KeyError("private"), "KeyError"),
        *((RuntimeError(text), "PYSPARK_PYTHON") for text in (
            "Traceback\npyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] It has 3.9: private",
            'Lost task 0.0: java.io.IOException: Cannot run program "/private/python": error=2\n\tat java.base',
            "SparkException: \nError from python worker:\n  Traceback, private",
        )),
    ],
)  # fmt: skip
def test_a_job_that_fails_names_the_cause(error: Exception, said: str) -> None:
    """In one line; Spark's own sentence about another Python has up to 258, and may quote a document."""
    sentence = str(java.failure(error, "spark://h:1"))
    assert said in sentence
    assert ("PYSPARK_PYTHON" in sentence) == (f"Python {versions()['python']} with" in sentence) == (said[:2] == "PY")
    assert "\n" not in sentence
    assert "private" not in sentence
