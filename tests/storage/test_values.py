"""A kept value is the same value in every form, on every engine, with pandas and without, or it is refused by name."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusveil.errors import ColumnError
from corpusveil.storage.formats import find
from corpusveil.storage.rows import Columns
from corpusveil.storage.values import as_json, as_strings
from tests.calls import fails, succeeds
from tests.engines.corpora import UNKNOWN, Ground, data_files, environment

MOST = 2**63 - 1
FINE = 1_577_836_800_000_000_001


def counted(counts: list[int | None], kind: pa.DataType) -> pa.Array:
    """Return an array of times by their counts of units."""
    return pa.array(counts, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


def coded(*words: str | None) -> pa.Array:
    return pa.array(words).dictionary_encode()


EVERY: dict[str, tuple[pa.Array, list[Any]]] = {
    "null": (pa.nulls(2), [None, None]),
    "bool": (pa.array([True, None]), [True, None]),
    "uint64": (pa.array([2**64 - 1, None], pa.uint64()), [2**64 - 1, None]),
    "float16": (pa.array([0.5, -0.0], pa.float16()), [0.5, -0.0]),
    "float32": (pa.array([0.1, None], pa.float32()), [0.1, None]),
    "float64": (pa.array([5e-324, 1e22]), [5e-324, 1e22]),
    "decimal32": (pa.array([Decimal("1.50"), None], pa.decimal32(5, 2)), ["1.50", None]),
    "decimal256": (pa.array([Decimal("1" * 50), None], pa.decimal256(60, 2)), [f"{'1' * 50}.00", None]),
    "date32": (counted([2_932_897, 2**31 - 1], pa.date32()), ["10000-01-01", "5881580-07-11"]),
    "before": (counted([-719_893, -(2**31) + 1], pa.date32()), ["-0001-01-01", "-5877641-06-24"]),
    "time32": (counted([1, 86_400_000], pa.time32("ms")), ["00:00:00.001", "24:00:00.000"]),
    "time64": (counted([3_600_000_000_001, None], pa.time64("ns")), ["01:00:00.000000001", None]),
    "ms": (counted([-1, MOST], pa.timestamp("ms")), ["1969-12-31T23:59:59.999", "292278994-08-17T07:12:55.807"]),
    "infinity": (
        counted([MOST, -MOST], pa.timestamp("us")), ["294247-01-10T04:00:54.775807", "-290308-12-21T19:59:05.224193"]
    ),
    "ns": (
        counted([FINE, -MOST - 1], pa.timestamp("ns")),
        ["2020-01-01T00:00:00.000000001", "1677-09-21T00:12:43.145224192"],
    ),
    "zone": (counted([FINE, None], pa.timestamp("ns", "Asia/Kolkata")), ["2020-01-01T00:00:00.000000001Z", None]),
    "duration": (counted([-1, MOST], pa.duration("ns")), ["-PT0.000000001S", "PT9223372036.854775807S"]),
    "seconds": (counted([60, None], pa.duration("s")), ["PT60S", None]),
    "bytes": (pa.array([b"\x00\xff", None]), ["AP8=", None]),
    "fixed": (pa.array([b"abc", None], pa.binary(3)), ["YWJj", None]),
    "byte view": (pa.array([b"", None], pa.binary_view()), ["", None]),
    "string view": (pa.array(['"\n', None], pa.string_view()), ['"\n', None]),
    "uuid": (pa.array([UUID(int=5).bytes, None], pa.uuid()), ["00000000-0000-0000-0000-000000000005", None]),
    "bool8": (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8())), [True, None]),
    "tensor": (
        pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(8, dtype=np.int32).reshape(2, 2, 2)),
        [[0, 1, 2, 3], [4, 5, 6, 7]],
    ),
    "json": (pa.array(["[1]\n", None], pa.json_()), ["[1]\n", None]),
    "words": (coded("x", None), ["x", None]),
    "list": (pa.array([[1, None], None]), [[1, None], None]),
    "large list": (pa.array([[], [[2], None]], pa.large_list(pa.list_(pa.int8()))), [[], [[2], None]]),
    "list view": (pa.array([["a"], None], pa.list_view(pa.string())), [["a"], None]),
    "pair": (pa.array([[1, 2], [None, 3]], pa.list_(pa.int8(), 2)), [[1, 2], [None, 3]]),
    "map": (pa.array([[("k", None)], None], pa.map_(pa.string(), pa.int8())), [[["k", None]], None]),
    "struct": (pa.array([{'a"': [{"b": None}]}, None]), [{'a"': [{"b": None}]}, None]),
    "fine within": (
        pa.array([[FINE], None], pa.list_(pa.int64())).cast(pa.list_(pa.timestamp("ns"))),
        [["2020-01-01T00:00:00.000000001"], None],
    ),
    "words within": (pa.StructArray.from_arrays([coded("x", None)], ["w"]), [{"w": "x"}, {"w": None}]),
}  # fmt: skip
"""For each type that Parquet holds, two values and what they are in JSON."""


LATE = counted([253_402_300_799_999_999, -62_135_596_800_000_000], pa.timestamp("us"))


def parquet_of_every_type(path: Path) -> Path:
    columns = {name: column for name, (column, _) in EVERY.items()}
    pq.write_table(pa.table({"text": ["bababa kikiki", "dedede"], "id": ["a", "b"], **columns}), path)
    return path


def parquet_of_int96(path: Path | io.BytesIO, times: pa.Array) -> None:
    table = pa.table({"text": ["bababa"] * len(times), "t": times, "l": pa.array([[time] for time in times])})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)


class Period(pa.ExtensionType):
    """A type as pandas and others register them, with what they say of it."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "tests.period")

    def __arrow_ext_serialize__(self) -> bytes:
        return UNKNOWN.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Period:
        return cls()


