"""The Hugging Face Hub (``hf://``): read from, never written to file by file, and nothing private ever reaches it.

The real client against a server on loopback, in processes of their own, since the client reads its settings once. The
server answers what the client asks when it reads and lists a repository of data, and keeps all that was sent.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tests.calls import succeeds
from tests.engines.corpora import (
    CANARIES,
    COLUMN_CANARY,
    HANG_SECONDS,
    ROOT,
    UNKNOWN,
    Ground,
    encode,
    environment,
    make_ground,
    release_files,
    rows,
    run,
)

COMMIT = "0" * 40


@dataclass
class Hub:
    """A server with one repository of data, in one commit."""

    repository: str
    files: dict[str, bytes]
    sent: list[tuple[str, str, bytes]] = field(default_factory=list)
    """Method, address with headers, and body of each request."""
    status: int = 0
    """What every request is answered with, unless 0."""

    def tree(self, revision: str) -> dict[str, bytes] | None:
        """Return the files of a revision: ``main`` or the id of its commit."""
        return self.files if revision in ("main", COMMIT) else None


def entries(tree: dict[str, bytes], folder: str, *, recursive: bool) -> list[dict[str, Any]]:
    """Return the listing of a folder, as the Hub gives it."""
    below = f"{folder}/" if folder else ""
    listed: dict[str, dict[str, Any]] = {}
    for path, data in sorted(tree.items()):
        if path.startswith(below):
            parts = path[len(below) :].split("/")
            for depth in range(1, len(parts)) if recursive else range(1, min(2, len(parts))):
                name = below + "/".join(parts[:depth])
                listed[name] = {"type": "directory", "oid": "0" * 40, "size": 0, "path": name}
            if recursive or len(parts) == 1:
                listed[path] = {"type": "file", "oid": hashlib.sha1(data).hexdigest(), "size": len(data), "path": path}
    return list(listed.values())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: object) -> None: ...

    def _answer(self, status: int, body: Any = b"", **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _missing(self, what: str) -> None:
        self._answer(404, {"error": f"{what} not found"}, X_Error_Code=f"{what}NotFound")

    def _do(self) -> None:
        hub = self.hub
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        hub.sent.append((self.command, f"{self.path}\n{self.headers}", body))
        asked = urlsplit(self.path)
        path, query = unquote(asked.path), parse_qs(asked.query)
        if hub.status:
            self._answer(hub.status, {"error": "no"})
        elif not re.search(rf"/{hub.repository}(?=[/.]|$)", path):
            self._answer(404, {"error": "Repository not found"}, X_Error_Code="RepoNotFound")
        elif match := re.fullmatch(rf"/api/datasets/{hub.repository}(?:/revision/(.+))?", path):
            if hub.tree(match[1] or "main") is None:
                self._missing("Revision")
            else:
                self._answer(200, {"id": hub.repository, "sha": COMMIT, "private": False, "tags": [],
                                   "downloads": 0, "likes": 0, "siblings": []})  # fmt: skip
        elif match := re.fullmatch(rf"/api/datasets/{hub.repository}/tree/([^/]+)/?(.*)", path):
            self._list(match[1], match[2], query)
        elif match := re.fullmatch(rf"/api/datasets/{hub.repository}/paths-info/(.+)", path):
            asked_for = json.loads(body)["paths"] if body.startswith(b"{") else parse_qs(body.decode())["paths"]
            every = entries(hub.tree(match[1]) or {}, "", recursive=True)
            self._answer(200, [entry for entry in every if entry["path"] in asked_for])
        elif match := re.fullmatch(rf"/datasets/{hub.repository}/resolve/([^/]+)/(.+)", path):
            self._resolve(match[1], match[2])
        else:
            self._missing("Entry")

    do_GET = do_HEAD = do_POST = do_PUT = _do  # noqa: N815 - http.server's names

    def _list(self, revision: str, folder: str, query: dict[str, list[str]]) -> None:
        tree = self.hub.tree(revision)
        listed = entries(tree or {}, folder, recursive=query.get("recursive") == ["True"])
        if tree is None or (folder and not listed):
            self._missing("Revision" if tree is None else "Entry")
            return
        self._answer(200, listed)

    def _resolve(self, revision: str, path: str) -> None:
        data = (self.hub.tree(revision) or {}).get(path)
        if data is None:
            self._missing("Entry")
            return
        same = {"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X_Repo_Commit": COMMIT}
        if match := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
            part = data[int(match[1]) : int(match[2]) + 1]
            self._answer(206, part, Content_Range=f"bytes {match[1]}-{match[2]}/{len(data)}", **same)
        else:
            self._answer(200, data, **same)


pytest.importorskip("huggingface_hub")
NAME = "jane/reviews"
WHERE = f"hf://datasets/{NAME}/data"
NAMED = ("--corpus", "reviews", "--keep", "id")
TOKEN = "hf_canarytoken"
PRIVATE = [*CANARIES.values(), UNKNOWN, COLUMN_CANARY]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    ground = make_ground(tmp_path_factory.mktemp("hub"), [])
    corpus = ground.folder / "reviews"
    (corpus / "data").mkdir(parents=True)
    for number in range(5):
        (corpus / "data" / f"part-{number}.jsonl").write_bytes(encode(rows(60 * number, number, words=20)))
    succeeds(*ground.arguments(corpus / "data", ground.folder / "expected", *NAMED))
    return replace(ground, corpus=corpus)


@pytest.fixture
def hub(own: Ground, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A Hub with the corpus, to which clients that start from now on go."""
    files = {f"data/{path.name}": path.read_bytes() for path in (own.corpus / "data").iterdir()}
    made = Hub(NAME, files | {"README.md": b"# reviews", ".gitattributes": b""})
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": made})) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name, value in (
            ("ENDPOINT", f"http://127.0.0.1:{server.server_port}"), ("TOKEN", TOKEN), ("HOME", str(tmp_path / "hf")),
            ("HUB_DISABLE_XET", "1"), ("HUB_OFFLINE", "0"),
        ):  # fmt: skip
            monkeypatch.setenv(f"HF_{name}", value)
        yield made
        server.shutdown()


