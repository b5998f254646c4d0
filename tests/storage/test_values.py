"""A kept value is the same value in every form, or its column is refused by name."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpusveil.storage.values import as_json
from tests.calls import fails, succeeds
from tests.engines.corpora import UNKNOWN, Ground, data_files

MOST = 2**63 - 1
FINE = 1_577_836_800_000_000_001


def counted(counts: list[int | None], kind: pa.DataType) -> pa.Array:
    """Return an array of times by their counts of units."""
    return pa.array(counts, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


EVERY: dict[str, tuple[pa.Array, list[Any]]] = {
    "null": (pa.nulls(2), [None, None]),
    "bool": (pa.array([True, None]), [True, None]),
    "uint64": (pa.array([2**64 - 1, None], pa.uint64()), [2**64 - 1, None]),
    "float16": (pa.array([0.5, -0.0], pa.float16()), [0.5, -0.0]),
    "float32": (pa.array([0.1, None], pa.float32()), [0.1, None]),
    "float64": (pa.array([5e-324, 1e22]), [5e-324, 1e22]),
    "date32": (counted([2_932_897, 2**31 - 1], pa.date32()), ["10000-01-01", "5881580-07-11"]),
    "before": (counted([-719_893, -(2**31) + 1], pa.date32()), ["-0001-01-01", "-5877641-06-24"]),
    "ms": (counted([-1, MOST], pa.timestamp("ms")), ["1969-12-31T23:59:59.999", "292278994-08-17T07:12:55.807"]),
    "infinity": (
        counted([MOST, -MOST], pa.timestamp("us")), ["294247-01-10T04:00:54.775807", "-290308-12-21T19:59:05.224193"]
    ),
    "ns": (
        counted([FINE, -MOST - 1], pa.timestamp("ns")),
        ["2020-01-01T00:00:00.000000001", "1677-09-21T00:12:43.145224192"],
    ),
    "zone": (counted([FINE, None], pa.timestamp("ns", "Asia/Kolkata")), ["2020-01-01T00:00:00.000000001Z", None]),
    "string": (pa.array(['"\n', None]), ['"\n', None]),
    "string view": (pa.array(['"\n', None], pa.string_view()), ['"\n', None]),
}  # fmt: skip
"""For each type that is kept, two values and what they are in JSON."""

OTHERS: dict[str, pa.Array] = {
    "decimal": pa.array([Decimal("1.50")]),
    "time": counted([1], pa.time32("ms")),
    "duration": counted([1], pa.duration("ns")),
    "bytes": pa.array([UNKNOWN.encode()]),
    "uuid": pa.array([bytes(16)], pa.uuid()),
    "list": pa.array([[UNKNOWN]]),
    "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8())),
    "struct": pa.array([{"a": UNKNOWN}]),
}
"""Types that are not, which tests/hostile refuses."""


def parquet_of_every_type(path: Path) -> tuple[str, ...]:
    """Write a file with kept columns of every type, and one of another; return the names of the kept ones."""
    columns = {name: column for name, (column, _) in EVERY.items()}
    columns["words"] = pa.array(["x", None]).dictionary_encode()
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"text": ["bababa kikiki", "dedede"], "left": [[UNKNOWN], []], **columns}), path)
    return tuple(columns)


def test_a_release_keeps_every_type(ground: Ground, tmp_path: Path) -> None:
    """In Parquet by type and value, in JSON lines as said above; no dictionary leaves with words of other rows."""
    source = tmp_path / "x.parquet"
    keep = [word for name in parquet_of_every_type(source) for word in ("--keep", name)]
    succeeds(*ground.arguments(source, tmp_path / "out", *keep))
    got = pq.read_table(*data_files(tmp_path / "out"))
    for name, (column, _) in EVERY.items():
        assert as_json(got.column(name).combine_chunks()).equals(as_json(column)), name
        assert got.column(name).type == column.type or name == "string view"
    assert got["words"].type == pa.string()
    succeeds("verify", tmp_path / "out")
    succeeds(*ground.arguments(source, tmp_path / "json", "--format", "jsonl", *keep))
    rows = [json.loads(line) for line in data_files(tmp_path / "json")[0].read_text().splitlines()]
    assert [[row[name] for row in rows] for name in EVERY] == [values for _, values in EVERY.values()]


def test_a_float_that_json_cannot_say_is_refused_by_its_column(ground: Ground, tmp_path: Path) -> None:
    """And nothing is released. Parquet says it, and a cell of CSV has it as text."""
    table = {"text": ["bababa", "kikiki"], "fair": [1.0, None]}
    for column in (pa.array([1.0, float("nan")]), pa.array([float("-inf")] * 2, pa.float16())):
        pq.write_table(pa.table({**table, "bad": column}), tmp_path / "x.parquet")
        for form in ("jsonl", "jsonl.zst", "csv", "parquet"):
            output = tmp_path / f"{column.type.id}-{form}"
            call = ground.arguments(tmp_path / "x.parquet", output, "--keep", "fair", "--keep", "bad", "--format", form)
            if form in {"csv", "parquet"}:
                succeeds(*call)
            else:
                fails(call, "unsuitable-data", tmp_path / "x.parquet", "'bad'")
                assert not data_files(output)
    shown = data_files(tmp_path / f"{pa.float64().id}-csv")[0].read_text()
    assert [line.split(",")[1:] for line in shown.splitlines()] == [["fair", "bad"], ["1.0", "1.0"], ["", "NaN"]]
