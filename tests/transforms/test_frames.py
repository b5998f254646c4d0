"""Lists, Arrow tables and frames in this process: one column changes, and kept ones are as they were."""

from __future__ import annotations

import decimal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

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
from corpusveil.transforms.table import privatize, privatized_parts
from tests.calls import refused
from tests.contracts.spaces import small_space, words_of

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
        pa.dictionary(pa.int16(), pa.string_view(), ordered=True),
    ],
)
def test_other_columns_stay_and_the_column_keeps_its_type(kind: pa.DataType) -> None:
    """In tables, record batches, chunks and slices, of no rows too, the same text for the same id."""
    before, every = table(kind), ["n", "key", "text"]
    after = privatize(before, RELEASE, "key", "review", keep=every)
    assert after.schema.equals(before.schema, check_metadata=True)
    assert after.drop_columns(["review"]).equals(before.drop_columns(["review"]))
    out = after.column("review").to_pylist()
    assert [text is None for text in out] == [text is None for text in TEXTS]
    assert out[0] != TEXTS[0]
    assert out == privatize(table(), RELEASE, "key", "review").column("review").to_pylist()
    batch = before.to_batches()[0]
    private = privatize(batch, RELEASE, "key", "review")
    assert isinstance(private, pa.RecordBatch)
    assert private.column("review").to_pylist() == out
    chunked = pa.concat_tables([before.slice(0, 2), before.slice(2)])
    for part, expected in ((chunked, out), (before.slice(2, 2), out[2:4]), (batch.slice(1, 3), out[1:4])):
        assert privatize(part, RELEASE, "key", "review").column("review").to_pylist() == expected
    for empty in (before.slice(0, 0), before.schema.empty_table()):
        assert privatize(empty, RELEASE, "key", "review", keep=every).equals(empty)


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
        privatize(pa.table({"text": column}), RELEASE, cv.RowNumbers("x"))
    assert not any(word in str(caught.value) for word in ("zzcanary", *WORDS))


class TestIds:
    """The identity of a document is what makes its noise its own, wherever and in whatever batch it comes."""

    TEXT = " ".join(WORDS)

    def test_a_batch_with_its_rows_is_that_part_of_the_whole(self) -> None:
        """Pairs of name and row are what ``RowNumbers`` gives, so batches with theirs come out as the whole does."""
        whole = pa.table({"text": [self.TEXT] * 7})
        expected = privatize(whole, RELEASE, cv.RowNumbers("train")).column("text").to_pylist()
        found = []
        for first in range(0, 7, 3):
            batch = whole.slice(first, 3)
            ids = [("train", first + number) for number in range(len(batch))]
            found += privatize(batch, RELEASE, ids).column("text").to_pylist()
        assert found == expected
        assert len(set(found)) == 7
        other = privatize([self.TEXT] * 7, RELEASE, cv.RowNumbers("test"))
        assert not set(other) & set(expected), "the name is part of the identity"
        assert privatize([self.TEXT] * 7, RELEASE, ids=[("train", number) for number in range(7)]) == expected

    @pytest.mark.parametrize(
        ("call", "refusal"),
        [
            (lambda: privatize(["a"], RELEASE), ("wrong-setting", "cv.RowNumbers", "'name'")),
            (lambda: privatize(table(), RELEASE, text="review"), ("wrong-setting", "cv.RowNumbers")),
            (lambda: privatize(pd.DataFrame({"text": ["a"]}), RELEASE), ("wrong-setting", "cv.RowNumbers")),
            (lambda: cv.RowNumbers(""), ("wrong-setting", "'reviews'")),
            (lambda: privatize(["a"], RELEASE, "reviews"), ("unsuitable-data", "'reviews'", "cv.RowNumbers")),
            (lambda: privatize(table(), RELEASE, "key", "nosuch"), ("unsuitable-data",)),
            (lambda: privatize(table(), RELEASE, "nosuch", "review"), ("unsuitable-data", "nosuch")),
            (lambda: privatize(table(), RELEASE, "n", "review"), ("unsuitable-data", "n")),
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
        expected = privatize(table, RELEASE, "id")
        assert len(set(expected["text"].to_pylist())) == 3
        assert privatize(table.take([2, 1, 0]), RELEASE, "id").take([2, 1, 0]).equals(expected)
        assert privatize(table, RELEASE, ids).equals(expected)
        assert privatize([self.TEXT] * 3, RELEASE, ids=ids) == expected.column("text").to_pylist()

    @pytest.mark.parametrize(
        ("ids", "refusal"),
        [
            ([1, 2], ("wrong-setting", "ids")),
            ([1, None, 3], ("unsuitable-data", "ids")),
            ([1, float("nan"), 3], ("unsuitable-data", "ids")),
            (pd.Series([pd.Timestamp(0), pd.NaT, pd.Timestamp(1)]), ("unsuitable-data", "ids")),
            (5, ("wrong-setting", "int")),
            ([("a", 1), ("a", 2), ("a", -3)], ("unsuitable-data", "ids")),
            ([[1], [2], [3]], ("unsuitable-data", "list")),
            (["a", "", "c"], ("unsuitable-data", "ids")),
            ([1, True, 2], ("unsuitable-data", "bool")),
            ([1, 2.5, 3], ("unsuitable-data", "float")),
            ([1, 2, -(10**5000)], ("unsuitable-data", "64 bits")),
            ([1, decimal.Decimal("NaN"), 3], ("unsuitable-data", "ids")),
            ({"a", "b", "c"}, ("wrong-setting", "ids", "set")),
            (pd.DataFrame({"a": [1], "b": [1], "c": [1]}), ("wrong-setting", "ids", "DataFrame")),
            (b"abc", ("wrong-setting", "ids", "bytes")),
        ],
    )
    def test_ids_that_are_none_are_refused(self, ids: Any, refusal: Any) -> None:
        """Each document has one identity, or nothing is drawn."""
        table = pa.table({"text": [self.TEXT] * 3})
        with refused(*refusal):
            privatize(table, RELEASE, ids)

    def test_a_column_whose_labels_are_in_another_order_is_refused(self) -> None:
        """As by a frame that was sorted after its ids were taken."""
        frame = pd.DataFrame({"id": [1, 2], "text": ["b", "a"]})
        ids = frame["id"][::-1]
        for given in (frame, frame["text"]):
            with refused("wrong-setting", "ids", "order"):
                privatize(given, RELEASE, ids)
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
    expected = privatize(texts, RELEASE, cv.RowNumbers("long"))["text"].to_pylist()

    class Narrow(Kernel):
        """A kernel whose output has more than 2 GiB as long as it has more than 10 rows; NULs, which take no memory."""

        def apply(self, documents: Documents) -> Any:
            out, counts = super().apply(documents)
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
    out = privatize(pa.table({"text": column}), keep, ["a", "b"]).column("text").combine_chunks()
    assert out.to_pylist()[0] is None
    assert b"zzcanary" not in b"".join(buffer.to_pybytes() for buffer in out.buffers() if buffer is not None)
