"""Texts within lists and structs: Arrow and Python find the same ones, and only these change."""

from __future__ import annotations

import io
import itertools
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusveil.sampling.draws import keyed_tags
from corpusveil.storage import formats
from corpusveil.storage.nested import Path, Places, path_of
from corpusveil.storage.nested_columns import filled, flat
from corpusveil.storage.rows import Batch, Columns
from corpusveil.transforms.frames import collected, refilled
from tests.calls import refused

HIDDEN = "zzhiddenzz"
LEAVES = (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()))


def column(draw: st.DrawFn, steps: tuple[str | None, ...], rows: int) -> pa.Array:
    """Return an array of so many values, with texts below every null of it."""
    if not steps:
        words = [draw(st.sampled_from(("", "a", "ünder", "long text " * 3))) for _ in range(rows)]
        mask = np.array([draw(st.booleans()) for _ in range(rows)], dtype=bool)
        plain = pa.array(words, pa.string(), mask=mask)
        leaf = draw(st.sampled_from(LEAVES))
        return plain.dictionary_encode() if pa.types.is_dictionary(leaf) else plain.cast(leaf)
    step, *rest = steps
    null = pa.array([draw(st.integers(0, 3)) == 0 for _ in range(rows)], pa.bool_())
    if step is not None:
        children = {step: column(draw, tuple(rest), rows), "role": pa.array([f"role {k}" for k in range(rows)])}
        order = draw(st.permutations(sorted(children)))
        fields = [pa.field(name, children[name].type, metadata={"of": name}) for name in order]
        return pa.StructArray.from_arrays([children[name] for name in order], fields=fields, mask=null)
    if draw(st.booleans()):
        child = column(draw, tuple(rest), 2 * rows)
        if "string_view" in str(child.type):  # refused
            return pa.ListArray.from_arrays(pa.array(range(0, 2 * rows + 1, 2), pa.int32()), child, mask=null)
        return pa.FixedSizeListArray.from_arrays(child, 2, mask=null)
    ends = np.cumsum([0, *(draw(st.integers(0, 3)) for _ in range(rows))])
    child, large = column(draw, tuple(rest), int(ends[-1])), draw(st.booleans())
    kind, width = (pa.LargeListArray, pa.int64()) if large else (pa.ListArray, pa.int32())
    return kind.from_arrays(pa.array(ends, width), child, mask=null)


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.Array, Path]:
    """Return a column, often a part of a larger one, and the path to its texts."""
    steps = tuple(draw(st.lists(st.sampled_from((None, "text", "inner")), min_size=1, max_size=4)))
    whole = column(draw, steps, rows := draw(st.integers(0, 5)))
    first = draw(st.integers(0, rows))
    return whole.slice(first, draw(st.integers(0, rows - first))), Path("path", "column", steps)


class TestArrow:
    @given(columns())
    def test_finds_and_replaces_what_the_slow_way_does(self, made: tuple[pa.Array, Path]) -> None:
        array, path = made
        values = array.to_pylist()
        texts, places = flat(array, path)
        expected, where = collected(values, path)
        assert present(texts.to_pylist(), places) == present(expected, where)
        new = [None if text is None else f"{text} new" for text in texts.to_pylist()]
        out = filled(array, pa.array(new, pa.large_string()), path.steps)
        out.validate(full=True)
        assert out.to_pylist() == refilled(values, path, iter(None if t is None else f"{t} new" for t in expected))
        same = filled(array, texts, path.steps)
        assert same.type == array.type
        assert same.equals(array)

    def test_leaves_no_text_below_a_null(self) -> None:
        """Arrow keeps what a mask hides, and its files and streams hand it on."""
        texts = pa.array([HIDDEN, HIDDEN, "a", HIDDEN])
        objects = pa.StructArray.from_arrays([texts], ["text"], mask=pa.array([False, True, False, False]))
        lists = pa.ListArray.from_arrays(
            pa.array([0, 1, 3, 4], pa.int32()), objects, mask=pa.array([True, False, True])
        )
        assert HIDDEN.encode() in stream(lists)  # so this test would see it
        path = Path("m[].text", "m", (None, "text"))
        inside, _ = flat(lists, path)
        assert inside.to_pylist() == [None, "a"]
        assert HIDDEN.encode() not in stream(filled(lists, pa.array([None, "b"]), path.steps))


def present(texts: list[str | None], places: Places) -> list[tuple[str, int, list[int]]]:
    """Return the texts that are not null, with their places; Arrow has nulls below a struct that is null, too."""
    every = zip(texts, places.rows.tolist(), places.within.tolist(), strict=True)
    return [(text, row, within) for text, row, within in every if text is not None]


