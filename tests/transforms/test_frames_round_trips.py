"""pandas, Polars and Hugging Face data sets through Arrow and back: one column changes, all else is as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil import privatize_table
from corpusveil.mechanisms.ring_geometric import RingGeometric
from tests.calls import refused
from tests.contracts.spaces import small_space, words_of

WORDS = words_of(30)
COUNT = 9
TEXTS = [None if n % 4 == 3 else " ".join(WORDS[n : n + 12]) for n in range(COUNT)]
RELEASE = cv.Release(RingGeometric(small_space(words=WORDS)), cv.Budget(1.0), cv.TextPolicy(), cv.Key.for_tests())


def datasets_column(texts: list[str | None]) -> Any:
    return datasets.Dataset.from_dict({"text": texts})["text"]


@pytest.fixture(scope="module")
def expected() -> list[str | None]:
    table = pa.table({"id": list(range(COUNT)), "text": pa.array(TEXTS, pa.string())})
    out: list[str | None] = privatize_table(table, RELEASE, id="id").column("text").to_pylist()
    return out


class TestPandas:
    INDEXES: ClassVar[dict[str, pd.Index]] = {
        "range": pd.RangeIndex(10, 10 + COUNT),
        "text": pd.Index(list("abcdefghi"), name="letter"),
        "time": pd.date_range("2026-03-28", periods=COUNT, freq="7h", tz="Europe/Berlin", name="at"),
        "several": pd.MultiIndex.from_arrays([range(COUNT), list("abcdefghi")], names=["n", "letter"]),
    }

    @pytest.mark.parametrize("index", INDEXES)
    @pytest.mark.parametrize("kind", ["object", "string", "string[pyarrow]", "large_string[pyarrow]", "category"])
    def test_comes_back_as_it_was(self, kind: str, index: str, expected: list[str | None]) -> None:
        """Whatever the index and the type of the text column, all is as pandas' own way to Arrow and back leaves it."""
        frame = pd.DataFrame(
            {
                "id": pd.array(range(COUNT), dtype="Int16"),
                "text": pd.array(TEXTS, dtype=kind if kind != "category" else pd.CategoricalDtype()),
                "when": pd.date_range("2026-01-01", periods=COUNT, tz="UTC"),
                "list": [[n] for n in range(COUNT)],
            },
            index=self.INDEXES[index],
        )
        table = pa.Table.from_pandas(frame)
        there_and_back = table.to_pandas()
        out = privatize_table(table, RELEASE, id="id").to_pandas()
        assert [str(dtype) for dtype in out.dtypes] == [str(dtype) for dtype in there_and_back.dtypes]
        untouched = frame.drop(columns=["text", "list"])
        pd.testing.assert_frame_equal(out.drop(columns=["text", "list"]), untouched, check_freq=False)
        assert [list(one) for one in out["list"]] == frame["list"].tolist()
        assert [None if pd.isna(text) else text for text in out["text"]] == expected

    def test_a_column_of_arrow_s_own_types(self, expected: list[str | None]) -> None:
        frame = pd.DataFrame({"id": range(COUNT), "text": TEXTS}).convert_dtypes(dtype_backend="pyarrow")
        table = pa.Table.from_pandas(frame)
        out = privatize_table(table, RELEASE, id="id").to_pandas(types_mapper=pd.ArrowDtype)
        assert out.dtypes.equals(frame.dtypes)
        assert [None if pd.isna(text) else text for text in out["text"]] == expected

    def test_nan_in_a_series_is_a_missing_text(self, expected: list[str | None]) -> None:
        series = pd.Series([float("nan") if text is None else text for text in TEXTS], dtype=object)
        out = cv.privatize(series, RELEASE, ids=series.index)
        assert [None if pd.isna(text) else text for text in out] == expected

    @pytest.mark.parametrize("index", INDEXES)
    @pytest.mark.parametrize(
        "kind", ["object", "string", "string[pyarrow]", "category", pd.ArrowDtype(pa.string())], ids=str
    )
    def test_a_frame_comes_back_as_a_frame(self, kind: Any, index: str, expected: list[str | None]) -> None:
        """Index, order, types and attributes stay, the text column's too, and the frame that was given is not touched.

        Its column names came back instead of its texts.
        """
        index_of = self.INDEXES[index]
        dtype = kind if kind != "category" else pd.CategoricalDtype(ordered=True)
        frame = pd.DataFrame(
            {
                "stars": pd.array(range(COUNT), dtype="Int8"),
                "text": pd.Series(TEXTS, dtype=dtype, index=index_of),  # pandas 3 takes an array of objects for str
                "id": range(COUNT),
                7: [[n] for n in range(COUNT)],
            },
            index=index_of,
        )
        frame.attrs["source"] = "a test"
        before = frame.copy(deep=True)
        for out in (cv.privatize(frame, RELEASE, ids="id"), privatize_table(frame, RELEASE, id="id")):
            assert type(out) is pd.DataFrame
            assert [None if pd.isna(text) else text for text in out["text"]] == expected
            assert out.index.equals(frame.index)
            assert out.index.names == frame.index.names
            assert out.attrs == frame.attrs
            pd.testing.assert_frame_equal(out.drop(columns="text"), frame.drop(columns="text"))
            assert out["text"].dtype == kind
            assert list(out.columns) == list(frame.columns)
        pd.testing.assert_frame_equal(frame, before)

    def test_a_category_of_the_input_is_none_of_the_output(self) -> None:
        """Categories are data, too: a text that is in no row any more is none of them."""
        frame = pd.DataFrame({"text": pd.Categorical([" ".join(WORDS)], [" ".join(WORDS), "zzcanary"])})
        out = cv.privatize(frame, RELEASE, ids=["a"])
        assert list(out["text"].cat.categories) == list(out["text"])
        assert out["text"].dtype.ordered is False

    def test_a_series_comes_back_as_one(self, expected: list[str | None]) -> None:
        """With its index and name, and with the marks for missing texts that it had."""
        texts = [pd.NA if text is None else text for text in TEXTS]
        series = pd.Series(texts, list("abcdefghi"), dtype=object, name="reviews")
        out = cv.privatize(series, RELEASE, ids=range(COUNT))
        assert out.index.equals(series.index)
        assert out.name == "reviews"
        assert [text for text, other in zip(out, expected, strict=True) if other is None] == [pd.NA, pd.NA]
        assert [text for text in out if text is not pd.NA] == [text for text in expected if text is not None]

    @pytest.mark.parametrize("unit", ["us", "ns"])
    def test_an_id_is_the_same_document_in_pandas_and_arrow(self, unit: str) -> None:
        """Whole numbers that lie in a column of objects, and instants: as the same column of an Arrow table."""
        at = pd.date_range("2026-03-28", periods=COUNT, tz="Europe/Berlin").as_unit(unit)
        frame = pd.DataFrame({"text": TEXTS, "at": at, "n": pd.Series(range(COUNT), dtype=object)})
        table = pa.Table.from_pandas(frame)
        for name in ("at", "n"):
            there = privatize_table(table, RELEASE, id=name)["text"].to_pylist()
            out = cv.privatize(frame, RELEASE, ids=name)["text"]
            assert [None if pd.isna(text) else text for text in out] == there

    @pytest.mark.parametrize("ids", [[1, None, 3], [1.0, float("nan"), 3.0], ["a", pd.NA, "c"]])
    def test_a_row_without_an_id_is_refused(self, ids: list[Any]) -> None:
        frame = pd.DataFrame({"id": ids, "text": ["zzcanary"] * 3})
        with refused("bad-row", "id"):
            cv.privatize(frame, RELEASE, ids="id")


