"""Columns of Parquet, CSV and JSON lines: kept with their marks, or refused by name; Parquet starts no thread."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusveil as cv
from corpusveil.storage import formats
from corpusveil.storage.rows import Columns
from corpusveil_evaluate.matching import match
from tests.calls import fails, succeeds
from tests.engines.corpora import UNKNOWN, Ground, make_release, manifest
from tests.storage.test_formats import DOCUMENTS, NAMES, document, only, read, write


class TestParquet:
    def test_metadata_does_not_leave(self, ground: Ground, tmp_path: Path) -> None:
        """Neither the file's own metadata nor that of columns goes into the output."""
        field = pa.field("text", pa.string(), metadata={"who": UNKNOWN})
        schema = pa.schema([field, pa.field("note", pa.string(), metadata={"who": UNKNOWN})], {"pandas": UNKNOWN})
        pq.write_table(pa.table([["bababa"], ["x"]], schema=schema), tmp_path / "x.parquet")
        succeeds(*ground.arguments(tmp_path / "x.parquet", tmp_path / "out", "--keep", "note"))
        assert UNKNOWN.encode() not in only(tmp_path / "out").read_bytes()

    def test_json_becomes_strings(self, ground: Ground, tmp_path: Path) -> None:
        """Kept JSON goes into Parquet and CSV as strings: strings as they are, all else as its JSON text."""
        values = ["x", 1, None, 1.5, 2**64 - 1, "", "null", True]
        path = tmp_path / "x.jsonl"
        path.write_text("".join(json.dumps({"text": "", "v": value}) + "\n" for value in values))
        want = ["x", "1", None, "1.5", "18446744073709551615", "", "null", "true"]
        for form in ("parquet", "csv"):
            succeeds(*ground.arguments(path, tmp_path / form, "--keep", "v", "--format", form))
            got = [row["v"] for row in read(only(tmp_path / form))]
            assert got == [(value or "") if form == "csv" else value for value in want]


class TestCsv:
    def test_fields_in_quotes(self, ground: Ground, tmp_path: Path) -> None:
        """Commas, quotes and line breaks inside a field, a byte order mark, CRLF and blank lines are understood."""
        data = '\ufeff"text",n\r\n"bababa, ""dedede""\r\nkikiki",1\r\n\r\nlololo,"2\n3"\r\n"",\r\n,"\\"\r\n,a\\\\\r\n'
        (tmp_path / "x.csv").write_bytes(data.encode())
        more = ("--keep", "n", "--layout", "keep")
        succeeds(*ground.arguments(tmp_path / "x.csv", tmp_path / "out", *more))
        got = read(only(tmp_path / "out"))
        assert [row["n"] for row in got] == ["1", "2\n3", "", "\\", "a\\\\"]
        first = got[0]["text"]
        assert (first.count(","), first.count('"'), first.count("\r\n"), len(first.split())) == (1, 2, 1, 3)

    @pytest.mark.parametrize(
        "data", [b'text,n\n"a\r\nb",1\nc,2\n', b'text,n\r\n"a\nb",1\r\nc,2', b'text,n\n"a\rb",1\nc,2\r\n']
    )
    def test_line_ends_in_quotes_are_kept_whatever_ends_lines(self, data: bytes) -> None:
        """DuckDB guesses the line end by the first one that it meets."""
        (batch,) = formats.find(".csv").batches(io.BytesIO(data), "x.csv", Columns())
        assert batch.texts.to_pylist() == [data.split(b'"')[1].decode(), "c"]

    def test_cells_between_other_marks(self, ground: Ground, tmp_path: Path) -> None:
        """Read and written with this mark, quoted where they hold it, and otherwise as between commas."""
        documents = [
            {**document(number), "note": f"{',' * (number % 2)}{';' * (number % 3)}\t{number}"} for number in range(99)
        ]
        path, shards = tmp_path / "x.csv", []
        for separator, mark in (("comma", ","), ("semicolon", ";"), ("tab", "\t")):
            with path.open("w", newline="", encoding="utf-8") as file:
                lines = [NAMES, *([row[name] for name in NAMES] for row in documents)]
                csv.writer(file, delimiter=mark).writerows(lines)
            output = tmp_path / separator
            more = ("--separator", separator, "--id", "id", "--keep", "note", "--keep", "id")
            succeeds(*ground.arguments(path, output, *more))
            with only(output).open(newline="", encoding="utf-8") as shard:
                shards.append(list(csv.reader(shard, delimiter=mark)))
            assert shards[-1] == shards[0]
            assert manifest(output)["configuration"]["columns"].get("separator", "comma") == separator
            assert cv.plan(path, make_release(ground.space), separator=separator).documents == len(documents)  # type: ignore[arg-type]
            assert match([str(path)], [str(output)], id="note", separator=separator).missing == 0  # type: ignore[arg-type]

    def test_another_mark_than_it_has_is_said(self, ground: Ground, tmp_path: Path) -> None:
        """Also where the names are in quotes, or one of them has a comma; and where there is no CSV at all."""
        path, lines = tmp_path / "x.csv", write(tmp_path / "x.jsonl", DOCUMENTS)
        for header, mark, said in (
            ('"id";"text"', "comma", "separator semicolon"),
            ("id, or key;text", "comma", "separator semicolon"),
            ("id\ttext", "semicolon", "separator tab"),
            ("id,text", "tab", "separator comma"),
        ):
            path.write_text(f"{header}\n1;{UNKNOWN}\n")
            sentence = fails(ground.arguments(path, tmp_path / "out", "--separator", mark), "unsuitable-data", said)
            assert UNKNOWN not in sentence
            fails(["preview", path, "--space", ground.space_folder, "--separator", mark], "unsuitable-data")
        fails(ground.arguments(lines, tmp_path / "out", "--separator", "tab"), "wrong-setting")


