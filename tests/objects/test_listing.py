"""Which objects an input names: all of them, over all pages of a listing, or an error."""

from __future__ import annotations

import time

import pytest

from corpusveil.errors import FormatError, UserError, WorkError
from corpusveil.storage import files
from corpusveil.storage.inputs import find_shards
from tests.calls import refused
from tests.objects.proxy import Proxy
from tests.objects.store import Store


@pytest.fixture
def bucket(store: Store) -> str:
    return store.bucket()


def put(store: Store, bucket: str, *names: str) -> None:
    store.client.pipe({f"{bucket}/{name}": b"x" * (len(name) % 5) for name in names})


def relative(*inputs: str) -> list[str]:
    return [shard.relative for shard in find_shards(inputs)]


@pytest.mark.usefixtures("s3")
class TestOfSeveralPages:
    def test_more_than_a_thousand_objects(self, store: Store, bucket: str) -> None:
        names = [f"in/{number:04d}.json" for number in range(1003)]
        store.fill(bucket, names, b"xyz")
        for pattern in ("in", "in/[01]*.json"):
            shards = find_shards([f"s3://{bucket}/{pattern}"])
            assert [shard.url for shard in shards] == [f"s3://{bucket}/{name}" for name in names]
            assert {shard.size for shard in shards} == {3}
        assert len(files.listing(f"s3://{bucket}/in")) == 1003

    def test_however_long_a_page_is(self, store: Store, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
        names = [f"in/{folder}/{number}.json" for folder in "abcde" for number in range(5)]
        put(store, bucket, *names, "in/a/_SUCCESS", "in/.hidden/x.json", "in/b/", "inside/y.json")
        wanted = sorted(name.removeprefix("in/") for name in names)
        for keys in ("1", "2", "3", "7", "26"):
            monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", keys)
            for pattern in ("in", "in/", "in/*/*.json", "in/?/[0-4].json", "in/[a-e]/*.json", "in/**/*.json"):
                assert relative(f"s3://{bucket}/{pattern}") == wanted, (keys, pattern)
        assert files.listing(f"s3://{bucket}/in/b") == [f"{number}.json" for number in range(5)]

    def test_a_control_without_the_later_pages_would_find_less(
        self, store: Store, bucket: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(store, bucket, *(f"in/{number}.json" for number in range(5)))
        monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "2")
        first = store.client.call_s3("list_objects_v2", Bucket=bucket, Prefix="in/")
        assert len(first["Contents"]) == 2


@pytest.mark.usefixtures("s3")
def test_the_age_of_an_object_is_that_of_its_last_write(store: Store, bucket: str) -> None:
    """A schedule that lets shards settle goes by it."""
    put(store, bucket, "in/a.json")
    (shard,) = find_shards([f"s3://{bucket}/in"])
    assert shard.modified is not None
    assert abs(time.time() - shard.modified) < 600


@pytest.mark.usefixtures("hasty")
class TestThatFails:
    """No listing that failed in part is taken for a complete one."""

    @pytest.mark.parametrize("pattern", ["in", "in/*/*.json", "in/**/*.json"])
    @pytest.mark.parametrize("how", ["refuse", "cut", "reset"])
    def test_on_a_later_page(
        self, store: Store, bucket: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, pattern: str, how: str
    ) -> None:
        put(store, bucket, *(f"in/{folder}/{number}.json" for folder in "ab" for number in range(5)))
        monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "2")
        rule = proxy.rule("GET", "continuation-token", how)
        with refused("store-failed", "s3", bucket, "/in"):
            find_shards([f"s3://{bucket}/{pattern}"])
        assert rule.hits > 0

    @pytest.mark.parametrize(("status", "error"), [(403, UserError), (503, WorkError)])
    def test_in_one_of_several_folders(
        self, store: Store, bucket: str, proxy: Proxy, status: int, error: type[Exception]
    ) -> None:
        put(store, bucket, *(f"in/{folder}/{number}.json" for folder in "abc" for number in range(2)))
        rule = proxy.rule("GET", "prefix=in/b/", "refuse", status=status, code="AccessDenied" if status == 403 else "")
        with pytest.raises(error, match=f"s3://{bucket}/in"):
            find_shards([f"s3://{bucket}/in/*/*.json"])
        assert rule.hits > 0


@pytest.mark.usefixtures("s3")
class TestNamed:
    def test_in_two_buckets(self, store: Store, bucket: str) -> None:
        other = store.bucket()
        put(store, bucket, "in/a.json")
        put(store, other, "in/b.json")
        assert relative(f"s3://{bucket}/in", f"s3a://{other}/in/*") == [f"{bucket}/in/a.json", f"{other}/in/b.json"]

    def test_each_once_under_both_schemes(self, store: Store, bucket: str) -> None:
        put(store, bucket, "in/a.json", "in/b.json")
        shards = find_shards([f"s3://{bucket}/in", f"s3a://{bucket}/in/", f"s3://{bucket}/in/a.json"])
        assert [shard.url for shard in shards] == [f"s3://{bucket}/in/{name}.json" for name in "ab"]

    def test_a_whole_bucket(self, store: Store, bucket: str) -> None:
        put(store, bucket, "a.json", "in/b.json")
        assert relative(f"s3://{bucket}") == relative(f"s3://{bucket}/**/*.json") == ["a.json", "in/b.json"]
        assert relative(f"s3://{bucket}/*.json") == ["a.json"]

    def test_a_name_with_signs_in_it(self, store: Store, bucket: str) -> None:
        put(store, bucket, "in/a b+c%20[1]ä.json")
        assert relative(f"s3://{bucket}/in/a b+c%20[1]ä.json") == ["a b+c%20[1]ä.json"]
        assert relative(f"s3://{bucket}/in/*.json") == ["a b+c%20[1]ä.json"]

    @pytest.mark.parametrize("name", ["missing", "missing/*.json", "in/*.csv", "in/b/*/c.json"])
    def test_nothing_matches(self, store: Store, bucket: str, name: str) -> None:
        put(store, bucket, "in/a.json")
        with refused("missing-file", bucket):
            find_shards([f"s3://{bucket}/{name}"])

    @pytest.mark.parametrize("name", ["", "/in", "/in/*.json"])
    def test_no_such_bucket(self, name: str) -> None:
        with refused("missing-file"):
            find_shards([f"s3://nobody-made-this{name}"])

    def test_on_a_disk_and_at_a_store_is_refused(self, store: Store, bucket: str) -> None:
        put(store, bucket, "in/a.json")
        with pytest.raises(FormatError):
            find_shards([f"s3://{bucket}/in", __file__])