class TestPolars:
    @pytest.mark.parametrize("level", [pl.CompatLevel.oldest(), pl.CompatLevel.newest()], ids=["large", "view"])
    @pytest.mark.parametrize("kind", [pl.String(), pl.Categorical()], ids=["string", "categorical"])
    def test_comes_back_as_it_was(self, kind: pl.DataType, level: Any, expected: list[str | None]) -> None:
        """In both forms in which Polars hands strings to Arrow, and in several chunks."""
        frame = pl.DataFrame(
            {"id": range(COUNT), "text": TEXTS, "struct": [{"a": n, "b": [str(n)]} for n in range(COUNT)]}
        ).with_columns(pl.col("text").cast(kind))
        chunked = pl.concat([frame[:4], frame[4:]], rechunk=False)
        out = pl.from_arrow(privatize_table(chunked.to_arrow(compat_level=level), RELEASE, id="id"))
        assert isinstance(out, pl.DataFrame)
        assert out.schema == frame.schema
        assert out.drop("text").equals(frame.drop("text"))
        assert out["text"].cast(pl.String).to_list() == expected

    @pytest.mark.parametrize("kind", [pl.String(), pl.Categorical()], ids=["string", "categorical"])
    def test_a_frame_comes_back_as_a_frame(self, kind: pl.DataType, expected: list[str | None]) -> None:
        frame = pl.DataFrame({"id": range(COUNT), "text": TEXTS, "bin": [[n] for n in range(COUNT)]})
        frame = frame.with_columns(pl.col("text").cast(kind), pl.Series("kind", ["a"] * COUNT, pl.Enum(["a"])))
        for out in (cv.privatize(frame, RELEASE, ids="id"), privatize_table(frame, RELEASE, id="id")):
            assert isinstance(out, pl.DataFrame)
            assert out.schema == frame.schema
            assert out.drop("text").equals(frame.drop("text"))
            assert out["text"].cast(pl.String).to_list() == expected
        empty = frame.clear()
        assert cv.privatize(empty, RELEASE, ids="id").equals(empty)

    def test_a_series_comes_back_as_one(self, expected: list[str | None]) -> None:
        out = cv.privatize(pl.Series("reviews", TEXTS), RELEASE, ids=range(COUNT))
        assert out.equals(pl.Series("reviews", expected), check_names=True)

    def test_an_enum_can_not_hold_private_text(self) -> None:
        """And no text of it is quoted."""
        with refused("wrong-column", "text", "Enum"):
            cv.privatize(pl.Series(["zzcanary"], dtype=pl.Enum(["zzcanary"])), RELEASE, ids=[1])


