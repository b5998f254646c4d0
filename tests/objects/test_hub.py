"""The Hugging Face Hub (``hf://``): read from, never written to file by file, and nothing private ever reaches it.

The real client against a server on loopback (``hub.py``), in processes of their own, since the client reads its
settings once.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

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
from tests.objects.hub import COMMIT, Hub, serve

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
    with serve(NAME, files | {"README.md": b"# reviews", ".gitattributes": b""}) as made:
        monkeypatch.setenv("HF_ENDPOINT", made.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        yield made


@pytest.mark.parametrize(
    "where", [WHERE, pytest.param(f"hf://datasets/{NAME}@{COMMIT}/data/part-*.jsonl", marks=pytest.mark.nightly)]
)
def test_a_release_of_what_lies_there_is_that_of_a_disk(own: Ground, hub: Hub, tmp_path: Path, where: str) -> None:
    workers = 2 if where == WHERE else 1
    done = run(*own.arguments(where, tmp_path / "b", *NAMED, "--workers", workers), home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert release_files(tmp_path / "b") == release_files(own.folder / "expected")
    assert not [where for _, where, _ in hub.sent if "/commit/" in where]
    assert {method for method, _, _ in hub.sent} <= {"GET", "HEAD", "POST"}
    received = hub.received().decode(errors="replace")
    assert TOKEN in received  # the client's own: what was received can be seen here
    assert not [word for word in PRIVATE if word in received]
    records = "".join(path.read_text(errors="replace") for path in (tmp_path / "b.records").rglob("*.json"))
    assert TOKEN not in records


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


AT_NIGHT = (
    (401, WHERE, "no-permission"), (404, WHERE, "missing-file"), (0, "hf://datasets/jane/nothing/data", ""),
    (0, f"hf://datasets/{NAME}@nothing/data", ""), (0, f"hf://datasets/{NAME}/no", ""),
)  # fmt: skip


@pytest.mark.parametrize(
    ("status", "where", "code"),
    [(403, WHERE, "no-permission"), *(pytest.param(*each, marks=pytest.mark.nightly) for each in AT_NIGHT)],
)
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
