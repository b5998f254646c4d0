"""Forms: what a document becomes does not depend on the form it comes in or goes out in, nor on how it is split."""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import corpusveil as cv
from corpusveil.storage.formats import SUFFIXES, find
from corpusveil.storage.rows import BATCH_BYTES, BLOCK_ROWS, Columns
from corpusveil_evaluate.matching import match
from tests.calls import fails, succeeds
from tests.engines.corpora import (
    UNKNOWN,
    WORDS,
    Ground,
    data_files,
    encode,
    make_release,
    manifest,
    release_files,
    rows,
)

ROOT = Path(__file__).parents[2]
Rows = Sequence[dict[str, Any]]
NAMES = ("text", "id", "note")
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, 1, mtime=0),
    "zst": zstandard.ZstdCompressor().compress,
}


def packed(data: bytes, suffix: str) -> bytes:
    """Compress as the suffix says."""
    return COMPRESS.get(suffix.rsplit(".", 1)[-1], bytes)(data)


def unpacked(data: bytes, name: str) -> bytes:
    """Return what a file of this name holds, by libraries that the product does not read with."""
    if name.endswith(".gz"):
        return gzip.decompress(data)
    if name.endswith(".zst"):
        return zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
    return data


def document(number: int) -> dict[str, Any]:
    """Return a document that every form can hold: one line, strings only."""
    row = rows(number + 1, 7)[number] if number < 3 else {"text": f"Bababa dedeki lolomu {number}, nanari."}
    text = " ".join(row["text"].replace("\x00", "").split())
    return {"text": text, "id": f"n{number}", "note": f'a "quoted", {number}'}


DOCUMENTS = [document(number) for number in range(40)]


def write(path: Path, documents: Rows, names: Sequence[str] = NAMES) -> Path:
    """Write documents in the form that the file's name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = path.name.split(".")[1]
    if kind == "parquet":
        columns = {name: [row[name] for row in documents] for name in names}
        pq.write_table(pa.table(columns), path, row_group_size=3000)
    else:
        if kind == "csv":
            text = io.StringIO()
            csv.writer(text).writerows([names, *([row[name] for name in names] for row in documents)])
            data = text.getvalue().encode()
        elif kind == "txt":
            data = "".join(row["text"] + "\n" for row in documents).encode()
        else:
            data = encode([{name: row[name] for name in names} for row in documents])
        path.write_bytes(packed(data, path.name))
    return path


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a shard in any form, read by other libraries."""
    kind = path.name.split(".")[1]
    if kind == "parquet":
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return rows
    data = unpacked(path.read_bytes(), path.name).decode()
    if kind == "csv":
        return list(csv.DictReader(io.StringIO(data, newline="")))
    if kind == "txt":
        return [{"text": line} for line in data.splitlines()]
    return [json.loads(line) for line in data.splitlines()]


def only(output: Path) -> Path:
    """Return the only shard of a release."""
    (shard,) = data_files(output)
    return shard


