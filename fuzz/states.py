"""The state of corpusveil: configurations, keys, records, schedules, leases, ledgers and tables."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from corpusveil.budget import Budget
from corpusveil.collocations.artifact import read_artifact
from corpusveil.collocations.collocation_table import load_collocations
from corpusveil.errors import UserError
from corpusveil.jobs.local import Local
from corpusveil.ledger.entries import ABOUT, ROWS, VERSION, About, about_of, digest_of, header_of
from corpusveil.ledger.summary import Ledger
from corpusveil.mechanisms import make
from corpusveil.pipelines.schedule import State
from corpusveil.pipelines.settings import toml
from corpusveil.sampling.keys import Key
from corpusveil.spaces.build import build_space
from corpusveil.spaces.vectors import Vectors
from corpusveil.storage import lease
from corpusveil.storage.durable import refuse_failed
from corpusveil.storage.records import Records
from corpusveil.text.classes import TOKENIZER_VERSION
from corpusveil.text.policy import TextPolicy
from corpusveil.transforms.release.corpus import privatize_corpus
from corpusveil.transforms.release.release import Release
from fuzz.containers import RAW, changed, one, pieces
from fuzz.invariant import CANARY, Reader, need, need_sentence, refused

CONFIGURATION = f"""
[corpus]
input = ["in/*.jsonl", '{CANARY}']
keep = ["a", "b\\u00e9\\t"]
[space]
path = "space"
lists = 2
[mechanism]
name = "diffractor-exponential"
gamma = 18
[budget]
epsilon = 1.5e0
per = "document"
[text]
numbers = "mask"
[key]
path = "key"
[output]
path = "out"
accept_no_guarantee = false
on_bad_rows = "drop"
rows_per_task = 8192
"""
COLLOCATIONS = """
[collocations]
input = ["a"]
counts = "c"
table = "t"
tokens = "k"
[embeddings]
vectors = "v"
alpha = 0.025
"""


def check_configuration(data: bytes, folder: Path) -> None:
    """Read a configuration; its written form is read as the same."""
    path, again = folder / "x.toml", folder / "y.toml"
    path.write_bytes(data)
    found = refused(lambda: toml.read(str(path)), path, quotes=True)
    if found is not None and not found.settings.value("budget.strategy"):
        again.write_text(toml.written(found), encoding="utf-8")
        need(toml.read(str(again)).settings == found.settings, "another configuration when it is read again")


def check_key(data: bytes, folder: Path) -> None:
    """Load a key, and its saved form."""
    path, again = folder / "x.key", folder / "y.key"
    path.write_bytes(data)
    path.chmod(0o600)
    key = refused(lambda: Key.load(path), path)
    if key is not None:
        again.unlink(missing_ok=True)
        key.save(again)
        need(Key.load(again).secret == data, "another key when it is loaded again")
        need(again.stat().st_mode & 0o777 == 0o600, "a key that others can read")


@functools.cache
def _release() -> Release:
    space = build_space(Vectors(["a", "b", "c"], np.eye(3, dtype=np.float32)))
    return Release(make("ring-geometric", space), Budget(1.0), TextPolicy(), key=Key(bytes(range(100, 132))))


def _run(folder: Path) -> None:
    privatize_corpus(_release(), [str(folder / "x.jsonl")], str(folder / "out"), Local(), records=f"{folder}/records")


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


LINE = b'{"text": "a b c"}\n'


def check_records(data: bytes, folder: Path) -> None:
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


def check_schedule(data: bytes, folder: Path) -> None:
    """Read the state of a schedule after a change: one that is damaged is made again."""
    (folder / "schedule.json").write_bytes(data)
    refused(lambda: Records(str(folder)).read("schedule.json", State), folder / "schedule.json")


def check_lease(data: bytes, folder: Path) -> None:
    """Take a lease after another lease whose files were changed."""
    for path in folder.glob("lease/*"):
        path.unlink()
    (folder / "lease").mkdir(exist_ok=True)
    holder, beat = pieces(data, 2)
    (folder / "lease" / lease.LEASE).write_bytes(holder)
    (folder / "lease" / lease.BEAT).write_bytes(beat)
    need(refused(lambda: lease.take(str(folder / "lease"), 0.02), folder), "a lease that nobody can take")


@functools.cache
def _ledger() -> dict[str, bytes]:
    """Return the files of a ledger: an entry, the header and the secret."""
    secret, sink = b"s" * 32, io.BytesIO()
    named: dict[str, Any] = dict.fromkeys(
        ("unit", "namespace", "column", "release", "metric", "mechanism", "space"), CANARY
    )
    about = About(**named, version=VERSION, budget={"epsilon": 1.0}, documents=3, tokens=6)
    tags = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes([n]) * 16 for n in range(3)], pa.binary(16)))
    numbers = [pa.array([1, 2, 3], pa.int64())] * (len(ROWS) - 2)
    table = pa.table([tags, tags, *numbers], schema=ROWS.with_metadata({ABOUT: header_of(about)}))
    pq.write_table(table, sink, **PLAIN)
    with tempfile.NamedTemporaryFile() as file:
        file.write(sink.getvalue())
        file.flush()
        name = digest_of(file.name, secret)
    return {
        f"ledger/entries/{name}.{0:016x}.parquet": sink.getvalue(),
        "ledger/ledger.json": json.dumps({"version": VERSION, "units": [CANARY]}).encode(),
        "ledger/secret.key": secret,
    }


def check_ledger(data: bytes, folder: Path) -> None:
    """Ask a ledger after a change of its entry or its header: a changed entry is noticed."""
    choice, content = data[0] if data else 0, data[1:]
    parts = _ledger()
    name, whole = list(parts.items())[choice & 1]
    harmed = content if choice & RAW else changed(whole, content)
    _lay(folder, parts | {name: harmed})
    ledger = Ledger(str(folder / "ledger"))
    if choice & 1 or harmed == whole:
        refused(ledger.spent, folder)
        return
    (difference,) = ledger.verify().differences
    need_sentence(difference, str(folder / name))
    about = refused(lambda: about_of(str(folder / name)), folder)
    need(about is None or about[1] >= 0, "an entry of fewer rows than none")


def _table(**options: Any) -> bytes:
    ngrams = ["new york", f"{CANARY} der", "a b c"]
    table = {"ngram": ngrams, "n": pa.array([2, 2, 3], pa.int8()), "count": [5, 4, 3], "score": [3.0, 2.5, 2.25]}
    return _bytes(pa.table(table), **options)


def _bytes(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


PLAIN = {"compression": "none", "use_dictionary": False}


def check_collocations(data: bytes, folder: Path) -> None:
    """Compile a table that was changed."""
    choice, content = data[0] if data else 0, data[1:]
    path = folder / "x.parquet"
    path.write_bytes(content if choice & RAW else changed(_table(**PLAIN), content))
    load_collocations.cache_clear()
    found = refused(lambda: load_collocations(str(path)), path)
    if found is not None:
        need(len(found.tokens) == len(set(found.tokens)) == len(found.scores), "a collocation that is there twice")
        need(np.isfinite(found.scores).all(), "a score that is not finite")
        need(found.restricted(set(found.tokens)).digest == found.digest, "another table when it is compiled again")


def check_artifact(data: bytes, folder: Path) -> None:
    """Read a description that was changed."""
    (folder / "_artifact.json").write_bytes(data)
    found = refused(lambda: read_artifact(str(folder), "counts"), folder)
    need(found is None or isinstance(found, dict), "a description that is none")


def _numbered(parts: Mapping[str, bytes]) -> Iterator[bytes]:
    for number, part in enumerate(parts.values()):
        yield bytes([number]) + part


def _schedule_seeds() -> Iterator[bytes]:
    shards = {"x.jsonl": (3, "1", "00", "run-00001/data/part-00000-of-00001.jsonl")}
    yield State(root="/in", release="dd", shards=shards, bytes={shards["x.jsonl"][3]: 3}).data()


def readers() -> Iterator[Reader]:
    told = orjson.dumps(
        {"kind": "counts", "version": 1, "tokenizer": TOKENIZER_VERSION, "options": {"max_n": 3}, "digest": "0" * 64}
    )
    holder = orjson.dumps({"host": "h", "machine": "m", "process": 1, "began": 0.5})
    beat = orjson.dumps({"time": 0.5, "mark": "00"})
    seeds: dict[str, tuple[Callable[[bytes, Path], None], list[bytes]]] = {
        "configuration": (check_configuration, [CONFIGURATION.encode(), COLLOCATIONS.encode()]),
        "key": (check_key, [bytes(range(32)), bytes(range(100, 132)), b"correct horse battery staple, no"]),
        "records": (check_records, list(_numbered(_records()))),
        "schedule": (check_schedule, list(_schedule_seeds())),
        "lease": (check_lease, [one(holder, beat)]),
        "ledger": (
            check_ledger,
            [b"\0" + bytes(6), *(bytes([RAW + k]) + part for k, part in enumerate([*_ledger().values()][:2]))],
        ),
        "collocations": (
            check_collocations,
            [b"\0" + bytes(6), bytes([RAW]) + _table(), bytes([RAW]) + _table(**PLAIN)],
        ),
        "artifact": (check_artifact, [told]),
    }
    for name, (check, inputs) in seeds.items():
        yield Reader(name, functools.partial(iter, inputs), check)