def test_shards_of_a_table_have_the_types_of_the_first(ground: Ground, tmp_path: Path) -> None:
    """Otherwise nothing would read the release as one table; how Arrow holds strings is no difference."""
    kinds = {"a": pa.string(), "b": pa.large_string(), "c": pa.dictionary(pa.int8(), pa.string()), "d": pa.int64()}
    for name, kind in kinds.items():
        values = pa.array([1] if name == "d" else ["x"]).cast(kind)
        (tmp_path / "in").mkdir(exist_ok=True)
        pq.write_table(pa.table({"text": ["bababa"], "v": values}), tmp_path / "in" / f"{name}.parquet")
    words = ground.arguments(tmp_path / "in", tmp_path / "out", "--keep", "v")
    fails(words, "unsuitable-data", "d.parquet", "'v'", "int64")
    (tmp_path / "in" / "d.parquet").rename(tmp_path / "d.parquet")
    succeeds(*ground.arguments(tmp_path / "in", tmp_path / "o", "--keep", "v"))
    assert pq.read_table(tmp_path / "o" / "data")["v"].to_pylist() == ["x"] * 3


CODE = """
import sys, psutil
import pyarrow.parquet as pq
from corpusveil.storage import formats, parquet
from corpusveil.storage.rows import Columns
path, process = sys.argv[1], psutil.Process()
for read in (
    lambda: parquet.read_table(path, ['id']),
    lambda: parquet.read_whole(path, 'no', lambda _: ['id', 'text']),
    lambda: list(formats.find('.parquet').batches(open(path, 'rb'), path, Columns('text', 'id'))),
    lambda: formats.find('.parquet').count_rows(open(path, 'rb'), path),
    lambda: pq.ParquetFile(open(path, 'rb')).read(),
):
    before = process.num_threads()
    read()
    print(process.num_threads() - before)
"""


def test_a_read_starts_no_thread(tmp_path: Path) -> None:
    """A wrong call that had read a space or a table ended with SIGABRT now and then (one in sixty)."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": range(5000), "text": ["word"] * 5000}), path, row_group_size=1000)
    done = subprocess.run([sys.executable, "-c", CODE, str(path)], capture_output=True, text=True, check=True)
    *started, control = map(int, done.stdout.split())
    assert started == [0] * 4
    assert control > 0


def test_nothing_else_reads_parquet() -> None:
    """Every Python file goes through ``storage/parquet.py``, and every read says that it wants no threads."""
    for path in Path(cv.__file__).parent.rglob("*.py"):
        text = path.read_text()
        assert "pq.read_table(" not in text, path
        if path.name != "parquet.py":
            assert "ParquetFile(" not in text, path
        for call in re.findall(r"\.(?:iter_batches|read_row_groups?|read)\((?:[^()]|\([^()]*\))*\)", text):
            if "iter_batches" in call or "read_row_group" in call:
                assert "use_threads=False" in call, (path, call)