@pytest.fixture(scope="module")
def expected(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the documents' private texts, told apart by id."""
    folder = tmp_path_factory.mktemp("expected")
    source = write(folder / "x.jsonl", DOCUMENTS)
    succeeds(*ground.arguments(source, folder / "out", "--id", "id"))
    return [row["text"] for row in read(only(folder / "out"))]


WITH_COLUMNS = [suffix for suffix in SUFFIXES if not suffix.startswith(".txt")]


class TestEveryForm:
    @pytest.mark.parametrize(
        ("source", "target"), list(zip(WITH_COLUMNS, [*WITH_COLUMNS[4:], *WITH_COLUMNS[:4]], strict=True))
    )
    def test_in_and_out_gives_the_same_documents(
        self, ground: Ground, tmp_path: Path, expected: list[str], source: str, target: str
    ) -> None:
        """One noise a document, whatever forms it comes in and goes out in; what is named leaves under its own name."""
        path = write(tmp_path / f"x{source}", DOCUMENTS)
        want = [{"text": text, "note": row["note"]} for text, row in zip(expected, DOCUMENTS, strict=True)]
        for suffix, more in ((source, ()), (target, ("--format", target[1:]))):
            output = tmp_path / f"out{suffix}"
            succeeds(*ground.arguments(path, output, "--id", "id", "--keep", "note", *more))
            shard = only(output)
            assert shard.name == f"part-00000-of-00001{suffix}"
            assert read(shard) == want
            data, written = unpacked(shard.read_bytes(), shard.name), manifest(output)
            if suffix == ".parquet":
                rows = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in read(shard))
                data = "".join(f"{row}\n" for row in rows).encode()
            assert written["shards"][0]["sha256"] == hashlib.sha256(data).hexdigest()
            assert ("JSON lines" in written["checksums"]) == (suffix == ".parquet")

    @pytest.mark.parametrize("suffix", [suffix for suffix in SUFFIXES if suffix.startswith(".txt")])
    def test_lines_are_documents(self, ground: Ground, tmp_path: Path, suffix: str) -> None:
        """Plain text: a document a line, empty ones too, in and out."""
        path = tmp_path / f"x{suffix}"
        path.write_bytes(packed(b"bababa dedede\n\r\n\nkikiki\r\nlololo", path.name))
        succeeds(*ground.arguments(path, tmp_path / "out"))
        lines = [len(row["text"].split()) for row in read(only(tmp_path / "out"))]
        assert lines == [2, 0, 0, 1, 1]
        assert manifest(tmp_path / "out")["documents"] == 5

    def test_plain_text_out_is_a_line_a_document(self, ground: Ground, tmp_path: Path) -> None:
        """A line break inside a document becomes a blank where a line is a document; no text is an empty line."""
        path = write(
            tmp_path / "x.jsonl",
            [{"text": "bababa\n\nkikiki\r\nlololo\rdedede"}, {"text": ""}, {"text": None}],
            ["text"],
        )
        succeeds(*ground.arguments(path, tmp_path / "out", "--format", "txt", "--layout", "keep"))
        first, *others = only(tmp_path / "out").read_bytes().decode().split("\n")[:-1]
        assert (len(first.split()), others) == (4, ["", ""])

    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_an_empty_shard_stays_a_shard(self, ground: Ground, tmp_path: Path, suffix: str) -> None:
        """No documents are a valid file of the form, with its columns, which a further release opens."""
        path = write(tmp_path / f"x{suffix}", [])
        more = () if suffix.startswith(".txt") else ("--keep", "note")
        succeeds(*ground.arguments(path, tmp_path / "out", *more))
        shard = only(tmp_path / "out")
        assert read(shard) == []
        assert manifest(tmp_path / "out")["documents"] == 0
        if suffix == ".parquet":
            assert pq.read_schema(shard).names == ["text", "note"]
        if suffix == ".csv":
            assert shard.read_text() == "text,note\n"
        succeeds(*ground.arguments(tmp_path / "out" / "data", tmp_path / "again", "--rows-per-task", BLOCK_ROWS))
        assert manifest(tmp_path / "again")["documents"] == 0


