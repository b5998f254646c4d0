"""Google's and Azure's stores on loopback: emulators of both, and what a user sets to reach them."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import client
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.engines.corpora import HANG_SECONDS, ROOT
from tests.engines.processes import free_port
from tests.objects.proxy import Answer, Asked, Dialect, Rule

ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account and the key that Microsoft's emulator documents: everybody knows them."""
AZURITE = Path(os.environ.get("CORPUSVEIL_AZURITE", ROOT / ".tools/azurite/node_modules/.bin/azurite-blob"))
_numbers = itertools.count()


@dataclass
class GoogleDialect(Dialect):
    """Google's, and what its store does and the emulator does not: decide conditions, and list in pages."""

    page: int = 1000

    def named(self, path: str, body: bytes) -> str:
        found = re.search(rb'\n\r?\n(\{"name".*?\})\r?\n--', body) if "uploadType=multipart" in path else None
        return unquote(path) + (f"&name={json.loads(found[1])['name']}" if found else "")

    def refusal(self, rule: Rule) -> tuple[dict[str, str], bytes]:
        error = {"code": rule.status, "message": rule.code, "errors": [{"reason": rule.code, "domain": "global"}]}
        return {"Content-Type": "application/json"}, json.dumps({"error": error}).encode()

    def answer(self, asked: Asked, ask: Callable[[Asked], Answer], deciding: Any) -> Answer:
        url = urlsplit(asked.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if query.get("ifGenerationMatch") == "0":
            bucket = url.path.split("/b/")[1].split("/")[0]
            name = asked.named.rsplit("&name=", 1)[1]
            there = Asked("GET", f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}", "", {}, b"")
            with deciding:
                if ask(there).status == 200:
                    return Answer(412, [], b'{"error": {"code": 412, "message": "conditionNotMet"}}')
                return ask(asked)
        answer = ask(asked)
        if asked.method == "GET" and answer.status == 200 and re.fullmatch(r"/storage/v1/b/[^/]+/o", url.path):
            return self._cut(
                answer, min(self.page, int(query.get("maxResults", self.page))), int(query.get("pageToken", 0))
            )
        return answer

    @staticmethod
    def _cut(answer: Answer, length: int, start: int) -> Answer:
        told = json.loads(answer.data)
        whole = sorted(
            [(one["name"], "items", one) for one in told["items"]] + [(p, "prefixes", p) for p in told["prefixes"]]
        )
        page: dict[str, Any] = {"kind": told["kind"]}
        for _, kind, one in whole[start : start + length]:
            page.setdefault(kind, []).append(one)
        if len(whole) > start + length:
            page["nextPageToken"] = str(start + length)
        return Answer(answer.status, answer.headers, json.dumps(page).encode())


class AzureDialect(Dialect):
    """Azure's."""

    def refusal(self, rule: Rule) -> tuple[dict[str, str], bytes]:
        said = f"<?xml version='1.0'?><Error><Code>{rule.code}</Code><Message>said by the store</Message></Error>"
        return {"Content-Type": "application/xml", "x-ms-error-code": rule.code}, said.encode()


@dataclass
class Other:
    """A store behind ``endpoint`` (``host:port``), looked at with a client that passes no proxy."""

    scheme: str
    bucket_word: str
    write_method: str
    endpoint: str
    dialect: Dialect
    settings: Callable[[str], dict[str, str]]
    client: Any = field(default=None, repr=False)

    def bucket(self) -> str:
        """Make a new bucket; return its name."""
        name = f"bucket-{next(_numbers)}"
        self.client.mkdir(name)
        return name

    def upload(self, folder: Path, where: str) -> None:
        """Copy the files of a local folder to ``bucket/path``."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.client.pipe_file(f"{where}/{path.relative_to(folder).as_posix()}", path.read_bytes())

    def objects(self, where: str) -> dict[str, str]:
        """Return every object below ``bucket/path`` with the SHA-256 of its bytes."""
        found = self.client.find(where)
        return {
            name.removeprefix(f"{where}/"): hashlib.sha256(self.client.cat_file(name)).hexdigest() for name in found
        }

    def fill(self, bucket: str, names: Iterable[str], data: bytes) -> None:
        """Put many objects into a bucket, on few connections."""
        with ThreadPoolExecutor(4) as pool:
            whole = list(names)
            list(pool.map(lambda first: self._fill(bucket, whole[first::4], data), range(4)))

    def _fill(self, bucket: str, names: list[str], data: bytes) -> None:
        address, headers = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={{}}", {}
        if self.scheme == "abfs":
            address = f"/{ACCOUNT}/{bucket}/{{}}?{token(bucket)}"
            headers = {"x-ms-blob-type": "BlockBlob", "x-ms-version": "2024-11-04"}
        with contextlib.closing(client.HTTPConnection(self.endpoint, timeout=30)) as connection:
            for name in names:
                connection.request("PUT" if headers else "POST", address.format(quote(name)), data, headers)
                answer = connection.getresponse()
                answer.read()
                assert answer.status in {200, 201}


def connection_string(endpoint: str, key: str = ACCOUNT_KEY) -> str:
    """Return what Azure's clients are told of an account behind ``http://host:port``."""
    return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={key};BlobEndpoint={endpoint}/{ACCOUNT};"


def token(container: str, hours: float = 1, rights: str = "rwdlc") -> str:
    """Return a signed token for a container that holds for so many hours from now."""
    from azure.storage.blob import generate_container_sas

    expiry = datetime.now(UTC) + timedelta(hours=hours)
    return str(generate_container_sas(ACCOUNT, container, account_key=ACCOUNT_KEY, permission=rights, expiry=expiry))


def google_settings(endpoint: str) -> dict[str, str]:
    """Return what a user sets to reach Google's store behind ``endpoint``."""
    return {"STORAGE_EMULATOR_HOST": endpoint, "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}


def azure_settings(endpoint: str) -> dict[str, str]:
    """Return what a user sets to reach an Azure account behind ``endpoint``."""
    return {"AZURE_STORAGE_CONNECTION_STRING": connection_string(endpoint)}


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


@contextlib.contextmanager
def google(folder: Path) -> Iterator[Other]:
    """Run Google's store."""
    os.environ.update(google_settings(""))  # gcsfs looks once, when it is imported, which client it is
    from gcsfs import GCSFileSystem

    port = free_port()
    command = [sys.executable, "-m", "gcp_storage_emulator", "start", "--in-memory", "--host", "127.0.0.1"]
    with served([*command, "--port", str(port)], port, folder / "google.log"):
        endpoint = f"127.0.0.1:{port}"
        looking = GCSFileSystem(
            endpoint_url=f"http://{endpoint}", token="anon", use_listings_cache=False, skip_instance_cache=True
        )
        yield Other("gs", "bucket", "POST", endpoint, GoogleDialect(), google_settings, looking)


@contextlib.contextmanager
def azure(folder: Path) -> Iterator[Other]:
    """Run an Azure account."""
    from adlfs import AzureBlobFileSystem

    assert AZURITE.exists(), f"{AZURITE} is missing; make stores installs it"
    port = free_port()
    command = [str(AZURITE), "--skipApiVersionCheck", "--inMemoryPersistence", "--silent", "--disableTelemetry"]
    with served([*command, "--blobHost", "127.0.0.1", "--blobPort", str(port)], port, folder / "azure.log"):
        endpoint = f"127.0.0.1:{port}"
        looking = AzureBlobFileSystem(
            connection_string=connection_string(f"http://{endpoint}"),
            use_listings_cache=False,
            skip_instance_cache=True,
        )
        yield Other("abfs", "container", "PUT", endpoint, AzureDialect(), azure_settings, looking)


STORES = {"gs": google, "abfs": azure}
