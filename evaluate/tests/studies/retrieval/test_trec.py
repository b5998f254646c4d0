"""Collections, queries and judgements from files: forms, joins, and errors that name the file and the line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusveil.errors import DataError, UnsetError, UserError
from corpusveil_evaluate.studies.retrieval.bm25 import Bm25
from corpusveil_evaluate.studies.retrieval.obfuscated_search import score_ranking
from corpusveil_evaluate.studies.retrieval.trec import Passages, join_judgements, read_qrels, read_queries

ROWS = [("10", "the goldfish grows"), ("7", "wifi\tand bluetooth"), ("x9", "nothing of this")]


def tsv(rows: list[tuple[str, str]], end: str = "\n") -> bytes:
    return "".join(f"{identity}\t{text}{end}" for identity, text in rows).encode()


def collection(folder: Path, form: str) -> str:
    path = folder / f"collection.{form}"
    if form.startswith("tsv"):
        data = tsv(ROWS, "\r\n" if form == "tsv" else "\n")
        path.write_bytes(gzip.compress(data) if form.endswith("gz") else data)
    elif form == "parquet":
        pq.write_table(pa.table({"id": [one for one, _ in ROWS], "text": [text for _, text in ROWS]}), path)
    else:
        path.write_text("".join(json.dumps({"id": one, "text": text}) + "\n" for one, text in ROWS))
    return str(path)


@pytest.mark.parametrize("form", ["tsv", "tsv.gz", "parquet", "jsonl"])
def test_a_collection_is_the_same_in_every_form(tmp_path: Path, form: str) -> None:
    """Also where it is streamed into an index, and where texts are asked for by number."""
    url = collection(tmp_path, form)
    passages = Passages.open("file://" + url, keep=True)
    assert passages.ids.to_pylist() == ["10", "7", "x9"]
    assert passages.texts([2, 0]) == ["nothing of this", "the goldfish grows"]
    assert passages.numbers(["x9", "8", "10"]) == [2, -1, 0]
    engine = Bm25.of_batches(passages.batches)
    assert engine.search(["bluetooth"], 2).found(0).tolist() == [1]
    with pytest.raises(UnsetError, match="keep=True"):
        Passages.open(url).texts([0])


def test_judgements_are_joined_by_id(tmp_path: Path) -> None:
    """Judged passages that are missing stay in the denominators, queries without judgements are left out."""
    (tmp_path / "qrels.txt").write_text("1 0 10 3\n1 0 7 1\r\n\n1 0 gone 2\n3 Q0 x9 2\n4 0 x9 2\n")
    (tmp_path / "queries.tsv").write_bytes(tsv([("3", "of this"), ("2", "unjudged"), ("1", "goldfish")]))
    passages = Passages.open(collection(tmp_path, "tsv"))
    qrels = read_qrels(str(tmp_path / "qrels.txt"))
    assert qrels["1"] == {"10": 3, "7": 1, "gone": 2}
    judged = join_judgements(read_queries(str(tmp_path / "queries.tsv")), qrels, passages)
    assert (judged.ids, judged.queries, judged.missing) == (("3", "1"), ("of this", "goldfish"), 1)
    assert judged.judgements.grades == [{2: 2}, {0: 3, 1: 1, -2: 2}]
    assert judged.judgements.threshold == 2
    found = score_ranking(Bm25.of_batches(passages.batches).search(judged.queries), judged.judgements)
    assert found["recall"] == 0.75


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("c.tsv", b"1\tone\n\nno tab here\n", "c.tsv, line 3: this is not an id, a tab and a text"),
        ("c.tsv", b"1\tone\n \ttwo\n", "line 2: this is not an id"),
        ("c.tsv", b"1\tone\n2\t\xff\xfe\n", "line 2: not valid UTF-8"),
        ("c.tsv", b"1\tone\n1\ttwo\n", "an id occurs twice"),
        ("c.tsv", b"\n\n", "no passages"),
        ("c.tsv.gz", b"1\tone\n" * 9, "gzip file is damaged"),
        ("c.tsv.gz", gzip.compress(b"1\tone\n" * 100, mtime=0)[:-20], "middle of its compressed"),
        ("c.jsonl", b'{"id": "1", "text": "a"}\n{"id": "2"}\n', "row 2: has no column 'text'"),
        ("c.jsonl", b'{"id": "1", "text": "a"}\n{"id": "  ", "text": "a"}\n', "row 2: the id or the text is missing"),
        ("c.doc", b"", "does not say the format of this file"),
    ],
)  # fmt: skip
def test_a_broken_collection_is_named_in_one_sentence(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UserError, match=said) as caught:
        Passages.open(str(tmp_path / name))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1 0 7", "line 2: this is not 'qid 0 pid grade'"),
        ("1 0 7 high", "line 2"),
        ("1 0 7 1.5", "line 2"),
        ("1 0 7 1_0", "line 2"),
        ("1 0 7 99999", "line 2"),
        ("1 0 7 1 extra", "line 2"),
        ("1 0 10 2", "line 2: this passage has another judgment"),
    ],
)
def test_broken_judgements_are_named_with_their_line(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "qrels"
    path.write_text(f"1 0 10 3\n{line}\n")
    with pytest.raises(UserError, match=said):
        read_qrels(str(path))
    path.write_text("\n")
    with pytest.raises(DataError):
        read_qrels(str(path))