class TestANull:
    """A row whose text is null stays a row without text, in every form, and is no document."""

    ROWS: ClassVar[list[dict[str, Any]]] = [
        {**document(number), "text": None if number % 3 == 1 else document(number % 7)["text"]} for number in range(40)
    ]

    @pytest.mark.parametrize(
        ("source", "target"), [(".jsonl", ".parquet"), (".parquet", ".jsonl.gz"), (".parquet", ".csv")]
    )
    def test_stays_null_beside_what_is_kept(self, ground: Ground, tmp_path: Path, source: str, target: str) -> None:
        """As in ``cv.privatize``. CSV has no null, and so an empty text; rows are neither lost nor set aside."""
        path = write(tmp_path / f"x{source}", self.ROWS)
        more = ("--id", "id", "--keep", "note", "--format", target[1:])
        succeeds(*ground.arguments(path, tmp_path / "out", *more))
        release = make_release(ground.space)
        private = cv.privatize([row["text"] for row in self.ROWS], release, [row["id"] for row in self.ROWS])
        texts = [("" if target == ".csv" else None) if text is None else text for text in private]
        want = [{"text": text, "note": row["note"]} for text, row in zip(texts, self.ROWS, strict=True)]
        assert read(only(tmp_path / "out")) == want
        assert (manifest(tmp_path / "out")["documents"], private.count(None)) == (27, 13)

    def test_is_a_row_wherever_rows_are_counted(self, ground: Ground, tmp_path: Path) -> None:
        """Splitting, quarantine, copies, the ledger's account, a plan and a second run know it."""
        rows = self.ROWS * 450
        path = write(tmp_path / "x.jsonl", rows)
        path.write_bytes(path.read_bytes() + b"{\n")
        more = ("--on-bad-rows", "quarantine", "--ledger", tmp_path / "ledger", "--duplicates", "drop")
        for name, further in (("whole", ()), ("split", ("--rows-per-task", BLOCK_ROWS)), ("whole", ())):
            succeeds(*ground.arguments(path, tmp_path / name, *more, *further))
            totals = json.loads((tmp_path / f"{name}.records" / "totals.json").read_text())
            assert (totals["without_text"], totals["quarantined"]) == (13 * 450, 1)
            assert totals["documents"] + totals["dropped"] == 27 * 450
        assert release_files(tmp_path / "whole") == release_files(tmp_path / "split")
        assert len(list((tmp_path / "ledger" / "entries").glob("*.parquet"))) == 1, "of the shard and of its pieces"
        (line,) = cv.Ledger(tmp_path / "ledger").spent().releases
        assert line["documents"] == totals["documents"]
        told = cv.plan(path, make_release(ground.space), on_bad_rows="quarantine", duplicates=True)
        assert told.copies is not None
        assert (told.documents, told.copies.documents) == (27 * 450, 27 * 450)


class TestKeepAll:
    @pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".csv.gz"])
    def test_copies_every_other_column(self, ground: Ground, tmp_path: Path, suffix: str) -> None:
        """The bytes of a run that names them all; and a run ends with the names of those that it did not copy."""
        source, shards = write(tmp_path / f"x{suffix}", DOCUMENTS), []
        for keep, left in ((["all"], ""), (["*"], ""), (["id", "note"], ""), (["note"], "id"), ([], "id, note")):
            output = tmp_path / f"out {' '.join(keep)}"
            more = [word for column in keep for word in ("--keep", column)]
            *_, last = succeeds(*ground.arguments(source, output, "--id", "id", *more)).out.splitlines()
            assert last.startswith(f"not copied: {left} (" if left else "copied in the clear: ")
            shards.append(only(output).read_bytes())
        assert shards[0] == shards[1] == shards[2]

    def test_copies_the_fields_of_each_line(self, ground: Ground, tmp_path: Path) -> None:
        """Those that a line has, in its order, whatever they hold; also split, denoised, and in a plan."""
        others: list[dict[str, Any]] = [
            {}, {"b": 1, "a": [None, {"x": "\u00fc"}]}, {"n": 12345678901234567890123, "all": "}"}, {"": {}},
            {"s": 'caf\u00e9 " \\ \0 \u2028 \U0001f9ff', "i": [0, -1, 2**53 + 1, 2**64 - 1], "f": [0.1, 1e-300, -0.0]},
            {"i": [2**64, -(10**20)], "f": 1.0, "none": None, "empty": ["", [], {}, True]},
        ]  # fmt: skip
        lines = [{**others[number % 6], "text": WORDS[number % 9]} for number in range(BLOCK_ROWS + 5)]
        lines[1] = {"b": 1, "text": None, "a": [None, {"x": "\u00fc"}]}
        source = tmp_path / "x.jsonl"
        source.write_bytes(encode(lines))
        for name, more in (("whole", ()), ("split", ("--rows-per-task", BLOCK_ROWS))):
            succeeds(*ground.arguments(source, tmp_path / name, "--keep", "all", *more))
        assert release_files(tmp_path / "whole") == release_files(tmp_path / "split")
        for written, line in zip(only(tmp_path / "whole").read_bytes().splitlines(), lines, strict=True):
            private = json.loads(written)
            want = {"text": private["text"], **{name: value for name, value in line.items() if name != "text"}}
            assert written == json.dumps(want, ensure_ascii=False, separators=(",", ":")).encode()
        assert manifest(tmp_path / "whole")["configuration"]["columns"]["keep"] == ["*"]
        assert manifest(tmp_path / "whole")["kept_columns"] != "none"
        assert cv.plan(source, make_release(ground.space), keep="all").documents == len(lines) - 1

    def test_is_refused_where_columns_would_be_missing(self, ground: Ground, tmp_path: Path) -> None:
        """A table has one header: shards of other columns are refused, and lines that can differ as well."""
        write(tmp_path / "in" / "a.csv", DOCUMENTS)
        write(tmp_path / "in" / "b.csv", DOCUMENTS, ("note", "text", "id"))
        succeeds(*ground.arguments(tmp_path / "in", tmp_path / "out", "--keep", "all"))
        first, second = (read(path) for path in data_files(tmp_path / "out"))
        assert [row["id"] for row in first] == [row["id"] for row in second]
        write(tmp_path / "in" / "b.csv", [{**row, "extra": ""} for row in DOCUMENTS], (*NAMES, "extra"))
        lines = write(tmp_path / "x.jsonl", DOCUMENTS)
        for source, more, refusal in (
            (tmp_path / "in", ("all",), ("bad-shards", "b.csv", "extra")),
            (lines, ("all", "--format", "csv"), ("conflicting-settings",)),
            (lines, ("all", "--keep", "note"), ("wrong-column",)),
        ):
            fails(ground.arguments(source, tmp_path / "no", "--keep", *more), *refusal)


