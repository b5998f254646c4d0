"""Lists, Arrow tables and frames in this process: one column changes, everything else is as it was."""

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
from corpusveil.sampling.draws import encode_id
from corpusveil.storage.documents import Documents
from corpusveil.transforms.identities import identities_of
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
    before = table(kind).replace_schema_metadata({"made": "by test"})
    after = privatize_table(before, RELEASE, text="review", id="key", keep="all")
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
        assert privatize_table(empty, RELEASE, text="review", id="key", keep="all").equals(empty)


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
    with refused("wrong-column", "text") as caught:
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
            (lambda: privatize(["a"], RELEASE), ("missing-setting", "cv.RowNumbers", "'name'")),
            (lambda: privatize_table(table(), RELEASE, text="review"), ("missing-setting", "cv.RowNumbers")),
            (lambda: privatize(pd.DataFrame({"text": ["a"]}), RELEASE), ("missing-setting", "cv.RowNumbers")),
            (lambda: cv.RowNumbers(""), ("missing-setting", "'reviews'")),
            (lambda: cv.RowNumbers(5), ("missing-setting", "'reviews'")),  # type: ignore[arg-type]
            (lambda: privatize(["a"], RELEASE, "reviews"), ("wrong-column", "'reviews'", "cv.RowNumbers")),
            (lambda: privatize_table(table(), RELEASE, "nosuch", "key"), ("wrong-column",)),
            (lambda: privatize_table(table(), RELEASE, "review", "nosuch"), ("wrong-column", "nosuch")),
            (lambda: privatize_table(table(), RELEASE, "review", "n"), ("bad-row", "n")),
            (lambda: privatize_table(table(), RELEASE, "review", "key", [1] * 5), ("conflicting-settings", "id")),
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
            pd.Series([5, 6, 7], index=list("xyz")), pl.Series([5, 6, 7]),
        ],
        ids=lambda ids: f"{type(ids).__module__}.{type(ids).__name__}",
    )  # fmt: skip
    def test_any_sequence_of_ids_is_one(self, ids: Any) -> None:
        """The same ids are the same documents, whoever made them: an id column, a list, an array."""
        table = pa.table({"id": [5, 6, 7], "text": [self.TEXT] * 3})
        expected = privatize_table(table, RELEASE, id="id")
        assert len(set(expected["text"].to_pylist())) == 3
        assert privatize_table(table.take([2, 1, 0]), RELEASE, id="id").take([2, 1, 0]).equals(expected)
        assert privatize_table(table, RELEASE, ids=ids).equals(expected)
        assert privatize([self.TEXT] * 3, RELEASE, ids=ids) == expected.column("text").to_pylist()

    @pytest.mark.parametrize(
        ("ids", "refusal"),
        [
            ([1, 2], ("wrong-shape", "ids")),
            ([1, 2, 3, 4], ("wrong-shape", "ids")),
            ([1, None, 3], ("bad-row", "ids")),
            ([1, float("nan"), 3], ("bad-row", "ids")),
            (pd.Series([pd.Timestamp(0), pd.NaT, pd.Timestamp(1)]), ("bad-row", "ids")),
            (5, ("wrong-type", "int")),
            ([("a", 1), ("a", 2), ("a", -3)], ("bad-row", "ids")),
            ([("a", 1), ("a", 2), ("a", 1, 3)], ("bad-row", "ids")),
            ([[1], [2], [3]], ("wrong-type", "list")),
            ([1, decimal.Decimal("NaN"), 3], ("bad-row", "ids")),
            ({"a", "b", "c"}, ("wrong-type", "ids", "set")),
            ({"a": 1, "b": 2, "c": 3}, ("wrong-type", "ids", "dict")),
            (pd.DataFrame({"a": [1], "b": [1], "c": [1]}), ("wrong-type", "ids", "DataFrame")),
            (b"abc", ("wrong-type", "ids", "bytes")),
            (np.array([1, 2, 3], "m8[ns]"), ("wrong-type",)),
            (np.array([np.timedelta64(1, "ns")] * 3, object), ("wrong-type",)),
        ],
    )
    def test_ids_that_are_none_are_refused(self, ids: Any, refusal: Any) -> None:
        table = pa.table({"text": [self.TEXT] * 3})
        with refused(*refusal):
            privatize_table(table, RELEASE, ids=ids)

    def test_an_id_is_the_same_in_every_type_that_libraries_make_of_it(self) -> None:
        """An instant in any zone, a whole number that a join made a float, or a database a decimal; in SQL, too."""
        tokyo = dt.datetime(2026, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=9)))
        instant, ns = tokyo.astimezone(dt.UTC), pa.array([tokyo.replace(tzinfo=None)])
        for same, others in (
            (7, ([7.0], np.array([7.0]), [np.int64(7)], [decimal.Decimal("7.0")], pd.Series([7.0]), pl.Series([7.0]))),
            (instant, ([tokyo], pd.Series([tokyo]), pa.array([tokyo]), pl.Series([tokyo]), [pd.Timestamp(tokyo)])),
            (ns[0].as_py(), (pd.Series(ns), pd.Series(ns).to_numpy(), pd.Index(ns), np.array(ns).astype("M8[ms]"))),
            (True, (np.array([True]), pd.array([True], dtype="boolean"))), (2**53 + 1, (np.array([2**53 + 1]),)),
        ):  # fmt: skip
            expected = privatize([self.TEXT], RELEASE, ids=[same])
            for ids in others:
                assert privatize([self.TEXT], RELEASE, ids=ids) == expected, (same, ids)
        assert len({privatize([self.TEXT], RELEASE, [id])[0] for id in (7, 7.5, "7", 2.0**53, 2**53)}) == 5
        with duckdb.connect() as connection:
            cv.register_sql(connection, RELEASE)
            (row,) = connection.execute("SELECT privatize('text', 7::HUGEINT, ?)", [self.TEXT]).fetchall()
        assert list(row) == privatize([self.TEXT], RELEASE, ids=[7])

    def test_a_column_whose_labels_are_in_another_order_is_refused(self) -> None:
        """As by a frame that was sorted after its ids were taken: units would be charged for others."""
        frame = pd.DataFrame({"id": [1, 2], "text": ["b", "a"]})
        by_text, ids = frame.sort_values("text"), frame["id"]
        for given in (by_text, by_text["text"]):
            with refused("wrong-shape", "ids", "order"):
                privatize(given, RELEASE, ids)
            with refused("wrong-shape", "customer", "order"):
                privatize(given, RELEASE, [1, 2], unit={"customer": ids})
            privatize(given, RELEASE, ids.tolist())
            privatize(given, RELEASE, by_text["id"].reset_index(drop=True).set_axis([8, 9]))

    def test_a_time_that_python_lacks_is_an_id(self) -> None:
        """Each of them is another one; those that it has are the same id in every unit and library."""
        counts = pa.array([0, 1, 1000, 2**62])
        kinds = (pa.timestamp("ns"), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.time64("ns"))
        for column in (*map(counts.view, kinds), pa.array([0, 1, 2, 2**31 - 1], pa.int32()).view(pa.date32())):
            ids = identities_of(column, "t")
            assert len({encode_id(identity) for identity in ids}) == 4, column.type
        fine, coarse = (
            identities_of(pa.array([9 * unit]).view(kind), "t") for unit, kind in ((1000, kinds[0]), (1, kinds[1]))
        )
        (first,), (second,), third = fine, coarse, pd.Timestamp(9000)
        assert encode_id(first) == encode_id(second) == encode_id(third)

    def test_an_instant_is_the_same_id_in_every_zone(self) -> None:
        told = []
        for zone in ("UTC", "Asia/Tokyo", "+05:30"):
            at = pa.array([0, 10**15 + 1], pa.timestamp("us")).cast(pa.timestamp("us", zone))
            told.append(privatize_table(pa.table({"at": at, "text": [self.TEXT] * 2}), RELEASE, id="at")["text"])
        assert told[0].equals(told[1])
        assert told[0].equals(told[2])
        assert len(set(told[0].to_pylist())) == 2


