"""What a release of the package holds: built, checked, installed in an empty environment, and used as a user does."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

import corpusveil
from scripts import bill_of_materials

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = tomllib.loads((ROOT / "uv.lock").read_text())
BARE_MEGABYTES = 700


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    sister = tomllib.loads((ROOT / "evaluate" / "pyproject.toml").read_text())["project"]
    assert sister["version"] == PROJECT["version"]
    assert f"corpusveil=={PROJECT['version']}" in sister["dependencies"]
    assert PROJECT["optional-dependencies"]["evaluate"] == [f"corpusveil-evaluate=={PROJECT['version']}"]
    assert PROJECT["version"] == corpusveil.__version__
    space = tomllib.loads((ROOT / "spaces" / "en" / "pyproject.toml").read_text())["project"]
    for project in (PROJECT, sister, space):
        locked = [package["version"] for package in LOCK["package"] if package["name"] == project["name"]]
        assert locked == [project["version"]], project["name"]
    assert f"\nversion: {corpusveil.__version__}\n" in citation
    assert (ROOT / "CHANGELOG.md").read_text().count(f"## {corpusveil.__version__.partition('.dev')[0]}") == 1


def test_every_distribution_holds_the_licence() -> None:
    """As a file: a link to that of the repository is a dangling one in an archive."""
    for folder in ("spaces/en", "evaluate"):
        licence = ROOT / folder / "LICENSE"
        assert not licence.is_symlink(), folder
        assert licence.read_text() == (ROOT / "LICENSE").read_text(), folder


def test_one_page_names_each_bundled_data_file_with_its_license() -> None:
    """And nothing that is not there; the wheels with data of others carry the page."""
    page = (ROOT / "spaces" / "en" / "ATTRIBUTION.md").read_text()
    rows = re.findall(r"^\| (`.+?) \| .+? \| (.+?) \|$", page, re.MULTILINE)
    named = {name: row for row, _ in rows for name in re.findall("`(.+?)`", row)}
    there = [
        path.relative_to(ROOT).as_posix()
        for room in ("corpusveil", "evaluate", "spaces") for path in (ROOT / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in {".py", ".pyi"}
        and path.name not in {"py.typed", "LICENSE", "README.md", "ATTRIBUTION.md", "pyproject.toml"}
    ]  # fmt: skip
    assert len(there) > 20
    matched = {path: {name for name in named if fnmatch(path, name)} for path in there}
    assert [path for path, names in matched.items() if len(names) != 1] == []
    assert {*named}.difference(*matched.values()) == {"corpusveil/text/stopwords.py"}
    assert PROJECT["license-files"] == ["LICENSE", "spaces/en/ATTRIBUTION.md"]
    space = tomllib.loads((ROOT / "spaces" / "en" / "pyproject.toml").read_text())["project"]
    assert space["license-files"] == ["LICENSE", "ATTRIBUTION.md"]


def test_a_bill_of_materials_names_all_that_corpusveil_depends_on_and_no_host(tmp_path: Path) -> None:
    """In the locked versions; what its wheel requires is required, all else that an extra brings is optional."""
    (uv,) = sorted((ROOT / ".tools").glob("uv-*/bin/uv"))[-1:] or [Path("uv")]
    bill_of_materials.main(str(uv), str(tmp_path / "bill.cdx.json"))
    written = (tmp_path / "bill.cdx.json").read_text()
    assert not re.search(r"https?:|/tmp|" + re.escape(str(ROOT)), written)
    bill = json.loads(written)
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", PROJECT["version"])
    scopes = {(part["name"], part["version"]): part["scope"] for part in bill["components"]}
    (own,) = (package for package in LOCK["package"] if package["name"] == "corpusveil")
    required = set(_locked(own["dependencies"]))
    assert {part for part, scope in scopes.items() if scope == "required"} == required
    assert {*scopes} == required.union(*map(_locked, own["optional-dependencies"].values()))


def _locked(needed: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Return name and version of all locked packages that these dependencies of corpusveil lead to."""
    left, seen = [(part["name"], *part.get("extra", ())) for part in needed], {("corpusveil",)}
    while left:
        seen.add(here := left.pop())
        for package in LOCK["package"]:
            if package["name"] == here[0]:
                groups = [package.get("optional-dependencies", {}).get(extra, ()) for extra in here[1:]]
                parts = [*package.get("dependencies", ()), *(part for group in groups for part in group)]
                left += {(part["name"], *part.get("extra", ())) for part in parts} - seen
    names = {name for name, *_ in seen} - {"corpusveil"}
    return {(package["name"], package["version"]) for package in LOCK["package"] if package["name"] in names}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the index gets, by the recipe of ``make distributions``."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(["make", "wheels", f"DIST={folder}"], cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def python(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the package and its space, and with what they need."""
    wheels = built.glob("corpusveil/*.whl"), built.glob("corpusveil-space-en/*.whl")
    return environment(tmp_path_factory.mktemp("environment"), *(str(wheel) for (wheel,) in wheels))


