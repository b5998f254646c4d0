"""The packed environment: what is asked of pex, and a cluster that runs it from an empty home."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from corpusveil.errors import UserError, WorkError
from corpusveil.jobs import package
from corpusveil.jobs.package import LEFT_OUT, commands, package_spark
from corpusveil.pipelines.local import LocalEngine
from corpusveil.transforms.corpus import privatize_corpus
from corpusveil.transforms.environment import installed, requirement
from tests.engines.corpora import make_ground, make_release, release_files


def test_versions_are_those_of_this_environment() -> None:
    """Each package once, without the engines, which the cluster has, and without corpusveil itself."""
    lines = list(installed(LEFT_OUT))
    names = [line.split("==")[0].lower() for line in lines]
    assert len(names) == len(set(names))
    assert {"numpy", "pyarrow", "numba", "gensim"} <= set(names)
    assert not {"pyspark", "apache-beam", "corpusveil"} & set(names)
    assert all(re.fullmatch(r"[\w.-]+==[\w.!]+", line) for line in lines)


def test_the_requirement_is_what_is_installed() -> None:
    """A checkout is packed from its folder; extras are asked for."""
    assert requirement(["s3"]).endswith("[s3]")
    assert Path(requirement([])).joinpath("pyproject.toml").exists() or "==" in requirement([])


class TestRefusals:
    def test_without_pex(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
        with pytest.raises(UserError, match=r"pip install 'corpusveil\[package\]'"):
            package_spark(str(tmp_path / "out"))
        assert not (tmp_path / "out").exists()

    def test_of_unknown_extras(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="--extra beam"):
            package_spark(str(tmp_path / "out"), ["beam"])

    def test_when_pex_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its last line is said, and nothing is left half-made."""
        monkeypatch.setattr(package, "requirement", lambda _extras: "no-such-package-at-all @ file:///nowhere")
        with pytest.raises(WorkError, match=r"pex could not build corpusveil\.pex"):
            package_spark(str(tmp_path / "out"))
        assert not list((tmp_path / "out").iterdir())


def test_commands_name_the_files() -> None:
    for command in commands("packed").values():
        words = shlex.split(command)
        assert words[0] == "spark-submit"
        assert "packed/corpusveil.pex" in words
        assert "packed/submit.py" in words


@pytest.mark.packaged
@pytest.mark.timeout(1800)
def test_a_cluster_runs_it_from_an_empty_home(tmp_path: Path) -> None:
    """Submitted to two workers that have no packages: the bytes of the local engine.

    The environment holds neither Beam nor a second Spark; speculative copies of tasks change nothing.
    """
    pytest.importorskip("pex")
    from benchmarks import cluster

    packed, home = tmp_path / "packed", tmp_path / "home"
    home.mkdir()
    package_spark(str(packed))
    names = zipfile.ZipFile(packed / "corpusveil.pex").namelist()
    assert any("numpy" in name for name in names)
    assert not any("pyspark" in name or "apache_beam" in name for name in names)
    (tmp_path / "ground").mkdir()
    ground = make_ground(tmp_path / "ground")
    privatize_corpus(make_release(ground.space), [str(ground.corpus)], str(tmp_path / "local"), LocalEngine())
    bare = {name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ}
    bare |= {"SPARK_LOCAL_IP": cluster.HOST, "SPARK_NO_DAEMONIZE": "1", "HOME": str(home)}
    (tmp_path / "cluster").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "environment", lambda: bare)
        with cluster.standalone(tmp_path / "cluster") as master:
            shown = shlex.split(commands(str(packed))["standalone"])
            shown[shown.index("spark://HOST:7077")] = master
            shown[0] = str(cluster.bin_folder() / "spark-submit")
            script = shown.index(f"{packed}/submit.py")
            arguments = ground.arguments(ground.corpus, tmp_path / "out", "--engine", "spark")
            command = [*shown[:script], "--conf", "spark.speculation=true", shown[script], *arguments]
            done = subprocess.run(command, env=bare, cwd=home, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    found, expected = release_files(tmp_path / "out"), release_files(tmp_path / "local")
    assert found == expected
    assert sys.prefix not in done.stdout
