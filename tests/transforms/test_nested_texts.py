"""``messages[].content``: a chat data set through files, frames, Spark and Beam, and what is said about it.

Texts within lists and structs: Arrow and Python find the same ones, and only these change.
"""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.util import assert_that, equal_to
from hypothesis import given
from hypothesis import strategies as st

import corpusveil as cv
from corpusveil.sampling.draws import keyed_tags
from corpusveil.storage import formats, nested
from corpusveil.storage.nested import Places, collected, filled, flat, path_of, refilled
from corpusveil.storage.rows import Batch, Columns
from corpusveil.transforms.beam import PrivatizeDocuments
from tests.calls import fails, refused, succeeds
from tests.engines.corpora import (
    UNKNOWN,
    WORDS,
    Ground,
    data_files,
    encode,
    make_release,
    manifest,
    read_shard,
    records_text,
)

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
def columns(draw: st.DrawFn) -> tuple[pa.Array, nested.Path]:
    """Return a column, often a part of a larger one, and the path to its texts."""
    steps = tuple(draw(st.lists(st.sampled_from((None, "text", "inner")), min_size=1, max_size=4)))
    whole = column(draw, steps, rows := draw(st.integers(0, 5)))
    first = draw(st.integers(0, rows))
    return whole.slice(first, draw(st.integers(0, rows - first))), nested.Path("path", "column", steps)


class TestArrow:
    @given(columns())
    def test_finds_and_replaces_what_the_slow_way_does(self, made: tuple[pa.Array, nested.Path]) -> None:
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
        path = nested.Path("m[].text", "m", (None, "text"))
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
        expected, places = collected(conversations, AT)
        assert batch.bad == []
        assert batch.texts.to_pylist() == expected
        assert batch.identities("", "") == places.identities(range(len(rows)))
        new = [None if text is None else f'"{text}\\' for text in expected]
        out = batch.whole(pa.array(new, pa.large_string()))
        values = [json.loads(text) for text in out.storage.to_pylist()] if lines else []
        assert values == refilled(conversations, AT, iter(new))

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


AT = nested.Path("messages[].content", "messages", (None, "content"))


class TestPath:
    def test_is_written_as_names_dots_and_brackets(self) -> None:
        assert path_of("messages[].content") == AT
        assert path_of(".a.b") == nested.Path(".a.b", "a", ("b",))
        assert path_of("a.b[][].c") == nested.Path("a.b[][].c", "a", ("b", None, None, "c"))
        assert [AT.name(many) for many in range(3)] == ["messages", "messages[]", "messages[].content"]

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


PATH = "messages[].content"
NESTED = ("--text", PATH, "--id", "id", "--keep", "messages", "--keep", "id")
SCHEMA = pa.schema(
    [("id", pa.int64()), ("messages", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())])))]
)


def chat(number: int) -> dict[str, Any]:
    """Return a conversation: a system prompt, turns, sometimes a message without text, none, or null."""
    if number % 5 > 2:
        return {"id": number, "messages": [] if number % 5 == 3 else None}
    turns = [{"role": "system", "content": " ".join(WORDS[:3])}, None, {"role": "user", "content": WORDS[number % 40]}]
    return {"id": number, "messages": [*turns, {"role": "assistant", "content": None if number % 2 else UNKNOWN}]}


CHATS = [chat(number) for number in range(12)]


def around(rows: Sequence[Any]) -> list[Any]:
    """Return conversations without their texts."""
    return [
        (row["id"], row["messages"] and [one and (one["role"], one["content"] is None) for one in row["messages"]])
        for row in rows
    ]


@pytest.fixture(scope="module")
def release(ground: Ground) -> cv.Release:
    return make_release(ground.space)


@pytest.fixture(scope="module")
def expected(release: cv.Release) -> list[dict[str, Any]]:
    """What the conversations are in an Arrow table."""
    private: list[dict[str, Any]] = cv.privatize_table(table(), release, PATH, "id", keep="all").to_pylist()
    return private


KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any], list[Any]]]] = {
    "chunks and slices": (
        lambda: pa.concat_tables(
            [table()[:3], pa.concat_tables([table(), table()]).combine_chunks()[15:16], table()[4:]]
        ),
        lambda frame: frame.to_pylist(),
    ),
    "polars": (lambda: pl.DataFrame(table()), lambda frame: frame.to_dicts()),
    "datasets": (lambda: datasets.Dataset(table()), lambda frame: frame.to_list()),
    "pandas": (lambda: pd.DataFrame(CHATS, index=range(12, 0, -1)), lambda frame: frame.to_dict("records")),
    "pandas arrays": (
        lambda: table().to_pandas(),
        lambda frame: [
            {"id": row.id, "messages": None if row.messages is None else list(row.messages)}
            for row in frame.itertuples()
        ],
    ),
}