def stream(array: pa.Array) -> bytes:
    """Return all that Arrow writes of an array."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, pa.schema([("m", array.type)])) as writer:
        writer.write_batch(pa.record_batch([array], ["m"]))
    return sink.getvalue() + b"".join(buffer.to_pybytes() for buffer in array.buffers() if buffer is not None)


TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
MESSAGES = st.none() | st.lists(
    st.none() | st.fixed_dictionaries({"role": ANY, "content": TEXTS, "more": ANY}), max_size=3
)


class TestJson:
    @given(st.lists(MESSAGES, max_size=4))
    def test_lines_change_in_their_texts_only(self, conversations: list[Any]) -> None:
        rows = [{"id": number, "messages": messages} for number, messages in enumerate(conversations)]
        lines = [json.dumps(row, ensure_ascii=False).encode() for row in rows]
        form, how = formats.find(".jsonl"), Columns("messages[].content", "id", ())
        (batch,) = form.batches(io.BytesIO(b"\n".join(lines)), "m.jsonl", how) if lines else (Batch(0),)
        expected, places = collected(conversations, PATH)
        assert batch.bad == []
        assert batch.texts.to_pylist() == expected
        assert batch.identities("", "") == places.identities(range(len(rows)))
        new = [None if text is None else f'"{text}\\' for text in expected]
        out = batch.whole(pa.array(new, pa.large_string()))
        values = [json.loads(text) for text in out.storage.to_pylist()] if lines else []
        assert values == refilled(conversations, PATH, iter(new))

    def test_a_line_as_it_is_written(self) -> None:
        line = b'{"messages":[{"n":-12345678901234567890123,"x":1e3,"content":"a\\u0000","z":18446744073709551615}]}'
        how = Columns("messages[].content")
        (batch,) = formats.find(".jsonl").batches(io.BytesIO(line), "m.jsonl", how)
        (text,) = batch.whole(pa.array(["\0\n"], pa.large_string())).storage.to_pylist()
        wanted = r'[{"n":-12345678901234567890123,"x":1000.0,"content":"\u0000\n","z":18446744073709551615}]'
        assert text == wanted

    @pytest.mark.parametrize(
        ("row", "said"),
        [
            ({"messages": [{"content": "a"}, {"Content": HIDDEN}]}, "messages[] has no field 'content'"),
            ({"messages": [{"content": [HIDDEN]}]}, "messages[].content is not always text"),
            ({"messages": [HIDDEN]}, "messages[] is not always an object"),
            ({"messages": {"content": HIDDEN}}, "messages is not always a list"),
            ({"massages": [{"content": HIDDEN}]}, "has no column 'messages'"),
        ],
    )
    def test_a_text_that_is_elsewhere_is_not_released_with_what_is_around(self, row: Any, said: str) -> None:
        lines = io.BytesIO(json.dumps(row).encode() + b'\n{"messages": [{"content": "b"}]}')
        (batch,) = formats.find(".jsonl").batches(lines, "m.jsonl", Columns("messages[].content"))
        (bad,) = batch.bad
        assert said in bad.why
        assert HIDDEN not in bad.why
        assert (batch.texts.to_pylist(), batch.rows) == (["b"], [1])


PATH = Path("messages[].content", "messages", (None, "content"))


class TestPath:
    def test_is_written_as_names_dots_and_brackets(self) -> None:
        assert path_of("messages[].content") == PATH
        assert path_of(".a.b") == Path(".a.b", "a", ("b",))
        assert path_of("a.b[][].c") == Path("a.b[][].c", "a", ("b", None, None, "c"))
        assert [PATH.name(many) for many in range(3)] == ["messages", "messages[]", "messages[].content"]

    def test_a_name_with_dots_stays_the_name_of_a_column(self) -> None:
        for name in ("a.b", "text", ".text", "a[0]", "a b", ""):
            assert path_of(name) is None, name

        for name in ("[]", "[].a", "a[]b", "a[]..b", ".a[].b", "a[].", "a[].b[x]", "..a.b"):
            with refused("wrong-value", name):
                path_of(name)


class TestIdentity:
    """An attacker who can choose ids, and texts of their own, wants the noise of another document."""

    def test_no_two_documents_have_the_bytes_of_one(self) -> None:
        ids: list[Any] = ["7", 7, b"7", "7[0]", "n7", ("7", 0), ("c", "p", 7), "", b"", "s7", 70]
        ids += [b"n" + bytes(7) + b"\x02s7" + bytes(8), "n\x02" + "\0" * 7 + "s7" + "\0" * 8]  # made to look like one
        places = [(), (0,), (1,), (0, 0), (0, 1), (7,), (256,), (1 << 40,)]
        every = [*ids, *itertools.product(ids, places)]
        tags = keyed_tags(bytes(32), "m[].c", every, np.empty(0, np.uint8), np.zeros(len(every) + 1, np.int64))
        assert len(set(map(tuple, tags.tolist()))) == len(every)

    def test_ids_that_are_joined_as_text_would_collide(self) -> None:
        """The control: with this encoding the test above fails."""
        assert f"{'7[0]'}" == f"{7}[{0}]"
        every = ["7[0]", f"{7}[{0}]"]
        tags = keyed_tags(bytes(32), "m[].c", every, np.empty(0, np.uint8), np.zeros(3, np.int64))
        assert len(set(map(tuple, tags.tolist()))) == 1