def test_no_metadata_of_an_extension_leaves_and_its_registration_changes_no_byte(
    ground: Ground, tmp_path: Path
) -> None:
    tensor = pa.fixed_shape_tensor(pa.int8(), [1], dim_names=[UNKNOWN])
    kinds = {
        "period": (Period(), pa.array([1, None])),
        "opaque": (pa.opaque(pa.string(), UNKNOWN, "v"), pa.array(["a", None])),
        "tensor": (tensor, pa.array([[1], [2]], pa.list_(pa.int8(), 1))),
    }
    columns = {name: pa.ExtensionArray.from_storage(kind, values) for name, (kind, values) in kinds.items()}
    nested = pa.ListArray.from_arrays([0, 1, 2], columns["period"])
    source = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": ["bababa", "kikiki"], **columns, "nested": nested}), source)
    for name in ("other", "registered"):
        succeeds(*ground.arguments(source, tmp_path / name, "--keep", "all"))
        if name == "other":
            pa.register_extension_type(Period())
    pa.unregister_extension_type("tests.period")
    shards = [data_files(tmp_path / name)[0].read_bytes() for name in ("other", "registered")]
    assert shards[0] == shards[1]
    assert UNKNOWN.encode() not in shards[0]
    got = pq.read_table(io.BytesIO(shards[0]))
    assert [got[name].to_pylist() for name in ("period", "nested", "tensor")] == [[1, None], [[1], [None]], [[1], [2]]]


@pytest.mark.parametrize("name", EVERY)
def test_every_type_is_said_in_json_and_as_strings(name: str) -> None:
    """Also in a slice, in none, and where all are null."""
    column, values = EVERY[name]
    for array, said in (
        (column, values),
        (column[1:], values[1:]),
        (column[:0], []),
        (pa.nulls(1, column.type), [None]),
    ):
        assert repr([json.loads(text) for text in as_json(array).to_pylist()]) == repr(said)  # 1 is equal to True
        pairs = zip(as_strings(array).to_pylist(), said, strict=True)
        assert [text if value is None or isinstance(value, str) else json.loads(text) for text, value in pairs] == said


def test_a_release_keeps_every_type(ground: Ground, tmp_path: Path) -> None:
    """In Parquet by type and value, in JSON lines as said above; no dictionary leaves with words of other rows."""
    source = parquet_of_every_type(tmp_path / "x.parquet")
    keep = [word for name in EVERY for word in ("--keep", name)]
    succeeds(*ground.arguments(source, tmp_path / "out", *keep))
    got = pq.read_table(*data_files(tmp_path / "out"))
    for name, (column, _) in EVERY.items():
        assert as_json(got.column(name).combine_chunks()).equals(as_json(column)), name
        if name not in {"json", "words", "words within", "string view", "byte view"}:
            assert got.column(name).type == column.type, name
    assert "dictionary" not in str(got.schema)
    succeeds("verify", tmp_path / "out")
    succeeds(*ground.arguments(source, tmp_path / "json", "--format", "jsonl", *keep))
    rows = [json.loads(line) for line in data_files(tmp_path / "json")[0].read_text().splitlines()]
    assert [[row[name] for row in rows] for name in EVERY] == [values for _, values in EVERY.values()]


