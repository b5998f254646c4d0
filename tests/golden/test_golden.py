"""The same settings, key and text give the same bytes as when golden.json was written, however the code is rearranged.

A change of a release's output raises the kernel version and is listed under Output in the changelog. Then, and only
then, ``python -m tests.golden.test_golden`` writes golden.json again, and the difference of the file shows what
changed.

Works use command lines and public names of ``corpusveil``, so nothing depends on the layout of the package. Digests
cover the content of files before compression, since codecs differ between builds; vectors that a library trained are
rounded, since processors differ in the last bits.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import itertools
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from gensim.test.utils import datapath

import corpusveil as cv
from corpusveil.mechanisms import registry
from tests.calls import QUIET, save, succeeds
from tests.engines.corpora import TEST_KEY, WORDS, make_space, rows, write_corpus, write_shard

VOLATILE = {"seconds", "tokens_a_day", "corpusveil", "versions", "made_with", "created", "_", "peak", "cpu"}
"""Keys whose values tell of a machine or a moment."""
SHORT = 70
ROWS = 40
SECRET = bytes(range(32))
"""The secret of ledgers in here, so that fingerprints are the same each time."""
GRID = """
seeds = 1
train_rows = 40
test_rows = 20
lists = ["L0"]
beside = [{ name = "tem" }]
epsilons = [1]
read_first = []
words = 20
runs = 20
speed_words = 100
"""


def digest(data: bytes) -> str:
    """Return the first half of a SHA-256: enough to notice, short enough to read a difference."""
    return hashlib.sha256(data).hexdigest()[:32]


def plain(path: Path) -> bytes:
    """Return the content of a file, decompressed; a table as its rows."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    if path.suffix == ".parquet":
        return json.dumps(pq.read_table(path).to_pylist(), default=repr, sort_keys=True).encode()
    if path.suffix == ".npy":
        values = np.load(path)
        whole = values if values.dtype.kind in "iu" else np.round(values.astype(np.float64), 4) + 0.0
        return f"{values.dtype.name} {values.shape}".encode() + np.ascontiguousarray(whole).tobytes()
    if path.suffix == ".json":
        return json.dumps(told(json.loads(data)), sort_keys=True).encode()
    return data


def told(value: Any, base: str = "") -> Any:
    """Return JSON without what tells of a machine, a moment or a folder."""
    if isinstance(value, dict):
        return {name: told(part, base) for name, part in value.items() if name not in VOLATILE}
    if isinstance(value, list):
        return [told(part, base) for part in value]
    if not isinstance(value, str):
        return value
    value = value.replace(f"corpusveil {cv.__version__}", "corpusveil 0.1.0")  # who made an artifact
    return value.replace(base, "BASE") if base else value


def short(value: Any) -> Any:
    """Return JSON as it is when it is short, and otherwise its digest."""
    text = json.dumps(value, sort_keys=True)
    return value if len(text) <= SHORT else digest(text.encode())


def folder(path: Path) -> dict[str, Any]:
    """Return every file below a folder: JSON as it is, everything else as the digest of its content."""
    return {
        file.relative_to(path).as_posix(): short(_json(file)) if file.suffix == ".json" else digest(plain(file))
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.suffix != ".html"
    }


def _json(file: Path) -> Any:
    return told(json.loads(file.read_bytes()), str(Path.cwd()))


# What is privatized in memory.


def texts() -> list[str]:
    """Return documents with everything in them that policies tell apart."""
    return [row["text"] for row in rows(ROWS, 7)]


def released(space: cv.Space, name: str = "ring-geometric", budget: Any = None, policy: Any = None) -> dict[str, str]:
    """Return the name of a release of these settings, and what it draws."""
    budget, policy = budget or cv.Budget(1.0), policy or cv.TextPolicy()
    release = cv.Release(cv.mechanism(name, space), budget, policy, key=cv.Key(TEST_KEY), accept_no_guarantee=True)
    ids = [f"golden/{number}" for number in range(ROWS)]
    return {"release": release.digest, "texts": digest(json.dumps(cv.privatize(texts(), release, ids=ids)).encode())}


