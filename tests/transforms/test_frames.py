"""Lists, Arrow tables and frames in this process: one column changes, and kept ones are as they were."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import io
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
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
from corpusveil.kernel.kernel import Kernel
from corpusveil.mechanisms.ring_geometric import RingGeometric
from corpusveil.storage.documents import Documents
from corpusveil.transforms.release.release import Release
from corpusveil.transforms.table import privatize, privatize_table, privatized_parts
from tests.calls import refused
from tests.contracts.spaces import small_space, words_of
from tests.passages.stores import passage_release

WORDS = words_of(30)
RELEASE = Release(RingGeometric(small_space(words=WORDS)), cv.Budget(1.0), cv.TextPolicy(), key=cv.Key.for_tests())
TEXTS = [" ".join(WORDS), None, "", " ".join(WORDS[::-1]), "zzunknown 12 😀"]


def table(kind: pa.DataType | None = None) -> pa.Table:
    return pa.table(
        {
            "n": pa.array([1, 2, None, 4, 5]),
            "review": pa.array(TEXTS, pa.string()).cast(kind or pa.string()),
            "key": ["a", "b", "c", "d", "e"],
            "text": ["other"] * 5,
        }
    )


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.dictionary(pa.uint32(), pa.large_string()),
        pa.dictionary(pa.int16(), pa.string_view(), ordered=True),
    ],
)
def test_other_columns_stay_and_the_column_keeps_its_type(kind: pa.DataType) -> None:
    """In tables, record batches, chunks and slices, of no rows too, the same text for the same id."""
    before, every = table(kind), ["n", "key", "text"]
    after = privatize_table(before, RELEASE, text="review", id="key", keep=every)
    assert after.schema.equals(before.schema, check_metadata=True)
    assert after.drop_columns(["review"]).equals(before.drop_columns(["review"]))
    out = after.column("review").to_pylist()
    assert [text is None for text in out] == [text is None for text in TEXTS]
    assert out[0] != TEXTS[0]
    assert out == privatize_table(table(), RELEASE, text="review", id="key").column("review").to_pylist()
    batch = before.to_batches()[0]
    private = privatize_table(batch, RELEASE, text="review", id="key")
    assert isinstance(private, pa.RecordBatch)
    assert private.column("review").to_pylist() == out
    chunked = pa.concat_tables([before.slice(0, 2), before.slice(2)])
    for part, expected in ((chunked, out), (before.slice(2, 2), out[2:4]), (batch.slice(1, 3), out[1:4])):
        assert privatize_table(part, RELEASE, "review", "key").column("review").to_pylist() == expected
    for empty in (before.slice(0, 0), before.schema.empty_table()):
        assert privatize_table(empty, RELEASE, text="review", id="key", keep=every).equals(empty)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2]),
        pa.array([["zzcanary"]]),
        pa.nulls(2),
        pa.array([b"zz", b"z"]),
        pa.array(["zz", "z"]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.large_binary())),
        pc.run_end_encode(pa.array(["zz", "zz"])),
        pa.array([" ".join(WORDS)] * 300).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
    ],
)
def test_a_column_that_cannot_hold_the_private_text_is_refused(column: pa.Array) -> None:
    """Numbers, nothing, or a dictionary too small: a sentence that names the column and quotes nothing of it."""
    with refused("unsuitable-data", "text") as caught:
        privatize_table(pa.table({"text": column}), RELEASE, ids=cv.RowNumbers("x"))
    assert not any(word in str(caught.value) for word in ("zzcanary", *WORDS))


class TestIds:
    """The identity of a document is what makes its noise its own, wherever and in whatever batch it comes."""

    TEXT = " ".join(WORDS)

    def test_a_batch_with_its_rows_is_that_part_of_the_whole(self) -> None:
        """Pairs of name and row are what ``RowNumbers`` gives, so batches with theirs come out as the whole does."""
        whole = pa.table({"text": [self.TEXT] * 7})
        expected = privatize_table(whole, RELEASE, ids=cv.RowNumbers("train")).column("text").to_pylist()
        found = []
        for first in range(0, 7, 3):
            batch = whole.slice(first, 3)
            ids = [("train", first + number) for number in range(len(batch))]
            found += privatize_table(batch, RELEASE, ids=ids).column("text").to_pylist()
        assert found == expected
        assert len(set(found)) == 7
        other = privatize([self.TEXT] * 7, RELEASE, cv.RowNumbers("test"))
        assert not set(other) & set(expected), "the name is part of the identity"
        assert privatize([self.TEXT] * 7, RELEASE, ids=[("train", number) for number in range(7)]) == expected

    @pytest.mark.parametrize(
        ("call", "refusal"),
        [
            (lambda: privatize(["a"], RELEASE), ("wrong-setting", "cv.RowNumbers", "'name'")),
            (lambda: privatize_table(table(), RELEASE, text="review"), ("wrong-setting", "cv.RowNumbers")),
            (lambda: privatize(pd.DataFrame({"text": ["a"]}), RELEASE), ("wrong-setting", "cv.RowNumbers")),
            (lambda: cv.RowNumbers(""), ("wrong-setting", "'reviews'")),
            (lambda: cv.RowNumbers(5), ("wrong-setting", "'reviews'")),  # type: ignore[arg-type]
            (lambda: privatize(["a"], RELEASE, "reviews"), ("unsuitable-data", "'reviews'", "cv.RowNumbers")),
            (lambda: privatize_table(table(), RELEASE, "nosuch", "key"), ("unsuitable-data",)),
            (lambda: privatize_table(table(), RELEASE, "review", "nosuch"), ("unsuitable-data", "nosuch")),
            (lambda: privatize_table(table(), RELEASE, "review", "n"), ("unsuitable-data", "n")),
            (lambda: privatize_table(table(), RELEASE, "review", "key", [1] * 5), ("wrong-setting", "id")),
        ],
    )
    def test_there_is_no_default(self, call: Any, refusal: Any) -> None:
        """Row numbers of unrelated lists collide: without ids, an error says what to give, and nothing is drawn."""
        with refused(*refusal):
            call()

    @pytest.mark.parametrize(
        "ids",
        [
            [5, 6, 7], range(5, 8), np.array([5, 6, 7]), pa.array([5, 6, 7]), pa.chunked_array([[5], [6, 7]]),
            pd.Series([5, 6, 7], index=list("xyz")), pl.Series([5, 6, 7]), ["5", 6, "7"],
        ],
        ids=lambda ids: f"{type(ids).__module__}.{type(ids).__name__}",
    )  # fmt: skip
    def test_any_sequence_of_ids_is_one(self, ids: Any) -> None:
        """The same ids are the same documents, whoever made them: a column, a list; an integer is its digits."""
        table = pa.table({"id": [5, 6, 7], "text": [self.TEXT] * 3})
        expected = privatize_table(table, RELEASE, id="id")
        assert len(set(expected["text"].to_pylist())) == 3
        assert privatize_table(table.take([2, 1, 0]), RELEASE, id="id").take([2, 1, 0]).equals(expected)
        assert privatize_table(table, RELEASE, ids=ids).equals(expected)
        assert privatize([self.TEXT] * 3, RELEASE, ids=ids) == expected.column("text").to_pylist()

    @pytest.mark.parametrize(
        ("ids", "refusal"),
        [
            ([1, 2], ("wrong-setting", "ids")),
            ([1, 2, 3, 4], ("wrong-setting", "ids")),
            ([1, None, 3], ("unsuitable-data", "ids")),
            ([1, float("nan"), 3], ("unsuitable-data", "ids")),
            (pd.Series([pd.Timestamp(0), pd.NaT, pd.Timestamp(1)]), ("unsuitable-data", "ids")),
            (5, ("wrong-setting", "int")),
            ([("a", 1), ("a", 2), ("a", -3)], ("unsuitable-data", "ids")),
            ([("a", 1), ("a", 2), ("a", 1, 3)], ("unsuitable-data", "ids")),
            ([[1], [2], [3]], ("unsuitable-data", "list")),
            (["a", "", "c"], ("unsuitable-data", "ids")),
            ([1, True, 2], ("unsuitable-data", "bool")),
            ([1, 2.5, 3], ("unsuitable-data", "float")),
            ([1, 2, 10**30], ("unsuitable-data", "64 bits")),
            ([1, decimal.Decimal("NaN"), 3], ("unsuitable-data", "ids")),
            ({"a", "b", "c"}, ("wrong-setting", "ids", "set")),
            ({"a": 1, "b": 2, "c": 3}, ("wrong-setting", "ids", "dict")),
            (pd.DataFrame({"a": [1], "b": [1], "c": [1]}), ("wrong-setting", "ids", "DataFrame")),
            (b"abc", ("wrong-setting", "ids", "bytes")),
        ],
    )
    def test_ids_that_are_none_are_refused(self, ids: Any, refusal: Any) -> None:
        table = pa.table({"text": [self.TEXT] * 3})
        with refused(*refusal):
            privatize_table(table, RELEASE, ids=ids)

    def test_a_column_whose_labels_are_in_another_order_is_refused(self) -> None:
        """As by a frame that was sorted after its ids were taken: units would be charged for others."""
        frame = pd.DataFrame({"id": [1, 2], "text": ["b", "a"]})
        ids = frame["id"][::-1]
        for given in (frame, frame["text"]):
            with refused("wrong-setting", "ids", "order"):
                privatize(given, RELEASE, ids)
            with refused("wrong-setting", "customer", "order"):
                privatize(given, RELEASE, [1, 2], unit={"customer": ids})
            privatize(given, RELEASE, ids.tolist())


def test_a_mask_of_single_texts_is_the_release_in_every_thread() -> None:
    """What a hook gets for a text depends on the text and the column alone, whoever else calls."""
    mask = cv.masker(RELEASE, "review")
    texts = [" ".join(WORDS[number % 20 :]) for number in range(200)]
    with ThreadPoolExecutor(8) as threads:
        masked = list(threads.map(mask, texts))
    assert masked == [mask(text) for text in texts]
    other = cv.masker(RELEASE, "other")
    assert masked != [other(text) for text in texts]
    for wrong in (None, b"text", ["text"]):
        with refused("wrong-setting"):
            mask(wrong)


def test_a_chunk_whose_private_text_outgrows_its_type_is_parted() -> None:
    """Private text can be longer than its input: what one string array can't hold comes out as several, in order."""
    texts = pa.table({"text": pa.array([f"{WORDS[n % 30]} {WORDS[0]}" for n in range(50)])})
    expected = privatize_table(texts, RELEASE, ids=cv.RowNumbers("long"))["text"].to_pylist()

    class Narrow(Kernel):
        """A kernel whose output has more than 2 GiB as long as it has more than 10 rows; NULs, which take no memory."""

        def privatize(self, documents: Documents) -> Any:
            out, counts = super().privatize(documents)
            if len(out) <= 10:
                return out, counts
            far = np.array([0, *[1 << 31] * len(out)], dtype=np.int64)
            zeros = pa.py_buffer(np.zeros(1 << 31, np.uint8))
            return pa.LargeStringArray.from_buffers(len(out), pa.py_buffer(far), zeros), counts

    made = RELEASE.kernel()
    kernel = Narrow(made.mechanism, made.budget, made.policy, made.draw_key, made.tokenizer_version)
    identities = [("long", number) for number in range(50)]
    parts = privatized_parts(kernel, Documents(texts["text"].chunk(0), identities), pa.string())
    assert len(parts) > 4
    assert {part.type for part in parts} == {pa.string()}
    assert [text for part in parts for text in part.to_pylist()] == expected