class Stream:
    """What has columns that it hands on by Arrow's C interface, and nothing else."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._data.__arrow_c_stream__(requested_schema)


class Whole:
    """The same in one piece."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._data.__arrow_c_array__(requested_schema)


class TestOthers:
    """Every kind of texts comes back in its own kind, and all of them alike."""

    TABLE = pa.table({"id": list(range(COUNT)), "text": pa.array(TEXTS, pa.string())})
    COLUMN = TABLE["text"]
    FULL: ClassVar[list[str]] = [text or "" for text in TEXTS]

    @pytest.mark.parametrize(
        "texts",
        [TEXTS, tuple(TEXTS), np.array(TEXTS, dtype=object), COLUMN, COLUMN.combine_chunks()],
        ids=lambda texts: type(texts).__name__,
    )
    def test_columns(self, texts: Any, expected: list[str | None]) -> None:
        out = cv.privatize(texts, RELEASE, ids=range(COUNT))
        assert type(out) is type(texts)
        assert (out.to_pylist() if isinstance(out, (pa.Array, pa.ChunkedArray)) else list(out)) == expected

    @pytest.mark.parametrize("kind", [np.str_, np.dtypes.StringDType()], ids=str)
    def test_numpy_s_own_strings(self, kind: Any, expected: list[str | None]) -> None:
        """Of a fixed width too: private texts can be longer, and none is cut."""
        out = cv.privatize(np.array(self.FULL, dtype=kind), RELEASE, ids=range(COUNT))
        assert out.dtype.kind == np.dtype(kind).kind
        assert out.tolist() == [text or "" for text in expected]

    @pytest.mark.parametrize("made", [iter, lambda texts: (text for text in texts), datasets_column])
    def test_any_other_sequence_is_a_list(self, made: Any, expected: list[str | None]) -> None:
        assert cv.privatize(made(TEXTS), RELEASE, ids=range(COUNT)) == expected

    @pytest.mark.parametrize("data", [TABLE, TABLE.to_batches()[0]], ids=["table", "batch"])
    def test_tables(self, data: Any, expected: list[str | None]) -> None:
        out = cv.privatize(data, RELEASE, ids="id")
        assert type(out) is type(data)
        assert out.schema == data.schema
        assert out.column("text").to_pylist() == expected

    @pytest.mark.parametrize(
        "data", [Stream(TABLE), Whole(TABLE.to_batches()[0]), TABLE.to_reader()], ids=["stream", "array", "reader"]
    )
    def test_what_hands_on_its_columns_comes_back_as_arrow(self, data: Any, expected: list[str | None]) -> None:
        out = cv.privatize(data, RELEASE, ids="id")
        assert isinstance(out, pa.Table)
        assert out["id"].to_pylist() == list(range(COUNT))
        assert out["text"].to_pylist() == expected

    @pytest.mark.parametrize("data", [Stream(COLUMN), Whole(COLUMN.combine_chunks())], ids=["stream", "array"])
    def test_so_does_a_single_column(self, data: Any, expected: list[str | None]) -> None:
        assert cv.privatize(data, RELEASE, ids=range(COUNT)).to_pylist() == expected

    @pytest.mark.parametrize(
        ("data", "refusal"),
        [
            ({"text": ["zzcanary"]}, ("wrong-type", "dict")),
            (
                datasets.DatasetDict(train=datasets.Dataset.from_dict({"text": ["zzcanary"]})),
                ("wrong-type", "DatasetDict"),
            ),
            ({"zzcanary"}, ("wrong-type", "set")),
            ("zzcanary", ("wrong-type",)),
            (b"zzcanary", ("wrong-type", "bytes")),
            (pl.LazyFrame({"text": ["zzcanary"]}), ("wrong-type", "LazyFrame")),
            (np.array([["zzcanary"]]), ("wrong-shape",)),
            (5, ("wrong-type", "int")),
            (None, ("wrong-type", "NoneType")),
            ((n for n in [1]), ("bad-row",)),
            (pd.DataFrame({"a": ["zzcanary"]}), ("wrong-column", "text")),
            (pl.DataFrame({"a": ["zzcanary"]}), ("wrong-column", "text")),
            (pd.DataFrame([["zzcanary", "b"]], columns=["text", "text"]), ("wrong-column",)),
            (pd.DataFrame({"text": [1]}), ("bad-row", "text")),
            (pl.DataFrame({"text": [1]}), ("wrong-column", "text", "int64")),
        ],
    )
    def test_anything_else_is_refused_in_one_sentence(self, data: Any, refusal: Any) -> None:
        """A frame's and a dictionary's keys were taken for texts, and what came back looked like a release."""
        with refused(*refusal) as caught:
            cv.privatize(data, RELEASE, ids=["a"])
        assert "zzcanary" not in str(caught.value)

    def test_a_table_has_columns(self) -> None:
        with refused("wrong-type", "privatize_table", "list"):
            privatize_table(TEXTS, RELEASE, ids=range(COUNT))


