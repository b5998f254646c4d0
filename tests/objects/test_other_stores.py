"""Google's and Azure's stores, by their clients: what holds of files, releases and errors at S3 holds there."""

from __future__ import annotations

import importlib.metadata
import json
import logging
import multiprocessing
import random
import re
import time
import types
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

import corpusveil as cv
from corpusveil.cli import main
from corpusveil.errors import UserError, WorkError
from corpusveil.jobs.local import Local
from corpusveil.storage import files, remote
from corpusveil.storage.inputs import find_shards
from corpusveil.transforms.release.corpus import privatize_corpus
from tests.engines.corpora import Ground, release_files, run, write_large_corpus
from tests.engines.processes import end_session, free_port, kill_tree, start_command, wait_until
from tests.objects import races
from tests.objects.conftest import Reference
from tests.objects.others import ACCOUNT_KEY, STORES, Other, connection_string, token
from tests.objects.proxy import Proxy, proxied

pytestmark = pytest.mark.stores

LARGE = 2 * remote.PART_BYTES + (3 << 20)


class Stop(Exception):
    """Not an error of anything."""


@pytest.fixture(scope="module", params=STORES)
def other(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Other]:
    with STORES[request.param](tmp_path_factory.mktemp(request.param)) as store:
        yield store


@pytest.fixture(scope="module")
def reached(other: Other) -> Iterator[Proxy]:
    """The store behind a proxy, with the settings by which a user reaches it."""
    with proxied(other.endpoint, other.dialect) as proxy, pytest.MonkeyPatch.context() as patch:
        for name, value in other.settings(proxy.url).items():
            patch.setenv(name, value)
        forget(other)
        yield proxy
    forget(other)


@pytest.fixture
def proxy(reached: Proxy) -> Iterator[Proxy]:
    """The same, for one test, that can go wrong."""
    yield reached
    reached.clear()


@pytest.fixture
def bucket(other: Other, proxy: Proxy) -> str:
    return other.bucket()


