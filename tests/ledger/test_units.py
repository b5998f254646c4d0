"""A unit's value is a string or a whole number, and one text in every form, frame and engine."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusveil as cv
from corpusveil.jobs.local import Local
from corpusveil.ledger.units import Unit, fingerprints, texts_of
from corpusveil.storage.rows import Columns
from tests.calls import privatize_corpus, refused
from tests.engines.corpora import WORDS, make_space
from tests.ledger.books import release_of

CUSTOMER = Unit("customer", "customer")


def test_a_string_and_a_whole_number_of_the_same_digits_are_one_unit() -> None:
    """CSV has strings where Parquet has integers; nothing else is guessed: 007 is not 7, nor is a blank."""
    columns = [
        pa.array(["1", "2", "3"]), pa.array(["1", "2", "3"]).dictionary_encode(), pa.array([1, 2, 3], pa.int8()),
        pa.array([1, 2, 3], pa.uint64()), [1, 2, 3], ["1", "2", "3"],
    ]  # fmt: skip
    tags = [fingerprints(bytes(32), CUSTOMER, "", texts_of(c, CUSTOMER, range(3), "x")).tolist() for c in columns]
    assert all(tag == tags[0] for tag in tags)
    assert len({tuple(tag) for tag in tags[0]}) == 3
    texts = ["007", "7", "A", "a", " a", "1.0", "1e3", "+1", "2026-05-17", "cafe\u0301", "caf\u00e9"]
    assert texts_of(pa.array(texts), CUSTOMER, range(len(texts)), "x").to_pylist() == texts


def test_names_and_name_spaces_tell_values_apart_and_texts_have_none() -> None:
    texts = pa.array(["1"], pa.large_string())
    units = [(CUSTOMER, ""), (CUSTOMER, "news"), (Unit("visit", "customer"), ""), (Unit("content", None), "")]
    assert len({fingerprints(bytes(32), *unit, texts).tobytes() for unit in units}) == 4
    of_text = [fingerprints(bytes(32), Unit("content", None), space, texts).tobytes() for space in ("", "news")]
    assert of_text[0] == of_text[1]
    renamed = fingerprints(bytes(32), Unit("customer", "client"), "", texts)
    assert renamed.tobytes() == fingerprints(bytes(32), CUSTOMER, "", texts).tobytes()


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_rows_without_a_unit_are_bad_rows(tmp_path: Path, form: str) -> None:
    """Dropped, as rows without an id are, by accounting and drawing alike; a row without either counts once."""
    text, ledger = f"{WORDS[1]} {WORDS[2]}", cv.Ledger(str(tmp_path / "ledger"), cap=500)
    none = True if form == "jsonl" else None  # a type that is no unit's
    rows = [(text, none, "1"), (text, "a", "2"), (None, None, "3"), (WORDS[4], "", ""), (WORDS[5], "b", "5")]
    path = tmp_path / f"a.{form}"
    if form == "csv":
        lines = [f"{line},{customer or ''},{id}\n" for line, customer, id in rows if line]
        path.write_text("".join(["text,customer,id\n", *lines]))
    elif form == "parquet":
        pq.write_table(pa.table(dict(zip(("text", "customer", "id"), zip(*rows, strict=True), strict=True))), path)
    else:
        lines = [json.dumps({"text": line, "customer": of, "id": id}) for line, of, id in rows]
        path.write_text("\n".join(lines))
    release = release_of(make_space(tmp_path / "space"))
    call = (release, [str(path)], str(tmp_path / "out"), Local())
    options = {"columns": Columns(id="id"), "spending": ledger.spending("customer", None)}
    with refused("unsuitable-data", "row"):
        privatize_corpus(*call, **options)
    done = privatize_corpus(*call, **options, on_bad_rows="drop")
    assert (done.counts.bad_rows, done.counts.documents) == (2, 2)
    spent = ledger.spent()
    assert spent.releases[0]["documents"] == 2
    (shard,) = (tmp_path / "out" / "data").iterdir()
    texts = pq.read_table(shard)["text"].to_pylist() if form == "parquet" else shard.read_text().splitlines()
    assert len(texts) == 3, "with the header of CSV, and the row without a text elsewhere"