class TestSplitting:
    """Splitting a shard into tasks changes neither rows nor bytes, in any form and between forms."""

    def test_row_groups_of_the_input_do_not_show(self, ground: Ground, tmp_path: Path) -> None:
        """The same rows in row groups of another size become the same bytes; ours hold a block each."""
        long = "bababa " * (BATCH_BYTES // 7 // 3)
        texts = [long if number in {10, 11, 12, 13, 9000} else f"dedede {number}" for number in range(9100)]
        made = []
        for size in (999, 4097, 100_000):
            path = tmp_path / f"{size}" / "x.parquet"
            path.parent.mkdir()
            pq.write_table(pa.table({"text": texts}), path, row_group_size=size)
            succeeds(*ground.arguments(path, tmp_path / f"out{size}", "--corpus", "c"))
            made.append(release_files(tmp_path / f"out{size}"))
        assert made[0] == made[1] == made[2]
        read = pq.ParquetFile(only(tmp_path / "out999"))
        blocks = [read.metadata.row_group(group).num_rows for group in range(read.num_row_groups)]
        assert blocks == [BLOCK_ROWS, 9100 - BLOCK_ROWS]

    @pytest.mark.parametrize("codec", COMPRESS)
    def test_a_block_is_a_frame(self, ground: Ground, tmp_path: Path, codec: str) -> None:
        """Each gzip member and zstd frame of the output holds one block of rows and can be read by itself."""
        path = write(tmp_path / f"x.jsonl.{codec}", [{"text": "bababa"}] * (BLOCK_ROWS + 2), ["text"])
        succeeds(*ground.arguments(path, tmp_path / "out"))
        data, counts = only(tmp_path / "out").read_bytes(), []
        while data:
            frame = zlib.decompressobj(31) if codec == "gz" else zstandard.ZstdDecompressor().decompressobj()
            counts.append(frame.decompress(data).count(b"\n"))
            data = frame.unused_data
        assert counts == [BLOCK_ROWS, 2]

    @pytest.mark.parametrize("codec", COMPRESS)
    def test_frames_are_one_file(self, codec: str) -> None:
        """A row that lies across two members or frames is a row."""
        parts = (b'{"text": "a"}\n{"te', b"", b'xt": "b"}\n')
        data, form = b"".join(map(COMPRESS[codec], parts)), find(f".jsonl.{codec}")
        (batch,) = form.batches(io.BytesIO(data), "x", Columns())
        assert batch.texts.to_pylist() == ["a", "b"]
        assert form.rows(io.BytesIO(data), "x") == 2


class TestParquet:
    NESTED = pa.array(
        [{"a": [1, None], "b": {"c": "x"}}, None, {"a": None, "b": None}],
        type=pa.struct([("a", pa.list_(pa.int32())), ("b", pa.struct([("c", pa.string())]))]),
    )
    KEPT: ClassVar[dict[str, Any]] = {
        "int": pa.array([2**53 + 1, None, -1]),
        "float": pa.array([0.1, -0.0, None]),
        "time": pa.array([dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC)] * 3, type=pa.timestamp("ns", tz="UTC")),
        "date": pa.array([dt.date(2026, 1, 2), None, None]),
        "decimal": pa.array([decimal.Decimal("1.50"), None, None]),
        "bytes": pa.array([b"\x00\xff", None, b""]),
        "nested": NESTED,
        "map": pa.array([[("k", 1)], [], None], type=pa.map_(pa.string(), pa.int8())),
        "words": pa.array(["x", None, "y"]).dictionary_encode(),
    }

    def test_columns_of_any_type_are_kept(self, ground: Ground, tmp_path: Path) -> None:
        """Values and types of named columns survive, nested ones too; what is not named does not leave."""
        source = tmp_path / "x.parquet"
        pq.write_table(pa.table({"secret": [UNKNOWN] * 3, "text": ["bababa", "kikiki", ""], **self.KEPT}), source)
        keep = [word for name in self.KEPT for word in ("--keep", name)]
        succeeds(*ground.arguments(source, tmp_path / "out", *keep))
        shard = only(tmp_path / "out")
        assert UNKNOWN.encode() not in shard.read_bytes()
        got = pq.read_table(shard)
        assert got.schema.names == ["text", *self.KEPT]
        for name, column in self.KEPT.items():
            plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            assert got.column(name).type == plain.type
            assert str(got.column(name).to_pylist()) == str(plain.to_pylist())
        succeeds(*ground.arguments(source, tmp_path / "json", "--format", "jsonl", *keep))
        first, second, third = read(only(tmp_path / "json"))  # ISO 8601, base64, and strings for decimals
        assert first["int"] == 2**53 + 1
        assert dt.datetime.fromisoformat(first["time"]) == dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC)
        assert (first["date"], first["decimal"], first["bytes"]) == ("2026-01-02", "1.50", "AP8=")
        assert first["nested"] == {"a": [1, None], "b": {"c": "x"}}
        assert (second["nested"], third["float"], third["words"]) == (None, None, "y")

    def test_metadata_does_not_leave(self, ground: Ground, tmp_path: Path) -> None:
        """Neither the file's own metadata nor that of columns goes into the output."""
        field = pa.field("text", pa.string(), metadata={"who": UNKNOWN})
        schema = pa.schema([field, pa.field("note", pa.string(), metadata={"who": UNKNOWN})], {"pandas": UNKNOWN})
        pq.write_table(pa.table([["bababa"], ["x"]], schema=schema), tmp_path / "x.parquet")
        succeeds(*ground.arguments(tmp_path / "x.parquet", tmp_path / "out", "--keep", "note"))
        assert UNKNOWN.encode() not in only(tmp_path / "out").read_bytes()

    def test_json_becomes_strings(self, ground: Ground, tmp_path: Path) -> None:
        """Kept JSON goes into Parquet and CSV as strings: strings as they are, all else as its JSON text."""
        values = ["x", 1, None, [1, {"a": "b"}], 12345678901234567890123, "", "null", True]
        path = tmp_path / "x.jsonl"
        path.write_text("".join(json.dumps({"text": "", "v": value}) + "\n" for value in values))
        want = ["x", "1", None, '[1,{"a":"b"}]', "12345678901234567890123", "", "null", "true"]
        for form in ("parquet", "csv"):
            succeeds(*ground.arguments(path, tmp_path / form, "--keep", "v", "--format", form))
            got = [row["v"] for row in read(only(tmp_path / form))]
            assert got == [(value or "") if form == "csv" else value for value in want]