@pytest.fixture
def url(other: Other, bucket: str) -> str:
    return f"{other.scheme}://{bucket}"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clients of this process wait for nothing before they ask again."""
    monkeypatch.setattr("gcsfs.retry.random", types.SimpleNamespace(random=lambda: -1000.0))
    monkeypatch.setattr(
        "azure.storage.blob._shared.policies_async.ExponentialRetry.get_backoff_time", lambda *_: 0, raising=True
    )


@pytest.fixture(scope="module")
def large() -> bytes:
    return random.Random(0).randbytes(LARGE)


def forget(other: Other) -> None:
    """Let the next address make a new client, which looks at the settings again."""
    type(other.client).clear_instance_cache()


def write(url: str, data: bytes, stop_at: int | None = None) -> None:
    with files.open_write(url) as file:
        for start in range(0, len(data), 1 << 20):
            if start == stop_at:
                raise Stop
            file.write(data[start : start + (1 << 20)])


def read_into(got: list[bytes], url: str) -> None:
    with files.open_read(url) as file:
        while data := file.read(1 << 20):
            got.append(data)


def relative(*inputs: str) -> list[str]:
    return [shard.relative for shard in find_shards(inputs)]


class TestFiles:
    def test_there_and_back(self, other: Other, bucket: str, url: str, large: bytes) -> None:
        for size in (0, 1, 5 << 20, remote.PART_BYTES, remote.PART_BYTES + 1, LARGE):
            write(f"{url}/a/{size}", large[:size])
            assert files.size(f"{url}/a/{size}") == size
            assert files.read_bytes(f"{url}/a/{size}") == large[:size]
            assert files.read_if_there(f"{url}/a/{size}") == large[:size]
            assert other.client.cat_file(f"{bucket}/a/{size}") == large[:size]
        assert len(files.listing(f"{url}/a")) == 6
        assert files.exists(f"{url}/a")
        assert files.size(f"{url}/a") is None
        files.write_bytes(f"{url}/ab", b"beside")
        files.remove(f"{url}/a/1")
        files.remove(f"{url}/a/1")
        assert not files.exists(f"{url}/a/1")
        assert files.read_if_there(f"{url}/a/1") is None
        files.remove_folder(f"{url}/a")
        files.remove_folder(f"{url}/a")
        assert not files.exists(f"{url}/a")
        assert list(other.objects(bucket)) == ["ab"]

    def test_anywhere_in_any_size(self, url: str, large: bytes) -> None:
        files.write_bytes(f"{url}/a", large)
        with files.open_read(f"{url}/a") as file:
            for start, length in ((5, 3), (LARGE - 7, 100), (remote.READ_BYTES - 1, 2), (0, 20 << 20)):
                file.seek(start)
                assert file.read(length) == large[start : start + length]
            file.seek(-3, 2)
            assert file.read() == large[-3:]
            assert file.read() == b""

    @pytest.mark.parametrize("before", [None, b"what was there"])
    @pytest.mark.parametrize("stop_at", [1 << 20, 20 << 20, 32 << 20])
    def test_an_exception_inside_leaves_all_as_it_was(
        self, other: Other, bucket: str, url: str, large: bytes, before: bytes | None, stop_at: int
    ) -> None:
        if before is not None:
            other.client.pipe_file(f"{bucket}/a", before)
        with pytest.raises(Stop):
            write(f"{url}/a", large, stop_at)
        assert other.client.find(bucket) == ([] if before is None else [f"{bucket}/a"])
        assert before is None or other.client.cat_file(f"{bucket}/a") == before

    def test_nothing_is_visible_until_all_is_there(self, other: Other, bucket: str, url: str, large: bytes) -> None:
        for size in (1 << 20, LARGE):
            with files.open_write(f"{url}/{size}") as file:
                file.write(large[:size])
                assert not files.exists(f"{url}/{size}")
            assert other.client.cat_file(f"{bucket}/{size}") == large[:size]

    @pytest.mark.usefixtures("hasty")
    @pytest.mark.parametrize("size", [1 << 20, 70 << 20])
    def test_a_write_that_fails_leaves_nothing(
        self, other: Other, bucket: str, url: str, large: bytes, proxy: Proxy, size: int
    ) -> None:
        """Also when it is the last of several requests that fails."""
        rule = proxy.rule("PUT POST", "new", "refuse", after=int(size > remote.PART_BYTES))
        with pytest.raises(WorkError, match=f"{url}/new: could not be written"):
            write(f"{url}/new", (large * 3)[:size])
        assert rule.hits > 0
        assert other.client.find(bucket) == []

    def test_what_is_replaced_while_it_is_read_is_refused(self, url: str, large: bytes) -> None:
        files.write_bytes(f"{url}/a", large)
        with files.open_read(f"{url}/a") as file:
            assert file.read(10) == large[:10]
            files.write_bytes(f"{url}/a", large[::-1])
            with pytest.raises(WorkError, match="changed while it was read"):
                file.read()

    @pytest.mark.usefixtures("hasty")
    @pytest.mark.parametrize("how", ["shorten", "empty", "cut", "reset"])
    def test_a_store_that_answers_wrongly(self, url: str, large: bytes, proxy: Proxy, how: str) -> None:
        files.write_bytes(f"{url}/a", large)
        rule = proxy.rule("GET", r"/a(\?alt=media.*)?$", how, after=1)
        got: list[bytes] = []
        with pytest.raises(WorkError, match=f"{url}/a: could not be read"):
            read_into(got, f"{url}/a")
        assert rule.hits > 0
        assert len(b"".join(got)) < LARGE
        assert large.startswith(b"".join(got))

    def test_not_a_folder(self, url: str) -> None:
        files.write_bytes(f"{url}/folder/a", b"")
        with pytest.raises(UserError, match="this is a folder"):
            files.open_read(f"{url}/folder")
        with pytest.raises(UserError, match="there is no such file"):
            files.open_read(f"{url}/nothing")


class TestCreated:
    """Of all that create one file at once, exactly one does."""

    def test_by_threads_of_several_processes(self, other: Other, bucket: str, url: str) -> None:
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
            list(pool.map(files.exists, [f"{url}/run.json"] * 2))
            at = time.time() + 1.5
            pairs = pool.map(races.create, [f"{url}/run.json"] * 2, [0, 1], [6, 6], [at, at])
            made = [one for many in pairs for one in many]
        assert len(made) == 12
        assert made.count(True) == 1
        winner = made.index(True)
        assert other.client.cat_file(f"{bucket}/run.json") == f"{winner // 6}/{winner % 6}".encode()

    def test_by_a_condition_that_the_store_decides(self, other: Other, url: str, proxy: Proxy) -> None:
        assert files.create_bytes(f"{url}/a", b"1")
        assert not files.create_bytes(f"{url}/a", b"2")
        assert files.read_bytes(f"{url}/a") == b"1"
        sent = [(target, headers) for method, target, headers in proxy.log if method == other.write_method]
        assert len(sent) == 2
        if other.scheme == "gs":
            assert all("ifGenerationMatch=0" in target for target, _ in sent)
        else:
            assert all(headers.get("If-None-Match") == "*" for _, headers in sent)

    @pytest.mark.usefixtures("hasty")
    def test_an_answer_that_was_lost_counts_as_made(self, other: Other, url: str, proxy: Proxy) -> None:
        rule = proxy.rule(other.write_method, "/a|name=a", "lose", times=1)
        assert files.create_bytes(f"{url}/a", b"1")
        assert rule.hits == 1
        assert files.read_bytes(f"{url}/a") == b"1"

    @pytest.mark.usefixtures("hasty")
    def test_another_conflict_is_no_file(self, other: Other, url: str, proxy: Proxy) -> None:
        """A ledger would take an entry for written that is not."""
        proxy.rule(other.write_method, "/a|name=a", "refuse", status=409, code="ContainerBeingDeleted")
        files._CREATE_SECONDS, seconds = 1.0, files._CREATE_SECONDS
        try:
            with pytest.raises(WorkError, match=f"{url}/a: could not be written"):
                files.create_bytes(f"{url}/a", b"1")
        finally:
            files._CREATE_SECONDS = seconds


class TestListed:
    def test_of_several_pages(self, other: Other, bucket: str, url: str, proxy: Proxy) -> None:
        """Azure's pages have 5,000 objects."""
        count, pages = (2500, 3) if other.scheme == "gs" else (5200, 2)
        names = [f"in/{number:04d}.json" for number in range(count)]
        other.fill(bucket, names, b"xyz")
        assert files.listing(f"{url}/in") == [name.removeprefix("in/") for name in names]
        assert proxy.seen("GET", "pageToken=|marker=") == pages - 1
        for pattern in ("in", "in/[0-9]*.json", "in/**/*.json"):
            proxy.clear()
            shards = find_shards([f"{url}/{pattern}"])
            assert [shard.url for shard in shards] == [f"{url}/{name}" for name in names]
            assert {shard.size for shard in shards} == {3}
            assert proxy.seen("GET", "pageToken=|marker=") >= pages - 1

    @pytest.mark.parametrize("other", ["gs"], indirect=True)
    @pytest.mark.usefixtures("hasty")
    @pytest.mark.parametrize("how", ["refuse", "cut", "shorten", "empty"])
    @pytest.mark.parametrize("pattern", ["in", "in/*/*.json", "in/**/*.json"])
    def test_a_later_page_that_fails_is_an_error(
        self, other: Other, url: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, how: str, pattern: str
    ) -> None:
        """Pages of Azure that are so short can't be had."""
        monkeypatch.setattr(other.dialect, "page", 2)
        for number in range(5):
            files.write_bytes(f"{url}/in/a/{number}.json", b"x")
        assert len(find_shards([f"{url}/{pattern}"])) == 5
        rule = proxy.rule("GET", "pageToken=", how)
        with pytest.raises(WorkError, match=f"{re.escape(f'{url}/{pattern}')}: could not be listed"):
            find_shards([f"{url}/{pattern}"])
        assert rule.hits > 0

    @pytest.mark.usefixtures("hasty")
    @pytest.mark.parametrize(("status", "error"), [(403, UserError), (503, WorkError)])
    def test_a_listing_that_fails_is_an_error(
        self, url: str, proxy: Proxy, status: int, error: type[Exception]
    ) -> None:
        for name in ("in/a/1.json", "in/b/1.json", "in/c/1.json"):
            files.write_bytes(f"{url}/{name}", b"x")
        proxy.rule("GET", "prefix=in/b/", "refuse", status=status, code="Refused")
        with pytest.raises(error, match=f"{url}/in"):
            find_shards([f"{url}/in/*/*.json"])

    def test_what_folders_and_globs_name(self, url: str) -> None:
        names = [f"in/{folder}/{number}.json" for folder in "abc" for number in range(3)]
        for name in (*names, "in/a/_SUCCESS", "in/.hidden/x.json", "inside/y.json", "in.json"):
            files.write_bytes(f"{url}/{name}", b"x")
        wanted = sorted(name.removeprefix("in/") for name in names)
        for pattern in ("in", "in/", "in/*/*.json", "in/?/[0-4].json", "in/[a-e]/*.json", "in/**/*.json"):
            assert relative(f"{url}/{pattern}") == wanted, pattern
        assert files.listing(f"{url}/in/b") == [f"{number}.json" for number in range(3)]
        assert files.listing(f"{url}/in") == []

    def test_marks_of_folders_are_no_files(self, other: Other, bucket: str, url: str) -> None:
        """Consoles and other tools mark a folder by an object whose name ends in a slash."""
        for name in ("in/", "in/a/", "in/a/1.json", "in/2.json"):
            other.client.pipe_file(f"{bucket}/{name}", b"")
        assert relative(f"{url}/in") == relative(f"{url}/in/**/*.json") == ["2.json", "a/1.json"]
        assert files.listing(f"{url}/in") == ["2.json"]
        assert files.listing(f"{url}/in/a") == ["1.json"]
        files.remove_folder(f"{url}/in")
        left = [name for name in other.client.find(f"{bucket}/in") if name.endswith(".json")]
        assert left == [], "marks may stay: adlfs does not know their names"

    def test_a_name_with_signs_in_it(self, url: str) -> None:
        for name in ("a b+c%20[1]ä#x.json", "q?x.json"):
            files.write_bytes(f"{url}/in/{name}", name.encode())
            assert files.read_bytes(f"{url}/in/{name}") == name.encode()
            assert relative(f"{url}/in/{name}") == [name]
        assert relative(f"{url}/in/*.json") == ["a b+c%20[1]ä#x.json", "q?x.json"]

    @pytest.mark.parametrize("name", ["missing", "missing/*.json", "in/*.csv", "in/b/*/c.json"])
    def test_nothing_matches(self, url: str, name: str) -> None:
        files.write_bytes(f"{url}/in/a.json", b"x")
        with pytest.raises(UserError, match=f"{re.escape(f'{url}/{name}')}: this matches no file"):
            find_shards([f"{url}/{name}"])

    @pytest.mark.parametrize("name", ["", "/in", "/in/*.json", "/in/**/*.json"])
    def test_no_such_bucket(self, other: Other, proxy: Proxy, name: str) -> None:
        with pytest.raises(UserError, match=f"there is no such {other.bucket_word}"):
            find_shards([f"{other.scheme}://nobody-made-this{name}"])

    def test_each_once_under_all_schemes(self, other: Other, bucket: str, url: str) -> None:
        files.write_bytes(f"{url}/in/a.json", b"x")
        again = "gcs" if other.scheme == "gs" else "az"
        assert [shard.url for shard in find_shards([f"{url}/in", f"{again}://{bucket}/in/*.json"])] == [
            f"{url}/in/a.json"
        ]
        assert files.absolute(f"{again}://{bucket}/out/") == f"{url}/out"


