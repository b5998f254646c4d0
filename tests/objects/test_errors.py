"""A store that can't be used is told in one sentence with its address, and never by a traceback."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import s3fs

from corpusveil.cli.main import run
from tests.engines.processes import free_port
from tests.objects.conftest import Place
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
        assert "s3://nobody-made-this/out.records/run.json: there is no such bucket" in said

    def test_no_such_space(self, place: Place, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = place.arguments("--space", f"{place.root}/nowhere")
        assert "nowhere: there is no space here" in told(arguments, 2, capsys)

    def test_a_name_that_no_bucket_has(self, place: Place, capsys: pytest.CaptureFixture[str]) -> None:
        said = told(place.arguments(output="s3://Not_a_bucket!/out"), 2, capsys)
        assert "not an address that can be used" in said

    def test_dots(self, place: Place, capsys: pytest.CaptureFixture[str]) -> None:
        said = told(place.arguments(output=f"{place.root}/c4/../c4"), 2, capsys)
        assert "'.' and '..' mean nothing at a store" in said

    @pytest.mark.parametrize("output", ["c4", "c4/out", "c4//out", "c4/", ""])
    def test_output_where_the_input_is(self, place: Place, output: str, capsys: pytest.CaptureFixture[str]) -> None:
        said = told(place.arguments(output=f"s3a://{place.bucket}/{output}"), 2, capsys)
        assert "choose another folder" in said or "may not lie in" in said
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
        assert "no valid credentials for this address were found" in told(place.arguments(), 2, capsys)
        s3fs.S3FileSystem.clear_instance_cache()


def test_an_endpoint_that_nobody_listens_on(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use(f"http://127.0.0.1:{free_port()}", monkeypatch)
    assert "could not be read (Could not connect to the endpoint" in told(place.arguments(), 1, capsys)
