"""What the golden test computes: digests and bytes of releases, artefacts, ledger entries and study cells.

``python -m tests.golden.works`` writes ``golden.json`` anew. A difference is a change of what users get: it stands
under **Output** in the changelog, and where a release's text changes, the kernel version goes up.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow.parquet as pq

import corpusveil as cv
from corpusveil.cli.main import run
from corpusveil.mechanisms import find, names
from corpusveil.spaces import Vectors
from corpusveil.storage.ledger import ROWS, Ledger
from tests.engines.corpora import TEST_KEY, WORDS, make_space, manifest, rows, write_shard

GOLDEN = Path(__file__).with_name("golden.json")
DOCUMENTS = 60


def _sha(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True, default=str).encode()
    return hashlib.sha256(data).hexdigest()[:32]


def _corpus(folder: Path) -> Path:
    for number in range(2):
        write_shard(folder / f"shard-{number}.jsonl", rows(DOCUMENTS, number, words=12))
    return folder


def _done(arguments: list[str]) -> None:
    status = run(arguments)
    if status:
        message = f"{' '.join(arguments)}: status {status}"
        raise AssertionError(message)


def _key(folder: Path) -> str:
    path = folder / "release.key"
    if not path.exists():
        path.touch(0o600)
        path.write_bytes(TEST_KEY)
    return str(path)


def _table(folder: Path, part: str) -> str:
    """Return a digest of the rows of an artefact's Parquet files, whatever codec wrote them."""
    files = sorted(folder.glob(part))
    assert files, part
    return _sha([pq.read_table(file).to_pylist() for file in files])


# Releases

_POLICIES: Mapping[str, list[str]] = {
    "as it is": [],
    "document budget": ["--per", "document"],
    "position": ["--per", "document", "--allocation", "position", "--weights", "3,1"],
    "word share": ["--per", "document", "--allocation", "word-share"],
    "everything kept": ["--unknown-words", "keep", "--numbers", "keep", "--contacts", "keep", "--other", "keep"],
    "masked": ["--unknown-words", "mask", "--stop-words", "mask", "--numbers", "mask", "--punctuation", "drop"],
    "layout and case": ["--layout", "keep", "--case", "restore", "--stop-words", "keep"],
    "same noise": ["--duplicates", "same-noise"],
    "copies dropped": ["--duplicates", "drop"],
    "by column": ["--id", "id", "--keep", "extra"],
    "as Parquet": ["--format", "parquet"],
    "as CSV": ["--format", "csv", "--id", "id"],
    "gamma": ["--parameter", "gamma=3"],
}


def _releases(folder: Path) -> dict[str, Any]:
    source = _corpus(folder / "in")
    make_space(folder / "space")
    key, found = _key(folder), {}

    def release(name: str, mechanism: str, epsilon: float, options: list[str]) -> None:
        output = folder / f"release {len(found)}"
        _done(
            ["privatize", str(source), "--space", str(folder / "space"), "--output", str(output), "--key", key,
             "--corpus", "golden", "--mechanism", mechanism, "--epsilon", str(epsilon), *options]
        )  # fmt: skip
        found[name] = _release(output)

    for mechanism in names():
        epsilon = 1e6 if mechanism == "truncated-gumbel" else 8.0
        options = [] if find(mechanism).private else ["--accept-no-guarantee"]
        for per in ("token", "document"):
            release(f"{mechanism}, per {per}", mechanism, epsilon, [*options, "--per", per])
    for name, options in _POLICIES.items():
        release(name, "ring-geometric", 1.0, options)
    return found


def _release(output: Path) -> dict[str, Any]:
    """Return what names a release, its content, and its whole manifest but for the version of the package."""
    told = manifest(output)
    told.pop("corpusveil")
    short = {name: told[name] for name in ("release", "content_sha256")}
    return {**short, "manifest": _sha(told), "shards": [shard["sha256"] for shard in told["shards"]]}