@dataclass(frozen=True)
class Place:
    """A bucket with the corpus and the space in it."""

    other: Other
    bucket: str
    ground: Ground

    @property
    def root(self) -> str:
        return f"{self.other.scheme}://{self.bucket}"

    def arguments(self, *more: object, source: str | None = None, output: str | None = None) -> list[str]:
        """Return the arguments of ``privatize`` with everything but the key at the store."""
        words = ["privatize", source or f"{self.root}/c4", "--space", f"{self.root}/space"]
        words += ["--output", output or f"{self.root}/private/out", "--records", f"{self.root}/records"]
        words += ["--ledger", f"{self.root}/ledger", "--unit", "content", "--cap", "1e6", "--corpus", "c4"]
        words += ["--mechanism", "ring-geometric", "--epsilon", "1"]
        return [str(word) for word in (*words, "--key", self.ground.key, "--progress", "none", *more)]

    @property
    def ledger(self) -> cv.Ledger:
        return cv.Ledger(f"{self.root}/ledger")

    def released(self) -> dict[str, str]:
        return self.other.objects(f"{self.bucket}/private/out")


@pytest.fixture
def place(other: Other, bucket: str, ground: Ground) -> Place:
    other.upload(ground.corpus, f"{bucket}/c4")
    other.upload(ground.space_folder, f"{bucket}/space")
    return Place(other, bucket, ground)