TRIPLE = [
    {"id": 1, "messages": [{"role": "user", "content": f"{WORDS[0]} {WORDS[1]}"}] * 3},
    {"id": 2, "messages": None},
]
"""Three texts of two words, which spend 6 at an epsilon of 1."""


def table() -> pa.Table:
    return pa.Table.from_pylist(CHATS, SCHEMA)


class TestFrames:
    def test_only_texts_change(self, expected: list[dict[str, Any]]) -> None:
        assert around(expected) == around(CHATS)
        assert UNKNOWN in str(CHATS)
        assert UNKNOWN not in str(expected)

    @pytest.mark.parametrize("kind", KINDS)
    def test_each_kind_gives_the_same(self, kind: str, release: cv.Release, expected: list[dict[str, Any]]) -> None:
        make, rows = KINDS[kind]
        frame, before = make(), make()
        private = cv.privatize(frame, release, ids="id", text=PATH, keep="all")
        assert type(private) is type(frame)
        assert rows(private) == expected
        assert rows(frame) == rows(before)
        for types in ("schema", "features", "dtypes", "index"):
            if hasattr(frame, types):
                assert str(getattr(private, types)) == str(getattr(frame, types))

    def test_a_text_keeps_its_noise_wherever_its_row_stands(self, release: cv.Release, expected: list[Any]) -> None:
        """Ids are of rows, so neither order nor batches matter; the place in the list does."""
        private = cv.privatize(table().take(list(range(11, -1, -1))), release, "id", PATH, keep="all")
        assert private.to_pylist() == expected[::-1]
        row = {"id": 0, "messages": [{"role": "u", "content": " ".join(WORDS[:60])}] * 2}
        (first, second) = cv.privatize(pa.Table.from_pylist([row], SCHEMA), release, "id", PATH, keep="all")[
            "messages"
        ][0].as_py()
        assert first != second

    def test_a_path_that_leads_nowhere_is_refused(self, release: cv.Release) -> None:
        for path, name in (
            ("messages[].contents", "content?"),
            ("messages[][].content", "messages[]"),
            (".messages.content", "messages"),
            ("massages[].content", "messages"),
            ("messages[]", "messages"),
        ):
            with refused("wrong-column", name):
                cv.privatize(table(), release, "id", path, keep="all")


def test_elements_of_beam_give_the_same(release: cv.Release, expected: list[dict[str, Any]], tmp_path: Path) -> None:
    ledger = cv.Ledger(str(tmp_path / "ledger"), cap=50)
    with beam.Pipeline("FnApiRunner") as pipeline:
        private = (
            pipeline
            | beam.Create(CHATS)
            | PrivatizeDocuments(release, PATH, "id", keep="all", ledger=ledger, unit="id")
        )
        assert_that(private, equal_to(expected))
    assert ledger.spent_on(0).releases[0]["documents"] == 3


def written(folder: Path, form: str, rows: Sequence[Any]) -> Path:
    folder.mkdir()
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(list(rows), SCHEMA), folder / "chats.parquet", row_group_size=3000)
    else:
        (folder / f"chats.{form}").write_bytes(encode(rows))
    return folder


def read(output: Path) -> list[Any]:
    """Return the conversations of a release; JSON in cells is read."""
    (shard,) = data_files(output)
    if shard.suffix == ".jsonl":
        return read_shard(shard)
    rows = pa.csv.read_csv(shard) if shard.suffix == ".csv" else pq.read_table(shard)
    return [
        {"id": int(row["id"]), "messages": json.loads(cell or "null") if isinstance(cell, str) else cell}
        for row in rows.to_pylist()
        for cell in [row["messages"]]
    ]


