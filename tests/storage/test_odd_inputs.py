"""Odd files and rows: each is read correctly, refused in one correct sentence, or set aside in private and counted."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import json
import os
import re
import resource
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusveil.cli.main import run
from corpusveil.display import several
from corpusveil.errors import UserError
from corpusveil.spaces.vectors import read_vectors
from corpusveil.storage import files, formats, forms
from corpusveil.storage.forms import delimited
from corpusveil.storage.forms.delimited import MARKS
from corpusveil.storage.forms.plain import PlainText
from corpusveil.storage.rows import BLOCK_ROWS, Columns
from corpusveil.storage.tasks import KeyedReader
from corpusveil_evaluate.matching import match
from tests.calls import fails, refused, succeeds
from tests.engines.corpora import UNKNOWN, Ground, data_files, manifest, packed, read_shard

BOM = b"\xef\xbb\xbf"
ROWS = {".jsonl": b'{"text": "ba de"}\n{"text": "lo"}\n', ".csv": b"text\nba de\nlo\n", ".txt": b"ba de\nlo\n"}


def sentence(ground: Ground, source: object, output: object, *more: str) -> str:
    """Privatize what has to be refused; return the one sentence, as a stream of ASCII shows it."""
    errors = io.TextIOWrapper(io.BytesIO(), "ascii", errors="backslashreplace", write_through=True)
    with contextlib.redirect_stderr(errors):
        assert run(ground.arguments(str(source), str(output), *more)) == 2
    (sentence,) = errors.buffer.getvalue().decode().splitlines()
    assert sentence.startswith("corpusveil: ")
    return sentence


def test_names_that_are_not_utf8(ground: Ground, tmp_path: Path) -> None:
    """Of a file, of a folder above it, and of what is asked for."""
    for name in (b"\xff/a.jsonl", b"\xffa.jsonl"):
        path = os.fsencode(tmp_path / "in") + b"/" + name
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_text('{"text": "ba"}\n')
        said = sentence(ground, tmp_path / "in", tmp_path / "out")
        assert re.search(r"in/\\xff(/a|a)\.jsonl: this name is not valid UTF-8; rename", said)
        os.unlink(path)
    said = sentence(ground, ground.corpus, os.fsdecode(os.fsencode(tmp_path) + b"/o\xff"))
    assert "/o\\xff: " in said


def test_csv_without_a_line_of_names_is_no_release_and_one_empty_shard_of_several_is(
    ground: Ground, tmp_path: Path
) -> None:
    """An export that failed leaves 0 bytes, or gzip of none; workers of Spark leave an empty shard beside others."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").touch()
    assert "a.csv: this file is empty, and no line names" in sentence(ground, tmp_path / "in", tmp_path / "out")
    (tmp_path / "in" / "a.csv").rename(tmp_path / "gone")
    (tmp_path / "in" / "a.csv.gz").write_bytes(gzip.compress(b""))
    assert "a.csv.gz: this file is empty" in sentence(ground, tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "in" / "b.csv.gz").write_bytes(gzip.compress(b"text\nba de\n"))
    assert run(ground.arguments(str(tmp_path / "in"), str(tmp_path / "out"))) == 0
    assert manifest(tmp_path / "out")["documents"] == 1


class TestAByteOrderMark:
    @pytest.mark.parametrize("suffix", ROWS)
    def test_is_no_part_of_the_text(self, suffix: str) -> None:
        """The same rows with it as without."""
        for codec in ("", ".gz"):
            data, form = BOM + ROWS[suffix], formats.find(suffix + codec)
            file = gzip.compress(data) if codec else data
            batches = form.batches(io.BytesIO(file), f"a{suffix}", Columns())
            assert [text for batch in batches for text in batch.texts.to_pylist()] == ["ba de", "lo"]


