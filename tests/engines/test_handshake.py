"""Driver and workers agree on versions before any work, or the run ends with a sentence and nothing written."""

from __future__ import annotations

from collections.abc import Mapping
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

pytestmark = pytest.mark.xdist_group("spark")


def touch(path: str) -> None:
    """Do a task: leave a file."""
    Path(path).touch()


@pytest.fixture(params=[pytest.param(Spark(), marks=pytest.mark.spark), Beam()], ids=["spark", "beam"])
def engine(request: pytest.FixtureRequest) -> Any:
    return request.param


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
    @pytest.fixture
    def other(self, tmp_path: Path) -> Path:
        """A program that says of itself that it is Python 3.9."""
        program = tmp_path / "python3.9"
        program.write_text("#!/bin/sh\necho 3.9\n")
        program.chmod(0o755)
        return program

    def test_on_this_machine_is_refused_before_anything_starts(self, other: Path) -> None:
        """By a sentence that names both versions and the variable to set."""
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
