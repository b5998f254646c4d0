"""Private files have mode 0600 in folders of mode 0700, whatever the umask, and so have their temporary files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpusveil.storage import files
from tests.calls import QUIET, save, succeeds
from tests.cli.test_run import basic
from tests.engines.corpora import Ground, encode, rows, write_shard

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


def test_what_is_open_is_found(tmp_path: Path) -> None:
    """The test itself: one file that is too open."""
    files.write_bytes(str(tmp_path / "records" / "x.json"), b"{}")
    with pytest.raises(AssertionError):
        refuse_open(tmp_path / "records")
