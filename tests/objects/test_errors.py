"""A store that can't be used is told in one sentence with its address, and never by a traceback."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import s3fs

from corpusveil.cli.main import run
from corpusveil.errors import CorpusveilError
from corpusveil.storage import files
from tests.engines.processes import free_port
from tests.objects.conftest import Place
from tests.objects.proxy import Proxy
from tests.objects.store import Store, use

pytestmark = pytest.mark.usefixtures("hasty")


def told(arguments: list[str], status: int, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command line that fails; return its one sentence."""
    assert run(arguments) == status
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    assert said.startswith("corpusveil: s3://"), said
    return said


@pytest.fixture
def strict(store: Store, place: Place) -> Iterator[None]:
    """Let the store look at credentials."""

    def after(requests: bytes) -> None:
        plain = {"Content-Type": "text/plain"}
        asked = urllib.request.Request(f"{store.endpoint}/moto-api/reset-auth", requests, plain)
        urllib.request.urlopen(asked, timeout=10).close()

    after(b"0")
    s3fs.S3FileSystem.clear_instance_cache()
    yield
    after(b"inf")
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.usefixtures("s3")
class TestOneSentence:
    def test_no_such_bucket_for_the_input(self, place: Place, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = place.arguments()
        arguments[1] = "s3://nobody-made-this/c4"
        assert "s3://nobody-made-this/c4: there is no such bucket" in told(arguments, 2, capsys)

    def test_no_such_bucket_for_the_output(self, place: Place, capsys: pytest.CaptureFixture[str]) -> None:
        said = told(place.arguments(output="s3://nobody-made-this/out"), 2, capsys)
        assert re.search(r"s3://nobody-made-this/out\S*: there is no such bucket", said)

    @pytest.mark.parametrize("arguments", [
        ["count", "HERE", "--output", "s3://nobody-made-this/c"],
        ["score", "--counts", "s3://nobody-made-this/c", "--output", "THERE"],
        ["tokenize", "s3://nobody-made-this/x/*.json", "--tokenizer", "word", "--output", "THERE"],
        ["train", "--tokens", "s3://nobody-made-this/t", "--output", "THERE"],
        ["space", "--vectors", "s3://nobody-made-this/v", "--output", "THERE", "--progress", "none"],
        ["mechanisms", "tem", "--space", "s3://nobody-made-this/s"],
        ["ledger", "show", "s3://nobody-made-this/l"],
    ], ids=lambda arguments: arguments[0])  # fmt: skip
    def test_no_such_bucket_for_a_step(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
    ) -> None:
        """It is the bucket that is missing, not what should be in it."""
        (tmp_path / "a.jsonl").write_text('{"text": "ba"}\n')
        places = {"HERE": str(tmp_path / "a.jsonl"), "THERE": str(tmp_path / "out")}
        said = told([places.get(word, word) for word in arguments], 2, capsys)
        assert re.search(r"s3://nobody-made-this/\S+: there is no such bucket; make it, or choose another bucket", said)

    def test_no_such_space(self, place: Place, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = place.arguments("--space", f"{place.root}/nowhere")
        assert "nowhere: there is no space here" in told(arguments, 2, capsys)

    def test_a_name_that_no_bucket_has(self, place: Place, capsys: pytest.CaptureFixture[str]) -> None:
        said = told(place.arguments(output="s3://Not_a_bucket!/out"), 2, capsys)
        assert "this address cannot be used" in said

    def test_dots(self, place: Place, capsys: pytest.CaptureFixture[str]) -> None:
        said = told(place.arguments(output=f"{place.root}/c4/../c4"), 2, capsys)
        assert "'.' and '..' have no meaning in a store" in said

    @pytest.mark.parametrize("output", ["c4", "c4/out", "c4//out", "c4/", ""])
    def test_output_where_the_input_is(self, place: Place, output: str, capsys: pytest.CaptureFixture[str]) -> None:
        said = told(place.arguments(output=f"s3a://{place.bucket}/{output}"), 2, capsys)
        assert "choose another folder" in said or "contain each other" in said
        assert not place.store.client.exists(f"{place.bucket}/c4/out")

    @pytest.mark.usefixtures("strict")
    def test_wrong_credentials(self, place: Place, capsys: pytest.CaptureFixture[str]) -> None:
        assert "no permission to read it" in told(place.arguments(), 2, capsys)

    def test_no_credentials(
        self, place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            monkeypatch.setenv(name, str(tmp_path / "missing"))
        s3fs.S3FileSystem.clear_instance_cache()
        assert "there are no valid credentials for this address" in told(place.arguments(), 2, capsys)
        s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.parametrize(
    ("status", "code", "exits", "says"),
    [
        (400, "ExpiredToken", 2, "the credentials have expired .*; renew them and run the same command again"),
        (403, "ExpiredTokenException", 2, "the credentials have expired .*; renew them and run the same command again"),
        (403, "RequestTimeTooSkewed", 2, "the clock of this machine differs from .*; set it and run the same"),
        (503, "SlowDown", 1, "asks for fewer requests; run again later"),
    ],
)
def test_what_to_do_is_said(store: Store, proxy: Proxy, status: int, code: str, exits: int, says: str) -> None:
    url = f"s3://{store.bucket()}/a"
    store.client.pipe_file(url, b"here")
    proxy.rule("GET PUT", "/a$", "refuse", status=status, code=code)
    for use_it in (files.read_bytes, lambda url: files.write_bytes(url, b""), lambda url: files.create_bytes(url, b"")):
        with pytest.raises(CorpusveilError, match=f"^{url}: .*{says}") as told:
            use_it(url)
        assert told.value.exit_status == exits


def test_a_store_that_is_busy_several_times_is_asked_until_it_serves(
    store: Store, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 5)
    url = f"s3://{store.bucket()}/busy"
    rules = [proxy.rule(method, "/busy$", "refuse", times=4) for method in ("GET", "PUT")]
    files.write_bytes(url, b"served")
    assert files.read_bytes(url) == b"served"
    assert [rule.hits for rule in rules] == [4, 4]


def test_an_endpoint_that_nobody_listens_on(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use(f"http://127.0.0.1:{free_port()}", monkeypatch)
    assert "could not be read (Could not connect to the endpoint" in told(place.arguments(), 1, capsys)
