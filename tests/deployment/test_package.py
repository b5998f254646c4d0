"""What is packed: the environment for Spark's cluster, the Dockerfile, and the image of Dataflow's workers."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest
from dockerfile_parse import DockerfileParser

from tests.calls import succeeds
from tests.collocations.corpora import make, write
from tests.deployment.packing import PAGE, pack
from tests.engines.corpora import Ground, make_ground, release_files
from tests.engines.processes import Cluster, finished


@pytest.mark.packaged
def test_a_cluster_runs_everything_from_an_empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, scored, tokenized, trained and privatized by two workers that have no packages of their own."""
    pytest.importorskip("pex")
    home = tmp_path / "home"
    for folder in (home, tmp_path / "cluster", tmp_path / "ground"):
        folder.mkdir()
    packed = pack(tmp_path / "packed")
    names = zipfile.ZipFile(packed).namelist()
    assert any("numpy" in name for name in names)
    assert not any("pyspark" in name or "apache_beam" in name for name in names)
    ground = make_ground(tmp_path / "ground")
    texts = write(tmp_path / "texts", make(3000, 3), 4)
    here, there = tmp_path / "here", tmp_path / "there"
    space = ("--vectors", there / "vectors", "--output", there / "space")
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ}
    cluster = Cluster(tmp_path / "cluster", given={**kept, "HOME": str(home), "PYTHONNOUSERSITE": "1"})
    log = home / "log"
    python = ("--conf", f"spark.pyspark.python=./{packed.name}", "--conf", f"spark.pyspark.driver.python={packed}")
    submit = ("--files", str(packed), *python, "--conf", "spark.speculation=true")
    try:
        cluster.start()
        for command in (*flow(texts, there, "spark"), ["space", *space], release(ground, there, "spark")):
            assert finished(cluster.submit([str(word) for word in command], log, *submit)) == 0, log.read_text()
            assert sys.prefix not in log.read_text()
    finally:
        cluster.stop()
    unpacked = home / ".cache" / "pex"  # where pex unpacks the file; nothing else brought packages
    assert unpacked.exists()
    assert [path for path in home.rglob("site-packages") if not path.is_relative_to(unpacked)] == []
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


ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
HADOLINT = Path(sys.executable).with_name("hadolint")


def _findings(file: Path) -> str:
    return subprocess.run([HADOLINT, file], capture_output=True, text=True, check=False).stdout


@pytest.mark.skipif(not HADOLINT.exists(), reason="needs hadolint, which has no build for this platform")
def test_a_linter_finds_nothing(tmp_path: Path) -> None:
    """It does find a user with all rights."""
    assert _findings(DOCKERFILE) == ""
    bad = tmp_path / "Dockerfile"
    bad.write_text(DOCKERFILE.read_text().replace("USER 10001", "USER root"))
    assert "DL3002" in _findings(bad)


def test_the_image_of_dataflow_s_workers_is_that_of_this_version() -> None:
    """The Dockerfile of docs/clusters.md: Beam's own image, in the version that is locked, and this package."""
    (block,) = re.findall(r"```dockerfile\n(.*?)```", PAGE, re.DOTALL)
    parser = DockerfileParser(fileobj=io.BytesIO(block.encode()), env_replace=False)
    (image,) = parser.parent_images
    assert re.fullmatch(rf"apache/beam_python3\.1[1-4]_sdk:{metadata.version('apache-beam')}", image)
    (run,) = (step["value"] for step in parser.structure if step["instruction"] == "RUN")
    assert shlex.split(run)[-1] == "corpusveil[dataflow]==VERSION"
