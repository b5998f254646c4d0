"""What is packed: the environment for Spark's cluster, the Dockerfile, and the image of Dataflow's workers."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib import metadata as distributions
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest
from dockerfile_parse import DockerfileParser
from packaging.requirements import Requirement

import corpusveil
from corpusveil.cli.main import split_arguments
from corpusveil.deployment import package
from corpusveil.deployment.package import LEFT_OUT, package_spark
from corpusveil.deployment.wheel import build_wheel, constraints, requirement
from corpusveil.pipelines.flows import options_of
from corpusveil.transforms.handshake import versions
from tests.calls import command, refused, succeeds
from tests.collocations.corpora import make, write
from tests.deployment import standalone
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


def test_what_cannot_be_packed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left half-made."""
    with refused("wrong-setting", "extra = 'beam'"):
        package_spark(str(tmp_path / "out"), ["beam"])
    with monkeypatch.context() as patch, refused("missing-package", "'corpusveil[package]'"):
        patch.setattr(importlib.util, "find_spec", lambda _name: None)
        package_spark(str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(package, "requirement", lambda _wheel, _extras: "no-such-package-at-all @ file:///nowhere")
    monkeypatch.setattr(package, "build_wheel", lambda folder, **_: folder / "x.whl")
    with refused("missing-package", "corpusveil.pex"):
        package_spark(str(tmp_path / "out"))
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.packaged
def test_a_cluster_runs_everything_from_an_empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, scored, tokenized, trained and privatized by two workers that have no packages of their own."""
    pytest.importorskip("pex")
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
    with standalone.standalone(tmp_path / "cluster", given=standalone.bare(home)) as master:
        submit = standalone.submit(packed, master, "--conf", "spark.speculation=true")
        for command in (*flow(texts, there, "spark"), ["space", *space], release(ground, there, "spark")):
            done = subprocess.run(
                [*submit, *map(str, command)], env=standalone.bare(home), cwd=home, capture_output=True, text=True,
                check=False, timeout=900,
            )  # fmt: skip
            assert done.returncode == 0, (command, done.stderr[-2000:])
            assert sys.prefix not in done.stdout + done.stderr
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


@pytest.mark.packaged
def test_its_commands_make_an_environment_that_works(tmp_path: Path) -> None:
    """Run without a builder, of nothing but the copied files: the environment outlives the source."""
    source, environment = tmp_path / "source", tmp_path / "opt"
    source.mkdir()
    parser = DockerfileParser(fileobj=io.BytesIO(DOCKERFILE.read_bytes()), env_replace=False)
    (uv,) = (ROOT / ".tools").glob("uv-*/bin/uv")
    variables = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(environment), "UV_PYTHON": sys.executable}
    variables |= {
        "EXTRAS": "--extra en --extra spans --extra s3",
        "PATH": f"{uv.parent}:{os.environ['PATH']}",
        "VIRTUAL_ENV": "",
    }
    for step in parser.structure:
        words = step["value"].split()
        if step["instruction"] == "COPY" and "--from" not in step["value"]:
            for name in words[:-1]:
                into = source / Path(words[-1]).name if (ROOT / name).is_dir() else source / name
                copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
                copy(ROOT / name, into)
        elif step["instruction"] == "RUN" and words[0] == "uv":
            subprocess.run(["sh", "-c", step["value"]], cwd=source, env=variables, check=True, capture_output=True)
    shutil.rmtree(source)
    demo = [environment / "bin/corpusveil", "demo", "--output", tmp_path / "demo"]
    done = subprocess.run(demo, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    known = [environment / "bin/corpusveil", "mechanisms", "ring-geometric", "--space", "en"]
    subprocess.run(known, cwd=tmp_path, check=True, capture_output=True)
    assert not list((environment / "bin").glob("pytest*"))


IMAGE = "europe-docker.pkg.dev/project/private/corpusveil:1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder."""
    made = tmp_path_factory.mktemp("image")
    paths = package.package_dataflow(str(made), IMAGE)
    assert sorted(path.name for path in paths) == sorted(path.name for path in made.iterdir())
    return made


class TestFolder:
    def test_the_dockerfile_parses_and_installs_everything(self, folder: Path) -> None:
        """Beam's own image of a worker, with all packages in the versions of this environment."""
        parser = DockerfileParser(str(folder), env_replace=False)
        steps = [(step["instruction"], step["value"]) for step in parser.structure]
        python = ".".join(map(str, sys.version_info[:2]))
        assert parser.parent_images == [f"apache/beam_python{python}_sdk:{distributions.version('apache-beam')}"]
        copied = [word for name, value in steps if name == "COPY" for word in shlex.split(value)[:-1]]
        assert all((folder / word).is_file() for word in copied if not word.startswith(("-", "/")))
        (run,) = (shlex.split(value) for name, value in steps if name == "RUN")
        (wheel,) = folder.glob("*.whl")
        assert run[-3:] == ["--constraint", "constraints.txt", f"./{wheel.name}[dataflow]"]
        pinned = (folder / "constraints.txt").read_text().splitlines()
        assert {f"{name}=={distributions.version(name)}" for name in ("apache-beam", "numba", "gcsfs")} <= set(pinned)

    def test_commands_name_what_was_written_and_run_as_they_are(self, folder: Path) -> None:
        told = package.dataflow_commands(str(folder), IMAGE)
        assert told["image"] == f"gcloud builds submit {folder} --tag {IMAGE}"
        own, options, _ = split_arguments(shlex.split(told["run"])[1:])
        known = {f"--{name.replace('_', '-')}" for name in options_of("privatize")}
        assert {word for word in own if word.startswith("--")} <= known
        assert f"--sdk_container_image={IMAGE}" in options

    def test_another_image_and_options_of_the_other_kind_are_refused(self, tmp_path: Path) -> None:
        for image in ("corpusveil", "gcr.io/p/i", "gcr.io/p/i:1\nRUN x", "gcr.io/p/i:$X", "-x"):
            with refused("wrong-setting", "image"):
                package.package_dataflow(str(tmp_path / "out"), image)
            assert not (tmp_path / "out").exists(), image
        for more in (["dataflow"], ["dataflow", "--image", IMAGE, "--extra", "s3"], ["spark", "--image", IMAGE]):
            ended = command("package", *more, "--output", tmp_path / "out")
            assert ended.status == 2, more
            assert "--image" in ended.err


def test_the_folder_is_written_where_no_pip_is(tmp_path: Path) -> None:
    """The environment that set-up makes has no pip, and in one that is activated no other Python is found either."""
    call = [sys.executable, "-m", "corpusveil", "package", "dataflow", "--output", str(tmp_path), "--image", IMAGE]
    done = subprocess.run(call, env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("*.whl"))) == 1


def test_the_wheel_is_whole(tmp_path: Path) -> None:
    """Every file of the package with its right hash, templates too; the same bytes again; a Python runs it."""
    first = build_wheel(tmp_path)
    before = first.read_bytes()
    assert build_wheel(tmp_path).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [first.name]
    with zipfile.ZipFile(first) as archive:
        names = archive.namelist()
        listed = list(csv.reader(archive.read(names[-1]).decode().splitlines()))
        assert [row[0] for row in listed] == names
        for path, digest, size in listed[:-1]:
            data = archive.read(path)
            told = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, size) == (f"sha256={told}", str(len(data))), path
    package = Path(corpusveil.__file__).parent
    here = {f"corpusveil/{path.relative_to(package)}" for path in package.rglob("*") if path.is_file()}
    assert {name for name in names if name.startswith("corpusveil/")} == {n for n in here if "__pycache__" not in n}
    code = "import corpusveil.transforms.handshake as h; print(h.__file__, h.versions()['corpusveil'])"
    python, place = [sys.executable, "-S", "-c", code], {"PYTHONPATH": str(first)}
    done = subprocess.run(python, env=place, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"{first}/corpusveil/transforms/handshake.py {versions()['corpusveil']}\n"
