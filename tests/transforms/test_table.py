"""Lists and Arrow tables in this process: one column changes, everything else stays."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import corpusveil as cv
from corpusveil.errors import UserError
from corpusveil.mechanisms.ring_geometric import RingGeometric
from corpusveil.transforms.release import Release
from corpusveil.transforms.table import privatize, privatize_table
from tests.contracts.spaces import small_space, words_of

WORDS = words_of(30)
RELEASE = Release(RingGeometric(small_space(words=WORDS)), cv.Budget(1.0), cv.TextPolicy(), cv.Key.for_tests())
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
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
def test_other_columns_stay_and_the_column_keeps_its_type(kind: pa.DataType) -> None:
    before = table(kind).replace_schema_metadata({"made": "by test"})
    after = privatize_table(before, RELEASE, text="review", id="key")
    assert after.schema.equals(before.schema, check_metadata=True)
    assert after.drop_columns(["review"]).equals(before.drop_columns(["review"]))
    out = after.column("review").to_pylist()
    assert [text is None for text in out] == [text is None for text in TEXTS]
    assert out[0] != TEXTS[0]
    assert out == privatize_table(table(), RELEASE, text="review", id="key").column("review").to_pylist()


def test_record_batches_chunks_and_slices_give_the_same_text() -> None:
    whole = table()
    expected = privatize_table(whole, RELEASE, text="review", id="key").column("review").to_pylist()
    batch = whole.to_batches()[0]
    private = privatize_table(batch, RELEASE, text="review", id="key")
    assert isinstance(private, pa.RecordBatch)
    assert private.column("review").to_pylist() == expected
    chunked = pa.concat_tables([whole.slice(0, 2), whole.slice(2)])
    assert privatize_table(chunked, RELEASE, text="review", id="key").column("review").to_pylist() == expected
    assert privatize_table(whole.slice(2, 2), RELEASE, "review", "key").column("review").to_pylist() == expected[2:4]
    assert privatize_table(batch.slice(1, 3), RELEASE, "review", "key").column("review").to_pylist() == expected[1:4]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_a_table_without_rows_stays_one(kind: pa.DataType) -> None:
    for empty in (table(kind).slice(0, 0), table(kind).schema.empty_table()):
        assert privatize_table(empty, RELEASE, text="review").equals(empty)


def test_a_column_of_nulls_only_stays_one() -> None:
    nulls = pa.table({"text": pa.array([None, None], pa.string())})
    assert privatize_table(nulls, RELEASE).equals(nulls)


def test_lists_and_tables_agree_and_repeat() -> None:
    """A list's identities are its places: the same list again gives the same texts; the same text elsewhere others."""
    texts = [" ".join(WORDS)] * 3
    out = privatize(texts, RELEASE)
    assert out == privatize(texts, RELEASE) == cv.privatize(texts, RELEASE)
    assert len(set(out)) == 3
    assert privatize_table(pa.table({"text": texts}), RELEASE).column("text").to_pylist() == out
    assert privatize([], RELEASE) == []


def test_ids_decide_the_noise_not_the_rows() -> None:
    """With an id column a row keeps its noise wherever it stands."""
    text = " ".join(WORDS)
    forward = pa.table({"id": [1, 2, 3], "text": [text] * 3})
    backward = forward.take([2, 1, 0])
    one = privatize_table(forward, RELEASE, id="id").column("text").to_pylist()
    other = privatize_table(backward, RELEASE, id="id").column("text").to_pylist()
    assert one == other[::-1]
    assert len(set(one)) == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"text": "nosuch"}, "nosuch.*there are n, review"),
        ({"text": "review", "id": "nosuch"}, "nosuch"),
        ({"text": "review", "id": "n"}, "n: the id column has empty values"),
    ],
)
def test_errors_name_the_column(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        privatize_table(table(), RELEASE, **arguments)


def test_a_column_that_is_not_text_is_refused() -> None:
    """Structures have no text; their content is not quoted."""
    lists = pa.table({"text": pa.array([["zzcanary"]])})
    with pytest.raises(UserError, match="text") as caught:
        privatize_table(lists, RELEASE)
    assert "zzcanary" not in str(caught.value)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2]),
        pa.nulls(2),
        pa.array([" ".join(WORDS)] * 300).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
    ],
)
def test_a_column_that_cannot_hold_the_private_text_is_refused(column: pa.Array) -> None:
    """Numbers, nothing, or a dictionary too small: a sentence that names the column and quotes nothing of it."""
    with pytest.raises(UserError, match=r"text: a column of type .* cast it to string") as caught:
        privatize_table(pa.table({"text": column}), RELEASE)
    assert not any(word in str(caught.value) for word in WORDS)


def test_invalid_utf8_is_refused_and_not_quoted() -> None:
    bad = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\x09\0\0\0"), pa.py_buffer(b"zzcanary\xff")]
    )
    with pytest.raises(UserError, match="UTF-8") as caught:
        privatize_table(pa.table({"text": bad}), RELEASE)
    assert "zzcanary" not in str(caught.value)


def test_text_hidden_under_a_null_does_not_come_out() -> None:
    """Arrow lets a null hold bytes; the output's buffers hold none of them."""
    data, offsets = b"zzcanary aaaa", b"\0\0\0\0\x08\0\0\0\x0d\0\0\0"
    column = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x02"), pa.py_buffer(offsets), pa.py_buffer(data)])
    keep = Release(RELEASE.mechanism, cv.Budget(1.0), cv.TextPolicy(unknown_words="keep"), RELEASE.key)
    out = privatize_table(pa.table({"text": column}), keep).column("text").combine_chunks()
    assert out.to_pylist()[0] is None
    assert b"zzcanary" not in b"".join(buffer.to_pybytes() for buffer in out.buffers() if buffer is not None)
