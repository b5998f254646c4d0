"""What the tests find around them: a Java for Spark, this interpreter in Spark's workers, a cache of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator

import hypothesis
import pytest

from corpusveil.errors import UserError
from corpusveil.jobs.java import ensure_java

pytest.register_assert_rewrite("tests.contracts")  # suites that other test files inherit

# A deadline measures the machine: the first call of a kernel compiles it.
hypothesis.settings.register_profile("corpusveil", deadline=None, print_blob=True)
hypothesis.settings.load_profile("corpusveil")


SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For Java that lives for seconds: compiling less takes a third off the processor time of a Spark job of a few rows."""


@pytest.fixture(scope="session", autouse=True)
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Leave this user's cache and keys alone, and let Spark start wherever the ``jre`` extra or a Java is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CORPUSVEIL_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)  # with it, every process compiles the package again
        patch.setenv("SPARK_SUBMIT_OPTS", SHORT_LIVED)
        patch.setenv("SPARK_LAUNCHER_OPTS", SHORT_LIVED)
        patch.setenv("SPARK_DAEMON_JAVA_OPTS", SHORT_LIVED)
        patch.setenv("PATH", os.environ.get("PATH", os.defpath))  # noted, so that it is put back
        with contextlib.suppress(UserError):  # no Java: the tests that need one say so
            patch.setenv("JAVA_HOME", str(ensure_java()))
        yield


@pytest.fixture(scope="module", autouse=True)
def no_session_left() -> Iterator[None]:
    """Stop the Spark session that a file's tests left: the next file would be given it, with settings of its own."""
    yield
    if "pyspark.sql" in sys.modules:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        if SparkContext._active_spark_context is not None:
            SparkSession.builder.getOrCreate().stop()


def pytest_configure() -> None:
    """Let SIGINT be heard: a shell that starts tests in the background has it ignored, and processes inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