def by_row(batch: pa.Table, rows: list[int]) -> pa.Table:
    return privatize_table(batch, RELEASE, ids=[("train", row) for row in rows])


def by_id(batch: pa.Table) -> pa.Table:
    return privatize_table(batch, RELEASE, id="id")


class TestDatasets:
    FEATURES = datasets.Features(
        {
            "id": datasets.Value("int32"),
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["a", "b"]),
        }
    )

    @pytest.fixture(autouse=True)
    def quiet(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
        datasets.disable_progress_bars()

    def made(self, folder: Path) -> Any:
        """Return a data set that lies on disk, as downloaded ones do."""
        rows = {"id": list(range(COUNT)), "text": TEXTS, "label": [n % 2 for n in range(COUNT)]}
        datasets.Dataset.from_dict(rows, features=self.FEATURES).save_to_disk(folder / "set")
        return datasets.load_from_disk(folder / "set")

    @pytest.mark.parametrize("size", [1, 4, 100])
    def test_batches_of_any_size_give_the_whole_s_texts(
        self, size: int, tmp_path: Path, expected: list[str | None]
    ) -> None:
        """By a column of ids, and by the rows' numbers in the data set: the same text in each row of a batch or two."""
        before = self.made(tmp_path)
        arrow = before.with_format("arrow")
        with_ids = arrow.map(by_id, batched=True, batch_size=size).with_format(None)
        assert with_ids.features == before.features
        assert list(with_ids["text"]) == expected
        assert list(with_ids["label"]) == list(before["label"])
        rows = arrow.map(by_row, batched=True, batch_size=size, with_indices=True).with_format(None)
        whole = privatize_table(pa.table({"text": pa.array(TEXTS, pa.string())}), RELEASE, ids=cv.RowNumbers("train"))
        assert list(rows["text"]) == whole["text"].to_pylist()

    def test_a_data_set_comes_back_as_one(self, tmp_path: Path, expected: list[str | None]) -> None:
        """With its features, format and split, and in the order that it was put in."""
        before = self.made(tmp_path).select(range(COUNT - 1, -1, -1)).with_format("numpy")
        out = cv.privatize(before, RELEASE, ids="id")
        assert type(out) is datasets.Dataset
        assert out.features == before.features
        assert (out.format, out.split) == (before.format, before.split)
        assert list(out.with_format(None)["text"]) == expected[::-1]
        assert list(out["label"]) == list(before["label"])

    def test_two_processes_give_the_texts_of_one(self, tmp_path: Path) -> None:
        arrow = self.made(tmp_path).with_format("arrow")
        one, two = (arrow.map(by_row, batched=True, with_indices=True, num_proc=n, batch_size=2) for n in (None, 2))
        assert one.with_format(None)[:] == two.with_format(None)[:]

    def test_a_stream_gives_the_same(self, tmp_path: Path, expected: list[str | None]) -> None:
        stream = self.made(tmp_path).to_iterable_dataset(num_shards=3).with_format("arrow")
        out = stream.map(by_id, batched=True, batch_size=2, features=self.FEATURES).with_format(None)
        assert out.features == self.FEATURES
        assert [row["text"] for row in out] == expected
        rows = stream.map(by_row, batched=True, batch_size=2, with_indices=True, features=self.FEATURES)
        whole = privatize_table(pa.table({"text": pa.array(TEXTS, pa.string())}), RELEASE, ids=cv.RowNumbers("train"))
        assert [row["text"] for row in rows.with_format(None)] == whole["text"].to_pylist()