def test_a_mask_of_single_texts_is_the_release_in_every_thread() -> None:
    """What a hook gets for a text is what any other call writes under the same column and id, whoever else calls."""
    mask = cv.masker(RELEASE, "review")
    texts = [" ".join(WORDS[number % 20 :]) for number in range(200)]
    with ThreadPoolExecutor(8) as threads:
        masked = list(threads.map(mask, texts))
    assert masked == cv.privatize(texts, RELEASE, [""] * len(texts), "review")
    assert masked != cv.privatize(texts, RELEASE, [""] * len(texts), "other")
    for wrong in (None, b"text", ["text"]):
        with refused("wrong-type"):
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
                "text": pd.Series(MANY, dtype=dtype, index=index_of),  # pandas 3 takes an array of objects for str
                "id": range(COUNT),
                7: [[n] for n in range(COUNT)],
            },
            index=index_of,
        )
        frame.attrs["source"] = "a test"
        before = frame.copy(deep=True)
        calls = cv.privatize(frame, RELEASE, "id", keep="all"), privatize_table(frame, RELEASE, id="id", keep="all")
        for out in calls:
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
        texts = [missing if text is None else text for text in MANY]
        series = pd.Series(texts, list("abcdefghi"), dtype=object, name="reviews")
        out = cv.privatize(series, RELEASE, ids=range(COUNT), keep="all")
        assert out.index.equals(series.index)
        assert out.name == "reviews"
        assert all(
            text is missing if other is None else text == other for text, other in zip(out, expected, strict=True)
        )

    def test_an_id_is_the_same_document_in_pandas_and_arrow(self) -> None:
        """Whole numbers that lie in a column of objects, and instants: as the same column of an Arrow table."""
        at = pd.date_range("2026-03-28", periods=COUNT, tz="Europe/Berlin")
        numbers = pd.Series(range(COUNT), dtype=object)
        frame = pd.DataFrame({"text": MANY, "us": at.as_unit("us"), "ns": at.as_unit("ns"), "n": numbers})
        table = pa.Table.from_pandas(frame)
        for name in ("us", "ns", "n"):
            there = privatize_table(table, RELEASE, id=name)["text"].to_pylist()
            out = cv.privatize(frame, RELEASE, ids=name)["text"]
            assert [None if pd.isna(text) else text for text in out] == there, name