def test_text_hidden_under_a_null_does_not_come_out() -> None:
    """Arrow lets a null hold bytes; the output's buffers hold none of them."""
    data, offsets = b"zzcanary aaaa", b"\0\0\0\0\x08\0\0\0\x0d\0\0\0"
    column = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x02"), pa.py_buffer(offsets), pa.py_buffer(data)])
    keep = Release(RELEASE.mechanism, cv.Budget(1.0), cv.TextPolicy(unknown_words="keep"), key=RELEASE.key)
    out = privatize_table(pa.table({"text": column}), keep, ids=["a", "b"]).column("text").combine_chunks()
    assert out.to_pylist()[0] is None
    assert b"zzcanary" not in b"".join(buffer.to_pybytes() for buffer in out.buffers() if buffer is not None)


COUNT = 9
MANY = [None if n % 4 == 3 else " ".join(WORDS[n : n + 12]) for n in range(COUNT)]


@pytest.fixture(scope="module")
def expected() -> list[str | None]:
    table = pa.table({"id": list(range(COUNT)), "text": pa.array(MANY, pa.string())})
    out: list[str | None] = privatize_table(table, RELEASE, id="id").column("text").to_pylist()
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
        calls = cv.privatize(frame, RELEASE, "id", keep=keep), privatize_table(frame, RELEASE, id="id", keep=keep)
        for out in calls:
            assert type(out) is pd.DataFrame
            assert [None if pd.isna(text) else text for text in out["text"]] == expected
            pd.testing.assert_frame_equal(out.drop(columns="text"), frame.drop(columns=["text", 7]))
            assert out["text"].dtype == kind
        pd.testing.assert_frame_equal(frame, before)

    def test_a_series_comes_back_as_one(self, expected: list[str | None]) -> None:
        """With its row numbers and name."""
        series = pd.Series([float("nan") if text is None else text for text in MANY], dtype=object, name="reviews")
        out = cv.privatize(series[2:], RELEASE, ids=range(2, COUNT))
        assert (out.index.equals(series[2:].index), out.name) == (True, "reviews")
        assert [None if pd.isna(text) else text for text in out] == expected[2:]

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
            ({"zzcanary"}, ("wrong-setting", "set")),
            ("zzcanary", ("wrong-setting",)),
            (b"zzcanary", ("wrong-setting", "bytes")),
            (np.array(["zzcanary"]), ("wrong-setting", "ndarray")),
            (5, ("wrong-setting", "int")),
            (["x", None, 5], ("unsuitable-data", "row 2", "of type int")),
            (["zzcanary\ud800"], ("unsuitable-data", "surrogate")),
            (pa.table({"text": NOT_UTF8}), ("unsuitable-data", "UTF-8")),
            ([b"zzcanary"], ("unsuitable-data", "row 0", "bytes")),
            ((n for n in [1]), ("wrong-setting", "generator")),
            (pd.DataFrame({"a": ["zzcanary"]}), ("unsuitable-data", "text")),
            (pd.DataFrame([["zzcanary", "b"]], columns=["text", "text"]), ("unsuitable-data",)),
            (pd.DataFrame({"text": [1]}), ("unsuitable-data", "text")),
            (pl.DataFrame({"text": [1]}), ("unsuitable-data", "text", "int64")),
        ],
    )
    def test_anything_else_is_refused_in_one_sentence(self, data: Any, refusal: Any) -> None:
        """A frame's and a dictionary's keys were taken for texts, and what came back looked like a release."""
        with refused(*refusal) as caught:
            cv.privatize(data, RELEASE, ids=["a"])
        assert "zzcanary" not in str(caught.value)


