"""Spaces by name: found where a package is installed, checked and unpacked once; otherwise a sentence."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import pytest

import corpusveil as cv
from corpusveil import registry
from corpusveil.spaces import installed
from corpusveil.spaces.vocabulary import rows_without
from tests.calls import fails, refused, succeeds
from tests.engines.corpora import WORDS, make_space, release_files

ROOT = Path(__file__).parents[2]
EN = ROOT / "spaces" / "en"
VERSIONS = {
    "3.0.0": "3c31924578d5d9f0827b0936109a264a5465dc92d957096a4a84accc9f7fce55",
    "3.1.0": "6db96fe7b6ed28b160cb9ca0daa921ff88599d825dbcbd03d38c50620106c848",
    "3.2.0": "6db96fe7b6ed28b160cb9ca0daa921ff88599d825dbcbd03d38c50620106c848",
    "4.0.0": "c9b5697e2f398149ef64162218f4a8894a69add6bbbd2f15a63acb61bf382f64",
}
"""The archive of words of each version of corpusveil-space-en: the index keeps a version as it is."""
NEEDED = "--mechanism", "ring-geometric", "--epsilon", 1, "--test-key"
FLOW = """\
[corpus]
input = ["in.txt"]
[space]
path = "{space}"
[mechanism]
name = "ring-geometric"
[budget]
epsilon = 1
[key]
path = "release.key"
[output]
path = "{output}"
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a text and a key, and an empty cache."""
    monkeypatch.setenv("CORPUSVEIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("the river was cold\n")
    cv.Key.generate().save(tmp_path / "release.key")
    return tmp_path


def recipe() -> tuple[dict[str, dict[str, object]], list[str]]:
    """Return the pyproject.toml of CONTRIBUTING.md, and the commands that pack an archive beside it."""
    page = (ROOT / "CONTRIBUTING.md").read_text().partition("## Publish a space")[2]
    (project,), (_, packing) = (
        re.findall(rf"^```{kind}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL) for kind in ("toml", "bash")
    )
    *commands, build = packing.splitlines()
    assert build == "python -m build"
    return tomllib.loads(project), commands


@pytest.fixture
def package(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """A function that packs a space of a few words as the documentation says, and installs it as pip does."""
    made: list[str] = []

    def pack(distribution: str = "corpusveil-space-de", module: str = "corpusveil_space_de") -> Path:
        folder = here / distribution
        make_space(folder / "made" / "space")
        (folder / "made" / "counts").mkdir()
        project, commands = recipe()
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        for line in commands:
            command = line.replace("corpusveil_space_de", module)
            subprocess.run(["sh", "-ec", command], cwd=folder, env={"PATH": path}, check=True)
        told = folder / f"{module}-1.0.0.dist-info"
        told.mkdir()
        (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0.0\n")
        ((group, names),) = project["project"]["entry-points"].items()  # type: ignore[attr-defined]
        lines = [f"{name} = {value}".replace("corpusveil_space_de", module) for name, value in names.items()]
        (told / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
        monkeypatch.syspath_prepend(str(folder))
        made.append(module)
        return folder / module

    yield pack
    for module in made:
        sys.modules.pop(module, None)


class TestEn:
    @pytest.mark.slow
    def test_has_no_word_of_its_list_of_offensive_ones(self) -> None:
        excluded = (EN / "corpusveil_space_en" / "excluded.txt").read_text("utf-8").split()
        assert {"molest", "molesters", "terrorist", "jews", "suicide", "rapist"} <= set(excluded)
        for name in ("en", "en-collocations"):
            words = cv.load_space(name).vocabulary.words
            offensive = set(words) - {words[row] for row in rows_without(words, excluded)}
            assert not offensive, name

    def test_and_demo_are_one_space_in_digest_and_bytes(self, here: Path) -> None:
        """On the command line, in a file and in Python; another space under the name would be another release."""
        assert cv.load_space("en") == cv.load_space("demo")
        for name in ("en", "demo"):
            succeeds("privatize", "in.txt", "--output", f"by-{name}", "--space", name, *NEEDED)
            (here / f"{name}.toml").write_text(FLOW.format(space=name, output=f"file-{name}"))
            succeeds("run", f"{name}.toml")
        for kind in ("by-{}", "file-{}"):
            assert release_files(here / kind.format("en")) == release_files(here / kind.format("demo")), kind
        make_space(here / "other")
        succeeds("privatize", "in.txt", "--output", "by-other", "--space", "other", *NEEDED)
        assert not {*release_files(here / "by-other").values()} & {*release_files(here / "by-en").values()}

    def test_is_small_and_another_archive_is_another_version(self) -> None:
        project = tomllib.loads((EN / "pyproject.toml").read_text())["project"]
        archive = EN / "corpusveil_space_en" / installed.ARCHIVE
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        assert VERSIONS[project["version"]] == digest
        assert archive.with_name("space.zip.sha256").read_text() == f"{digest}  space.zip\n"
        more = archive.parent / "collocations" / installed.ARCHIVE
        assert archive.stat().st_size + more.stat().st_size < 24 << 20
        wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["en"]
        assert wanted == [f"{project['name']}>={project['version'].partition('.')[0]},<5"]


class TestANameThatNobodyProvides:
    @pytest.fixture(autouse=True)
    def nothing_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found = metadata.entry_points

        def without_spaces(**wanted: str) -> metadata.EntryPoints:
            return metadata.EntryPoints() if wanted.get("group") == installed.SPACES.group else found(**wanted)

        monkeypatch.setattr(metadata, "entry_points", without_spaces)
        monkeypatch.setattr(registry, "_points", functools.cache(registry._points.__wrapped__))

    @pytest.mark.parametrize(
        ("name", "wanted"), [("de", "' (docs/languages.md)."), ("demo", "', or pip install corpusveil-space-en.")]
    )
    def test_is_a_sentence_with_what_to_do(self, here: Path, name: str, wanted: str) -> None:
        """No package is named but our own."""
        with refused("missing-file", name, wanted):
            cv.load_space(name)
        (here / "flow.toml").write_text(FLOW.format(space=name, output="out"))
        for words in (
            ["preview", "in.txt", "--space", name], ["run", "flow.toml"],
            ["privatize", "in.txt", "--output", "out", "--space", name, *NEEDED],
        ):  # fmt: skip
            fails(words, "missing-file", f"{name}: ", wanted)
        fails(["preview", "in.txt"], "missing-file", "en: ", "pip install corpusveil-space-en.")
        assert not (here / "out").exists()


class TestADefault:
    def test_is_the_installed_space_whatever_folders_are_there(self, here: Path) -> None:
        """Also what Python has names for; a folder goes first only where a space is named."""
        key = cv.Key.generate()
        (here / "en").mkdir()
        assert cv.release(epsilon=1.0, key=key).mechanism.space == cv.load_space("space://en")
        fails(["privatize", "in.txt", "--space", "en", "--epsilon", "1", "--output", "a"], "missing-file", "en")
        succeeds("privatize", "in.txt", "--epsilon", "1", "--key", "release.key", "--output", "b")


class TestAnotherPackage:
    def test_adds_its_space_by_the_documented_steps(self, here: Path, package: Callable[..., Path]) -> None:
        """The control: before it is installed, there is no such space."""
        with refused("missing-file", "docs/languages.md"):
            cv.load_space("de")
        package()
        assert cv.load_space("de") == make_space(here / "same")
        assert WORDS[0] in cv.load_space("de").vocabulary
        succeeds("privatize", "in.txt", "--output", "out", "--space", "de", *NEEDED)

    def test_with_a_damaged_archive_is_refused_and_leaves_nothing(
        self, here: Path, package: Callable[..., Path]
    ) -> None:
        """A single bit, or an archive cut short; restored, it opens."""
        archive = package() / "space.zip"
        whole = archive.read_bytes()
        for damaged in (whole[:-1] + bytes([whole[-1] ^ 1]), whole[: len(whole) // 2], b""):
            archive.write_bytes(damaged)
            with refused("damaged-artifact", "space.zip", "install its package again"):
                cv.load_space("de")
            fails(["preview", "in.txt", "--space", "de"], "damaged-artifact", "space.zip")
        assert {path.name for path in (here / "cache" / "spaces").glob("*/*")} == {"lock"}
        archive.write_bytes(whole)
        assert len(cv.load_space("de"))

    def test_with_a_name_that_is_taken_is_refused(self, package: Callable[..., Path]) -> None:
        """Whoever installs a second 'de' does not replace the first unseen."""
        package()
        assert len(cv.load_space("de"))
        package("another-german", "another_german")
        with refused("missing-package", "another-german, corpusveil-space-de", "uninstall"):
            cv.load_space("de")


class TestTheUnpackedArchive:
    def test_is_unpacked_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also after a process that was killed in the middle."""
        whole = zipfile.ZipFile.extractall

        def killed(archive: zipfile.ZipFile, path: Path, members: list[str]) -> None:
            whole(archive, path, members[:1])
            raise KeyboardInterrupt

        with monkeypatch.context() as first:
            first.setattr(zipfile.ZipFile, "extractall", killed)
            with pytest.raises(KeyboardInterrupt):
                cv.load_space("en")
        made = cv.load_space("en")
        monkeypatch.setattr(zipfile.ZipFile, "extractall", lambda *_: pytest.fail("unpacked again"))
        assert cv.load_space("en").digest == made.digest
        assert made.counts is not None

    def test_is_closed_to_others_whatever_the_umask(self) -> None:
        before = os.umask(0o002)
        try:
            space = cv.load_space("en")
        finally:
            os.umask(before)
        assert Path(str(space.url)).stat().st_mode & 0o777 == 0o700