def mechanisms() -> dict[str, Any]:
    """Every mechanism on one small space."""
    space = cv.load_space("space")
    above = cv.Budget(40.0)  # as truncated Gumbel is not defined at 1
    return {name: released(space, name, above if "gumbel" in name else None) for name in registry.names()}


def policies() -> dict[str, Any]:
    """Each policy of a class of tokens, layouts, capitals and hyphens."""
    space = cv.load_space("space")

    def of(**policy: Any) -> Any:
        try:
            return released(space, policy=cv.TextPolicy(**policy))
        except cv.UserError:
            return "refused"

    classes = itertools.product(
        ("unknown_words", "stop_words", "numbers", "contacts", "punctuation", "other"),
        ("privatize", "resample", "mask", "drop", "keep"),
    )
    more = ({"layout": "keep"}, {"case": "restore"}, {"hyphens": "join"})
    return {f"{name}={policy}": of(**{name: policy}) for name, policy in classes} | {
        str(one): of(**one) for one in more
    }


def budgets() -> dict[str, Any]:
    """Document budgets and how they are shared."""
    space = cv.load_space("space")
    found = {f"token {epsilon}": released(space, budget=cv.Budget(epsilon)) for epsilon in (0.1, 3.0)}
    for allocation in ("uniform", "word-share"):
        budget = cv.Budget(20.0, "document", allocation)
        found[allocation] = released(space, budget=budget)
        found[f"tem {allocation}"] = released(space, "tem", budget=budget)
    return found


# What commands write.