def environment(folder: Path, *what: str) -> Path:
    """Make an empty environment in a folder, install something in it, and return its interpreter."""
    venv.create(folder, with_pip=False)
    interpreter = folder / "bin" / "python"
    install(interpreter, *what)
    return interpreter


def install(interpreter: Path, *what: str) -> None:
    command = [sys.executable, "-m", "pip", "--python", str(interpreter), "install", "--quiet", *what]
    if subprocess.run([sys.executable, "-m", "pip", "--version"], check=False, capture_output=True).returncode:
        (uv,) = sorted((ROOT / ".tools").glob("uv-*/bin/uv"))[-1:]
        command = [str(uv), "pip", "install", "--quiet", "--python", str(interpreter), *what]
    subprocess.run(command, check=True)


@pytest.mark.packaged
def test_set_up_by_pip_has_the_packages_of_the_lock_where_uv_reaches_no_index(tmp_path: Path) -> None:
    """Behind a proxy, a mirror or a certificate that pip alone knows of: with uv's own fetching turned off."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    away = {**os.environ, "UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    done = subprocess.run(
        ["sh", "scripts/setup.sh", "demo"], cwd=clone, env=away, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "fetching the same ones with pip" in done.stderr
    listed = subprocess.run(
        [clone / ".venv" / "bin" / "python", "-c",
         "from importlib.metadata import distributions as d; print(*(f'{x.name} {x.version}' for x in d()), sep='|')"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    installed = {re.sub(r"[-_.]+", "-", pair).lower() for pair in listed.stdout.strip().split("|")}
    locked = {re.sub(r"[-_.]+", "-", f"{package['name']} {package['version']}") for package in LOCK["package"]}
    assert {"pyspark", "apache-beam", "corpusveil"} <= {pair.partition(" ")[0] for pair in installed}
    assert installed - locked == set()


@pytest.mark.packaged
class TestARelease:
    def test_passes_the_check_of_the_index(self, built: Path) -> None:
        files = [str(path) for ending in ("whl", "tar.gz") for path in built.glob(f"*/*.{ending}")]
        assert len(files) == 8
        done = subprocess.run(
            [sys.executable, "-m", "twine", "check", "--strict", *files], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout

    def test_holds_the_package_and_nothing_else(self, built: Path) -> None:
        """In the wheel the package with its types; in the source what builds and tests it, and no key or cache."""
        (wheel,), (source,) = built.glob("corpusveil/*.whl"), built.glob("corpusveil/*.tar.gz")
        names = zipfile.ZipFile(wheel).namelist()
        assert {name.partition("/")[0].partition("-")[0] for name in names} == {"corpusveil"}
        assert any(name.endswith("ATTRIBUTION.md") for name in names)
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

    def test_works_in_an_empty_environment_from_wheels_and_from_the_source_archive(
        self, built: Path, tmp_path: Path
    ) -> None:
        """Outside the clone, with an empty home, and with nothing but a package index and what is built."""
        links = [
            f"--find-links={built / name}"
            for name in ("corpusveil-space-en", "corpusveil-evaluate", "corpusveil-spans")
        ]
        for ending in ("whl", "tar.gz"):
            (package,) = built.glob(f"corpusveil/*.{ending}")
            folder = tmp_path / ending
            programs = environment(folder / "environment", f"{package}[en,spans,evaluate]", *links).parent
            home = folder / "home"
            home.mkdir()
            for command in (
                ["corpusveil", "demo"], ["corpusveil", "evaluate", "--help"],
                ["corpusveil", "evaluate", "study", "--list"],
                ["python", "-c", "import sys, corpusveil, corpusveil_evaluate; print(sys.path, corpusveil.__file__)"],
            ):  # fmt: skip
                done = subprocess.run(
                    [programs / command[0], *command[1:]], cwd=home, capture_output=True, text=True, check=False,
                    env={"HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin"},
                )  # fmt: skip
                assert done.returncode == 0, (ending, command, done.stderr)
                assert str(ROOT) not in done.stdout + done.stderr, (ending, command)
            assert (home / "demo-output" / "index.html").exists(), ending
