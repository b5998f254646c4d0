"""Files are whole or not at all, and private ones are closed to others; of several processes one holds a lease."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from corpusveil.errors import AddressError
from corpusveil.storage import files, lease, remote
from corpusveil.storage.lease import Lease, hold, take
from corpusveil.storage.records import Record, Records
from tests.calls import refused
from tests.engines.corpora import HANG_SECONDS


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
    """One file has one name, in records and in identities."""
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
    with pytest.raises(AddressError):
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
    with refused("damaged-artifact", "a.json"):
        records.read("a.json", Note)


def far(folder: Path) -> Path:
    """Write the lease of a process on another machine; return its file."""
    (folder / lease.LEASE).write_text(json.dumps({"host": "far", "machine": "far", "process": 1}))
    return folder / lease.LEASE


class TestOneOfSeveral:
    def test_has_it(self, tmp_path: Path) -> None:
        """Of three processes that start at once exactly one gets the lease."""
        code = "import sys; from corpusveil.storage.lease import Lease, take; got = take(sys.argv[1])"
        code += "; print(isinstance(got, Lease), flush=True); sys.stdin.read()"
        call = [sys.executable, "-c", code, str(tmp_path)]
        started = [subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        assert sorted(process.stdout.readline() for process in started) == ["False\n", "False\n", "True\n"]
        for process in started:
            process.communicate(timeout=HANG_SECONDS)

    @pytest.mark.parametrize("base", ["", "memory://lease"])
    def test_it_passes_on_when_it_ends(self, tmp_path: Path, base: str) -> None:
        """Held, it is refused with who holds it; ended, by an error too, the next one has it; old files go."""
        url = f"{base}{tmp_path}/state"
        for _ in range(3):
            held = take(url)
            assert isinstance(held, Lease)
            with contextlib.suppress(ZeroDivisionError), held:
                refused = take(url)
                assert isinstance(refused, str)
                assert str(os.getpid()) in str(refused)
                raise ZeroDivisionError
        assert files.listing(url) == []


class TestOneThatIsGone:
    def test_a_killed_process_of_this_machine_holds_nothing(self, tmp_path: Path) -> None:
        """At once, without waiting for its beat to look old."""
        code = "import sys, time; from corpusveil.storage.lease import take; take(sys.argv[1]).__enter__()"
        code += "; print('held', flush=True); time.sleep(60)"
        process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert isinstance(take(str(tmp_path)), str)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        began = time.monotonic()
        assert isinstance(take(str(tmp_path)), Lease)
        assert time.monotonic() - began < lease.PATIENCE_SECONDS / 2

    def test_one_of_another_machine_is_watched(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A lease that stays as it is expires; one that is written again, however wrong its clock, does not."""
        file = far(tmp_path)
        monkeypatch.setattr(lease, "PATIENCE_SECONDS", 4)
        beat = threading.Timer(0.2, lambda: file.write_text(file.read_text().replace("}", ', "beat": 1}')))
        beat.start()
        held = take(str(tmp_path))
        assert isinstance(held, str)
        assert "far" in held
        beat.join()
        monkeypatch.setattr(lease, "PATIENCE_SECONDS", 0.4)  # a container that is killed is started at once
        assert isinstance(take(str(tmp_path)), Lease), "its last beat is no sign of life"

    def test_a_file_that_no_process_wrote_expires(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Empty, cut short, of another program, with numbers that no process or clock has, or the last of all."""
        monkeypatch.setattr(lease, "PATIENCE_SECONDS", 0.01)
        mine = json.loads(lease._me().data())
        odd = [{"process": -1}, {"process": 10**30}, {"began": "0"}]
        contents = [b"", b"[]", b"\xff", lease._me().data()[:-9], *(json.dumps(mine | each).encode() for each in odd)]
        for content in contents:
            (tmp_path / lease.LEASE).write_bytes(content)
            held = take(str(tmp_path))
            assert isinstance(held, Lease), content
            held.__exit__()
            assert list(tmp_path.iterdir()) == [], content

    def test_one_that_was_joined_knows_it(self, tmp_path: Path) -> None:
        """It then removes nothing of what its successor works on, and not its successor's lease either."""
        with hold(str(tmp_path)) as slow:
            assert slow.is_last()
            far(tmp_path)
            assert not slow.is_last()
        assert json.loads((tmp_path / lease.LEASE).read_text())["host"] == "far"

    def test_a_process_of_this_machine_that_stands_still_holds_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Compiled loops may keep a beat from being written for minutes."""
        monkeypatch.setattr(lease, "PATIENCE_SECONDS", 0.1)
        assert isinstance(take(str(tmp_path)), Lease)
        assert isinstance(take(str(tmp_path)), str)

    def test_one_that_lives_beats(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """So that another machine sees it; one whose place was taken writes nothing any more."""
        with monkeypatch.context() as patched, hold(str(tmp_path)) as held:
            held._beat()
            theirs = far(tmp_path).read_bytes()
            held._beat()
            assert (tmp_path / lease.LEASE).read_bytes() == theirs
            (tmp_path / lease.LEASE).unlink()
            patched.setattr(lease, "BEAT_SECONDS", 0.01)
            with hold(str(tmp_path)) as another:
                first = (tmp_path / lease.LEASE).read_bytes()
                while (tmp_path / lease.LEASE).read_bytes() == first:
                    time.sleep(0.01)
                assert another.is_last()
