"""Private files are closed to others whatever the umask; what others could have written in a cache is refused."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import corpusveil as cv
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage import files
from tests.calls import QUIET, refused, save, succeeds
from tests.cli.test_run import basic
from tests.contracts.spaces import words_of
from tests.engines.corpora import Ground, encode, rows, write_shard
from tests.mechanisms.spaces import normal

BAD = b'{"text": 1}\n'


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """The widest umask: what it leaves closed, every other does."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Every file that a run creates, with the mode it is created with, before anything is done to it."""
    made: list[tuple[str, int]] = []
    whole = os.open

    def watched(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        descriptor = whole(path, flags, mode, dir_fd=dir_fd)
        if flags & os.O_CREAT:
            made.append((os.fspath(path), stat.S_IMODE(os.fstat(descriptor).st_mode)))
        return descriptor

    monkeypatch.setattr(os, "open", watched)
    return made


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def refuse_open(*folders: Path) -> None:
    """Fail unless every file of these folders is 0600 and every folder 0700, the folders themselves too."""
    for folder in folders:
        found = [folder, *folder.rglob("*")]
        assert any(path.is_file() for path in found), folder
        assert {str(path): oct(mode(path)) for path in found if mode(path) != (0o700 if path.is_dir() else 0o600)} == {}


def test_of_a_run(ground: Ground, tmp_path: Path, opened: list[tuple[str, int]]) -> None:
    """Records, pieces on the way, and the ledger."""
    source = tmp_path / "in" / "x.jsonl"
    source.parent.mkdir()
    source.write_bytes(encode(rows(9000, 1, words=2)) + BAD)
    more = ("--on-bad-rows", "drop", "--rows-per-task", "8192")
    counted = ("--ledger", tmp_path / "ledger", "--unit", "content", "--cap", "1e6")
    succeeds(*ground.arguments(source, tmp_path / "new" / "out", *more, *counted))
    records = tmp_path / "new" / "out.records"
    refuse_open(records, tmp_path / "ledger")
    assert mode(tmp_path / "new") == 0o755
    private = [(path, found) for path, found in opened if str(records) in path or str(tmp_path / "ledger") in path]
    assert len(private) > 10
    assert [path for path, found in private if found != 0o600] == []
    assert any("pieces" in path for path, _ in private)


def test_of_a_schedule(ground: Ground, tmp_path: Path, opened: list[tuple[str, int]]) -> None:
    """Its state, the leases in it, and the records of its runs."""
    write_shard(tmp_path / "in" / "x.jsonl", rows(5, 1))
    values = basic(space={"path": str(ground.space_folder)}, key={"path": str(ground.key)})
    succeeds("schedule", save(tmp_path / "release.toml", values), *QUIET)
    refuse_open(tmp_path / "out.records")
    private = [found for path, found in opened if ".records" in path]
    assert set(private) == {0o600}


def test_public_files_are_public_and_not_written_by_others(tmp_path: Path) -> None:
    files.write_bytes(str(tmp_path / "a" / "b" / "x.json"), b"{}")
    assert [mode(tmp_path / name) for name in ("a", "a/b", "a/b/x.json")] == [0o755, 0o755, 0o644]
    with pytest.raises(AssertionError):
        refuse_open(tmp_path / "a")


ROOT = os.geteuid() == 0


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CORPUSVEIL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class TestTheCache:
    @pytest.mark.parametrize(
        ("place", "how"),
        [("", "others"), ("artifacts", "owner"), ("artifacts/*", "link"), ("artifacts/*/vectors.npy", "group"),
         ("artifacts/*/lists.npy", "owner"), ("artifacts/*/vectors.npy", "link")],
    )  # fmt: skip
    def test_a_copy_of_a_space_that_others_may_write_to_is_refused(
        self, cache: Path, tmp_path: Path, place: str, how: str
    ) -> None:
        """It is mapped after it was compared with its digest; nobody may change it, its folders or the cache then."""
        space = build_space(Vectors(words_of(30), normal(30, 4))).save("memory://poisoned/space")
        assert cv.load_space("memory://poisoned/space") == space
        paths = cache.glob(place) if place else [cache]
        (path,) = (path for path in paths if not path.name.endswith(".lock"))
        if how == "link":
            shutil.move(path, tmp_path / "elsewhere")
            path.symlink_to(tmp_path / "elsewhere")
        elif how == "owner":
            if not ROOT:
                pytest.skip("only root gives files away")
            os.chown(path, 12345, -1)
        else:
            path.chmod(path.stat().st_mode | (0o020 if how == "group" else 0o002))
        with refused("unusable-address", str(path)):
            cv.load_space("memory://poisoned/space")

    def test_compiled_loops_are_not_loaded_from_a_folder_of_others(self, tmp_path: Path) -> None:
        """numba runs what it finds there."""
        folder = tmp_path / "numba"
        folder.mkdir()
        folder.chmod(0o777)
        call = [sys.executable, "-m", "corpusveil", "mechanisms"]
        done = subprocess.run(
            call, env={**os.environ, "NUMBA_CACHE_DIR": str(folder)}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert done.stderr.startswith(f"corpusveil: {folder}: other users can write to this")
