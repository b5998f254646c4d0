"""Files at a store: created once, shown whole, read whole, never from a stale listing."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
import s3fs

import corpusveil as cv
from corpusveil.errors import InUseError, StoreError
from corpusveil.storage import files, remote
from corpusveil.storage.records import Failed, Records
from tests.calls import refused
from tests.engines.corpora import make_space
from tests.objects import races
from tests.objects.conftest import Place
from tests.objects.proxy import Proxy
from tests.objects.store import Store

LARGE = 2 * remote.PART_BYTES + (3 << 20)
pytestmark = pytest.mark.usefixtures("hasty")


class Stop(Exception):
    """Not an error of anything."""


def read_into(got: list[bytes], url: str) -> None:
    with files.open_read(url) as file:
        while data := file.read(1 << 20):
            got.append(data)


@pytest.fixture(scope="module")
def large() -> bytes:
    return random.Random(0).randbytes(LARGE)


@pytest.fixture
def bucket(store: Store) -> str:
    return store.bucket()


def write(url: str, data: bytes, stop_at: int | None = None) -> None:
    with files.open_write(url) as file:
        for start in range(0, len(data), 1 << 20):
            if start == stop_at:
                raise Stop
            file.write(data[start : start + (1 << 20)])


class TestCreated:
    """Of all that create one file at once, exactly one does."""

    def test_by_threads_of_several_processes(self, proxy: Proxy, store: Store, bucket: str) -> None:
        url = f"s3://{bucket}/run.json"
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
            list(pool.map(files.exists, [url, url]))
            at = time.time() + 1.5
            made = [one for many in pool.map(races.create, [url] * 2, [0, 1], [6, 6], [at, at]) for one in many]
        assert len(made) == 12
        assert made.count(True) == 1
        winner = made.index(True)
        assert store.client.cat_file(url) == f"{winner // 6}/{winner % 6}".encode()

    def test_by_a_condition_that_the_store_decides(self, proxy: Proxy, bucket: str) -> None:
        assert files.create_bytes(f"s3://{bucket}/a", b"1")
        assert not files.create_bytes(f"s3://{bucket}/a", b"2")
        sent = [headers for method, target, headers in proxy.log if method == "PUT" and target.endswith("/a")]
        assert len(sent) == 2
        assert all(headers.get("If-None-Match") == "*" for headers in sent)

    def test_in_parts_too(self, proxy: Proxy, store: Store, bucket: str, large: bytes) -> None:
        fs = files.resolve("s3://")[0]

        def create(number: int) -> bool:
            try:
                fs.pipe_file(f"{bucket}/a", bytes([number]) + large, mode="create", chunksize=16 << 20)
            except FileExistsError:
                return False
            return True

        with ThreadPoolExecutor(3) as pool:
            made = list(pool.map(create, range(3)))
        assert made.count(True) == 1
        assert store.client.cat_file(f"{bucket}/a")[0] == made.index(True)
        assert store.unfinished(bucket) == []
        ends = [headers for method, target, headers in proxy.log if method == "POST" and "uploadId=" in target]
        assert len(ends) == 3
        assert all(headers.get("If-None-Match") == "*" for headers in ends)

    def test_without_the_condition_all_would(self, store: Store, bucket: str) -> None:
        """The races above can be lost: a plain write tells nobody what it overwrote."""
        for number in range(2):
            store.client.pipe_file(f"{bucket}/a", bytes([number]))
        assert store.client.cat_file(f"{bucket}/a") == b"\x01"

    def test_as_a_record(self, s3: Store, bucket: str) -> None:
        records = Records(f"s3://{bucket}/out.records")
        assert records.create("note.json", Failed(sentence="1"))
        assert not records.create("note.json", Failed(sentence="2"))
        assert records.read("note.json", Failed) == Failed(sentence="1")


class TestWritten:
    """An object appears whole, or not at all, and nothing is left of it at the store."""

    def test_in_one_request_or_in_parts(self, proxy: Proxy, store: Store, bucket: str, large: bytes) -> None:
        for size in (0, 1, 5 << 20, remote.PART_BYTES, remote.PART_BYTES + 1, LARGE):
            write(f"s3://{bucket}/{size}", large[:size])
            assert store.client.cat_file(f"{bucket}/{size}") == large[:size]
            assert (proxy.seen("POST", rf"/{size}\?uploads") == 1) == (size > remote.PART_BYTES)
        assert store.unfinished(bucket) == []

    @pytest.mark.parametrize("before", [None, b"what was there"])
    @pytest.mark.parametrize("stop_at", [1 << 20, 20 << 20, 32 << 20])
    @pytest.mark.usefixtures("s3")
    def test_an_exception_inside_leaves_all_as_it_was(
        self, store: Store, bucket: str, large: bytes, before: bytes | None, stop_at: int
    ) -> None:
        if before is not None:
            store.client.pipe_file(f"{bucket}/a", before)
        with pytest.raises(Stop):
            write(f"s3://{bucket}/a", large, stop_at)
        assert store.client.find(bucket) == ([] if before is None else [f"{bucket}/a"])
        assert before is None or store.client.cat_file(f"{bucket}/a") == before
        assert store.unfinished(bucket) == []

    @pytest.mark.parametrize(
        ("method", "where"),
        [
            ("POST", r"\?uploads"),
            ("PUT", "partNumber=1"),
            ("PUT", "partNumber=2"),
            ("PUT", "partNumber=3"),
            ("POST", "uploadId="),
        ],
    )
    @pytest.mark.parametrize("status", [500, 503])
    def test_a_failing_part_leaves_nothing(
        self, proxy: Proxy, store: Store, bucket: str, large: bytes, method: str, where: str, status: int
    ) -> None:
        rule = proxy.rule(method, where, "refuse", status=status, code="SlowDown" if status == 503 else "InternalError")
        with refused("store-failed", "s3", bucket, "/a"):
            write(f"s3://{bucket}/a", large)
        assert rule.hits > 0
        assert store.client.find(bucket) == []
        assert store.unfinished(bucket) == []

    def test_a_part_that_fails_once_is_not_left_out(
        self, proxy: Proxy, store: Store, bucket: str, large: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A file that is closed as it fails would send what it still has, and show an object without the rest."""
        monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
        rule = proxy.rule("PUT", "partNumber=1", "refuse", status=400, code="BadDigest", times=1)
        with pytest.raises(StoreError):
            write(f"s3://{bucket}/a", large)
        assert rule.hits == 1
        assert store.client.find(bucket) == []
        proxy.clear()
        write(f"s3://{bucket}/a", large)
        assert store.client.cat_file(f"{bucket}/a") == large

    def test_a_store_that_is_down_for_the_abort_too(
        self, proxy: Proxy, store: Store, bucket: str, large: bytes
    ) -> None:
        proxy.rule("PUT DELETE", "partNumber|uploadId", "refuse")
        with refused("store-failed"):
            write(f"s3://{bucket}/a", large)
        assert store.client.find(bucket) == []
        assert store.unfinished(bucket) == ["a"], "only a store's own rule can remove this one"

    def test_a_store_that_keeps_less_than_it_was_given_is_noticed(self, s3: Store, bucket: str) -> None:
        kept = remote.RemoteWriter(files.resolve("s3://")[0], f"{bucket}/a", "s3://a")
        kept.write(b"12345")
        kept._head.pop()  # the store loses a byte
        with refused("store-failed"):
            kept.commit()


