"""The packed environment: the call of pex, and a cluster that runs it from an empty home."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest
from packaging.requirements import Requirement
from packaging.tags import sys_tags

from corpusveil.compiled import PORTABLE
from corpusveil.deployment import machine_code, package
from corpusveil.deployment.package import LEFT_OUT, package_spark
from corpusveil.deployment.wheel import build_wheel, constraints, requirement
from tests.calls import refused, succeeds
from tests.collocations.corpora import make, write
from tests.engines.corpora import Ground, make_ground, release_files


def test_versions_are_those_of_this_environment() -> None:
    """Each package once, without the engines, which the cluster has, and without corpusveil itself."""
    lines = constraints(LEFT_OUT).splitlines()
    names = [line.split("==")[0].lower() for line in lines]
    assert len(names) == len(set(names))
    assert {"numpy", "pyarrow", "numba", "gensim"} <= set(names)
    assert not {"pyspark", "apache-beam", "corpusveil"} & set(names)
    assert all(re.fullmatch(r"[\w.-]+==[\w.!]+", line) for line in lines)


def test_the_requirement_is_the_wheel(tmp_path: Path) -> None:
    """It has the installed packages, not versions from an index, with the extras; a path may contain a blank."""
    wheel = Requirement(requirement(tmp_path / "a b" / "x.whl", ["s3"]))
    assert (wheel.name, wheel.extras) == ("corpusveil", {"s3"})
    assert str(wheel.url).endswith("/a%20b/x.whl")


@pytest.fixture(scope="module")
def little(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel with the machine code of one loop: compiling all takes a minute."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine_code, "PROGRAM", LITTLE)
        return build_wheel(tmp_path_factory.mktemp("wheel"), machine_code=True)


LITTLE = """
import numpy as np
from corpusveil.text.utf8 import encode
encode(233, np.zeros(4, np.uint8), 0)
"""
LOADED = f"""
import corpusveil
{LITTLE}
print(corpusveil.__file__, sum(encode.stats.cache_hits.values()), sum(encode.stats.cache_misses.values()))
"""


class TestMachineCode:
    def test_is_loaded_where_the_wheel_is_unpacked(self, little: Path, tmp_path: Path) -> None:
        """In another folder, at another time, numba finds the loops compiled, and compiles none of them again.

        So does another processor with the same instructions, and one whose own cache is in another folder.
        """
        zipfile.ZipFile(little).extractall(tmp_path)
        others: list[dict[str, str]] = [{}, {"NUMBA_CPU_NAME": "generic"}, {"NUMBA_CACHE_DIR": str(tmp_path / "own")}]
        for other in others if PORTABLE else [{}]:
            done = subprocess.run(
                [sys.executable, "-c", LOADED], cwd=tmp_path, capture_output=True, text=True,
                env={**os.environ, "PYTHONPATH": str(tmp_path), **other}, check=False,
            )  # fmt: skip
            assert done.stdout.split() == [str(tmp_path / "corpusveil" / "__init__.py"), "1", "0"], (other, done.stderr)

    def test_is_all_that_its_wheel_has_more(self, little: Path, tmp_path: Path) -> None:
        """And pip prefers that wheel where its tag fits, since the tag is the platform's."""
        assert any(str(tag) in little.name for tag in sys_tags())
        plain, names = (set(zipfile.ZipFile(wheel).namelist()) for wheel in (build_wheel(tmp_path), little))
        assert plain < names
        assert {Path(name).suffix for name in names - plain} == set(machine_code.ENDINGS)
        record = next(name for name in names if name.endswith("RECORD"))
        rows = zipfile.ZipFile(little).read(record).decode().splitlines()
        assert {row.partition(",")[0] for row in rows} == names


def test_what_cannot_be_packed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left half-made."""
    with refused("wrong-value", "extra = 'beam'"):
        package_spark(str(tmp_path / "out"), ["beam"])
    with monkeypatch.context() as patch, refused("missing-package", "'corpusveil[package]'"):
        patch.setattr(importlib.util, "find_spec", lambda _name: None)
        package_spark(str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(package, "requirement", lambda _wheel, _extras: "no-such-package-at-all @ file:///nowhere")
    monkeypatch.setattr(package, "build_wheel", lambda folder, **_: folder / "x.whl")
    with refused("broken-installation", "corpusveil.pex"):
        package_spark(str(tmp_path / "out"))
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.packaged
def test_a_cluster_runs_everything_from_an_empty_home(tmp_path: Path) -> None:
    """Counted, scored, tokenized, trained and privatized by two workers that have no packages of their own."""
    pytest.importorskip("pex")
    from benchmarks import cluster

    packed, home = tmp_path / "packed", tmp_path / "home"
    for folder in (home, tmp_path / "cluster", tmp_path / "ground"):
        folder.mkdir()
    package_spark(str(packed))
    names = zipfile.ZipFile(packed / "corpusveil.pex").namelist()
    assert any("numpy" in name for name in names)
    shipped = {Path(name).name for name in names if name.endswith(machine_code.ENDINGS)}
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
    unpacked = home / ".cache" / "pex"  # where pex unpacks the file; nothing else brought packages
    assert unpacked.exists()
    assert [path for path in home.rglob("site-packages") if not path.is_relative_to(unpacked)] == []
    assert {path.name for end in machine_code.ENDINGS for path in home.rglob(f"*{end}")} == shipped, "some was compiled"
    for command in (*flow(texts, here, "local"), release(ground, here, "local")):
        succeeds(*[str(word) for word in command])
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
