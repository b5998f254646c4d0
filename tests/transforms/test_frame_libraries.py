"""Frames of pandas, Polars, DuckDB and others: what comes in goes out, with the columns that are kept."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import pickle
import warnings
from typing import Any, ClassVar

import datasets
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import corpusveil as cv
from corpusveil.transforms.table import privatize
from tests.api.test_privatize import Stream
from tests.calls import refused
from tests.passages.stores import passage_release
from tests.transforms.test_frames import RELEASE, WORDS

COUNT = 9
MANY = [None if n % 4 == 3 else " ".join(WORDS[n : n + 12]) for n in range(COUNT)]


@pytest.fixture(scope="module")
def expected() -> list[str | None]:
    table = pa.table({"id": list(range(COUNT)), "text": pa.array(MANY, pa.string())})
    out: list[str | None] = privatize(table, RELEASE, "id").column("text").to_pylist()
    return out


class TestPandas:
    @pytest.mark.parametrize("kind", ["object", "string", "string[pyarrow]", pd.ArrowDtype(pa.string())])
    def test_a_frame_comes_back_as_a_frame(self, kind: Any, expected: list[str | None]) -> None:
        """With its row numbers, order and types; and the frame that was given is not touched."""
        index = pd.RangeIndex(10, 10 + COUNT)
        frame = pd.DataFrame(
            {
                "stars": pd.array(range(COUNT), dtype="Int8"),
                "text": pd.Series(MANY, dtype=kind, index=index),  # pandas 3 takes an array of objects for str
                "id": range(COUNT),
                "share": [None, *np.arange(1, COUNT) / 3],
                "at": pd.date_range("2026-03-28", periods=COUNT, freq="7h", tz="Europe/Berlin"),
                "day": [dt.date(2026, 1, 1), *[None] * (COUNT - 1)],
                7: [[n] for n in range(COUNT)],
            },
            index=index,
        )
        before, keep = frame.copy(deep=True), ["id", "stars", "share", "at", "day"]
        out = privatize(frame, RELEASE, "id", keep=keep)
        assert type(out) is pd.DataFrame
        assert [None if pd.isna(text) else text for text in out["text"]] == expected
        pd.testing.assert_frame_equal(out.drop(columns="text"), frame.drop(columns=["text", 7]))
        assert out["text"].dtype == kind
        pd.testing.assert_frame_equal(frame, before)

    def test_an_index_that_is_more_than_row_numbers_is_refused(self) -> None:
        """As a frame has that was filtered: it would leave with the text."""
        frame = pd.DataFrame({"text": ["aaaa", "aaab"], "name": ["Bbbe", "Cccj"]})
        for given in (frame.set_index("name"), frame.set_index("name")["text"], frame[frame["name"] == "Cccj"],
                      frame.sort_values("name", ascending=False), frame.rename_axis("zzcanary")):  # fmt: skip
            with refused("wrong-setting", "reset_index(drop=True)"):
                cv.privatize(given, RELEASE, ids=list(range(len(given))))
        assert len(cv.privatize(frame[1:], RELEASE, ids=[1])) == 1


def test_a_polars_frame_comes_back_as_a_frame(expected: list[str | None]) -> None:
    """By itself, lazy, and in both forms in which Polars hands strings to Arrow, in several chunks."""
    frame = pl.DataFrame({"id": range(COUNT), "text": MANY, "*": [n / 3 for n in range(COUNT)]})
    times = pl.datetime_range(dt.date(2026, 1, 1), dt.date(2026, 1, COUNT), time_zone="Asia/Kolkata", eager=True)
    frame = frame.with_columns(times.alias("at"))
    chunked, keep = pl.concat([frame[:4], frame[4:]], rechunk=False), ["id", "*", "at"]
    oldest, newest = (
        chunked.to_arrow(compat_level=level) for level in (pl.CompatLevel.oldest(), pl.CompatLevel.newest())
    )
    for given in (frame, frame.lazy(), oldest, newest):
        made: Any = cv.privatize(given, RELEASE, ids="id", keep=keep)
        out = made if isinstance(made, pl.DataFrame) else pl.from_arrow(made)
        assert isinstance(out, pl.DataFrame)
        assert out.schema == frame.schema
        assert out.drop("text").equals(frame.drop("text"))
        assert out["text"].to_list() == expected
    empty = frame.clear()
    assert cv.privatize(empty, RELEASE, ids="id", keep=keep).equals(empty)


def test_words_that_are_fixed_can_not_hold_private_text() -> None:
    """And no text of them is quoted."""
    for given in (pl.Series(["zzcanary"], dtype=pl.Enum(["zzcanary"])), pl.Series(["zzcanary"], dtype=pl.Categorical()),
                  pd.Series(["zzcanary"], dtype="category")):  # fmt: skip
        with refused("unsuitable-data", "text", "cast it to string") as caught:
            cv.privatize(given, RELEASE, ids=[1])
        assert "zzcanary" not in str(caught.value)


NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\x09\0\0\0"), pa.py_buffer(b"zzcanary\xff")]
)


class TestOthers:
    """Beside the kinds of tests/api: each comes back in its own kind, and all of them alike."""

    @pytest.mark.parametrize(
        ("data", "refusal"),
        [
            ({"text": ["zzcanary"]}, ("wrong-setting", "dict")),
            (datasets.Dataset.from_dict({"text": ["zzcanary"]}), ("wrong-setting", "Dataset")),
            ("zzcanary", ("wrong-setting",)),
            (b"zzcanary", ("wrong-setting", "bytes")),
            (["x", None, b"zzcanary"], ("unsuitable-data", "row 2", "bytes")),
            ([["zzcanary"]], ("unsuitable-data", "row 0", "of type list")),
            (["zzcanary\ud800"], ("unsuitable-data", "surrogate")),
            (pa.table({"text": NOT_UTF8}), ("unsuitable-data", "UTF-8")),
            ((n for n in [1]), ("wrong-setting", "generator")),
            (pd.DataFrame({"a": ["zzcanary"]}), ("unsuitable-data", "text")),
            (pd.DataFrame([["zzcanary", "b"]], columns=["text", "text"]), ("unsuitable-data",)),
            (pd.DataFrame({"text": [1]}), ("unsuitable-data", "text")),
        ],
    )
    def test_anything_else_is_refused_in_one_sentence(self, data: Any, refusal: Any) -> None:
        """A frame's and a dictionary's keys were taken for texts, and what came back looked like a release."""
        with refused(*refusal) as caught:
            cv.privatize(data, RELEASE, ids=["a"])
        assert "zzcanary" not in str(caught.value)


FRAMES: dict[str, Any] = {
    "pandas": pd.DataFrame, "polars": pl.DataFrame, "lazy": pl.LazyFrame, "arrow": pa.table,
    "stream": lambda rows: Stream(pa.table(rows)),
    "duckdb": lambda rows: duckdb.from_arrow(pa.table(rows)),
}  # fmt: skip


@pytest.mark.parametrize("kind", FRAMES)
class TestColumns:
    """One rule for files and frames."""

    ROWS: ClassVar[dict[str, list[Any]]] = {
        "id": ["a", "b", "c"],
        "name": ["Bbbe Cccj", None, "O'Dddc, Aa"],
        "text": ["aaaa BBBE aaab. cccj bbbe", "bbbe", "dddc o'dddc aa aaaa"],
        "stars": [5, 4, 3],
    }

    @staticmethod
    def columns(frame: Any) -> dict[str, list[Any]]:
        if isinstance(frame, pd.DataFrame):
            return frame.to_dict("list")  # type: ignore[return-value]
        return frame.to_dict(as_series=False) if isinstance(frame, pl.DataFrame) else frame.to_pydict()

    def test_other_columns_come_back_only_if_they_are_kept_and_what_is_gone_is_named(self, kind: str) -> None:
        frame = FRAMES[kind](self.ROWS)
        texts = cv.privatize(self.ROWS["text"], RELEASE, ids=self.ROWS["id"])
        for keep, names, gone in (
            ((), ["text"], "not copied: id, name, stars"), (["stars"], ["text", "stars"], "not copied: id, name"),
            ("stars", ["text", "stars"], "not copied: id, name"), (["stars", "id", "name"], list(self.ROWS), None),
            (iter(["stars"]), ["text", "stars"], "not copied: id, name"),
        ):  # fmt: skip
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                out = self.columns(cv.privatize(frame, RELEASE, ids="id", keep=keep))
            assert out == {name: texts if name == "text" else self.ROWS[name] for name in names}, keep
            assert ([] if gone is None else [gone]) == [str(one.message).partition(". ")[0] for one in caught], keep
        with refused("unsuitable-data", "nosuch"):
            cv.privatize(frame, RELEASE, ids="id", keep=["nosuch"])
        with refused("wrong-setting", "keep"):
            cv.privatize(frame, RELEASE, ids="id", keep=None)


def test_a_kept_column_of_another_type_is_refused() -> None:
    """Before anything is drawn, by a sentence that quotes nothing of it."""
    others: list[Any] = [["zzcanary"], b"zzcanary", dt.timedelta(1), dt.time(1), decimal.Decimal(1), {"a": "zzcanary"}]
    for value in others:
        rows = {"text": ["aaaa"], "k": [value]}
        for frame in (pa.Table.from_pydict(rows), pd.DataFrame(rows), pl.DataFrame(rows)):
            with refused("unsuitable-data", "k: a kept column has strings", "cast it") as caught:
                cv.privatize(frame, RELEASE, ids=[1], keep="k")
            assert "zzcanary" not in str(caught.value)
    mixed = pd.DataFrame({"text": ["aaaa"] * 2, "k": ["zzcanary", 5], "c": pd.Categorical(["zzcanary", "b"])})
    for name in ("k", "c"):
        with refused("unsuitable-data", name) as caught:
            cv.privatize(mixed, RELEASE, ids=[1, 2], keep=name)
        assert "zzcanary" not in str(caught.value)


def streamed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def test_a_kept_column_has_its_own_rows_alone_in_every_file_pickle_and_print() -> None:
    """Rows that were sliced or filtered away, and values below a null, are not read: Arrow, Polars and pandas."""
    secret = "zzcanary" * 4  # too long for a view to hold without a buffer
    rows = pa.array(["b", secret, None, "d", secret])
    for column, first in ((rows, 2), (rows.cast(pa.large_string()), 2), (rows.cast(pa.string_view()), 2)):
        table = pa.table({"text": ["aaaa"] * 5, "k": column}).slice(first, 4 - first)
        made = cv.privatize(table, RELEASE, ids=list(range(len(table))), keep="k")
        assert (made["k"].type, made["k"].to_pylist()) == (column.type, table["k"].to_pylist())
        assert made.validate(full=True) is None
        for shown in (pickle.dumps(made), streamed(made), str(made).encode()):
            assert b"zzcanary" not in shown, (column.type, first)
    frame = pl.DataFrame({"text": ["aaaa"] * 3, "k": ["b" * 20, secret, "d"], "n": [1, 5550101, 2]}).filter(
        pl.col("n") != 5550101
    )
    hidden = pl.when(pl.col("n") > 1).then(None).otherwise(pl.col("n") + 5550100).alias("m")
    private = cv.privatize(frame.with_columns(hidden), RELEASE, ids=[1, 2], keep=["k", "m"])
    file = io.BytesIO()
    private.write_ipc(file)
    for shown in (pickle.dumps(private), file.getvalue()):
        assert b"zzcanary" not in shown
        assert (5550102).to_bytes(8, "little") not in shown
    masked = pd.DataFrame({"text": ["aaaa"] * 2, "k": pd.Series([5550101, 2], dtype="Int64").mask([True, False])})
    assert (5550101).to_bytes(8, "little") not in pickle.dumps(cv.privatize(masked, RELEASE, ids=[1, 2], keep="k"))


def test_what_describes_a_frame_stays_behind() -> None:
    """Metadata of Arrow, attributes and unused labels of pandas; they may have values of rows and names of columns."""
    field = pa.field("text", pa.string(), metadata={"example": "zzcanary"})
    table = pa.table([pa.array(["aaaa"])], pa.schema([field], {"made": "zzcanary"}))
    frame = pd.DataFrame({"text": ["aaaa"], "zzcanary": [1]})
    frame.columns = pd.CategoricalIndex(frame.columns, name="zzcanary")
    frame.attrs["example"] = "zzcanary"
    for given in (table, table.to_batches()[0], frame):
        assert b"zzcanary" not in pickle.dumps(cv.privatize(given, RELEASE, ids=[1])), type(given)


class TestFunctionsOfColumns:
    """DuckDB and Polars call a release by name, and get the bytes of a frame."""

    ROWS = pa.table(
        {"id": range(5000), "review": [[" ".join(WORDS), None, "Bread 12."][row % 3] for row in range(5000)]}
    )

    def test_duckdb_and_lazy_polars_give_the_bytes_of_a_frame_by_words_and_by_passages(self) -> None:
        """In several threads and batches, under a filter, and for other kinds of ids and text."""
        for release, count in ((RELEASE, 5000), (passage_release(), 300)):
            rows = self.ROWS.slice(0, count)
            expected = privatize(rows, release, "id", "review", keep="id")
            with duckdb.connect(config={"threads": 2}) as connection:
                cv.register_sql(connection, release)
                connection.register("reviews", rows)
                query = "SELECT id, privatize('review', id, review) AS review FROM reviews"
                assert connection.sql(f"{query} ORDER BY id").to_arrow_table() == expected
                filtered = connection.sql(f"{query} WHERE privatize('review', id, review) IS NOT NULL ORDER BY id")
                assert filtered.to_arrow_table() == expected.filter(pc.field("review").is_valid())
                odd = "privatize('review', 'a', 'Bread'::ENUM('Bread')), privatize('review', 5, NULL)"
                assert connection.sql(f"SELECT {odd}").fetchall() == [
                    (*privatize(["Bread"], release, ["a"], "review"), None)
                ]
                assert connection.sql(f"{query} WHERE id < 0").fetchall() == []
            lazy = pl.from_arrow(rows).lazy().with_columns(cv.expr(release, "review", "id"))
            assert lazy.collect_schema() == pl.from_arrow(rows).schema
            for engine in ("in-memory", "streaming"):
                assert lazy.collect(engine=engine).equals(pl.from_arrow(expected))
                assert lazy.filter(pl.col("id") < 0).collect(engine=engine).is_empty()

    def test_the_name_of_a_column_is_no_pattern_of_polars(self) -> None:
        for name in ("*", "^.*$", "a.b"):
            frame = pl.DataFrame({"id": [1, 2], "text": ["aaaa", "aaab"], name: ["aaac", "aaad"]})
            expected = privatize(frame, RELEASE, "id", name, keep=["id", "text"])
            for made in (frame, frame.lazy()):
                assert made.with_columns(cv.expr(RELEASE, name, "id")).lazy().collect().equals(expected), name
            assert pl.DataFrame({"t": ["aaaa"], name: [1]}).select(cv.expr(RELEASE, "t", name)).height == 1
        for wrong in ({"text": 5}, {"id": pl.col("id")}):
            with refused("wrong-setting", *wrong):
                cv.expr(RELEASE, **wrong)

    def test_a_wrong_call_is_a_sentence_that_quotes_no_text(self) -> None:
        """It arrives in the exception of the engine, whose query it ends."""
        with duckdb.connect() as connection:
            for call, refusal in (
                (lambda: cv.register_sql(object(), RELEASE), ("wrong-setting", "DuckDB")),
                (lambda: cv.register_sql(connection, None), ("wrong-setting", "release")),
                (lambda: cv.register_sql(connection, RELEASE, ""), ("wrong-setting", "name")),
            ):
                with refused(*refusal):
                    call()
            cv.register_sql(connection, RELEASE, "hide")
            for call, sentence in (
                ("hide('t', NULL, 'zzcanary')", "id: the id column has empty values"),
                ("hide('t', [1], 'zzcanary')", "id: an id is a string or an integer"),
                ("hide('t', 1)", "hide: give three arguments"),
                ("hide(['zzcanary'], 1, 'zzcanary')", "hide: the first argument is the column's name"),
                ("hide(NULL, 1, 'zzcanary')", "hide: the first argument is the column's name"),
                ("hide('t', 1, 'zzcanary'::BLOB)", "t: a column of type binary cannot hold"),
            ):
                with pytest.raises(duckdb.Error, match=sentence) as caught:
                    connection.sql(f"SELECT {call}").fetchall()
                assert "zzcanary" not in str(caught.value), call
        for frame, sentence in (
            ({"id": [None, 1], "text": ["zzcanary"] * 2}, "id: the id column has empty values"),
            ({"id": ["zzcanary"], "text": [5]}, "text: a column of type int64 cannot hold"),
        ):
            with pytest.raises(Exception, match=sentence) as caught:
                pl.DataFrame(frame, strict=False).lazy().with_columns(cv.expr(RELEASE)).collect()
            assert "zzcanary" not in str(caught.value), sentence