class TestFiles:
    @pytest.mark.parametrize(
        ("form", "to"), [("jsonl", "parquet"), ("jsonl", "csv"), ("parquet", "same"), ("parquet", "jsonl")]
    )
    def test_files_give_what_frames_give(
        self, ground: Ground, tmp_path: Path, expected: list[dict[str, Any]], form: str, to: str
    ) -> None:
        source = written(tmp_path / "in", form, CHATS)
        ended = succeeds(*ground.arguments(source, tmp_path / "out", *NESTED, "--format", to))
        assert read(tmp_path / "out") == expected
        before, _, _ = ended.out.partition("content sha256")
        assert "messages around its texts" in before
        assert "role in messages[]" in ended.err
        assert UNKNOWN not in ended.out + ended.err + records_text(tmp_path / "out")
        public = manifest(tmp_path / "out")
        texts = [message for row in CHATS for message in row["messages"] or () if message and message["content"]]
        assert public["documents"] == len(texts)
        assert "everything in messages around its texts" in str(public["guarantee"]["disclosed"])
        assert "add up" in public["guarantee_in_words"][-1]
        assert public["configuration"]["columns"] == {"text": PATH, "keep": ["messages", "id"]}
        assert "messages" in public["kept_columns"]

    def test_what_is_around_the_texts_has_to_be_kept_by_name(self, ground: Ground, tmp_path: Path) -> None:
        source = written(tmp_path / "in", "jsonl", CHATS)
        words = ground.arguments(source, tmp_path / "out", "--text", PATH, "--keep", "id")
        fails(words, "wrong-column", PATH, "keep messages")
        source = tmp_path / "turns.jsonl"
        source.write_text('{"turns": ["bababa", null, "bababa"], "secret": 1}\n')  # a list of texts has nothing else
        succeeds(*ground.arguments(source, tmp_path / "turns", "--text", "turns[]"))
        (row,) = read(tmp_path / "turns")
        assert list(row) == ["turns"]
        assert [text is None for text in row["turns"]] == [False, True, False]

    def test_bad_rows_are_set_aside_whole(self, ground: Ground, tmp_path: Path, expected: list[Any]) -> None:
        bad = {"id": 99, "messages": [{"role": "user", "content": WORDS[0]}, {"role": "tool", "result": UNKNOWN}]}
        source = written(tmp_path / "in", "jsonl", [*CHATS[:2], bad, *CHATS[2:]])
        sentence = fails(
            ground.arguments(source, tmp_path / "out", *NESTED), "bad-shards", "chats.jsonl, row 3", "messages[]"
        )
        assert UNKNOWN not in sentence
        succeeds(*ground.arguments(source, tmp_path / "rest", *NESTED, "--on-bad-rows", "quarantine"))
        assert read(tmp_path / "rest") == expected
        (aside,) = (tmp_path / "rest.records" / "quarantine").iterdir()
        assert UNKNOWN in aside.read_text()

    def test_a_ledger_adds_up_what_the_texts_of_a_row_spend(self, ground: Ground, tmp_path: Path) -> None:
        source = tmp_path / "in.jsonl"
        source.write_bytes(encode(TRIPLE))
        more = (*NESTED, "--ledger", tmp_path / "ledger", "--unit", "id")
        fails(ground.arguments(source, tmp_path / "out", *more, "--cap", "5.9"), "cap-exceeded", "3 documents")
        succeeds(*ground.arguments(source, tmp_path / "out", *more, "--cap", "6"))
        (spent,) = cv.Ledger(str(tmp_path / "ledger")).spent_on(1).releases
        assert (spent["documents"], spent["total"], spent["column"]) == (3, 6, PATH)
        more = ("--ledger", tmp_path / "other", "--unit", "content", "--duplicates", "same-noise", "--cap", "2")
        succeeds(*ground.arguments(source, tmp_path / "once", *NESTED, *more))  # equal noise, which is spent once
        first, *others = read(tmp_path / "once")[0]["messages"]
        assert others == [first, first]

    def test_what_takes_no_nested_text_says_so(self, ground: Ground, tmp_path: Path) -> None:
        source = written(tmp_path / "in", "jsonl", CHATS)
        output = tmp_path / "out"
        fails(ground.arguments(source, output, *NESTED, "--duplicates", "drop"), "conflicting-settings", "same-noise")
        words = ("--text", PATH, "--keep", "messages", "--format", "txt")
        fails(ground.arguments(source, output, *words), "wrong-column", PATH)
        table = tmp_path / "in.csv"
        table.write_text('messages\n"[{""content"": ""a""}]"\n')
        fails(ground.arguments(table, output, "--text", PATH, "--keep", "messages"), "bad-shards", PATH)
        succeeds(*ground.arguments(source, output, *NESTED))
        fails(
            ["denoise", output, "--space", ground.space_folder, "--model", "demo", "--output", tmp_path / "d"],
            "wrong-column",
            PATH,
        )
        fails(["evaluate", "release", source, output, "--text", PATH, "--output", tmp_path / "e"], "wrong-column", PATH)

    def test_a_file_with_a_flow_that_takes_none_is_refused_before_the_release(self, tmp_path: Path) -> None:
        for section in ('[denoise]\npath = "d"', '[evaluate]\nlabel = "e"'):
            given = ('[corpus]\ninput = ["in"]', f'text = "{PATH}"', '[output]\npath = "out"', section)
            (tmp_path / "flow.toml").write_text("\n".join(given))
            fails(["run", tmp_path / "flow.toml"], "conflicting-settings", section.partition("\n")[0], "corpus.text")