class TestPolars:
    @pytest.mark.parametrize("kind", [pl.String(), pl.Categorical()], ids=["string", "categorical"])
    def test_a_frame_comes_back_as_a_frame(self, kind: pl.DataType, expected: list[str | None]) -> None:
        """By itself, and in both forms in which Polars hands strings to Arrow, in several chunks."""
        frame = pl.DataFrame({"id": range(COUNT), "text": MANY, "bin": [[n] for n in range(COUNT)]})
        frame = frame.with_columns(pl.col("text").cast(kind), pl.Series("kind", ["a"] * COUNT, pl.Enum(["a"])))
        chunked = pl.concat([frame[:4], frame[4:]], rechunk=False)
        for out in (
            cv.privatize(frame, RELEASE, ids="id", keep="all"),
            privatize_table(frame, RELEASE, id="id", keep="all"),
            pl.from_arrow(
                privatize_table(chunked.to_arrow(compat_level=pl.CompatLevel.oldest()), RELEASE, id="id", keep="all")
            ),
            pl.from_arrow(
                privatize_table(chunked.to_arrow(compat_level=pl.CompatLevel.newest()), RELEASE, id="id", keep="all")
            ),
        ):
            assert isinstance(out, pl.DataFrame)
            assert out.schema == frame.schema
            assert out.drop("text").equals(frame.drop("text"))
            assert out["text"].cast(pl.String).to_list() == expected
        empty = frame.clear()
        assert cv.privatize(empty, RELEASE, ids="id", keep="all").equals(empty)

    def test_an_enum_can_not_hold_private_text(self) -> None:
        """And no text of it is quoted."""
        with refused("wrong-column", "text", "Enum"):
            cv.privatize(pl.Series(["zzcanary"], dtype=pl.Enum(["zzcanary"])), RELEASE, ids=[1])


NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\x09\0\0\0"), pa.py_buffer(b"zzcanary\xff")]
)