class TestALineThatFillsTheMemory:
    """A few hundred kilobytes of gzip can hold a line of any length."""

    @pytest.mark.parametrize("suffix", [".jsonl", ".txt"])
    def test_is_refused_by_file_and_line(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, suffix: str) -> None:
        """Nothing behind the stated size is read."""
        monkeypatch.setattr(forms, "MOST_LINE_BYTES", 4 << 20)
        head = {".jsonl": b'{"text": "a"}\n{"text": "', ".txt": b"a\n"}[suffix]
        reads = itertools.chain([head], itertools.repeat(b"a" * (1 << 20), 7))  # an eighth of these is too many
        source: Any = SimpleNamespace(read=lambda _=-1: next(reads))
        with refused("unsuitable-data", f"x{suffix}, line 2"):
            list(formats.find(suffix).batches(source, f"x{suffix}", Columns()))

    def test_of_csv_is_refused_within_a_few_rows_of_the_largest_size(self) -> None:
        """A quote that is not closed makes one row of all lines."""
        more = b"a" * ((1 << 20) - 1) + b"\n"
        reads = itertools.chain([b'text\na\n"'], itertools.repeat(more, 40))
        source: Any = SimpleNamespace(read=lambda _=-1: next(reads))
        with refused("unsuitable-data", "x.csv, line 3"):
            list(formats.find(".csv").batches(source, "x.csv", Columns()))

    def test_of_compressed_bytes_takes_that_of_a_few_chunks(self, tmp_path: Path) -> None:
        """Text in gzip, and a page of one value, many million times: both are gigabytes inside."""
        text, table = tmp_path / "x.txt.gz", tmp_path / "x.parquet"
        text.write_bytes(gzip.compress((b"bababa dede " * 80 + b"\n") * 1000, 9) * 200)
        words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3_500_000, np.int32)), pa.array(["x" * 100]))
        nulls = pa.nulls(len(words), pa.list_(pa.float32()))
        pq.write_table(pa.table({"word": words.cast(pa.string()), "vector": nulls}), table)
        assert table.stat().st_size < 1 << 18
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with files.open_read(str(text)) as file:
            batches = formats.find(".txt.gz").batches(file, str(text), Columns())
            assert sum(len(batch.numbers) for batch in batches) == 200_000
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10
        with pytest.raises(UserError):
            read_vectors(str(table))
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 700 << 10


