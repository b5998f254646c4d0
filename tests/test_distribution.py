"""What a release of the package holds: built, checked, installed in an empty environment, and used as a user does."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import corpusveil
from scripts import readme_output
from tests.test_first_hour import assert_replaced, run_commands, shell_commands

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BARE_MEGABYTES = 700


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    sister = tomllib.loads((ROOT / "evaluate" / "pyproject.toml").read_text())["project"]
    assert sister["version"] == PROJECT["version"]
    assert f"corpusveil=={PROJECT['version']}" in sister["dependencies"]
    assert PROJECT["optional-dependencies"]["evaluate"] == [f"corpusveil-evaluate=={PROJECT['version']}"]
    assert PROJECT["version"] == corpusveil.__version__
    assert f"\nversion: {corpusveil.__version__}\n" in citation
    assert (ROOT / "CHANGELOG.md").read_text().count(f"## {corpusveil.__version__.partition('.dev')[0]}") == 1


def test_every_distribution_holds_the_licence() -> None:
    """As a file: a link to that of the repository is a dangling one in an archive."""
    for folder in ("spaces/en", "evaluate"):
        licence = ROOT / folder / "LICENSE"
        assert not licence.is_symlink(), folder
        assert licence.read_text() == (ROOT / "LICENSE").read_text(), folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution; the wheel of the space is in ``space``."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir"]
    subprocess.run([*command, str(folder), str(ROOT)], check=True, capture_output=True)
    space = [*command, str(folder / "space"), "--wheel", str(ROOT / "spaces" / "en")]
    subprocess.run(space, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def python(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with both wheels, and with what they need."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    interpreter = folder / "bin" / "python"
    install(interpreter, *map(str, built.glob("**/*.whl")))
    return interpreter


def install(interpreter: Path, *what: str) -> None:
    command = [sys.executable, "-m", "pip", "--python", str(interpreter), "install", "--quiet", *what]
    if subprocess.run([sys.executable, "-m", "pip", "--version"], check=False, capture_output=True).returncode:
        (uv,) = sorted((ROOT / ".tools").glob("uv-*/bin/uv"))[-1:]
        command = [str(uv), "pip", "install", "--quiet", "--python", str(interpreter), *what]
    subprocess.run(command, check=True)


@pytest.mark.packaged
class TestARelease:
    def test_passes_the_check_of_the_index(self, built: Path) -> None:
        files = [str(path) for path in built.glob("**/*.*") if path.is_file()]
        assert len(files) == 3
        done = subprocess.run(
            [sys.executable, "-m", "twine", "check", "--strict", *files], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout

    def test_holds_the_package_and_nothing_else(self, built: Path) -> None:
        """In the wheel the package with its types; in the source what builds and tests it, and no key or cache."""
        (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
        names = zipfile.ZipFile(wheel).namelist()
        assert {name.partition("/")[0].partition("-")[0] for name in names} == {"corpusveil"}
        assert not [name for name in names if name.endswith(".zip")], "a space is a package of its own"
        assert {"corpusveil/py.typed", "corpusveil/__init__.pyi"} <= set(names)
        with tarfile.open(source) as archive:
            held = archive.getnames()
        assert any(name.endswith("/tests/test_distribution.py") for name in held)
        assert [name for name in held if re.search(r"\.key$|/\.venv/|/\.tools/|__pycache__|/build/", name)] == []

    def test_is_small_alone(self, python: Path) -> None:
        folder = python.parents[1]
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        assert size < BARE_MEGABYTES << 20

    def test_leads_from_the_readme_s_first_commands_to_private_text(
        self, built: Path, python: Path, tmp_path: Path
    ) -> None:
        """With the extras of the README's line, without a Spark, a Beam or pandas; lines are copied as they stand."""
        extras = re.findall(r"^pip install 'corpusveil\[en,(\w+)\]'", (ROOT / "README.md").read_text(), re.MULTILINE)
        (wheel,) = built.glob("*.whl")
        install(python, f"{wheel}[{extras[0]}]")
        said = run_commands(shell_commands("README.md"), tmp_path, str(python.parent))
        assert_replaced(said, tmp_path, by_words=True)
        program = readme_output.example((ROOT / "README.md").read_text())
        done = subprocess.run(
            [python, "-c", program], cwd=tmp_path, env={"HOME": str(tmp_path)}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "[name]" in done.stdout
        assert "Sarah" not in done.stdout
