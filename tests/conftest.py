"""What the tests find around them: a Java for Spark, this interpreter in Spark's workers, a cache of their own."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

from corpusveil.errors import UserError
from corpusveil.jobs.java import ensure_java
from tests.engines.corpora import Ground, make_ground
from tests.engines.processes import SHARED_MASTER, shared_session, stop_spark

pytest.register_assert_rewrite("tests.contracts")  # suites that other test files inherit

# A deadline measures the machine: the first call of a kernel compiles it. Tests of what is cheap ask for more examples.
hypothesis.settings.register_profile("corpusveil", deadline=None, print_blob=True, max_examples=50)
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
        patch.setattr(os, "fsync", lambda _: None)  # a wait for the disk; TestALossOfPower sees what is flushed
        with contextlib.suppress(UserError):  # no Java: the tests that need one say so
            patch.setenv("JAVA_HOME", str(ensure_java()))
        yield


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """Return a small space, a key and a corpus, made once a process; a test writes elsewhere."""
    return make_ground(tmp_path_factory.mktemp("ground"))


@pytest.fixture
def spark() -> Any:
    """Return the Spark session that the tests of a process share; a test puts a setting that it changes back."""
    return shared_session()


@pytest.fixture(scope="module", autouse=True)
def no_other_session_left() -> Iterator[None]:
    """Stop a Spark session that a file's tests left and that is not the shared one: the next file would be given it."""
    yield
    if "pyspark.sql" in sys.modules:
        stop_spark(but=SHARED_MASTER)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file in one process (--dist loadgroup), and those that share a Spark session; long first."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
        (mark,) = item.iter_markers("xdist_group")
        groups.setdefault(mark.args[0], []).append(item)
    is_long = {
        name: name.startswith("spark") or any(item.get_closest_marker("slow") for item in group)
        for name, group in groups.items()
    }
    items[:] = [item for name in sorted(groups, key=lambda name: not is_long[name]) for item in groups[name]]


def pytest_collection_finish() -> None:
    """Leave libraries and collected tests out of garbage collection, which took a tenth of the processor time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def pytest_configure() -> None:
    """Let SIGINT be heard: a shell that starts tests in the background has it ignored, and processes inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
