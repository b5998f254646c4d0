"""A unit's value is one text, whatever type a file, frame or engine gives it."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import json
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusveil as cv
from corpusveil.jobs.local import Local
from corpusveil.ledger.units import Unit, canonical, fingerprints, texts_of, units_of
from corpusveil.storage.rows import JSON, Columns
from corpusveil.transforms.release.corpus import privatize_corpus
from tests.calls import refused
from tests.engines.corpora import WORDS, make_space
from tests.ledger.books import release_of

CUSTOMER = Unit("customer", "customer")
NOON = dt.datetime(2026, 5, 17, 12, 30, tzinfo=dt.timezone(dt.timedelta(hours=2)))
ONE_VALUE: dict[str, list[Any]] = {
    "1": [1, "1", " 1", "1\x1f", 1.0, "1.0", "1.", "+1", np.int64(1), np.float32(1), decimal.Decimal("1.00"), b"1"],
    "-3": [-3, "-3.0", "-3.", -3.0],
    "0": [0, "0", -0.0, "-0.0", "-0", "+0", ".0"],
    "0.5": [0.5, "0.50", ".5", np.float16(0.5), decimal.Decimal("0.500")],
    "0.1": [0.1, np.float32(0.1), "0.1"],
    "100000": [100_000, 1e5, "1e+05", "1E+05", "1.0e+5"],
    "100000000000000000000": [10**20, "100000000000000000000"],
    "2026-05-17T10:30:00Z": [
        *(NOON, NOON.astimezone(dt.UTC), "2026-05-17T12:30:00+02:00", "2026-05-17 10:30:00Z", "20260517T1030Z"),
        *("2026-05-17 12:30:00 +02:00", "20260517T123000+0200", "2026-05-17 10:30:00 UTC"),
    ],
    "2026-05-17": [
        *(dt.date(2026, 5, 17), "2026-05-17", dt.datetime(2026, 5, 17), pd.Timestamp("2026-05-17")),  # noqa: DTZ001
        *(np.datetime64("2026-05-17", "ns"), "20260517T0000"),
    ],
    "caf\u00e9": ["caf\u00e9", "cafe\u0301", "cafe\u0301".encode()],
    "12345678-1234-5678-1234-567812345678": [uuid.UUID("12345678123456781234567812345678")],
}
NO_VALUE = {
    "missing": [None, "", " ", b"", float("nan"), pd.NaT, pd.NA, np.float32("nan")],
    "stands for several": [2.0**53, float("inf"), np.float32(2.0**24), np.float16(2048)],
    "UTF-8": [b"\xff", "\ud800"],
    "bool": [True],
    "tuple": [(1, 2)],
    "list": [[1]],
    "dict": [{"id": 1}],
    "ndarray": [np.array([1, 2])],
    "Decimal": [decimal.Decimal("NaN")],
}


def test_values_of_any_type_are_one() -> None:
    for text, values in ONE_VALUE.items():
        assert {canonical(value) for value in values} == {text}


def test_what_could_be_another_value_stays_one() -> None:
    """No guess beyond types: leading zeros, case, blanks and versions of three parts are text."""
    texts = ["007", "7", "A", "a", "1.0.0", "1e3", "1000", "-", "2026-05-17T99:99"]
    texts += ["20260517", "3e-12", "+1 415", "1,5"]
    assert [canonical(text) for text in texts] == texts


def test_columns_of_every_form_give_the_same_fingerprints() -> None:
    """JSON's text, CSV's strings, a dictionary, whole numbers, floats with nulls elsewhere, decimals."""
    json_text = pa.array(["1", '"2"', "3.0"], pa.large_string())
    columns = [
        pa.ExtensionArray.from_storage(JSON, json_text), pa.array(["1", "2", "3"]), pa.array([1, 2, 3], pa.int8()),
        pa.array([1.0, 2.0, 3.0]), pa.array(["1", "2", "3"]).dictionary_encode(), pa.array(["1.0", "2", "3.00"]),
        pa.array(list(map(decimal.Decimal, "123"))), pa.array([b"1", b"2", b"3"]),
    ]  # fmt: skip
    tags = [fingerprints(bytes(32), CUSTOMER, "", texts_of(c, CUSTOMER, range(3), "x")).tolist() for c in columns]
    assert all(tag == tags[0] for tag in tags)
    assert len({tuple(tag) for tag in tags[0]}) == 3


def test_names_and_name_spaces_tell_values_apart_and_texts_have_none() -> None:
    texts = pa.array(["1"], pa.large_string())
    units = [(CUSTOMER, ""), (CUSTOMER, "news"), (Unit("visit", "customer"), ""), (Unit("content", None), "")]
    assert len({fingerprints(bytes(32), *unit, texts).tobytes() for unit in units}) == 4
    of_text = [fingerprints(bytes(32), Unit("content", None), space, texts).tobytes() for space in ("", "news")]
    assert of_text[0] == of_text[1]
    renamed = fingerprints(bytes(32), Unit("customer", "client"), "", texts)
    assert renamed.tobytes() == fingerprints(bytes(32), CUSTOMER, "", texts).tobytes()


def test_a_document_without_a_unit_is_refused_by_its_row() -> None:
    for why, values in NO_VALUE.items():
        for value in values:  # type: ignore[attr-defined]
            assert canonical(value) is None, value
            with refused("bad-row", "row 12", why):
                texts_of(["a", value], CUSTOMER, [10, 11], "in.csv")
    for missing in (None, ""):
        with refused("bad-row", "in.csv", "row 12"):
            texts_of(pa.array(["a", missing, "b"], pa.large_string()), CUSTOMER, [10, 11, 12], "in.csv")


def test_a_column_gives_each_value_its_own_text_whatever_else_the_column_has() -> None:
    """The cap of a customer would be two caps if a value had one text in this batch and another in the next."""

    def agree(values: pa.Array, given: Sequence[Any]) -> None:
        texts = texts_of(values, CUSTOMER, range(len(values)), "x")
        expected = list(map(canonical, given))
        assert texts.to_pylist() == expected
        assert texts_of(texts, CUSTOMER, range(len(values)), "x") == texts

    points = [*range(0xD800), *range(0xE000, 0x10000), *range(0x10000, sys.maxunicode + 1, 64)]
    for form in ("{}7", "7{}", "7{}7"):
        written = [form.format(chr(point)) for point in points]
        agree(pa.array(written), written)
    for length in range(1, 5):
        written = [f"{''.join(parts)}7" for parts in itertools.product("01.+-eE ", repeat=length)]
        agree(pa.array(written), written)
        written = [f"7{text[:-1]}" for text in written if text[-2] != " "]
        agree(pa.array(written).dictionary_encode(), written)
    for kind in (pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.decimal128(22, 2), pa.string()):
        agree(pa.array([0, 1, 100]).cast(kind), [0, 1, 100])
    agree(pa.array([0.5, 0.1], pa.float32()), [0.5, 0.1])


def test_a_float_of_a_column_is_refused_from_where_its_type_skips_whole_numbers() -> None:
    for kind, last in ((pa.float16(), 2**11), (pa.float32(), 2**24), (pa.float64(), 2**53)):
        texts = texts_of(pa.array([last - 1], pa.int64()).cast(kind), CUSTOMER, [0], "x")
        assert texts.to_pylist() == [str(last - 1)]
        in_dictionary = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([last]).cast(kind))
        for values in (in_dictionary.dictionary, in_dictionary):
            with refused("bad-row", "row 1", "stands for several"):
                texts_of(values, CUSTOMER, [0], "x")


def test_units_are_named_as_columns() -> None:
    assert units_of(["visit=encounter", "customer", "content"]) == (
        Unit("content", None), CUSTOMER, Unit("visit", "encounter")
    )  # fmt: skip
    assert units_of({"visit": "encounter"}) == units_of("visit=encounter")
    assert units_of(None) == ()
    for other in (3, [3], {"a": 3}):
        with refused("wrong-type", "unit"):
            units_of(other)  # type: ignore[arg-type]


def test_identifiers_and_dates_of_any_kind_have_texts_or_are_refused() -> None:
    def texts(values: pa.Array) -> Any:
        return texts_of(values, Unit("u", "u"), range(len(values)), "a.parquet").to_pylist()

    one = uuid.UUID(int=5)
    of_arrow = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([one.bytes], pa.binary(16)))
    assert texts(of_arrow) == texts(pa.array([str(one)]))
    long = pa.ExtensionArray.from_storage(pa.json_(pa.large_string()), pa.array(["9" * 30], pa.large_string()))
    assert texts(long) == ["9" * 30]
    assert texts(pa.array([1], pa.timestamp("ns"))) == texts(pa.array(["1970-01-01T00:00:00.000000001"]))
    assert texts(pa.array(["9999-12-31T23:59:59-05:00"])) == ["9999-12-31T23:59:59-05:00"]
    assert canonical("\ud800") is None
    with refused("bad-row", "9999"):
        texts(pa.array([10**15], pa.timestamp("s")))


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_rows_without_a_unit_are_set_aside(tmp_path: Path, form: str) -> None:
    """Under quarantine, as rows without an id are, by accounting and drawing alike.

    The first row has no unit, so under ``drop`` the second is not a copy of one that is released.
    """
    text, ledger = f"{WORDS[1]} {WORDS[2]}", cv.Ledger(str(tmp_path / "ledger"), cap=5)
    rows = [(text, None), (text, "a"), (None, None), (WORDS[4], ""), (WORDS[5], "b")]
    path = tmp_path / f"a.{form}"
    if form == "csv":
        lines = [f"{line},{customer or ''}\n" for line, customer in rows if line]
        path.write_bytes("".join(["text,customer\n", *lines, f"{text},"]).encode() + b"\xff\n")
    elif form == "parquet":
        pq.write_table(pa.table(dict(zip(("text", "customer"), zip(*rows, strict=True), strict=True))), path)
    else:
        lines = [json.dumps({"text": line, "customer": of}) for line, of in rows]
        path.write_text("\n".join(lines))
    release = release_of(make_space(tmp_path / "space"), duplicates="drop")
    call = (release, [str(path)], str(tmp_path / "out"), Local())
    options = {"columns": Columns(), "spending": ledger.spending("customer", None)}
    with refused("bad-shards", "row"):
        privatize_corpus(*call, **options)
    done = privatize_corpus(*call, **options, on_bad_rows="quarantine")
    assert (done.counts.quarantined, done.counts.documents) == (3 if form == "csv" else 2, 2)
    spent = ledger.spent()
    assert (spent.releases[0]["documents"], max(v for (name, _), v in spent.worst.items() if name == "total")) == (2, 1)
    (shard,) = (tmp_path / "out" / "data").iterdir()
    texts = pq.read_table(shard)["text"].to_pylist() if form == "parquet" else shard.read_text().splitlines()
    assert len(texts) == 3, "with the header of CSV, and the row without a text elsewhere"