class TestARelease:
    """With corpus, space, output, records and ledger at the store it has the bytes of one on a disk."""

    @pytest.mark.parametrize("workers", [1, 2])
    def test_has_the_bytes_of_a_disk(
        self, place: Place, reference: Reference, proxy: Proxy, capsys: pytest.CaptureFixture[str], workers: int
    ) -> None:
        assert main.run(place.arguments("--workers", workers)) == 0
        assert reference.outcome.content_sha256 in capsys.readouterr().out
        assert place.released() == reference.files
        (line,) = place.ledger.spent().releases
        assert line["documents"] == reference.outcome.counts.documents
        assert place.ledger.verify(f"{place.root}/records").differences == ()
        held = place.other.objects(f"{place.bucket}/ledger")
        proxy.clear()
        assert main.run(place.arguments("--workers", workers)) == 0
        assert reference.outcome.content_sha256 in capsys.readouterr().out
        assert place.released() == reference.files
        assert place.other.objects(f"{place.bucket}/ledger") == held
        assert proxy.seen(place.other.write_method, ".") == 0, "a finished release is recognised, and left as it is"

    @pytest.mark.usefixtures("hasty")
    @pytest.mark.parametrize(
        "where", [r"out/data/part-0000[13]", r"records/shards/part-0000[13]", r"out/manifest\.json"]
    )
    def test_resumes_after_a_store_that_was_down(
        self, place: Place, reference: Reference, proxy: Proxy, capsys: pytest.CaptureFixture[str], where: str
    ) -> None:
        rule = proxy.rule(place.other.write_method, where, "refuse", code="ServerBusy")
        assert main.run(place.arguments()) == 1
        said = capsys.readouterr().err
        assert rule.hits > 0
        assert said.count("\n") == 1, said
        assert re.search(rf"{place.root}/\S*{where}\S*: could not be written .*fewer requests", said), said
        left = place.released()
        assert left.items() <= reference.files.items()
        assert "manifest.json" not in left
        proxy.clear()
        assert main.run(place.arguments()) == 0
        assert place.released() == reference.files
        (line,) = place.ledger.spent().releases
        assert line["documents"] == reference.outcome.counts.documents, "each is counted once"

    @pytest.mark.usefixtures("hasty")
    @pytest.mark.parametrize("how", ["refuse", "lose", "cut"])
    def test_what_fails_for_a_while_changes_nothing(
        self, place: Place, reference: Reference, proxy: Proxy, how: str
    ) -> None:
        rules = [
            proxy.rule(place.other.write_method, "out/data/part-0000[13]", "lose" if how == "cut" else how, times=1),
            proxy.rule("GET", r"c4-train\.0000[013].*", how, times=1, after=1),
        ]
        assert main.run(place.arguments()) == 0
        assert [rule.hits for rule in rules] == [1, 1]
        assert place.released() == reference.files

    def test_resumes_after_a_machine_that_lost_its_power(
        self, other: Other, proxy: Proxy, ground: Ground, reference: Reference, tmp_path: Path
    ) -> None:
        large = write_large_corpus(tmp_path / "large", shards=5, copies=1)
        expected = privatize_corpus(reference.release, [str(large)], str(tmp_path / "disk"), Local(), corpus="c4")
        bucket = other.bucket()
        other.upload(large, f"{bucket}/c4")
        other.upload(ground.space_folder, f"{bucket}/space")
        place = Place(other, bucket, ground)
        process = start_command(place.arguments("--workers", 2), tmp_path, tmp_path / "killed.log")
        try:
            wait_until(lambda: proxy.seen(other.write_method, "records/shards/part") > 0 or process.poll() is not None)
            kill_tree(process)
        finally:
            end_session(process)
        assert process.returncode == -9, (tmp_path / "killed.log").read_text()
        left, whole = place.released(), release_files(tmp_path / "disk")
        assert "manifest.json" not in left
        assert left.items() <= whole.items()
        again = run(*place.arguments("--workers", 2), home=tmp_path)
        assert again.returncode == 0, again.stderr
        assert expected.content_sha256 in again.stdout
        assert again.stderr == ""
        assert place.released() == whole


