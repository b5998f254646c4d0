"""pandas, Polars and Hugging Face data sets through Arrow and back: one column changes, all else is as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import datasets
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil import privatize_table
from corpusveil.mechanisms.ring_geometric import RingGeometric
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
        assert cv.privatize(series, RELEASE, ids=series.index) == expected  # type: ignore[arg-type]


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
        whole = privatize_table(pa.table({"text": pa.array(TEXTS, pa.string())}), RELEASE, source="train")
        assert list(rows["text"]) == whole["text"].to_pylist()

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
        whole = privatize_table(pa.table({"text": pa.array(TEXTS, pa.string())}), RELEASE, source="train")
        assert [row["text"] for row in rows.with_format(None)] == whole["text"].to_pylist()