class TestRead:
    """What is read is the whole object, or an error."""

    @pytest.fixture
    def url(self, store: Store, bucket: str, large: bytes) -> str:
        store.client.pipe_file(f"{bucket}/a", large)
        return f"s3://{bucket}/a"

    @pytest.mark.parametrize(
        ("how", "after"),
        [
            *((how, after) for how in ("shorten", "empty", "cut", "reset") for after in (0, 1, 4)),
            ("whole", 1),  # the first range begins where the file does
            ("garble", 0),
        ],
    )
    def test_a_store_that_answers_wrongly(self, proxy: Proxy, url: str, large: bytes, how: str, after: int) -> None:
        if how == "garble":  # the store sends a checksum with a whole object only
            large = large[: remote.READ_BYTES]
            files.write_bytes(url, large)
        rule = proxy.rule("GET", "/a$", how, after=after)
        got: list[bytes] = []
        with refused("store-failed", url):
            read_into(got, url)
        assert rule.hits > 0
        assert len(b"".join(got)) < len(large)
        assert large.startswith(b"".join(got))

    @pytest.mark.parametrize("how", ["shorten", "empty", "cut", "reset", "whole"])
    def test_a_wrong_answer_is_asked_for_again(self, proxy: Proxy, url: str, large: bytes, how: str) -> None:
        rule = proxy.rule("GET", "/a$", how, after=1, times=1)
        assert files.read_bytes(url) == large
        assert rule.hits == 1

    def test_anywhere_in_any_size(self, url: str, large: bytes, s3: Store) -> None:
        with files.open_read(url) as file:
            for start, length in ((5, 3), (LARGE - 7, 100), (remote.READ_BYTES - 1, 2), (0, 20 << 20)):
                file.seek(start)
                assert file.read(length) == large[start : start + length]
            file.seek(-3, 2)
            assert file.read() == large[-3:]
            assert file.read() == b""

    def test_not_while_it_is_replaced(self, url: str, large: bytes, s3: Store) -> None:
        with files.open_read(url) as file:
            assert file.read(10) == large[:10]
            s3.client.pipe_file(url, large[::-1])
            with refused("changed-meanwhile"):
                file.read()

    def test_not_a_folder(self, store: Store, bucket: str, s3: Store) -> None:
        store.client.pipe_file(f"{bucket}/folder/a", b"")
        with refused("unusable-address"):
            files.open_read(f"s3://{bucket}/folder")
        assert files.read_bytes(f"s3://{bucket}/folder/a") == b""


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
        url, names = f"{place.root}/space", ["vectors.npy", "lists.npy", "vocabulary.parquet"]
        proxy.rule("GET", r"\.npy", "delay", seconds=0.3)
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
            list(pool.map(files.exists, [url, url]))
            one, two = pool.map(races.fetch, [url] * 2, [names] * 2, ["d" * 64] * 2)
        assert one == two
        assert sorted(path.name for path in one.iterdir()) == sorted(names)
        assert proxy.seen("GET", r"/space/vectors\.npy") == 1

    @pytest.mark.parametrize("how", ["cut", "shorten", "refuse"])
    def test_an_interrupted_copy_is_no_copy(self, proxy: Proxy, place: Place, cache: Path, how: str) -> None:
        proxy.rule("GET", r"/space/lists\.npy", how)
        with refused("store-failed", "lists.npy"):
            cv.load_space(f"{place.root}/space")
        assert [path.suffix for path in cache.iterdir()] == [".lock"]
        proxy.clear()
        assert cv.load_space(f"{place.root}/space") == place.ground.space

    @pytest.mark.usefixtures("s3")
    def test_a_damaged_copy_is_found_out_and_named(self, place: Place, cache: Path) -> None:
        space = cv.load_space(f"{place.root}/space")
        copied = cache / space.digest / "vectors.npy"
        data = bytearray(copied.read_bytes())
        data[-1] ^= 1
        del space
        copied.write_bytes(data)
        with refused("damaged-artefact"):
            cv.load_space(f"{place.root}/space")

    @pytest.mark.usefixtures("s3")
    def test_saved_there_and_never_over_another(self, place: Place, store: Store, bucket: str) -> None:
        saved = place.ground.space.save(f"s3://{bucket}/spaces/a")
        assert cv.load_space(saved.url or "") == place.ground.space
        with pytest.raises(InUseError):
            make_space(f"s3://{bucket}/spaces/a", seed=1)  # type: ignore[arg-type]