class Stream:
    """An object that has an Arrow stream and nothing else."""

    def __init__(self, rows: Any) -> None:
        self._table = pa.table(rows)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


FRAMES: dict[str, Any] = {
    "pandas": pd.DataFrame, "polars": pl.DataFrame, "lazy": pl.LazyFrame, "arrow": pa.table, "stream": Stream,
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
    """Not those that were sliced or filtered away, nor what lies below a null: of Arrow, Polars and pandas."""
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


def test_the_name_of_a_column_is_a_string() -> None:
    """The name of a pandas column may be a number or, of several levels, a tuple."""
    frame = pd.DataFrame({0: ["zzcanary"], ("a", "b"): ["zzcanary"]})
    for name in (0, ("a", "b"), RELEASE):
        for call in (
            lambda name=name: cv.privatize(frame, RELEASE, ids=[1], text=name),
            lambda name=name: cv.preview(frame, name),
        ):
            with refused("wrong-setting", "text"):
                call()


def test_every_type_of_text_can_be_previewed() -> None:
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        column = pa.chunked_array([pa.array(["Good bread"]).cast(kind), pa.array([None], pa.string()).cast(kind)])
        assert cv.preview(pa.table({"text": column}), epsilon=1.0).before == ["Good bread"], kind


class TestFunctionsOfColumns:
    """DuckDB and Polars call a release by name, and get the bytes of a frame."""

    ROWS = pa.table(
        {"id": range(5000), "review": [[" ".join(WORDS), None, "Bread 12."][row % 3] for row in range(5000)]}
    )

    def test_duckdb_and_lazy_polars_give_the_bytes_of_a_frame_by_words_and_by_passages(self) -> None:
        """In several threads and batches, under a filter, and for other kinds of ids and text."""
        for release, count in ((RELEASE, 5000), (passage_release(), 300)):
            rows = self.ROWS.slice(0, count)
            expected = privatize_table(rows, release, "review", "id", keep="id")
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

    def test_a_function_that_is_registered_again_has_the_new_release(self) -> None:
        with duckdb.connect() as connection:
            for budget in (1.0, 2.0):
                release = dataclasses.replace(RELEASE, budget=cv.Budget(budget))
                cv.register_sql(connection, release)
                text = " ".join(WORDS)
                made = connection.execute("SELECT privatize(?, ?, ?)", ["review", "1", text]).fetchall()
                assert made == [tuple(privatize([text], release, ["1"], "review"))]

    def test_a_function_outlives_the_cursor_that_registered_it(self) -> None:
        with duckdb.connect() as connection:
            cv.register_sql(connection.cursor(), RELEASE)
            made = connection.sql("SELECT privatize('t', '1', 'Bread')").fetchall()
        assert made == [tuple(privatize(["Bread"], RELEASE, ["1"], "t"))]

    def test_a_wrong_call_is_a_sentence_that_quotes_no_text(self, tmp_path: Path) -> None:
        """It arrives in the exception of the engine, whose query it ends."""
        with duckdb.connect() as connection:
            for call, refusal in (
                (lambda: cv.register_sql(object(), RELEASE), ("wrong-setting", "DuckDB")),
                (lambda: cv.register_sql(connection, None), ("wrong-setting", "release")),
                (lambda: cv.register_sql(connection, RELEASE, ""), ("wrong-setting", "name")),
                (
                    lambda: cv.register_sql(connection, RELEASE, ledger=cv.Ledger(str(tmp_path), cap=1)),
                    ("wrong-setting", "ledger"),
                ),
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