@contextmanager
def ground() -> Iterator[None]:
    """Work in a folder of its own, with a space, a key, a ledger's secret and corpora in every form."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            Path("release.key").touch(mode=0o600)
            Path("release.key").write_bytes(TEST_KEY)
            Path("ledger").mkdir(mode=0o700)
            Path("ledger/secret.key").touch(mode=0o600)
            Path("ledger/secret.key").write_bytes(SECRET)
            make_space(Path("space"))
            write_corpora()
            yield
        finally:
            os.chdir(before)


def write_corpora() -> None:
    """Write the same documents in every form, and text to count."""
    documents = rows(ROWS, 11)
    write_corpus(Path("c4"), [documents, [], rows(5, 12), documents[:3]])
    write_shard(Path("plain/a.jsonl"), documents)
    Path("zst").mkdir()
    lines = Path("plain/a.jsonl").read_bytes()
    Path("zst/a.jsonl.zst").write_bytes(zstandard.compress(lines))
    Path("parquet").mkdir()
    columns = {name: [row[name] for row in documents] for name in ("text", "id", "secret")}
    pq.write_table(pa.table(columns), "parquet/a.parquet")
    Path("csv").mkdir()
    with open("csv/a.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "id"])
        writer.writerows([row["text"].replace("\x00", ""), row["id"]] for row in documents)
    Path("txt").mkdir()
    Path("txt/a.txt").write_text(
        "".join(" ".join(row["text"].split()) + "\n" for row in documents), encoding="utf-8", newline=""
    )
    Path("bad").mkdir()
    Path("bad/a.jsonl").write_bytes(lines + b'{"text": 3}\nno json\n')
    rng = random.Random(5)
    Path("public").mkdir()
    weights = [1.0 / (number + 1) for number in range(len(WORDS))]
    with open("public/a.txt", "w", encoding="utf-8") as file:
        for _ in range(400):
            chosen = rng.choices(WORDS, weights, k=12)
            file.write(f"{' '.join(chosen)}. Bade kilo munari {chosen[0]} bade-kilo 12.\n")


RELEASES: dict[str, list[str]] = {
    "c4": ["c4"],
    "c4 with ids, ledger and a kept column": [
        "c4", "--id", "id", "--keep", "id", "--ledger", "ledger", "--unit", "id", "--unit", "content", "--corpus",
        "golden", "--cap", "1e6", "--per", "document", "--epsilon", "10",
    ],
    "c4 with split tasks on two workers": ["c4", "--rows-per-task", "8192", "--workers", "2"],
    "json lines": ["plain"],
    "zst": ["zst"],
    "parquet": ["parquet", "--keep", "id"],
    "csv": ["csv", "--keep", "id"],
    "text": ["txt"],
    "to parquet": ["plain", "--format", "parquet"],
    "bad-rows": ["bad", "--on-bad-rows", "drop"],
    "duplicates, same noise": ["c4", "--duplicates", "same-noise", "--id", "id"],
    "a strategy": ["c4", "--epsilon", "6"],
    "a study's settings": [
        "c4", "--mechanism", "diffractor-geometric", "--per", "token", "--case", "lower",
        *(word for name in ("unknown-words", "stop-words", "numbers", "contacts", "punctuation", "other")
          for word in (f"--{name}", "keep")),
    ],
    "another mechanism": ["c4", "--mechanism", "santext", "--epsilon", "3"],
}  # fmt: skip


def corpora() -> dict[str, Any]:
    """Releases of corpora with their records: every form, identities, ledger, duplicates, strategies."""
    found: dict[str, Any] = {}
    for number, (name, arguments) in enumerate(RELEASES.items()):
        output = Path(f"release-{number}")
        settings = ["--space", "space", "--output", output, "--key", "release.key", "--progress", "none"]
        for option, value in (("--mechanism", "ring-geometric"), ("--epsilon", "1"), ("--corpus", "golden")):
            settings += [] if option in arguments else [option, value]
        if name == "a strategy":  # which files alone name
            given = {
                "corpus": {"input": ["c4"], "name": "golden"}, "space": {"path": "space"},
                "mechanism": {"name": "ring-geometric"}, "text": {"stop_words": "keep"},
                "budget": {"epsilon": 6.0, "per": "document", "allocation": "word-share"},
                "key": {"path": "release.key"}, "output": {"path": str(output)},
            }  # fmt: skip
            succeeds("run", save(Path("strategy.toml"), given), "--progress", "none")
        else:
            succeeds("privatize", *arguments, *settings)
        records = output.with_name(output.name + ".records")
        found[name] = {
            "manifest": {key: short(value) for key, value in _manifest(output).items()},
            "data": {file.name: digest(plain(file)) for file in sorted((output / "data").glob("*"))},
            "totals": short(_json(records / "totals.json")),
            "shards": {file.name: short(_shard(file)) for file in sorted((records / "shards").glob("*.json"))},
        }
    entries = {}
    for file in Path("ledger/entries").glob("*.parquet"):
        unit = json.loads(pq.read_schema(file).metadata[b"corpusveil.ledger"])["unit"]
        entries[unit] = digest(plain(file))
    found["ledger"] = dict(sorted(entries.items()))  # the files have random names
    return found


def _manifest(output: Path) -> Any:
    manifest = _json(output / "manifest.json")
    for shard in manifest["shards"]:
        shard.pop("file_sha256")
    return manifest


def _shard(file: Path) -> Any:
    record = _json(file)
    record["output"].pop("file_sha256")  # of compressed bytes
    record["output"].pop("bytes", None)
    if record["ledger"] is not None:
        record["ledger"] = len(record["ledger"])  # digests of compressed bytes, too
    return record


def artefacts() -> dict[str, Any]:
    """Everything from public text to a space: counts, tables by each measure, tokens, vectors, lists."""
    succeeds("count", "public", "--output", "counts", "--min-count", "2", "--engine", "local", "--progress", "none")
    measures = ("pmi", "npmi", "llr", "t", "chi2", "jaccard", "log-dice")
    for measure in measures:
        how = ("--measure", measure, "--threshold", "0.1")
        succeeds("score", "--counts", "counts", "--output", f"table-{measure}", *how)
    for tokenizer in ("word", "gst", "mst"):
        table = [] if tokenizer == "word" else ["--collocations", "table-pmi"]
        made = ("--tokenizer", tokenizer, "--output", f"tokens-{tokenizer}")
        succeeds("tokenize", "public", *table, *made, "--engine", "local", *QUIET)
    sizes = ("--dimensions", "4", "--epochs", "1", "--min-count", "2")
    succeeds("train", "--tokens", "tokens-gst", "--output", "vectors", *sizes, *QUIET)
    np.savez("given.npz", vocab=np.array(WORDS), vectors=np.random.default_rng(3).standard_normal((len(WORDS), 6)))
    lists = ("space", "--vectors", "given.npz", "--counts", "counts", "--lists", "2")
    succeeds(*lists, "--order", "improved", "--balance", "0", "--output", "space-2")
    succeeds(*lists, "--output", "space-3")
    names = ["counts", *(f"table-{measure}" for measure in measures), "tokens-word", "tokens-gst", "tokens-mst"]
    found = {name: folder(Path(name)) for name in (*names, "space-2", "space-3")}
    trained = folder(Path("vectors"))
    return {**found, "vectors": sorted(trained)}


def study() -> dict[str, Any]:
    """The cells of a small grid of a study that need no model: shares of words that stay, by the law and by draws."""
    Path("grid.toml").write_text(GRID)
    text = Path(datapath("lee_background.cor")).read_text(encoding="utf-8")
    words = sorted({word for word in text.lower().split()[:4000] if word.isalpha()})[:600]
    vectors = np.random.default_rng(0).normal(size=(len(words), 8)).astype(np.float32)
    np.savez("study.npz", vocab=np.array(words), vectors=vectors)
    given = ("--config", "grid.toml", "--vectors", "study.npz", "--output", "study")
    succeeds("evaluate", "study", "1-diffractor", "--quick", *given, *QUIET)
    cells = [_json(file) for file in Path("study/cells/done").glob("*.json")]
    found = {json.dumps([cell["kind"], cell["options"]]): _rounded(cell["result"]) for cell in cells}
    return {name: result for name, result in sorted(found.items()) if not name.startswith('["speed"')}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items() if name not in VOLATILE}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return round(value, 6) if isinstance(value, float) else value


WORKS: dict[str, Callable[[], dict[str, Any]]] = {
    "mechanisms": mechanisms,
    "policies": policies,
    "budgets": budgets,
    "corpora": corpora,
    "artefacts": artefacts,
    "study": study,
}


def all_works() -> dict[str, Any]:
    """Do all of them, on one ground; return what was written, as JSON."""
    with ground():
        return {name: json.loads(json.dumps(work())) for name, work in WORKS.items()}


GOLDEN = Path(__file__).with_name("golden.json")


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    written: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return written


SENTENCES = ("/guarantee", "/guarantee_in_words", "/kept_columns")
"""Ends of a manifest that are sentences, or fields next to them."""


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Return what stands at each end of nested JSON, by its path."""
    if not isinstance(value, dict):
        return {path: value}
    return {name: leaf for key, part in value.items() for name, leaf in leaves(part, f"{path}/{key}").items()}


def test_what_is_written_is_what_was_written(golden: dict[str, Any]) -> None:
    before, now = leaves(golden), leaves(all_works())
    bytes_of = [name for name in before if not name.endswith(SENTENCES)]
    assert {name for name in bytes_of if now.get(name) != before[name]} == set(), "these differ from golden.json"
    assert set(now) == set(before)


def test_every_mechanism_and_every_form_is_among_the_works(golden: dict[str, Any]) -> None:
    assert set(golden["mechanisms"]) == set(registry.names())
    suffixes = {name.split(".", 1)[1] for release in golden["corpora"].values() for name in release.get("data", ())}
    assert suffixes >= {"json.gz", "jsonl", "jsonl.zst", "parquet", "csv", "txt"}


def test_another_key_changes_every_release(
    golden: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison could fail: draws depend on everything on which they should depend."""
    monkeypatch.setattr(sys.modules[__name__], "TEST_KEY", TEST_KEY[::-1])
    with ground():
        drawn = mechanisms()
    assert all(drawn[name]["texts"] != golden["mechanisms"][name]["texts"] for name in drawn)


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(all_works(), indent=1) + "\n", encoding="utf-8")
