"""Which objects an input names: all of them, over all pages of a listing, or an error."""

from __future__ import annotations

import itertools

import pytest

from corpusveil.storage import files
from corpusveil.storage.inputs import find_shards
from tests.calls import refused
from tests.objects.conftest import everywhere
from tests.objects.proxy import Proxy
from tests.objects.store import Store
from tests.storage.test_inputs import relative

LATER = "continuation-token="
"""In the address of a page behind the first one."""


def test_all_of_several_pages_are_found(store: Store, bucket: str, url: str, proxy: Proxy) -> None:
    """A page has 1,000 objects."""
    names = [f"in/{number:04d}.json" for number in range(1003)]
    store.fill(bucket, *names)
    assert files.listing(f"{url}/in") == [name.removeprefix("in/") for name in names]
    for pattern in ("in", "in/[0-9]*.json", "in/**/*.json"):
        proxy.clear()
        shards = find_shards([f"{url}/{pattern}"])
        assert [shard.url for shard in shards] == [f"{url}/{name}" for name in names]
        assert {shard.size for shard in shards} == {3}
        assert proxy.seen("GET", LATER) == 1, "the first page has less"


@pytest.mark.usefixtures("hasty")
class TestThatFails:
    """No listing that failed in part is taken for a complete one."""

    def test_on_a_later_page(
        self, store: Store, bucket: str, url: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Shards of the pages before it are not released alone."""
        store.fill(bucket, *(f"in/{folder}/{number}.json" for folder in "ab" for number in range(5)))
        monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "2")
        for how, pattern in itertools.product(("refuse", "cut", "reset"), ("in", "in/*/*.json", "in/**/*.json")):
            proxy.clear()
            rule = proxy.rule("GET", LATER, how)
            with refused("work-failed", f"{url}/in"):
                find_shards([f"{url}/{pattern}"])
            assert rule.hits > 0, (how, pattern)

    @everywhere
    def test_in_one_of_several_folders(self, store: Store, bucket: str, url: str, proxy: Proxy) -> None:
        """Shards of the other folders are not released alone."""
        store.fill(bucket, *(f"in/{folder}/{number}.json" for folder in "abc" for number in range(2)))
        for status, code, error in ((403, "AccessDenied", "unusable-address"), (503, "", "work-failed")):
            proxy.clear()
            rule = proxy.rule("GET", "prefix=in/b/", "refuse", status=status, code=code)
            with refused(error, f"{url}/in"):
                find_shards([f"{url}/in/*/*.json"])
            assert rule.hits > 0, error


@pytest.mark.usefixtures("s3")
class TestNamed:
    @everywhere
    def test_what_folders_and_globs_name(self, store: Store, bucket: str, url: str) -> None:
        """Consoles and other tools mark a folder by an object whose name ends in a slash: that is no file."""
        marks = ("in/", "in/b/")
        names = [f"{folder}/{number}.json" for folder in "abc" for number in range(3)]
        others = ("in/a/_SUCCESS", "in/.hidden/x.json", "inside/y.json", "in.json")
        for name in (*(f"in/{name}" for name in names), *others):
            store.client.pipe_file(f"{bucket}/{name}", b"x")
        for pattern in ("in", "in/", "in/*/*.json", "in/?/[0-4].json", "in/[a-e]/*.json", "in/**/*.json"):
            assert relative(f"{url}/{pattern}") == names, pattern
        assert files.listing(f"{url}/in/b") == [f"{number}.json" for number in range(3)]
        assert files.listing(f"{url}/in") == []
        assert relative(url) == relative(f"{url}/**/*.json") == sorted([*(f"in/{n}" for n in names), *others[2:]])
        for name in marks:
            store.client.pipe_file(f"{bucket}/{name}", b"")
        assert relative(f"{url}/in") == relative(f"{url}/in/") == relative(f"{url}/in/**/*.json") == names
        assert files.listing(f"{url}/in/b") == [f"{number}.json" for number in range(3)]
        files.remove_folder(f"{url}/in")
        left = [name for name in store.client.find(bucket) if name.endswith("json")]
        assert left == [f"{bucket}/{name}" for name in sorted(others[2:])], "marks may stay: adlfs can't name them"

    @everywhere
    def test_each_once_under_all_schemes(self, store: Store, bucket: str, url: str) -> None:
        """A shard that is named twice, in two ways, is drawn once."""
        another, again = store.bucket(), {"s3": "s3a", "gs": "gcs", "abfs": "az"}[store.scheme]
        store.fill(bucket, "in/a.json", "in/b.json")
        store.fill(another, "in/c.json")
        shards = find_shards([f"{url}/in", f"{again}://{bucket}/in/", f"{url}/in/a.json"])
        assert [shard.url for shard in shards] == [f"{url}/in/{name}.json" for name in "ab"]
        assert relative(f"{url}/in/a.json", f"{again}://{another}/in/*") == [
            f"{bucket}/in/a.json", f"{another}/in/c.json"
        ]  # fmt: skip
        assert files.absolute(f"{again}://{bucket}/out/") == f"{url}/out"

    @everywhere
    def test_a_name_with_signs_in_it(self, url: str) -> None:
        """It is the name of one object, and no glob or query."""
        for name in ("a b+c%20[1]ä#x.json", "q?x.json"):
            files.write_bytes(f"{url}/in/{name}", name.encode())
            assert files.read_bytes(f"{url}/in/{name}") == name.encode()
            assert relative(f"{url}/in/{name}") == [name]
        assert relative(f"{url}/in/*.json") == ["a b+c%20[1]ä#x.json", "q?x.json"]

    @everywhere
    def test_nothing_matches(self, store: Store, bucket: str, url: str) -> None:
        """An input that names nothing is an error, not an empty release."""
        store.fill(bucket, "in/a.json")
        nowhere = f"{store.scheme}://nobody-made-this"
        for name in (*(f"{url}/{name}" for name in ("missing", "missing/*.json", "in/*.csv", "in/b/*/c.json")),
                     nowhere, f"{nowhere}/in", f"{nowhere}/in/*.json"):  # fmt: skip
            with refused("missing-file", name):
                find_shards([name])
