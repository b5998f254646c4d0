"""Driver and workers agree on versions before any work, or the run ends with a sentence and nothing written."""

from __future__ import annotations

import os
import subprocess
import sys
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
from tests.engines.corpora import make_space

pytestmark = pytest.mark.xdist_group("spark")


def touch(path: str) -> None:
    """Do a task: leave a file."""
    Path(path).touch()


@pytest.fixture(params=[pytest.param(Spark(), marks=pytest.mark.spark), Beam()], ids=["spark", "beam"])
def engine(request: pytest.FixtureRequest) -> Any:
    return request.param


def other_driver(monkeypatch: pytest.MonkeyPatch, **changed: str) -> None:
    """Let this process, as the driver, believe in other versions."""
    real = SameVersions.of.__func__  # type: ignore[attr-defined]

    def of(cls: Any, function: Any) -> SameVersions:
        made = real(cls, function)
        return SameVersions(made.function, {**made.driver, **changed})

    monkeypatch.setattr(SameVersions, "of", classmethod(of))


def test_equal_versions_work(engine: Any, tmp_path: Path) -> None:
    engine.run(touch, [str(tmp_path / "a"), str(tmp_path / "b")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_other_versions_are_named(engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which package, which version there and here; no task is begun."""
    other_driver(monkeypatch, pyarrow="0.1.2", corpusveil="9.9")
    with refused("engine-failed", "0.1.2") as told:
        engine.run(touch, [str(tmp_path / "a"), str(tmp_path / "b")])
    assert "for 9.9" in str(told.value)
    assert "same environment" in str(told.value)
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
        with pytest.raises(VersionError) as told:
            refuse_other_python(SimpleNamespace(master="local[2]", pythonExec=str(other)))
        for word in (f"PYSPARK_PYTHON = {other}", "Python 3.9", f"Python {MINE}"):
            assert word in str(told.value)

    @pytest.mark.parametrize("program", [sys.executable, "/bin/true", "/no/such/python"])
    def test_the_same_or_one_that_cannot_be_asked_is_not(self, program: str) -> None:
        refuse_other_python(SimpleNamespace(master="local[2]", pythonExec=program))

    def test_on_other_machines_is_not_guessed(self, other: Path) -> None:
        refuse_other_python(SimpleNamespace(master="spark://host:7077", pythonExec=str(other)))

    @pytest.mark.parametrize("told", SAID, ids=["other", "missing", "old"])
    def test_what_spark_says_becomes_a_sentence(self, told: str) -> None:
        """It was the name of an exception; Spark's own has up to 258 lines."""
        sentence = str(python_fault(told))
        assert SAID[told] in sentence
        assert f"Python {MINE} with corpusveil" in sentence
        assert "PYSPARK_PYTHON" in sentence
        assert "\n" not in sentence
        assert python_fault("An error of another kind") is None

    @pytest.mark.spark
    @pytest.mark.nightly
    def test_a_release_says_so_in_one_sentence(self, other: Path, tmp_path: Path) -> None:
        """The command line and the frames, in processes of their own with the user's PYSPARK_PYTHON."""
        make_space(tmp_path / "space")
        (tmp_path / "in.jsonl").write_text('{"text": "word"}\n')
        call = ["privatize", f"{tmp_path}/in.jsonl", "--space", f"{tmp_path}/space", "--mechanism", "ring-geometric"]
        call += ["--epsilon", "1", "--test-key", "--engine", "spark", "--output", f"{tmp_path}/out"]
        environment = {**os.environ, "PYSPARK_PYTHON": str(other)}
        done = subprocess.run(
            [sys.executable, "-m", "corpusveil", *call], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].startswith(f"corpusveil: PYSPARK_PYTHON = {other}: ")
        assert "Traceback" not in done.stderr
        frame = FRAME.format(space=tmp_path / "space")
        done = subprocess.run(
            [sys.executable, "-c", frame], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1].startswith(f"PYSPARK_PYTHON = {other}: ")


FRAME = """
import corpusveil as cv
from corpusveil.jobs.spark import spark_session
from corpusveil.transforms.spark import privatize_frame

release = cv.Release(cv.mechanism("ring-geometric", cv.load_space("{space}")), cv.Budget(1.0), key=cv.Key.for_tests())
frame = spark_session("local[1]").createDataFrame([("word", 1)], "text string, id int")
try:
    privatize_frame(frame, release, id="id")
except cv.UserError as error:
    print(error)
"""