class TestCsv:
    def test_fields_in_quotes(self, ground: Ground, tmp_path: Path) -> None:
        """Commas, quotes and line breaks inside a field, a byte order mark, CRLF and blank lines are understood."""
        data = '\ufeff"text",n\r\n"bababa, ""dedede""\r\nkikiki",1\r\n\r\nlololo,"2\n3"\r\n"",\r\n'
        (tmp_path / "x.csv").write_bytes(data.encode())
        more = ("--keep", "n", "--layout", "keep")
        succeeds(*ground.arguments(tmp_path / "x.csv", tmp_path / "out", *more))
        got = read(only(tmp_path / "out"))
        assert [row["n"] for row in got] == ["1", "2\n3", ""]
        first = got[0]["text"]
        assert (first.count(","), first.count('"'), first.count("\r\n"), len(first.split())) == (1, 2, 1, 3)

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
            sentence = fails(ground.arguments(path, tmp_path / "out", "--separator", mark), "bad-shards", said)
            assert UNKNOWN not in sentence
            fails(["preview", path, "--space", ground.space_folder, "--separator", mark], "wrong-column")
        fails(ground.arguments(lines, tmp_path / "out", "--separator", "tab"), "conflicting-settings")


def test_columns_of_folders_are_not_lost_without_a_word(ground: Ground, tmp_path: Path) -> None:
    """As Hive and Spark write them: refused where all columns are to be kept, and otherwise named as not copied."""
    for suffix in (".jsonl", ".parquet"):
        source = tmp_path / suffix[1:]
        write(source / "lang=en" / "day=1" / f"x{suffix}", DOCUMENTS)
        fails(ground.arguments(source, tmp_path / f"o{suffix}", "--keep", "all"), "conflicting-settings", "day, lang")
        ended = succeeds(*ground.arguments(source, tmp_path / f"o{suffix}", "--keep", "id"))
        assert "not copied: note, day, lang" in ended.out


