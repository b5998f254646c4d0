"""What the tests find around them: a Java for Spark, this interpreter in Spark's workers, a cache of their own."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import re
import signal
import sys
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

from corpusveil.errors import UserError
from corpusveil.jobs.java import ensure_java
from corpusveil.spaces import Space
from tests.engines.corpora import ROOT, Ground, make_ground
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
        own = tmp_path_factory.getbasetemp()
        run = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own  # its processes unpack a space once
        patch.setenv("CORPUSVEIL_CACHE", str(run / "cache"))
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


@pytest.fixture(scope="session")
def space(ground: Ground) -> Space:
    return ground.space


@pytest.fixture
def spark() -> Any:
    """Return the Spark session that the tests of a process share; a test puts a setting that it changes back."""
    return shared_session()


@functools.cache
def group_of(file: str) -> str:
    """Return what shares a process: the file of a test, or what it names, such as the files of Spark's session."""
    named = re.search(r'xdist_group\("(\w+)"\)', (ROOT / file).read_text(encoding="utf-8"))
    return named[1] if named else file


@pytest.fixture(scope="module", autouse=True)
def no_other_session_left() -> Iterator[None]:
    """Stop a Spark session that a file's tests left and that is not the shared one: the next file would be given it."""
    yield
    if "pyspark.sql" in sys.modules:
        stop_spark(but=SHARED_MASTER)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of a file next to one another, and those that share a Spark session; the longest come first."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(group_of(item.nodeid.partition("::")[0]), []).append(item)
    is_long = {
        name: name == "spark" or any(item.get_closest_marker("slow") for item in group)
        for name, group in groups.items()
    }
    items[:] = [item for name in sorted(groups, key=lambda name: not is_long[name]) for item in groups[name]]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Send a group to one process: --dist loadgroup groups nothing with pytest 9.2 (issue 1386 of pytest-xdist)."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid.partition("::")[0])

    return Groups(config, log)


def pytest_collection_finish() -> None:
    """Leave libraries and collected tests out of garbage collection, which took a tenth of the processor time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def pytest_configure() -> None:
    """Let SIGINT be heard: a shell that starts tests in the background has it ignored, and processes inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
