"""What is wrong with the input of a step of the collocation flow: one sentence that names it, status 2, no artifact."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusveil.cli.main import run
from tests.engines.corpora import UNKNOWN, write_shard

Change = Callable[[Path], object]


def overwrite(name: str, data: bytes) -> Change:
    return lambda folder: (folder / name).write_bytes(data)


def cut(pattern: str) -> Change:
    def change(folder: Path) -> None:
        path = max(folder.glob(pattern))
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])

    return change


def drop(pattern: str) -> Change:
    return lambda folder: min(folder.glob(pattern)).unlink()


def say(artifact: str, **fields: object) -> Change:
    def change(folder: Path) -> None:
        path = folder / artifact / "_artifact.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    return change


def table_of(**columns: object) -> Change:
    return lambda folder: pq.write_table(pa.table(columns), folder / "score" / "collocations.parquet")


COUNT = ["count", "{in}/in", "--output", "{out}"]
SCORE = ["score", "--counts", "{in}/count", "--output", "{out}"]
TOKENIZE = ["tokenize", "{in}/in", "--tokenizer", "mst", "--collocations", "{in}/score", "--output", "{out}"]
TRAIN = ["train", "--tokens", "{in}/tokenize", "--output", "{out}"]
SPACE = ["space", "--vectors", "{in}/train", "--output", "{out}"]
PRIVATIZE = [
    "privatize", "{in}/in", "--space", "{in}/space", "--tokenizer", "gst", "--collocations", "{in}/score",
    "--mechanism", "cmp", "--epsilon", "5", "--key", "{in}/release.key", "--output", "{out}",
]  # fmt: skip
OTHER = {"n": pa.array([2], pa.int8()), "count": [9]}

CASES: list[tuple[str, list[str], Change | None, tuple[str, ...]]] = [
    ("an empty folder", COUNT, lambda folder: shutil.rmtree(folder / "in") or (folder / "in").mkdir(),
     ("in: this matches no file",)),
    ("no words", COUNT, lambda folder: [path.unlink() for path in (folder / "in").iterdir()]
     and write_shard(folder / "in" / "x.jsonl", [{"text": "12 34"}]), ("no words", "text")),
    ("a shard cut short", COUNT, cut("in/*"), ("c4.00001.json.gz",)),
    ("a row that is no JSON", COUNT, lambda folder: (folder / "in" / "c4.00001.json.gz").write_bytes(
        gzip.compress(b'{"text": "a"}\n' + UNKNOWN.encode() + b"\n")), ("c4.00001.json.gz, row 2",)),
    ("an n that no key holds", [*COUNT, "--max-n", "9"], None, ("--max-n 9", "5")),
    ("a threshold that leaves nothing", [*SCORE, "--threshold", "99"], None, ("threshold", "least count")),
    ("counts of another tokenizer", SCORE, say("count", tokenizer="0/x"), ("tokenizer 0/x", "corpusveil count")),
    ("counts with a damaged part", SCORE, cut("count/ngrams/*"), ("part-", "damaged", "count again")),
    ("a damaged description", SCORE, overwrite("count/_artifact.json", b"{"), ("_artifact.json", "damaged")),
    ("a table of another tokenizer", TOKENIZE, say("score", tokenizer="0/x"), ("tokenizer 0/x", "corpusveil score")),
    ("a damaged table", TOKENIZE, overwrite("score/collocations.parquet", UNKNOWN.encode()),
     ("collocations.parquet", "not a valid collocation table")),
    ("a table with a score that is not a number", TOKENIZE, table_of(ngram=["a b"], score=[np.nan], **OTHER),
     ("no finite score",)),
    ("a table without rows", TOKENIZE, table_of(ngram=pa.array([], pa.string()), n=pa.array([], pa.int8()),
     count=pa.array([], pa.int64()), score=pa.array([], pa.float64())), ("empty", "threshold")),
    ("tokens cut short", TRAIN, cut("tokenize/lines/*"), ("part-",)),
    ("tokens that no longer are those counted", TRAIN, drop("tokenize/lines/*"), ("tokenize the corpus again",)),
    ("a least count that leaves no token", [*TRAIN, "--min-count", "9999"], None, ("min_count = 9999",)),
    ("vectors cut short", SPACE, cut("train/vectors.npy"), ("vectors",)),
    ("a table of another vocabulary", PRIVATIZE, table_of(ngram=["zzz yyy"], score=[3.0], **OTHER),
     ("none of the collocations", "tokenized with them")),
]  # fmt: skip


@pytest.mark.parametrize(("command", "change", "said"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_one_sentence(
    flow: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    command: list[str],
    change: Change | None,
    said: tuple[str, ...],
) -> None:
    """It names what is wrong, quotes nothing, and no artifact is made."""
    shutil.copytree(flow, tmp_path / "in")
    (tmp_path / "in" / "release.key").write_bytes(os.urandom(32))
    (tmp_path / "in" / "release.key").chmod(0o600)
    if change is not None:
        change(tmp_path / "in")
    filled = [word.replace("{in}", str(tmp_path / "in")).replace("{out}", str(tmp_path / "out")) for word in command]
    capfd.readouterr()
    status = run([*filled, "--progress", "none"])
    err = capfd.readouterr().err
    assert status == 2, err
    (sentence,) = err.splitlines()
    assert all(part in sentence for part in said), sentence
    assert re.search(r"\. \[[a-z-]+\]$", sentence), "a sentence and a code"
    assert UNKNOWN not in sentence
    assert not (tmp_path / "out" / "_artifact.json").exists()
