"""Files are whole or not at all, and private ones are closed to others."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from corpusveil.errors import AddressError, InUseError
from corpusveil.storage import files, lease, remote
from corpusveil.storage.records import Record, Records
from tests.calls import refused


@pytest.fixture(params=["local", "memory", "dir"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A folder on a local disk, one of an object store, and one at a store that shows what is half written."""
    if request.param == "local":
        yield str(tmp_path / "deep" / "er")
        return
    if request.param == "dir":
        (tmp_path / "shared").mkdir()
        options = {"path": str(tmp_path / "shared"), "target_protocol": "file"}
        monkeypatch.setitem(fsspec.config.conf, "dir", options)
        yield "dir://deep/er"
        return
    yield f"memory://{tmp_path.name}/deep"
    fsspec.filesystem("memory").store.clear()


@pytest.mark.parametrize(
    "path", ["/a/b", "a/b", "./a", "~/a", "", ".", "/", "/a/", "a/../b", "//a//b", "a:b", "file:/a"]
)
def test_a_path_is_what_fsspec_takes_it_for(path: str) -> None:
    assert files.resolve(path) == fsspec.core.url_to_fs(path)


class Stop(Exception):
    """Not an error of anything."""


@pytest.mark.parametrize("before", [None, b"what was there"])
def test_an_exception_inside_leaves_all_as_it_was(folder: str, before: bytes | None) -> None:
    if before is not None:
        files.write_bytes(f"{folder}/a", before)

    with contextlib.suppress(Stop), files.open_write(f"{folder}/a") as file:
        file.write(b"x" * (5 << 20))
        raise Stop
    assert files.listing(folder) == ([] if before is None else ["a"])
    assert not files.exists(f"{folder}/a") or files.read_bytes(f"{folder}/a") == before


@pytest.mark.parametrize("size", [1, remote.PART_BYTES + 1])
def test_a_file_is_nowhere_seen_before_it_is_whole(folder: str, size: int) -> None:
    with files.open_write(f"{folder}/a") as file:
        file.write(b"x" * size)
        assert not files.exists(f"{folder}/a")
        if "://" not in folder:
            assert all(path.name.startswith(".") for path in Path(folder).iterdir())
    assert files.listing(folder) == ["a"]
    assert files.size(f"{folder}/a") == size
    assert files.read_bytes(f"{folder}/a") == b"x" * size


def test_a_file_is_created_once_only(folder: str) -> None:
    assert files.create_bytes(f"{folder}/a", b"first")
    assert not files.create_bytes(f"{folder}/a", b"second")
    assert files.read_bytes(f"{folder}/a") == b"first"
    assert files.listing(folder) == ["a"]


def test_a_creation_that_nfs_sent_twice_is_the_caller_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to the first ``link`` was lost, and the second finds the file of the first."""
    link = os.link

    def twice(source: str, target: str) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", twice)
    assert files.create_bytes(str(tmp_path / "a"), b"mine")
    assert not files.create_bytes(str(tmp_path / "a"), b"theirs")
    assert isinstance(lease.take(str(tmp_path / "lease")), lease.Lease)


def test_sweeping_removes_what_a_killed_writer_left_and_nothing_else(tmp_path: Path) -> None:
    left = tmp_path / f".part-00000.json.gz.{'0f' * 16}.part"
    others = [tmp_path / name for name in (".hidden", "part-00000.json.gz", ".nfs.part", "x.part")]
    for path in (left, *others):
        path.write_bytes(b"x")
    with files.open_write(str(tmp_path / "live")) as file:
        file.write(b"whole")
        files.sweep(str(tmp_path))
    assert sorted(tmp_path.iterdir()) == sorted([*others, tmp_path / "live"])
    assert (tmp_path / "live").read_bytes() == b"whole"
    files.sweep(str(tmp_path / "missing"))
    files.sweep("memory://anywhere")


def test_a_missing_package_is_named_by_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for package, extra, schemes in (
        ("s3fs", "s3", ("s3", "s3a")), ("gcsfs", "gcs", ("gs", "gcs")), ("adlfs", "azure", ("abfs", "abfss", "az")),
    ):  # fmt: skip
        monkeypatch.setitem(sys.modules, package, None)  # what Python does where it is not installed
        for scheme in schemes:
            monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, scheme, raising=False)
            with refused("missing-package", scheme, "//b/x", extra):
                files.exists(f"{scheme}://b/x")


def test_an_address_in_its_plain_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert files.absolute("out/") == files.absolute(f"file://{tmp_path}/x/../out") == str(tmp_path / "out")
    assert files.absolute("s3a://b/out/") == "s3://b/out"
    with refused("unusable-address", "'.'", "'..'"):
        files.absolute("s3://b/in/../out")


def test_what_can_not_be_read_or_written_is_said_by_name(tmp_path: Path) -> None:
    with refused("missing-file", "missing"):
        files.open_read(str(tmp_path / "missing"))
    with pytest.raises(AddressError):
        files.open_read(str(tmp_path))
    with refused("unusable-address", "nosuch://x"):
        files.open_read("nosuch://x")
    (tmp_path / "file").touch()
    with pytest.raises(InUseError):
        files.write_bytes(str(tmp_path / "file" / "a"), b"")


class Note(Record):
    n: int = 0


def test_records_are_created_once_listed_and_removed(folder: str) -> None:
    records = Records(folder)
    assert records.read("notes/b.json", Note) is None
    assert records.names("notes") == []
    assert records.create("notes/b.json", Note(n=1))
    assert not records.create("notes/b.json", Note(n=2))
    assert records.read("notes/b.json", Note) == Note(n=1)
    records.write("notes/a.json", Note())
    assert records.names("notes") == ["a.json", "b.json"]
    for _ in range(2):
        records.remove("notes/a.json")
    assert records.names("notes") == ["b.json"]
    files.write_bytes(f"{folder}/a.json", b'{"n": ')
    with refused("damaged-record", "a.json"):
        records.read("a.json", Note)
