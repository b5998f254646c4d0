"""The Dockerfile: a linter finds nothing in it, and its commands make an environment that works."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from dockerfile_parse import DockerfileParser

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
