"""Files at a store: created once, shown whole, read whole, never from a stale listing."""

from __future__ import annotations

import itertools
import multiprocessing
import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
import s3fs

import corpusveil as cv
from corpusveil.storage import files, home, remote
from tests.calls import refused
from tests.objects.conftest import Place, everywhere
from tests.objects.proxy import Proxy
from tests.objects.store import Store

PART_BYTES, READ_BYTES = 5 << 20, 2 << 20
"""The least that S3 takes as a part, so that a small file has several parts."""
LARGE = 2 * PART_BYTES + (3 << 20)
pytestmark = pytest.mark.usefixtures("hasty", "small_parts")


class Stop(Exception):
    """Not an error of anything."""


def read_into(got: list[bytes], url: str) -> None:
    with files.open_read(url) as file:
        while data := file.read(1 << 20):
            got.append(data)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "PART_BYTES", PART_BYTES)
    monkeypatch.setattr(remote, "READ_BYTES", READ_BYTES)


@pytest.fixture(scope="module")
def large() -> bytes:
    return random.Random(0).randbytes(LARGE)


def write(url: str, data: bytes, stop_at: int | None = None) -> None:
    with files.open_write(url) as file:
        for start in range(0, len(data), 1 << 20):
            if start == stop_at:
                raise Stop
            file.write(data[start : start + (1 << 20)])


