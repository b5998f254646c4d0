"""``messages[].content``: a chat data set through files, frames, Spark and Beam, and what is said about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import datasets
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from apache_beam.testing.util import assert_that, equal_to

import corpusveil as cv
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
    private: list[dict[str, Any]] = cv.privatize_table(table(), release, PATH, "id").to_pylist()
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
        private = cv.privatize(frame, release, ids="id", text=PATH)
        assert type(private) is type(frame)
        assert rows(private) == expected
        assert rows(frame) == rows(before)
        for types in ("schema", "features", "dtypes", "index"):
            if hasattr(frame, types):
                assert str(getattr(private, types)) == str(getattr(frame, types))

    def test_a_text_keeps_its_noise_wherever_its_row_stands(self, release: cv.Release, expected: list[Any]) -> None:
        """Ids are of rows, so neither order nor batches matter; the place in the list does."""
        private = cv.privatize(table().take(list(range(11, -1, -1))), release, "id", PATH)
        assert private.to_pylist() == expected[::-1]
        row = {"id": 0, "messages": [{"role": "u", "content": " ".join(WORDS[:60])}] * 2}
        (first, second) = cv.privatize(pa.Table.from_pylist([row], SCHEMA), release, "id", PATH)["messages"][0].as_py()
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
                cv.privatize(table(), release, "id", path)


def test_elements_of_beam_give_the_same(release: cv.Release, expected: list[dict[str, Any]], tmp_path: Path) -> None:
    ledger = cv.Ledger(str(tmp_path / "ledger"), cap=50)
    with beam.Pipeline("FnApiRunner") as pipeline:
        private = pipeline | beam.Create(CHATS) | PrivatizeDocuments(release, PATH, "id", ledger=ledger, unit="id")
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
