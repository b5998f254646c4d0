"""A store that can't be used is told in one sentence with its address, and never by a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
import s3fs

from corpusveil.errors import CorpusveilError
from corpusveil.storage import files
from tests.calls import fails
from tests.objects.conftest import Place
from tests.objects.proxy import Proxy
from tests.objects.store import Store

pytestmark = pytest.mark.usefixtures("hasty")


@pytest.mark.usefixtures("s3")
class TestOneSentence:
    def test_no_such_bucket(self, place: Place, tmp_path: Path) -> None:
        """Whatever command it is for; it is the bucket that is missing, not what should be in it."""
        (tmp_path / "a.jsonl").write_text('{"text": "ba"}\n')
        nowhere, out = "s3://nobody-made-this/x", tmp_path / "out"
        for words in (
            place.arguments(source=nowhere),
            place.arguments(output=nowhere),
            ["count", tmp_path / "a.jsonl", "--output", nowhere],
            ["score", "--counts", nowhere, "--output", out],
            ["tokenize", f"{nowhere}/*.json", "--tokenizer", "word", "--output", out],
            ["train", "--tokens", nowhere, "--output", out],
            ["space", "--vectors", nowhere, "--output", out, "--progress", "none"],
            ["mechanisms", "tem", "--space", nowhere],
            ["ledger", "show", nowhere],
        ):
            fails(words, "missing-file", nowhere, "there is no such bucket; make it, or choose another bucket")

    def test_no_credentials(self, place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            monkeypatch.setenv(name, str(tmp_path / "missing"))
        s3fs.S3FileSystem.clear_instance_cache()
        fails(place.arguments(), "no-permission", place.root, "there are no valid credentials")
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
        with pytest.raises(CorpusveilError, match=f"^{url}: .*{says}") as caught:
            use_it(url)
        assert caught.value.exit_status == exits
