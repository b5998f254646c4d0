"""The packed environment: what is asked of pex, and a cluster that runs it from an empty home."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest

from corpusveil.cli.main import run
from corpusveil.errors import PackageError, UserError, WorkError
from corpusveil.jobs import package
from corpusveil.jobs.environment import installed, requirement
from corpusveil.jobs.package import LEFT_OUT, commands, package_spark
from tests.collocations.corpora import make, write
from tests.engines.corpora import Ground, make_ground, release_files


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
        with pytest.raises(PackageError, match=r"pip install 'corpusveil\[package\]'"):
            package_spark(str(tmp_path / "out"))
        assert not (tmp_path / "out").exists()

    def test_of_unknown_extras(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="extra = 'beam'"):
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
@pytest.mark.timeout(3000)
def test_a_cluster_runs_everything_from_an_empty_home(tmp_path: Path) -> None:
    """Counted, scored, tokenized, trained and privatized by two workers that have no packages of their own.

    The environment holds neither Beam nor a second Spark; speculative copies of tasks change nothing; counts,
    collocations and release are those of the local engine.
    """
    pytest.importorskip("pex")
    from benchmarks import cluster

    packed, home = tmp_path / "packed", tmp_path / "home"
    for folder in (home, tmp_path / "cluster", tmp_path / "ground"):
        folder.mkdir()
    package_spark(str(packed))
    names = zipfile.ZipFile(packed / "corpusveil.pex").namelist()
    assert any("numpy" in name for name in names)
    assert not any("pyspark" in name or "apache_beam" in name for name in names)
    ground = make_ground(tmp_path / "ground")
    texts = write(tmp_path / "texts", make(3000, 3), 4)
    here, there = tmp_path / "here", tmp_path / "there"
    space = ("--vectors", there / "vectors", "--output", there / "space")
    with cluster.standalone(tmp_path / "cluster", given=cluster.bare(home)) as master:
        submit = cluster.submit(packed, master, "--conf", "spark.speculation=true")
        for command in (*flow(texts, there, "spark"), ["space", *space], release(ground, there, "spark")):
            done = subprocess.run(
                [*submit, *map(str, command)], env=cluster.bare(home), cwd=home, capture_output=True, text=True,
                check=False, timeout=900,
            )  # fmt: skip
            assert done.returncode == 0, (command, done.stderr[-2000:])
            assert sys.prefix not in done.stdout + done.stderr
    assert [path.name for path in home.rglob("*") if "site-packages" in path.parts and ".pex" not in str(path)] == []
    for command in (*flow(texts, here, "local"), release(ground, here, "local")):
        assert run([str(word) for word in command]) == 0
    assert release_files(there / "release") == release_files(here / "release")
    for name in ("counts/ngrams", "collocations/collocations.parquet", "tokens/tokens"):
        assert pa.dataset.dataset(str(there / name)).to_table().equals(pa.dataset.dataset(str(here / name)).to_table())
    vectors = [np.load(folder / "vectors" / "vectors.npy") for folder in (here, there)]
    assert vectors[0].shape == vectors[1].shape
    assert np.isfinite(vectors[1]).all()


def flow(texts: Path, folder: Path, engine: str) -> Iterator[list[object]]:
    """Yield the command lines from a corpus to vectors."""
    how = ("--engine", engine)
    counts, collocations = ("--output", folder / "counts"), ("--collocations", folder / "collocations")
    yield ["count", texts, *counts, "--min-count", 3, *how]
    yield ["score", "--counts", folder / "counts", "--output", folder / "collocations", "--min-count", 3, *how]
    yield ["tokenize", texts, *collocations, "--tokenizer", "gst", "--output", folder / "tokens", *how]
    yield ["train", "--tokens", folder / "tokens", "--output", folder / "vectors", "--dimensions", 16, "--epochs", 1]


def release(ground: Ground, folder: Path, engine: str) -> list[object]:
    """Return the command line of a release on the tests' own space."""
    return list(ground.arguments(ground.corpus, folder / "release", "--engine", engine))