class TestOthers:
    """Beside the kinds of tests/api: each comes back in its own kind, and all of them alike."""

    @pytest.mark.parametrize("kind", [np.str_, np.dtypes.StringDType()], ids=str)
    def test_numpy_s_own_strings(self, kind: Any, expected: list[str | None]) -> None:
        """Of a fixed width too: private texts can be longer, and none is cut."""
        out = cv.privatize(np.array([text or "" for text in MANY], dtype=kind), RELEASE, ids=range(COUNT))
        assert out.dtype.kind == np.dtype(kind).kind
        assert out.tolist() == [text or "" for text in expected]
        hidden: Any = np.ma.array(["aaaa", "aaab"], mask=[False, True])
        assert cv.privatize(hidden, RELEASE, ids=[1, 2])[1] is None

    @pytest.mark.parametrize(
        ("data", "refusal"),
        [
            ({"text": ["zzcanary"]}, ("wrong-type", "dict")),
            (datasets.DatasetDict(train=datasets.Dataset.from_dict({"text": ["z"]})), ("wrong-type", "DatasetDict")),
            ({"zzcanary"}, ("wrong-type", "set")),
            ("zzcanary", ("wrong-type",)),
            (b"zzcanary", ("wrong-type", "bytes")),
            (np.array([["zzcanary"]]), ("wrong-shape",)),
            (5, ("wrong-type", "int")),
            (["x", None, 5], ("bad-row", "row 2", "of type int")),
            (["zzcanary\ud800"], ("bad-row", "surrogate")),
            (pa.table({"text": NOT_UTF8}), ("bad-row", "UTF-8")),
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
    rows = {"id": list(range(COUNT)), "text": MANY, "label": [n % 2 for n in range(COUNT)]}
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
    out = cv.privatize(before, RELEASE, ids="id", keep="all")
    assert type(out) is datasets.Dataset
    assert out.features == before.features == features
    assert (out.format, out.split) == (before.format, before.split)
    assert list(out.with_format(None)["text"]) == expected[::-1]
    assert list(out["label"]) == list(before["label"])


FRAMES: dict[str, Any] = {
    "pandas": pd.DataFrame, "polars": pl.DataFrame, "lazy": pl.LazyFrame, "arrow": pa.table,
    "datasets": datasets.Dataset.from_dict, "duckdb": lambda rows: duckdb.from_arrow(pa.table(rows)),
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
        frame = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
        return frame.to_dict(as_series=False) if isinstance(frame, pl.DataFrame) else pa.table(frame[:]).to_pydict()

    def test_other_columns_come_back_only_if_they_are_kept_and_what_is_gone_is_named(self, kind: str) -> None:
        frame = FRAMES[kind](self.ROWS)
        texts = cv.privatize(self.ROWS["text"], RELEASE, ids=self.ROWS["id"])
        for keep, names, gone in (
            ((), ["text"], "not copied: id, name, stars"), (["stars"], ["text", "stars"], "not copied: id, name"),
            ("stars", ["text", "stars"], "not copied: id, name"), ("all", list(self.ROWS), None),
            (iter(["stars"]), ["text", "stars"], "not copied: id, name"),
        ):  # fmt: skip
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                out = self.columns(cv.privatize(frame, RELEASE, ids="id", keep=keep))
            assert out == {name: texts if name == "text" else self.ROWS[name] for name in names}, keep
            assert ([] if gone is None else [gone]) == [str(one.message).partition(". ")[0] for one in caught], keep
        with refused("wrong-column", "nosuch"):
            cv.privatize(frame, RELEASE, ids="id", keep=["nosuch"])
        with refused("wrong-type", "keep"):
            cv.privatize(frame, RELEASE, ids="id", keep=None)


def test_an_index_that_is_more_than_row_numbers_is_a_column() -> None:
    rows = {"text": ["aaaa", "aaab"], "name": ["Bbbe", "Cccj"]}
    for frame, gone in (
        (pd.DataFrame(rows).set_index("name"), "name"), (pd.DataFrame(rows, index=["Bbbe", "Cccj"]), "the index"),
    ):  # fmt: skip
        with pytest.warns(UserWarning, match=f"not copied: .*{gone}"):
            assert list(cv.privatize(frame, RELEASE, ids=[1, 2]).index) == [0, 1]
        assert list(cv.privatize(frame, RELEASE, ids=[1, 2], keep="all").index) == ["Bbbe", "Cccj"]
    with refused("conflicting-settings", "the series would lose its index, name"):
        cv.privatize(pd.DataFrame(rows).set_index("name")["text"], RELEASE, ids=[1, 2])
    both = pd.DataFrame({**rows, "k": [5, 6]}).set_index(["name", "k"])
    with pytest.warns(UserWarning, match="not copied: name."):
        assert list(cv.privatize(both, RELEASE, ids=[1, 2], keep=["k"]).index) == [5, 6]
    assert list(cv.privatize(both["text"], RELEASE, ids=[1, 2], keep="all").index.names) == ["name", "k"]
    assert list(cv.privatize(pd.DataFrame(rows)[1:], RELEASE, ids=[1]).index) == [1]
    for numbers, comes_back in (([31, 4], [31, 4]), ([5550101, 5550202], [0, 1]), ([7, 7], [0, 1]), ([-1, 0], [0, 1])):
        frame = pd.DataFrame(rows, index=numbers)
        assert list(cv.privatize(frame, RELEASE, ids=[1, 2]).index) == comes_back


def test_values_of_rows_that_were_filtered_out_do_not_leave_with_kept_columns() -> None:
    """As unused categories, entries of a dictionary, or levels of an index: of pandas, of Arrow."""
    words = [" ".join(WORDS)] * 3
    frame = pd.DataFrame(
        {"text": words, "k": pd.Categorical(["b", "zzcanary", "a"], ["zzcanary", "b", "a"], ordered=True)}
    )
    kept = frame[frame["k"] != "zzcanary"]
    for keep in (["k"], "all"):
        made = cv.privatize(kept, RELEASE, ids=[1, 2], keep=keep)
        assert (made["k"].cat.categories.tolist(), made["k"].cat.ordered) == (["b", "a"], True), keep
        table = pa.table({"text": words, "k": pa.array(["b", "zzcanary", None]).dictionary_encode()})
        chunked = pa.concat_tables([table.slice(0, 1), table.slice(2, 1)])
        arrow = cv.privatize(chunked, RELEASE, ids=[1, 2], keep=keep)["k"]
        assert (arrow.to_pylist(), arrow.type) == (["b", None], table["k"].type), keep
        assert [chunk.dictionary.to_pylist() for chunk in arrow.chunks] == [["b"], []], keep
    by_index = frame.set_index(["k", frame["text"].str[:1]]).iloc[[0, 2]]
    index: Any = cv.privatize(by_index, RELEASE, ids=[1, 2], keep="all").index
    assert "zzcanary" not in str(index.levels)


def test_nor_do_they_within_lists_maps_and_structs_or_in_pandas_columns_of_arrow() -> None:
    entries = pa.array(["zzcanary", "b", None, "d"]).dictionary_encode()
    missing = pa.array([False, False, True, False])
    keys, numbers = pa.array(list("stuv")), pa.array([7, 8, 8, 9]).dictionary_encode()
    for column in (
        entries, pa.ListArray.from_arrays([0, 1, 2, 3, 4], entries),
        pa.ListArray.from_arrays(pa.array([0, 1, None, 3, 4], pa.int32()), entries),
        pa.LargeListArray.from_arrays([0, 1, 1, 3, 4], entries), pa.FixedSizeListArray.from_arrays(entries, 1),
        pa.StructArray.from_arrays([entries, numbers], ["x", "n"], mask=missing),
        pa.MapArray.from_arrays([0, 1, 2, 3, 4], keys, entries),
        pa.ListArray.from_arrays([0, 1, 2, 3, 4], pa.StructArray.from_arrays([entries], ["x"])),
    ):  # fmt: skip
        table = pa.table({"text": [" ".join(WORDS)] * 4, "k": column}).slice(1)
        frame = pd.DataFrame({"text": table["text"].to_pandas(), "k": table["k"].to_pandas(types_mapper=pd.ArrowDtype)})
        for given in (table, frame):
            made = cv.privatize(given, RELEASE, ids=[1, 2, 3], keep=["k"])
            left = made if given is table else pa.table({"k": pa.chunked_array(made["k"].array.__arrow_array__())})
            assert left["k"].type == column.type
            assert left["k"].to_pylist() == column.slice(1).to_pylist()
            assert left["k"].chunk(0).validate(full=True) is None
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, left.schema) as writer:
                writer.write_table(left)
            assert b"zzcanary" not in sink.getvalue().to_pybytes(), column.type


def streamed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def test_a_kept_column_has_its_own_rows_alone_in_every_file_pickle_and_print() -> None:
    """Not those that were sliced or filtered away, nor what lies below a null: of Arrow, Polars and pandas."""
    secret = "zzcanary" * 4  # too long for a view to hold without a buffer
    rows = pa.array(["b", secret, None, "d", secret])
    lists, below = pa.array([["b"], [secret], None, ["d"], [secret]]), pa.array([False, True, False, False, True])
    field = pa.field("x", pa.string(), nullable=False)
    structs = pa.StructArray.from_arrays([rows.fill_null("c")], fields=[field], mask=below)
    for column, first in (
        (rows, 2), (rows.cast(pa.string_view()), 2), (rows.cast(pa.binary_view()), 2), (pc.run_end_encode(rows), 2),
        (lists, 2), (lists.cast(pa.list_(pa.string_view())), 2), (lists.cast(pa.list_(pa.string(), 1)), 2),
        (pa.array(lists.to_pylist(), pa.list_view(pa.string())), 2), (rows.dictionary_encode(), 2),
        (structs, 0), (structs, 2), (pa.ListArray.from_arrays([0, 1, 2, 3, 4, 5], structs), 0), (lists, 3),
    ):  # fmt: skip
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


def test_what_describes_a_frame_stays_only_with_all_of_it() -> None:
    """Metadata of Arrow, attributes and unused labels of pandas; they may have values of rows and names of columns."""
    field = pa.field("text", pa.string(), metadata={"example": "zzcanary"})
    table = pa.table([pa.array(["aaaa"])], pa.schema([field], {"made": "zzcanary"}))
    frame = pd.DataFrame({"text": ["aaaa"], "zzcanary": [1]})
    frame.columns = pd.CategoricalIndex(frame.columns, name="zzcanary")
    alone = pd.DataFrame({"text": ["aaaa"]})
    alone.attrs["example"] = frame.attrs["example"] = "zzcanary"
    data = datasets.Dataset.from_dict({"text": ["aaaa"]}, info=datasets.DatasetInfo(description="zzcanary"))
    for given in (table, table.to_batches()[0], frame, alone, data):
        assert b"zzcanary" not in pickle.dumps(cv.privatize(given, RELEASE, ids=[1])), type(given)
        assert b"zzcanary" in pickle.dumps(cv.privatize(given, RELEASE, ids=[1], keep="all")), type(given)


def test_objects_of_polars_are_read_by_value_and_never_by_their_address() -> None:
    frame = pl.DataFrame({"text": ["aaaa zzcanary"], "name": pl.Series(["zzcanary"], dtype=pl.Object)})
    private = cv.privatize(frame, RELEASE, ids="name", keep="name")
    assert private["name"].to_list() == ["zzcanary"]
    expected = cv.privatize(["aaaa"], RELEASE, ids=["zzcanary"])
    for drawn in (
        cv.privatize(pl.Series(["aaaa"]), RELEASE, ids=frame["name"]),
        frame.select(pl.lit("aaaa").alias("text"), "name").select(cv.expr(RELEASE, id="name"))["text"],
    ):
        assert drawn.to_list() == expected
    with pytest.raises((pl.exceptions.ComputeError, cv.UserError), match="Object cannot hold"):
        frame.lazy().select(cv.expr(RELEASE, "name", "text")).collect()


def test_a_column_that_arrow_has_no_type_for_is_refused_without_its_values() -> None:
    for column in (pd.Categorical(["zzcanary", 5]), pd.Series([1j, 2j]), pd.arrays.SparseArray([1, 2])):
        frame = pd.DataFrame({"text": ["aaaa"] * 2, "k": column})
        with refused("wrong-type", "k") as caught:
            cv.privatize(frame, RELEASE, ids="k")
        assert "zzcanary" not in str(caught.value)


def test_the_name_of_a_column_is_a_string() -> None:
    """The name of a pandas column may be a number or, of several levels, a tuple."""
    frame = pd.DataFrame({0: ["zzcanary"], ("a", "b"): ["zzcanary"]})
    for name in (0, ("a", "b"), RELEASE):
        for call in (
            lambda name=name: cv.privatize(frame, RELEASE, ids=[1], text=name),
            lambda name=name: cv.preview(frame, name),
        ):
            with refused("wrong-type", "text"):
                call()


def test_every_type_of_text_can_be_compared() -> None:
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        column = pa.chunked_array([pa.array(["Good bread"]).cast(kind), pa.array([None], pa.string()).cast(kind)])
        assert cv.compare(pa.table({"text": column}), risks=[0.5], epsilons=[]).before == ["Good bread"], kind


class TestFunctionsOfColumns:
    """DuckDB and Polars call a release by name, and get the bytes of a frame."""

    ROWS = pa.table(
        {"id": range(5000), "review": [[" ".join(WORDS), None, "Bread 12."][row % 3] for row in range(5000)]}
    )

    def test_duckdb_and_lazy_polars_give_the_bytes_of_a_frame_by_words_and_by_passages(self) -> None:
        """In several threads and batches, under a filter, and for other kinds of ids and text."""
        for release, count in ((RELEASE, 5000), (passage_release(), 300)):
            rows = self.ROWS.slice(0, count)
            expected = privatize_table(rows, release, "review", "id", keep="all")
            with duckdb.connect(config={"threads": 2}) as connection:
                cv.register_sql(connection, release)
                connection.register("reviews", rows)
                query = "SELECT id, privatize('review', id, review) AS review FROM reviews"
                assert connection.sql(f"{query} ORDER BY id").to_arrow_table() == expected
                filtered = connection.sql(f"{query} WHERE privatize('review', id, review) IS NOT NULL ORDER BY id")
                assert filtered.to_arrow_table() == expected.filter(pc.field("review").is_valid())
                odd = "privatize('review', 'a', 'Bread'::ENUM('Bread')), privatize('review', DATE '2026-01-01', NULL)"
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
            expected = privatize(frame, RELEASE, "id", name, keep="all")
            for made in (frame, frame.lazy()):
                assert made.with_columns(cv.expr(RELEASE, name, "id")).lazy().collect().equals(expected), name
            assert pl.DataFrame({"t": ["aaaa"], name: [1]}).select(cv.expr(RELEASE, "t", name)).height == 1
        for wrong in ({"text": 5}, {"id": pl.col("id")}):
            with refused("wrong-type", *wrong):
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
                (lambda: cv.register_sql(object(), RELEASE), ("wrong-type", "DuckDB")),
                (lambda: cv.register_sql(connection, None), ("wrong-type", "release")),
                (lambda: cv.register_sql(connection, RELEASE, ""), ("wrong-value", "name")),
                (
                    lambda: cv.register_sql(connection, RELEASE, ledger=cv.Ledger(str(tmp_path), cap=1)),
                    ("conflicting-settings", "ledger"),
                ),
            ):
                with refused(*refusal):
                    call()
            cv.register_sql(connection, RELEASE, "hide")
            for call, sentence in (
                ("hide('t', NULL, 'zzcanary')", "id: the id column has empty values"),
                ("hide('t', [1], 'zzcanary')", "A document id is of type list"),
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


def test_a_level_of_the_index_is_a_column_by_its_name() -> None:
    """As it is after reset_index: set_index("id") is what many do first."""
    rows = pd.DataFrame({"id": [7, 9], "unit": ["a", "b"], "text": ["The river was cold."] * 2})
    expected = cv.privatize(rows, RELEASE, ids="id")["text"].tolist()
    for index in ("id", ["unit", "id"]):
        assert cv.privatize(rows.set_index(index), RELEASE, ids="id")["text"].tolist() == expected
