"""The records of a run, from which the next one goes on."""

from __future__ import annotations

import contextlib
import functools
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from corpusveil.budget import Budget
from corpusveil.errors import UserError
from corpusveil.ledger.summary import Ledger
from corpusveil.mechanisms import make_mechanism
from corpusveil.pipelines.python_calls import privatize_corpus
from corpusveil.sampling.keys import Key
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage.durable import refuse_failed
from corpusveil.storage.records import Records
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.release.release import Release
from fuzz.invariant import Reader, refused

LINE = b'{"text": "a b c"}\n'


@functools.cache
def _release() -> Release:
    space = build_space(Vectors(["a", "b", "c"], np.eye(3, dtype=np.float32)))
    return Release(make_mechanism("ring-geometric", space), Budget(1.0), TextPolicy(), key=Key(bytes(range(100, 132))))


def _run(folder: Path) -> None:
    privatize_corpus(folder / "x.jsonl", folder / "out", _release(), records=folder / "records")


@functools.cache
def _records() -> dict[str, bytes]:
    """Return the records of a finished run, its manifest, and the record of a failed task."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "x.jsonl").write_bytes(LINE)
        _run(folder)
        paths = [*(folder / "records").rglob("*.json"), folder / "out/manifest.json"]
        parts = {str(path.relative_to(folder)): path.read_bytes().replace(name.encode(), b"FOLDER") for path in paths}
        data = next((folder / "out/data").iterdir())
        failed = {"records/failed/part-00000-of-00001.json": json.dumps({"sentence": "x.jsonl: wrong."}).encode()}
        return parts | failed | {f"out/data/{data.name}": data.read_bytes()}


def check(data: bytes, folder: Path) -> None:
    """Resume a run after a change of one record, or of the manifest."""
    parts = _records()
    names = [name for name in parts if name.endswith(".json")]
    name = names[(data[0] if data else 0) % len(names)]
    _lay(folder, parts | {name: data[1:], "x.jsonl": LINE})
    refused(lambda: _run(folder), folder)
    (folder / "ledger").mkdir(exist_ok=True)
    (folder / "ledger/secret.key").write_bytes(b"s" * 32)
    records = Records(str(folder / "records"))
    refused(lambda: Ledger(str(folder / "ledger")).verify(records.url), folder)
    _lay(folder, parts | {name: data[1:]})
    with contextlib.suppress(UserError):  # whose sentence is that of the record
        refuse_failed(records)


def _lay(folder: Path, parts: Mapping[str, bytes]) -> None:
    for name, content in parts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.replace(b"FOLDER", str(folder).encode()))
    (folder / "out.report.html").unlink(missing_ok=True)


def readers() -> Iterator[Reader]:
    yield Reader("records", lambda: (bytes([number]) + part for number, part in enumerate(_records().values())), check)
