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

    @pytest.mark.parametrize(
        ("kind", "index"),
        [("object", "range"), ("string", "text"), ("string[pyarrow]", "time"), ("category", "several"),
         (pd.ArrowDtype(pa.string()), "range")],
    )  # fmt: skip
    def test_a_frame_comes_back_as_a_frame(self, kind: Any, index: str, expected: list[str | None]) -> None:
        """Index, order, types and attributes stay, and the frame that was given is not touched."""
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

    @pytest.mark.parametrize("missing", [pd.NA, float("nan")], ids=str)
    def test_a_series_comes_back_as_one(self, missing: Any, expected: list[str | None]) -> None:
        """With its index and name, and with the marks for missing texts that it had."""
        texts = [missing if text is None else text for text in TEXTS]
        series = pd.Series(texts, list("abcdefghi"), dtype=object, name="reviews")
        out = cv.privatize(series, RELEASE, ids=range(COUNT))
        assert out.index.equals(series.index)
        assert out.name == "reviews"
        assert all(
            text is missing if other is None else text == other for text, other in zip(out, expected, strict=True)
        )

    def test_an_id_is_the_same_document_in_pandas_and_arrow(self) -> None:
        """Whole numbers that lie in a column of objects, and instants: as the same column of an Arrow table."""
        at = pd.date_range("2026-03-28", periods=COUNT, tz="Europe/Berlin")
        numbers = pd.Series(range(COUNT), dtype=object)
        frame = pd.DataFrame({"text": TEXTS, "us": at.as_unit("us"), "ns": at.as_unit("ns"), "n": numbers})
        table = pa.Table.from_pandas(frame)
        for name in ("us", "ns", "n"):
            there = privatize_table(table, RELEASE, id=name)["text"].to_pylist()
            out = cv.privatize(frame, RELEASE, ids=name)["text"]
            assert [None if pd.isna(text) else text for text in out] == there, name


class TestPolars:
    @pytest.mark.parametrize("kind", [pl.String(), pl.Categorical()], ids=["string", "categorical"])
    def test_a_frame_comes_back_as_a_frame(self, kind: pl.DataType, expected: list[str | None]) -> None:
        """By itself, and in both forms in which Polars hands strings to Arrow, in several chunks."""
        frame = pl.DataFrame({"id": range(COUNT), "text": TEXTS, "bin": [[n] for n in range(COUNT)]})
        frame = frame.with_columns(pl.col("text").cast(kind), pl.Series("kind", ["a"] * COUNT, pl.Enum(["a"])))
        chunked = pl.concat([frame[:4], frame[4:]], rechunk=False)
        for out in (
            cv.privatize(frame, RELEASE, ids="id"),
            privatize_table(frame, RELEASE, id="id"),
            pl.from_arrow(privatize_table(chunked.to_arrow(compat_level=pl.CompatLevel.oldest()), RELEASE, id="id")),
            pl.from_arrow(privatize_table(chunked.to_arrow(compat_level=pl.CompatLevel.newest()), RELEASE, id="id")),
        ):
            assert isinstance(out, pl.DataFrame)
            assert out.schema == frame.schema
            assert out.drop("text").equals(frame.drop("text"))
            assert out["text"].cast(pl.String).to_list() == expected
        empty = frame.clear()
        assert cv.privatize(empty, RELEASE, ids="id").equals(empty)

    def test_an_enum_can_not_hold_private_text(self) -> None:
        """And no text of it is quoted."""
        with refused("wrong-column", "text", "Enum"):
            cv.privatize(pl.Series(["zzcanary"], dtype=pl.Enum(["zzcanary"])), RELEASE, ids=[1])


class TestOthers:
    """Beside the kinds of tests/api: each comes back in its own kind, and all of them alike."""

    @pytest.mark.parametrize("kind", [np.str_, np.dtypes.StringDType()], ids=str)
    def test_numpy_s_own_strings(self, kind: Any, expected: list[str | None]) -> None:
        """Of a fixed width too: private texts can be longer, and none is cut."""
        out = cv.privatize(np.array([text or "" for text in TEXTS], dtype=kind), RELEASE, ids=range(COUNT))
        assert out.dtype.kind == np.dtype(kind).kind
        assert out.tolist() == [text or "" for text in expected]

    @pytest.mark.parametrize(
        ("data", "refusal"),
        [
            ({"text": ["zzcanary"]}, ("wrong-type", "dict")),
            (datasets.DatasetDict(train=datasets.Dataset.from_dict({"text": ["z"]})), ("wrong-type", "DatasetDict")),
            ({"zzcanary"}, ("wrong-type", "set")),
            ("zzcanary", ("wrong-type",)),
            (b"zzcanary", ("wrong-type", "bytes")),
            (pl.LazyFrame({"text": ["zzcanary"]}), ("wrong-type", "LazyFrame")),
            (np.array([["zzcanary"]]), ("wrong-shape",)),
            (5, ("wrong-type", "int")),
            (["x", None, 5], ("bad-row", "row 2", "of type int")),
            ([b"zzcanary"], ("bad-row", "row 0", "bytes")),
            ((n for n in [1]), ("bad-row",)),
            (pd.DataFrame({"a": ["zzcanary"]}), ("wrong-column", "text")),
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


def test_a_data_set_comes_back_as_one(expected: list[str | None], tmp_path: Path) -> None:
    """One that lies on disk, as downloaded ones do: with its features, format, split and order."""
    rows = {"id": list(range(COUNT)), "text": TEXTS, "label": [n % 2 for n in range(COUNT)]}
    features = datasets.Features(
        {
            "id": datasets.Value("int32"),
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(2),
        }
    )
    datasets.disable_progress_bars()
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(tmp_path / "set")
    before = datasets.load_from_disk(tmp_path / "set").select(range(COUNT - 1, -1, -1)).with_format("numpy")
    out = cv.privatize(before, RELEASE, ids="id")
    assert type(out) is datasets.Dataset
    assert out.features == before.features == features
    assert (out.format, out.split) == (before.format, before.split)
    assert list(out.with_format(None)["text"]) == expected[::-1]
    assert list(out["label"]) == list(before["label"])
