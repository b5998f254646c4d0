"""Google's and Azure's stores on loopback: emulators of both, and what a user sets to reach them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest

from tests.engines.corpora import HANG_SECONDS, ROOT
from tests.engines.processes import free_port
from tests.objects.proxy import Answer, Asked, Dialect, Rule
from tests.objects.store import Store

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account and the key that Microsoft's emulator documents: everybody knows them."""
AZURITE = Path(os.environ.get("CORPUSVEIL_AZURITE", ROOT / ".tools/azurite/node_modules/.bin/azurite-blob"))
GOOGLE = {"GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}


class GoogleDialect(Dialect):
    """Google's, and what its store does and the emulator does not: decide conditions."""

    def named(self, path: str, body: bytes) -> str:
        found = re.search(rb'\n\r?\n(\{"name".*?\})\r?\n--', body) if "uploadType=multipart" in path else None
        return unquote(path) + (f"&name={json.loads(found[1])['name']}" if found else "")

    def refusal(self, rule: Rule) -> tuple[dict[str, str], bytes]:
        error = {"code": rule.status, "message": rule.code, "errors": [{"reason": rule.code, "domain": "global"}]}
        return {"Content-Type": "application/json"}, json.dumps({"error": error}).encode()

    def answer(self, asked: Asked, ask: Callable[[Asked], Answer]) -> Answer:
        url = urlsplit(asked.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if query.get("ifGenerationMatch") == "0":
            bucket = url.path.split("/b/")[1].split("/")[0]
            name = asked.named.rsplit("&name=", 1)[1]
            there = Asked("GET", f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}", "", {}, b"")
            if ask(there).status == 200:
                return Answer(412, [], b'{"error": {"code": 412, "message": "conditionNotMet"}}')
        return ask(asked)


class AzureDialect(Dialect):
    """Azure's."""

    def refusal(self, rule: Rule) -> tuple[dict[str, str], bytes]:
        said = f"<?xml version='1.0'?><Error><Code>{rule.code}</Code><Message>said by the store</Message></Error>"
        return {"Content-Type": "application/xml", "x-ms-error-code": rule.code}, said.encode()


class Other(Store):
    """A store of another make."""

    def settings(self, url: str) -> dict[str, str]:
        """Return what a user sets to reach the store behind ``url``."""
        raise NotImplementedError

    def use(self, url: str, patch: pytest.MonkeyPatch, attempts: int) -> None:
        """Let the next address make a new client, which looks at the settings again."""
        for name, value in self.settings(url).items():
            patch.setenv(name, value)
        type(self.client).clear_instance_cache()

    def unfinished(self, bucket: str) -> list[str]:
        return []


def connection_string(endpoint: str) -> str:
    """Return what Azure's clients are told of an account behind ``http://host:port``."""
    return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={endpoint}/{ACCOUNT};"


@contextlib.contextmanager
def served(command: list[str], port: int, log: Path) -> Iterator[None]:
    """Run a server until the block ends. It answers, or the test fails with what it said."""
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=log.parent)
    try:
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None, f"{command[0]} ended: {log.read_text()}"
            time.sleep(0.1)
        else:
            raise AssertionError(f"{command[0]} does not answer: {log.read_text()}")
        yield
    finally:
        process.terminate()
        process.wait(HANG_SECONDS)


class Google(Other):
    scheme = "gs"
    write_method = "POST"
    dialect = GoogleDialect()

    def settings(self, url: str) -> dict[str, str]:
        return GOOGLE | {"STORAGE_EMULATOR_HOST": url}

    def looking(self) -> Any:
        from gcsfs import GCSFileSystem

        return GCSFileSystem(
            endpoint_url=self.endpoint, token="anon", use_listings_cache=False, skip_instance_cache=True
        )

    def hurry(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr("gcsfs.retry.random", SimpleNamespace(random=lambda: -1000.0))


class Azure(Other):
    scheme = "abfs"
    dialect = AzureDialect()

    def settings(self, url: str) -> dict[str, str]:
        return {"AZURE_STORAGE_CONNECTION_STRING": connection_string(url)}

    def looking(self) -> Any:
        from adlfs import AzureBlobFileSystem

        return AzureBlobFileSystem(
            connection_string=connection_string(self.endpoint), use_listings_cache=False, skip_instance_cache=True
        )

    def hurry(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr("azure.storage.blob._shared.policies_async.ExponentialRetry.get_backoff_time", lambda *_: 0)


@contextlib.contextmanager
def google(folder: Path) -> Iterator[Google]:
    """Run Google's store."""
    os.environ.update(GOOGLE | {"STORAGE_EMULATOR_HOST": ""})  # gcsfs looks once, when it is imported
    port = free_port()
    command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--in-memory", "--host", "127.0.0.1"]
    with served([*command, "--port", str(port)], port, folder / "google.log"):
        yield Google(f"http://127.0.0.1:{port}")


@contextlib.contextmanager
def azure(folder: Path) -> Iterator[Azure]:
    """Run an Azure account."""
    assert AZURITE.exists(), f"{AZURITE} is missing; make stores installs it"
    port = free_port()
    command = [str(AZURITE), "--skipApiVersionCheck", "--inMemoryPersistence", "--silent", "--disableTelemetry"]
    with served([*command, "--blobHost", "127.0.0.1", "--blobPort", str(port)], port, folder / "azure.log"):
        yield Azure(f"http://127.0.0.1:{port}")
