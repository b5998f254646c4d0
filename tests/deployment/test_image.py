"""The Dockerfile, whose commands make an environment that works; the folder of the image of Dataflow's workers."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata as distributions
from pathlib import Path

import pytest
from dockerfile_parse import DockerfileParser

import corpusveil
from corpusveil.cli.derived import options_of
from corpusveil.cli.main import split_arguments
from corpusveil.deployment import dataflow_image
from corpusveil.deployment.wheel import build_wheel
from tests.calls import command, refused

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
    variables |= {"EXTRAS": "--extra en --extra s3", "PATH": f"{uv.parent}:{os.environ['PATH']}", "VIRTUAL_ENV": ""}
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
    paths = dataflow_image.package_dataflow(str(made), IMAGE)
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
        told = dataflow_image.commands(str(folder), IMAGE)
        assert told["image"] == f"gcloud builds submit {folder} --tag {IMAGE}"
        own, options, _ = split_arguments(shlex.split(told["run"])[1:])
        known = {f"--{name.replace('_', '-')}" for name in options_of("privatize")}
        assert {word for word in own if word.startswith("--")} <= known
        assert f"--sdk_container_image={IMAGE}" in options

    def test_another_image_and_options_of_the_other_kind_are_refused(self, tmp_path: Path) -> None:
        for image in ("corpusveil", "gcr.io/p/i", "gcr.io/p/i:1\nRUN x", "gcr.io/p/i:$X", "-x"):
            with refused("wrong-value", "image"):
                dataflow_image.package_dataflow(str(tmp_path / "out"), image)
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
    code = "import corpusveil.errors as e, importlib.metadata as m; print(e.__file__, m.version('corpusveil'))"
    python, place = [sys.executable, "-S", "-c", code], {"PYTHONPATH": str(first)}
    done = subprocess.run(python, env=place, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"{first}/corpusveil/errors.py", corpusveil.__version__]