def test_what_a_form_cannot_say_is_refused_by_its_column(ground: Ground, tmp_path: Path) -> None:
    """And nothing is released. Parquet says all of it; a cell of CSV says NaN, but no list with it."""
    table = {"text": ["bababa", "kikiki"], "fair": [1.0, None]}
    for name, column in (
        ("bad", pa.array([1.0, float("nan")])), ("bad", pa.array([float("-inf")] * 2, pa.float16())),
        ("deep", pa.array([None, [{"x": float("inf")}]])),
        ("deep", pa.array([[(1.5, 1)], [(float("nan"), 1)]], pa.map_(pa.float32(), pa.int8()))),
        ("deep", pa.StructArray.from_arrays([pa.array([1, 2])] * 2, ["x", "x"])),
    ):  # fmt: skip
        pq.write_table(pa.table({**table, name: column}), tmp_path / "x.parquet")
        for form in ("jsonl", "jsonl.zst", "csv", "parquet"):
            output = tmp_path / f"{name}-{column.type.id}-{form}"
            call = ground.arguments(tmp_path / "x.parquet", output, "--keep", "all", "--format", form)
            if form == "parquet" or (form, name) == ("csv", "bad"):
                succeeds(*call)
            else:
                fails(call, "bad-shards", tmp_path / "x.parquet", repr(name))
                assert not data_files(output)
    shown = data_files(tmp_path / f"bad-{pa.float64().id}-csv")[0].read_text()
    assert [line.split(",")[1:] for line in shown.splitlines()] == [["fair", "bad"], ["1.0", "1.0"], ["", "NaN"]]


def test_times_of_int96_keep_the_year_9999_and_lose_no_digit() -> None:
    def read(times: pa.Array, *keep: str) -> list[Any]:
        parquet_of_int96(file := io.BytesIO(), times)
        (batch,) = find(".parquet").batches(file, "x.parquet", Columns(keep=keep))
        return [as_json(column).to_pylist() for column in batch.kept]

    times, lists = read(LATE, "t", "l")
    assert times == ['"9999-12-31T23:59:59.999999"', '"0001-01-01T00:00:00.000000"']
    assert lists == [f"[{time}]" for time in times]
    fine = counted([FINE], pa.timestamp("ns"))
    for name in ("t", "l"):
        with pytest.raises(ColumnError, match=rf"x\.parquet: column '{name}'"):
            read(fine, name)
    assert read(fine) == []


def test_text_that_is_not_utf8_within_a_kept_column_is_a_bad_row(ground: Ground, tmp_path: Path) -> None:
    bad = pa.ListArray.from_arrays([0, 1, 2], pa.array([b"fine", UNKNOWN.encode() + b"\xff"]).view(pa.string()))
    others = {name: column for name, (column, _) in EVERY.items()}
    pq.write_table(pa.table({"text": ["bababa"] * 2, "l": bad, **others}), tmp_path / "x.parquet")
    assert UNKNOWN not in fails(
        ground.arguments(tmp_path / "x.parquet", tmp_path / "out", "--keep", "l"), "bad-shards", "row 2"
    )
    succeeds(
        *ground.arguments(tmp_path / "x.parquet", tmp_path / "set", "--keep", "all", "--on-bad-rows", "quarantine")
    )
    assert pq.read_table(*data_files(tmp_path / "set"))["l"].to_pylist() == [["fine"]]


def test_values_do_not_depend_on_pandas(tmp_path: Path) -> None:
    """In processes of their own: one has imported it, for the other it is not installed."""
    source = parquet_of_every_type(tmp_path / "x.parquet")
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "pandas.py").write_text("raise ImportError\n")
    code = (
        "import pyarrow.parquet as pq; from corpusveil.storage.values import as_json\n"
        f"for column in pq.read_table({str(source)!r}).columns: print(as_json(column.combine_chunks()).to_pylist())"
    )
    said = [
        subprocess.run([sys.executable, "-c", f"{first}\n{code}"], capture_output=True, check=True, env=env).stdout
        for first, env in (
            ("import pandas", environment(tmp_path)),
            ("", environment(tmp_path, PYTHONPATH=str(tmp_path / "none"))),
        )
    ]
    assert said[0] == said[1] != b""