def _joined(folder: Path) -> dict[str, Any]:
    """Return what the collocation steps make, and a release on their units."""
    source = _corpus(folder / "in")
    place = {name: str(folder / name) for name in ("counts", "table", "tokens", "space", "release")}
    _done(["count", str(source), "--output", place["counts"], "--min-count", "1"])
    _done(["score", "--counts", place["counts"], "--output", place["table"], "--threshold", "0.5"])
    found = {"counts": _table(folder / "counts", "**/*.parquet"), "table": _table(folder / "table", "**/*.parquet")}
    for tokenizer in ("gst", "mst"):
        tokens = f"{place['tokens']} {tokenizer}"
        _done(["tokenize", str(source), "--tokenizer", tokenizer, "--collocations", place["table"], "--output", tokens])
        found[tokenizer] = _table(Path(tokens), "**/*.parquet")
    joined = [row["ngram"].replace(" ", "_") for row in pq.read_table(folder / "table").to_pylist()]
    make_space(folder / "space", words=[*WORDS, *[word for word in joined[:50] if word.isascii()]])
    _done(
        ["privatize", str(source), "--space", place["space"], "--output", place["release"], "--key", _key(folder),
         "--corpus", "golden", "--mechanism", "ring-geometric", "--epsilon", "1", "--tokenizer", "gst",
         "--collocations", place["table"]]
    )  # fmt: skip
    return {**found, "release": _release(folder / "release")}


def _spaces(folder: Path) -> dict[str, Any]:
    """Return digests of spaces of several kinds, as they are saved and as they are loaded."""
    random = np.random.default_rng(5)
    one, other = (
        Vectors(WORDS[first : first + 120], random.standard_normal((120, 8)).astype(np.float32)) for first in (0, 40)
    )
    counts = random.integers(1, 1000, 120)
    made = {
        "one list": cv.build_space(one),
        "counted": cv.build_space(one, counts=counts),
        "five lists": cv.build_space(one, lists=5, seed=3),
        "improved": cv.build_space(one, order="improved"),
        "two embeddings": cv.build_space([one, other], lists=2),
        "united": cv.build_space([one, other], union=True),
    }
    loaded = {name: cv.load_space(str(space.save(str(folder / name)).url)) for name, space in made.items()}
    assert {name: space.digest for name, space in loaded.items()} == {name: s.digest for name, s in made.items()}
    return {name: space.digest for name, space in loaded.items()}


def _spent(folder: Path) -> dict[str, Any]:
    """Return the entries of a ledger with a known secret, and what is said of them."""
    source = _corpus(folder / "in")
    make_space(folder / "space")
    with mock.patch("corpusveil.storage.ledger.secrets.token_bytes", return_value=bytes(range(32))):
        for epsilon in (1, 2):
            _done(
                ["privatize", str(source), "--space", str(folder / "space"), "--output", str(folder / str(epsilon)),
                 "--key", _key(folder), "--corpus", "golden", "--mechanism", "ring-geometric", "--epsilon",
                 str(epsilon), "--ledger", str(folder / "ledger"), "--cap", "1000"]
            )  # fmt: skip
    entries = list(Ledger.existing(str(folder / "ledger")).entries())
    told = [[dict(entry.about), entry.table.select(ROWS.names).to_pylist()] for entry in entries]
    for about, _ in told:
        about.pop("run", None)
    return {"entries": _sha(sorted(told, key=lambda one: json.dumps(one[0], sort_keys=True)))}


WORKS: Mapping[str, Callable[[Path], dict[str, Any]]] = {
    "releases": _releases,
    "collocations": _joined,
    "spaces": _spaces,
    "ledger": _spent,
}


def computed(name: str, folder: Path) -> dict[str, Any]:
    """Return what one of the works makes in a folder, as JSON has it."""
    folder.mkdir(parents=True, exist_ok=True)
    return dict(json.loads(json.dumps(WORKS[name](folder))))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = {name: computed(name, Path(folder) / name) for name in WORKS}
    GOLDEN.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