def told(arguments: list[str], status: int, home: Path) -> str:
    """Run a command line that fails in a process of its own; return its one sentence."""
    ended = run(*arguments, home=home)
    assert ended.returncode == status, ended.stderr
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert ended.stderr.startswith("corpusveil: "), ended.stderr
    return ended.stderr


@pytest.mark.usefixtures("proxy")
class TestOneSentence:
    """A store that can't be used is told in one sentence, without a secret, in a process as a person starts it."""

    def test_no_such_bucket(self, place: Place, tmp_path: Path) -> None:
        missing, word = f"{place.other.scheme}://nobody-made-this", place.other.bucket_word
        said = told(place.arguments(source=f"{missing}/c4"), 2, tmp_path)
        assert f"{missing}/c4: there is no such {word}" in said
        said = told(place.arguments(output=f"{missing}/out"), 2, tmp_path)
        assert f"{missing}/out" in said
        assert f"there is no such {word}" in said

    @pytest.mark.parametrize(
        ("status", "code", "says"),
        [
            (403, "AuthorizationPermissionMismatch", "no permission to"),
            (401, "Anonymous caller does not have access", "there are no valid credentials for this address"),
        ],
    )
    def test_refused(self, place: Place, proxy: Proxy, tmp_path: Path, status: int, code: str, says: str) -> None:
        proxy.rule("GET HEAD", "c4", "refuse", status=status, code=code)
        said = told(place.arguments(), 2, tmp_path)
        assert f"{place.root}/c4: {says}" in said

    def test_refused_to_write(self, place: Place, proxy: Proxy, tmp_path: Path) -> None:
        proxy.rule("PUT POST", "out/data", "refuse", status=403, code="AuthorizationPermissionMismatch")
        assert "no permission to write it" in told(place.arguments(), 2, tmp_path)

    def test_nobody_listens(self, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The clients ask again for a minute."""
        for name, value in place.other.settings(f"http://127.0.0.1:{free_port()}").items():
            monkeypatch.setenv(name, value)
        said = told(place.arguments(), 1, tmp_path)
        assert f"{place.root}/" in said
        assert re.search(r"could not be read \(.*[Cc]onnect .*127\.0\.0\.1", said), said
        assert ACCOUNT_KEY not in said


@pytest.mark.parametrize("other", ["abfs"], indirect=True)
class TestAzureCredentials:
    """Azurite looks at them as Azure does."""

    @pytest.fixture(autouse=True)
    def again(self, other: Other, proxy: Proxy) -> Iterator[None]:
        forget(other)
        yield
        forget(other)

    @pytest.mark.parametrize(
        ("credential", "says"),
        [
            ("wrong key", "no permission to"),
            ("expired token", "no permission to"),
            ("token for another container", "no permission to"),
            ("key that is none", "there are no valid credentials for this address"),
            ("malformed", "no storage account could be opened for this address"),
            ("", "no storage account could be opened for this address"),
        ],
    )
    @pytest.mark.usefixtures("hasty")
    def test_one_sentence_without_them(
        self,
        place: Place,
        proxy: Proxy,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        capfd: pytest.CaptureFixture[str],
        credential: str,
        says: str,
    ) -> None:
        caplog.set_level(logging.DEBUG)
        forget(place.other)
        wrong = ACCOUNT_KEY.replace("Eby8", "Abcd")
        expired, another = token(place.bucket, hours=-1), token("another")
        account = f"BlobEndpoint={proxy.url}/devstoreaccount1;SharedAccessSignature="
        value = {
            "wrong key": connection_string(proxy.url, wrong),
            "key that is none": connection_string(proxy.url, "c2VjcmV0LXNlY3JldA="),
            "expired token": account + expired,
            "token for another container": account + another,
            "malformed": f"AccountKeyy={wrong}",
            "": "",
        }[credential]
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", value)
        monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING" if not credential else "NOTHING", raising=False)
        if not credential:
            monkeypatch.setenv("AZURE_STORAGE_ANON", "true")
        assert main.run(place.arguments()) == 2
        err = capfd.readouterr().err
        assert err.count("\n") == 1, err
        assert f"{place.root}/" in err
        assert says in err
        for secret in (wrong, "c2VjcmV0", ACCOUNT_KEY, expired.rpartition("sig=")[2], another.rpartition("sig=")[2]):
            assert secret not in err + caplog.text

    def test_a_token_without_the_right_to_overwrite_tells_what_is_there(self, url: str, proxy: Proxy) -> None:
        """In Azure's own words, which Azurite does not use."""
        proxy.rule("PUT", "/a$", "refuse", status=403, code="UnauthorizedBlobOverwrite")
        assert not files.create_bytes(f"{url}/a", b"1")


@pytest.mark.parametrize("other", ["gs"], indirect=True)
class TestGoogleCredentials:
    """The emulator looks at none; what fails on the way there is the client's own doing."""

    @pytest.fixture(autouse=True)
    def again(self, other: Other, proxy: Proxy) -> Iterator[None]:
        forget(other)
        yield
        forget(other)

    def account(self, folder: Path, address: str) -> Path:
        """Write the credentials of a service account."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        words = {"type": "service_account", "client_email": "me@example.com", "private_key": text}
        words |= {"private_key_id": "1", "project_id": "mine", "token_uri": address}
        (folder / "account.json").write_text(json.dumps(words))
        return folder / "account.json"

    @pytest.mark.usefixtures("hasty")
    def test_expired(
        self,
        place: Place,
        proxy: Proxy,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        caplog.set_level(logging.DEBUG)
        rule = proxy.rule("POST", "/token", "refuse", status=400, code="invalid_grant")
        account = self.account(tmp_path, f"{proxy.url}/token")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
        assert main.run(place.arguments()) == 2
        err = capfd.readouterr().err
        assert rule.hits > 0
        assert err.count("\n") == 1, err
        assert re.search(f"{place.root}/.*: there are no valid credentials for this address", err), err
        for secret in json.loads(account.read_text())["private_key"].splitlines()[1:-1]:
            assert secret not in err + caplog.text

    def test_a_raw_token_that_can_not_be_asked_about(
        self, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its client sends it in an address, which the error of a connection quotes."""
        monkeypatch.setenv("FSSPEC_GS", json.dumps({"token": "ya29.s3cret-s3cret"}))
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{free_port()}")
        said = told(place.arguments(), 1, tmp_path)
        assert f"{place.root}/" in said
        assert "s3cret" not in said


def test_the_emulators_are_those_of_the_documentation() -> None:
    """docs/stores.md names the versions that this suite ran on."""
    told = (Path(__file__).parents[2] / "docs" / "stores.md").read_text()
    for package in ("gcsfs", "adlfs", "gcp-storage-emulator"):
        assert f"{package} {importlib.metadata.version(package)}" in told