def test_shards_of_a_table_have_the_types_of_the_first(ground: Ground, tmp_path: Path) -> None:
    """Otherwise nothing would read the release as one table; how Arrow holds strings is no difference."""
    kinds = {"a": pa.string(), "b": pa.large_string(), "c": pa.dictionary(pa.int8(), pa.string()), "d": pa.int64()}
    for name, kind in kinds.items():
        values = pa.array([1] if name == "d" else ["x"]).cast(kind)
        (tmp_path / "in").mkdir(exist_ok=True)
        pq.write_table(pa.table({"text": ["bababa"], "v": values}), tmp_path / "in" / f"{name}.parquet")
    said = fails(ground.arguments(tmp_path / "in", tmp_path / "out", "--keep", "v"), "bad-shards", "d.parquet", "'v'")
    assert "int64" in said
    (tmp_path / "in" / "d.parquet").rename(tmp_path / "d.parquet")
    succeeds(*ground.arguments(tmp_path / "in", tmp_path / "o", "--keep", "v"))
    assert pq.read_table(tmp_path / "o" / "data")["v"].to_pylist() == ["x"] * 3


class TestAWrongColumn:
    @pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".csv"])
    def test_is_answered_by_those_that_exist(self, ground: Ground, tmp_path: Path, suffix: str) -> None:
        """All of their names, and the nearest; of CSV only where another column shows that the line is one of names."""
        source = write(tmp_path / f"x{suffix}", DOCUMENTS)
        for option, wrong, near in (("--text", "texte", "text"), ("--id", "ID", ""), ("--keep", "notes", "note")):
            said = fails(ground.arguments(source, tmp_path / "out", option, wrong), "bad-shards", repr(wrong))
            assert ("text, id, note" in said) == ((suffix, option) != (".csv", "--text"))
            assert f"; did you mean {near}?" in said or not near
        fails(["preview", source, "--space", ground.space_folder, "--text", "texte"], "wrong-column")

    def test_of_a_file_without_names_quotes_no_row(self, ground: Ground, tmp_path: Path) -> None:
        """The first line is then a document."""
        (tmp_path / "x.csv").write_text(f"17,{UNKNOWN},Bababa dedeki lolomu nanari soso.\n" * 3)
        said = fails(ground.arguments(tmp_path / "x.csv", tmp_path / "out"), "bad-shards")
        assert UNKNOWN not in said
        assert "Bababa" not in said