@pytest.mark.parametrize(
    "where", [WHERE, pytest.param(f"hf://datasets/{NAME}@{COMMIT}/data/part-*.jsonl", marks=pytest.mark.nightly)]
)
def test_a_release_of_what_lies_there_is_that_of_a_disk(own: Ground, hub: Hub, tmp_path: Path, where: str) -> None:
    workers = 1 if where == WHERE else 2
    done = run(*own.arguments(where, tmp_path / "b", *NAMED, "--workers", workers), home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert release_files(tmp_path / "b") == release_files(own.folder / "expected")
    assert not [where for _, where, _ in hub.sent if "/commit/" in where]
    assert {method for method, _, _ in hub.sent} <= {"GET", "HEAD", "POST"}
    received = "\n".join(f"{method} {where} {body!r}" for method, where, body in hub.sent)
    assert TOKEN in received  # the client's own: what was received can be seen here
    assert not [word for word in PRIVATE if word in received]
    records = "".join(path.read_text(errors="replace") for path in (tmp_path / "b.records").rglob("*.json"))
    assert TOKEN not in records


@pytest.mark.nightly
def test_nothing_is_written_to_it(own: Ground, hub: Hub, tmp_path: Path) -> None:
    """Neither a release, nor its records, nor a ledger, nor an artifact; and the ledger spends nothing."""
    ledger = ("--ledger", tmp_path / "ledger", "--unit", "content")
    calls = [
        own.arguments(own.corpus / "data", f"hf://datasets/{NAME}/out", *ledger, "--records", tmp_path / "records"),
        own.arguments(own.corpus / "data", tmp_path / "out", *ledger, "--records", f"hf://datasets/{NAME}/records"),
        own.arguments(own.corpus / "data", tmp_path / "out", "--ledger", f"hf://datasets/{NAME}/ledger"),
        ["count", str(own.corpus / "data"), "--output", f"hf://datasets/{NAME}/counts"],
    ]
    code = f"from tests.calls import command\nfor call in {calls!r}:\n    print(repr(command(*call)))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(tmp_path), cwd=ROOT, capture_output=True, text=True,
        timeout=HANG_SECONDS, check=True,
    )  # fmt: skip
    for call, ended in zip(calls, done.stdout.splitlines(), strict=True):
        assert ended.startswith("Ended(status=2"), (call, ended)
        assert "hf upload" in ended
        assert "Traceback" not in ended
    assert not [method for method, _, _ in hub.sent if method not in ("GET", "HEAD")]
    assert not (tmp_path / "ledger").exists()


REFUSED = (
    (401, WHERE, "unusable-address"), (403, WHERE, "unusable-address"), (404, WHERE, "missing-file"),
    (0, "hf://datasets/jane/nothing/data", ""), (0, f"hf://datasets/{NAME}@nothing/data", ""),
    (0, f"hf://datasets/{NAME}/no", ""),
)  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize(("status", "where", "code"), REFUSED)
def test_a_refusal_is_one_sentence(own: Ground, hub: Hub, tmp_path: Path, status: int, where: str, code: str) -> None:
    """So is a repository, a revision or a folder that does not exist."""
    hub.status = status
    done = run(*own.arguments(where, tmp_path / "out"), home=tmp_path)
    assert done.returncode == 2, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("corpusveil: ")]
    assert where in line
    assert line.endswith(f"[{code}]") or not code
    assert TOKEN not in done.stderr
    assert "Traceback" not in done.stderr