class TestALossOfPower:
    """What a file needs to be there afterwards is flushed before it counts as written, its folder's names too."""

    @pytest.fixture
    def flushed(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """What was flushed and made, in this order."""
        told: list[str] = []
        fsync, replace, mkdir = os.fsync, os.replace, os.mkdir

        def noting(descriptor: int) -> None:
            told.append("flush " + Path(os.readlink(f"/proc/self/fd/{descriptor}")).name.split(".")[0])
            fsync(descriptor)

        def named(source: Any, target: Any) -> None:
            replace(source, target)
            told.append(f"name {Path(target).name}")

        def made(path: Any, *more: Any) -> None:
            mkdir(path, *more)
            told.append(f"make {Path(path).name}")

        monkeypatch.setattr(os, "fsync", noting)
        monkeypatch.setattr(os, "replace", named)
        monkeypatch.setattr(os, "mkdir", made)
        return told

    def test_folders_are_flushed_where_files_are(self, tmp_path: Path, flushed: list[str]) -> None:
        """A file whose name is lost is lost."""
        files.write_bytes(str(tmp_path / "x" / "y" / "file"), b"a")
        assert flushed == ["make x", f"flush {tmp_path.name}", "make y", "flush x", "flush ", "name file", "flush y"]

    def test_also_of_files_that_only_one_may_make(self, tmp_path: Path, flushed: list[str]) -> None:
        assert files.create_bytes(str(tmp_path / "file"), b"a")
        assert flushed == ["flush ", f"flush {tmp_path.name}"]


SECRET = UNKNOWN.encode()
SOUND = b'{"text": "bababa dedede", "id": 1}\n'
BAD = {
    "x.jsonl": (
        SOUND * BLOCK_ROWS + SECRET + b"\n" + SOUND + b'{"text": 1, "n": "' + SECRET + b'"}\n',
        [BLOCK_ROWS + 1, BLOCK_ROWS + 3],
    ),
    "x.txt": (b"bababa\n\xff" + SECRET + b"\n\ndedede\n", [2]),
}
DROP = ("--on-bad-rows", "drop")


def dropped(output: Path, name: str = "part-00000-of-00001.json") -> Any:
    """Return the places of the dropped rows of a shard in its record."""
    return json.loads((output.with_name(output.name + ".records") / "shards" / name).read_text())["bad_places"]


def counted(output: Path) -> Any:
    """Return the total that the private records give."""
    return json.loads((output.with_name(output.name + ".records") / "totals.json").read_text())["bad_rows"]


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_are_dropped_and_counted(ground: Ground, tmp_path: Path, name: str) -> None:
    """The records name the places of the first ones; nothing of their content is anywhere."""
    data, numbers = BAD[name]
    (tmp_path / name).write_bytes(data)
    fails(ground.arguments(tmp_path / name, tmp_path / "out"), "unsuitable-data", f"{name}, row {numbers[0]}: ")
    ended = succeeds(*ground.arguments(tmp_path / name, tmp_path / "out", *DROP))
    assert f"{several(len(numbers), 'row')} could not be read" in ended.err
    assert UNKNOWN not in ended.out + ended.err
    assert dropped(tmp_path / "out") == numbers
    assert counted(tmp_path / "out") == len(numbers)
    assert "bad_rows" not in json.dumps(manifest(tmp_path / "out")), "that rows are missing is said, and no number"
    assert manifest(tmp_path / "out")["rows"] == "Rows that could not be read are missing."
    for path in tmp_path.rglob("out*/**/*"):
        assert path.is_dir() or SECRET not in path.read_bytes()


NO_ENDS = (
    '2,"He said \\"hello\\"\n{} I live, in Rome"',
    '2,"My screen has 15\\"\n{}, Rome"',
    '2,"My screen has 15\\"\n{}, Rome\nmore"',
    '2,"He said "hello" to me\n{}, I live in Rome"',
    '2,"an open quote\n{}, Rome' + "\n3,wine" * 99,
    '2,5" is small\n{}, Rome',
    '2, "a blank before\n{}, Rome"',
    '2,"a blank behind" \n{}, Rome',
    "2,a line break\n{}\n3,wine",
    "2,a comma, and a line break\n{}, Rome",
    "2,a carriage return\r{}, Rome",
    "2,MySQL and Redshift escape\\\n{}\\, Rome",
    "2,a pair\\\\ and an escape\\\r\n{}\\, Rome",
)
"""Rows of CSV, of which it is not certain where they end, with a place for private text."""


@pytest.mark.parametrize(
    "suffix", [".csv", *(pytest.param(s, marks=pytest.mark.nightly) for s in (".csv.gz", ".csv.zst"))]
)
def test_csv_is_refused_whole_where_the_end_of_a_row_is_not_certain(
    ground: Ground, tmp_path: Path, suffix: str
) -> None:
    """By every command that reads it, with every separator and option: a part of a text could be another column."""
    space = ("--space", ground.space_folder)
    for number, broken in enumerate(NO_ENDS):
        separator, mark = list(MARKS.items())[number % 3]
        lines = "id,text\n1,bababa\n" + broken.format(UNKNOWN) + "\n9,dedede\n"
        path, out = tmp_path / f"{number}{suffix}", tmp_path / f"out{number}"
        path.write_bytes(packed(lines.replace(",", mark).encode(), suffix))
        more = [("--keep", "id"), ("--keep", "id", "--rows-per-task", BLOCK_ROWS)]
        more.append(("--id", "id", "--ledger", tmp_path / "ledger", "--unit", "id", "--cap", 9))
        for words in (more[number % 3], (*more[(number + 1) % 3], *DROP)):
            call = ground.arguments(path, out, *words, "--separator", separator)
            assert UNKNOWN not in fails(call, "unsuitable-data", path, "not valid CSV"), (broken, words)
            assert not list(out.rglob("*part*")), (broken, words)
        fails(["preview", path, *space, "--epsilon", 1, "--separator", separator], "unsuitable-data", path)
        with refused("unsuitable-data", path):
            match([str(path)], [str(path)], separator=separator)
        if separator == "comma":
            fails(["count", path, "--output", tmp_path / "counts"], "unsuitable-data", path)
            fails(["tokenize", path, "--tokenizer", "word", "--output", tmp_path / "tokens"], "unsuitable-data", path)


def test_rows_of_csv_are_whole_wherever_a_chunk_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b'text,id\n"a\n, ""b",1\r\n\n"\n",2\nc,"3"\n"d\n\n",\n'
    for size in range(1, len(data)):
        monkeypatch.setattr(delimited, "CHUNK_BYTES", size)
        batches = list(formats.find(".csv").batches(io.BytesIO(data), "x.csv", Columns(id="id")))
        assert [text for batch in batches for text in batch.texts.to_pylist()] == ['a\n, "b', "\n", "c", "d\n\n"], size
        assert [identity for batch in batches for identity in batch.ids or ()] == ["1", "2", "3", ""], size


def test_sound_rows_keep_their_numbers(ground: Ground, tmp_path: Path) -> None:
    """A bad row does not change other rows' noise: the place in the file identifies a row."""
    sound = [SOUND] * 9
    for name, lines in (("a", sound), ("b", [*sound[:4], b"{\n", *sound[5:]])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "y.jsonl").write_bytes(b"".join(lines))
        source = tmp_path / name / "y.jsonl"
        succeeds(*ground.arguments(source, tmp_path / f"{name}-out", "--corpus", "c", *DROP))
    whole, part = (read_shard(data_files(tmp_path / f"{name}-out")[0]) for name in ("a", "b"))
    assert part == whole[:4] + whole[5:]


def test_not_one_sound_row_is_a_wrong_call(ground: Ground, tmp_path: Path) -> None:
    """A wrong column name does not end as a release of nothing; in ranges of rows neither."""
    (tmp_path / "x.jsonl").write_bytes(SOUND * (BLOCK_ROWS + 1))
    for more in ((), ("--rows-per-task", BLOCK_ROWS)):
        words = ground.arguments(tmp_path / "x.jsonl", tmp_path / "out", *DROP, "--text", "txt", *more)
        fails(words, "unsuitable-data", "no row can be read")
        assert not list((tmp_path / "out").rglob("part-*"))


def test_a_mended_input_has_no_bad_row(ground: Ground, tmp_path: Path) -> None:
    """The places of an earlier content of a shard are gone when the shard is sound."""
    for number in range(2):
        (tmp_path / f"{number}.jsonl").write_bytes(SOUND + b"{\n")
    (tmp_path / "2.jsonl").write_bytes(b"\x1f\x8b")
    arguments = ground.arguments(f"{tmp_path}/*.jsonl", tmp_path / "out", *DROP)
    fails(arguments, "unsuitable-data")
    assert dropped(tmp_path / "out", "part-00001-of-00003.json") == [2]
    for number in range(1, 3):
        (tmp_path / f"{number}.jsonl").write_bytes(SOUND)
    succeeds(*arguments)
    assert dropped(tmp_path / "out", "part-00001-of-00003.json") == []
    assert counted(tmp_path / "out") == 1
    without = [word for word in arguments if word not in DROP]
    # a release without some rows is not continued as if it had all
    fails(without, "unusable-address", "on_bad_rows")


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_an_empty_id_is_none(ground: Ground, tmp_path: Path, form: str) -> None:
    """It is a bad row, like one that is null: by its file and place, or dropped."""
    path, texts, ids = tmp_path / f"x.{form}", ["bababa", "kikiki", "dedede"], ["a", "", "c"]
    if form == "parquet":
        pq.write_table(pa.table({"text": texts, "id": ids}), path)
    elif form == "csv":
        path.write_text("text,id\n" + "".join(f"{text},{id}\n" for text, id in zip(texts, ids, strict=True)))
    else:
        path.write_text("".join(f'{{"text": "{text}", "id": "{id}"}}\n' for text, id in zip(texts, ids, strict=True)))
    call = ground.arguments(path, tmp_path / "out", "--id", "id")
    fails(call, "unsuitable-data", f"{path}, row 2: the id column 'id' is empty")
    succeeds(*call, *DROP)
    assert dropped(tmp_path / "out") == [2]


def test_plain_text_that_is_written_is_read_again_without_byte_order_marks_at_its_beginning(tmp_path: Path) -> None:
    """One at the beginning of a file is none of its text, so one that a document begins with would be lost or not."""
    texts = pa.array(["\ufeffa", "b\ufeff", "\ufeff\ufeffc", "\r\nd", None], pa.large_string())
    path = tmp_path / "a.txt"
    path.write_bytes(PlainText("").render(texts, [], Columns()))
    with path.open("rb") as file:
        (batch,) = PlainText("").batches(file, str(path), Columns())
    assert batch.texts.to_pylist() == ["a", "b\ufeff", "c", " d", ""]


def table_of(texts: list[str]) -> bytes:
    pq.write_table(pa.table({"text": texts}), sink := io.BytesIO())
    return sink.getvalue()


GROWN = {
    "x.jsonl": (SOUND * 3, SOUND * 4),
    "x.txt.gz": (gzip.compress(b"ba de\nki lo\n"), gzip.compress(b"ba de\nki lo\n") + gzip.compress(b"mu na\n")),
    "x.csv": (b"text\nba de\n", b"text\nba de\nki lo\n"),
    "x.parquet": (table_of(["ba de"]), table_of(["ba de", "ki lo"])),
}


@pytest.mark.parametrize("name", GROWN)
def test_a_file_that_changes_while_it_is_read_is_said_to_have_and_no_row_of_it_is_lost(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A log that grows while it is read: a release reads, counts and enters the rows that were there at opening."""
    source, (before, after), read = tmp_path / name, GROWN[name], KeyedReader.read
    source.write_bytes(before)

    def growing(self: KeyedReader, size: int = -1) -> bytes:
        data = read(self, size)
        if source.read_bytes() == before:
            source.write_bytes(after)
        return data

    monkeypatch.setattr(KeyedReader, "read", growing)
    more = ("--ledger", tmp_path / "L", "--unit", "content", "--cap", 1000) if name in ("x.csv", "x.parquet") else ()
    words = ground.arguments(source, tmp_path / "out", *more)
    fails(words, "work-failed", source)
    assert not list((tmp_path / "out").rglob("part-*"))
    succeeds(*words)
    assert manifest(tmp_path / "out")["documents"] == {"x.jsonl": 4, "x.txt.gz": 3}.get(name, 2)