class TestCreated:
    """Of all that create one file at once, exactly one does."""

    @everywhere
    def test_by_a_condition_that_the_store_decides(self, store: Store, proxy: Proxy, url: str) -> None:
        """The control: a plain write tells nobody what it overwrote."""
        assert files.create_bytes(f"{url}/a", b"1")
        assert not files.create_bytes(f"{url}/a", b"2")
        assert files.read_bytes(f"{url}/a") == b"1"
        sent = [(target, headers) for method, target, headers in proxy.log if method == store.write_method]
        assert len(sent) == 2
        for target, headers in sent:
            assert "ifGenerationMatch=0" in target or headers.get("If-None-Match") == "*"
        files.write_bytes(f"{url}/a", b"3")
        assert files.read_bytes(f"{url}/a") == b"3"

    @everywhere
    def test_an_answer_that_was_lost_counts_as_made(
        self, store: Store, url: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another conflict is no file: a ledger would take an entry for written that is not."""
        rule = proxy.rule(store.write_method, "/a$|name=a", "lose", times=1)
        assert files.create_bytes(f"{url}/a", b"1")
        assert rule.hits == 1
        assert files.read_bytes(f"{url}/a") == b"1"
        monkeypatch.setattr(files, "_CREATE_SECONDS", 1.0)
        proxy.rule(store.write_method, "/b$|name=b", "refuse", status=409, code="ContainerBeingDeleted")
        with refused("work-failed", f"{url}/b"):
            files.create_bytes(f"{url}/b", b"1")

    def test_beside_another_that_is_being_decided(
        self, url: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is tried again, for a while."""
        conflict = {"status": 409, "code": "ConditionalRequestConflict"}
        rule = proxy.rule("PUT", "/a$", "refuse", times=2, **conflict)
        assert files.create_bytes(f"{url}/a", b"1")
        assert rule.hits == 2
        monkeypatch.setattr(files, "_CREATE_SECONDS", -1.0)
        proxy.rule("PUT", "/b$", "refuse", **conflict)
        with refused("work-failed", f"{url}/b"):
            files.create_bytes(f"{url}/b", b"1")


class TestWritten:
    """An object appears whole, or not at all, and nothing is left of it at the store."""

    @everywhere
    def test_there_and_back(self, proxy: Proxy, store: Store, bucket: str, url: str, large: bytes) -> None:
        """What was written is read, of any size, and appears when it is whole."""
        for size in (0, 1, 3 << 20, PART_BYTES, PART_BYTES + 1, LARGE):
            with files.open_write(f"{url}/a/{size}") as file:
                file.write(large[:size])
                assert not files.exists(f"{url}/a/{size}")
            assert files.size(f"{url}/a/{size}") == size
            assert files.read_bytes(f"{url}/a/{size}") == files.read_if_there(f"{url}/a/{size}") == large[:size]
            assert store.client.cat_file(f"{bucket}/a/{size}") == large[:size]
            if store.scheme == "s3":
                assert (proxy.seen("POST", rf"/{size}\?uploads") == 1) == (size >= 2 * PART_BYTES)
        assert len(files.listing(f"{url}/a")) == 6
        assert files.exists(f"{url}/a")
        assert files.size(f"{url}/a") is None
        files.write_bytes(f"{url}/ab", b"beside")
        for _ in range(2):
            files.remove(f"{url}/a/1")
        assert files.read_if_there(f"{url}/a/1") is None
        for _ in range(2):
            files.remove_folder(f"{url}/a")
        assert list(store.objects(url)) == ["ab"]
        assert store.unfinished(bucket) == []

    @everywhere
    @pytest.mark.parametrize("before", [None, b"what was there"])
    @pytest.mark.usefixtures("s3")
    def test_an_exception_inside_leaves_all_as_it_was(
        self, store: Store, bucket: str, url: str, large: bytes, before: bytes | None
    ) -> None:
        if before is not None:
            store.client.pipe_file(f"{bucket}/a", before)
        for stop_at in (1 << 20, 6 << 20, 12 << 20):
            with pytest.raises(Stop):
                write(f"{url}/a", large, stop_at)
            assert store.client.find(bucket) == ([] if before is None else [f"{bucket}/a"])
            assert before is None or store.client.cat_file(f"{bucket}/a") == before
            assert store.unfinished(bucket) == []

    @everywhere
    def test_a_write_that_fails_leaves_nothing(
        self, store: Store, bucket: str, url: str, large: bytes, proxy: Proxy
    ) -> None:
        """Whichever it is of several requests that fails."""
        faults = [("PUT POST", "new", 0, 1 << 20), ("PUT POST", "new", 1, 5 * LARGE)]  # adlfs sends 50 MiB in one
        if store.scheme == "s3":
            parts = (("POST", r"\?uploads"), ("PUT", "partNumber=1"), ("PUT", "partNumber=3"), ("POST", "uploadId="))
            faults = [(*part, 0, LARGE) for part in parts]
        for method, where, after, size in faults:
            proxy.clear()
            rule = proxy.rule(method, where, "refuse", after=after)
            with refused("work-failed", f"{url}/new"):
                write(f"{url}/new", (large * 5)[:size])
            assert rule.hits > 0, where
            assert store.client.find(bucket) == store.unfinished(bucket) == [], where

    @pytest.mark.usefixtures("s3")
    def test_a_store_that_keeps_less_than_it_was_given_is_noticed(
        self, bucket: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put = s3fs.S3FileSystem.pipe_file
        monkeypatch.setattr(s3fs.S3FileSystem, "pipe_file", lambda fs, path, data: put(fs, path, data[:-1]))
        with refused("work-failed", "4 of the 5 bytes"):
            files.write_bytes(f"s3://{bucket}/a", b"12345")


class TestRead:
    """What is read is the whole object, or an error."""

    @pytest.fixture
    def object(self, store: Store, bucket: str, url: str, large: bytes) -> str:
        store.client.pipe_file(f"{bucket}/a", large)
        return f"{url}/a"

    @everywhere
    def test_a_store_that_answers_wrongly(self, proxy: Proxy, object: str, large: bytes) -> None:
        """Half an answer is never taken for a whole one."""
        for how, after in itertools.product(("shorten", "empty", "cut", "reset"), (0, 1)):
            proxy.clear()
            rule = proxy.rule("GET", r"/a(\?alt=media.*)?$", how, after=after)
            received: list[bytes] = []
            with refused("work-failed", object):
                read_into(received, object)
            assert rule.hits > 0
            assert len(b"".join(received)) < len(large)
            assert large.startswith(b"".join(received))

    def test_another_part_or_other_bytes(self, proxy: Proxy, object: str, large: bytes) -> None:
        """S3 sends a checksum with a whole object only."""
        small = large[:READ_BYTES]
        for how, after, data in (("whole", 1, large), ("garble", 0, small)):
            proxy.clear()
            files.write_bytes(object, data)
            rule = proxy.rule("GET", "/a$", how, after=after)
            received: list[bytes] = []
            with refused("work-failed", object):
                read_into(received, object)
            assert rule.hits > 0
            assert data.startswith(b"".join(received))

    @everywhere
    @pytest.mark.usefixtures("s3")
    def test_anywhere_in_any_size_but_not_while_it_is_replaced(self, object: str, large: bytes) -> None:
        with files.open_read(object) as file:
            for start, length in ((5, 3), (LARGE - 7, 100), (READ_BYTES - 1, 2), (0, 20 << 20)):
                file.seek(start)
                assert file.read(length) == large[start : start + length]
            file.seek(-3, 2)
            assert file.read() == large[-3:]
            assert file.read() == b""
        with files.open_read(object) as file:
            assert file.read(10) == large[:10]
            files.write_bytes(object, large[::-1])
            with refused("work-failed"):
                file.read()
                file.raw.refuse_changed()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("s3")
def test_what_another_process_wrote_is_seen_at_once(store: Store, bucket: str) -> None:
    """fsspec remembers listings for ever; other workers write all the time."""
    folder = f"s3://{bucket}/folder"
    store.client.pipe_file(f"{folder}/a", b"1")
    assert files.listing(folder) == ["a"]
    assert not files.exists(f"{folder}/b")
    store.client.pipe_file(f"{folder}/b", b"1")
    store.client.pipe_file(f"{folder}/a", b"123")
    store.client.pipe_file(f"{folder}/", b"")
    assert files.exists(f"{folder}/b")
    assert files.size(f"{folder}/a") == 3
    assert files.listing(folder) == ["a", "b"]
    store.client.rm_file(f"{folder}/a")
    assert not files.exists(f"{folder}/a")
    assert files.size(f"{folder}/a") is None
    files.remove(f"{folder}/b")
    files.remove(f"{folder}/b")
    assert files.listing(folder) == []


class TestOfASpace:
    """A space at a store is copied to a machine once, and only whole."""

    @pytest.fixture(autouse=True)
    def cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        monkeypatch.setenv("CORPUSVEIL_CACHE", str(tmp_path / "cache"))
        return tmp_path / "cache" / "artifacts"

    def test_two_processes_fetch_it_once(self, proxy: Proxy, place: Place) -> None:
        """The second waits for the copy of the first."""
        url, names = f"{place.root}/space", ["vectors.npy", "lists.npy", "vocabulary.parquet"]
        proxy.rule("GET", r"\.npy", "delay", seconds=0.3)
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
            list(pool.map(files.exists, [url, url]))
            one, two = pool.map(home.local_folder, [url] * 2, [names] * 2, ["d" * 64] * 2)
        assert one == two
        assert sorted(path.name for path in one.iterdir()) == sorted(names)
        assert proxy.seen("GET", r"/space/vectors\.npy") == 1

    def test_an_interrupted_copy_is_no_copy(self, proxy: Proxy, place: Place, cache: Path) -> None:
        """The next process fetches it again."""
        proxy.rule("GET", r"/space/lists\.npy", "cut")
        with refused("work-failed", "lists.npy"):
            cv.load_space(f"{place.root}/space")
        assert [path.suffix for path in cache.iterdir()] == [".lock"]
        proxy.clear()
        assert cv.load_space(f"{place.root}/space") == place.ground.space
