"""Forms: what a document becomes does not depend on the form it comes in or goes out in, nor on how it is split."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import corpusveil as cv
from corpusveil.storage.formats import SUFFIXES, find
from corpusveil.storage.rows import BATCH_BYTES, BLOCK_ROWS, Columns
from tests.calls import fails, refused, succeeds
from tests.engines.corpora import (
    COMPRESS,
    Ground,
    data_files,
    encode,
    make_release,
    manifest,
    packed,
    release_files,
    rows,
)

ROOT = Path(__file__).parents[2]
Rows = Sequence[dict[str, Any]]
NAMES = ("text", "id", "note")


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
        """Splitting, bad rows, the ledger's account, a plan and a second run know it."""
        rows = self.ROWS * 450
        path = write(tmp_path / "x.jsonl", rows)
        path.write_bytes(path.read_bytes() + b"{\n")
        more = ("--on-bad-rows", "drop", "--ledger", tmp_path / "ledger")
        for name, further in (("whole", ()), ("split", ("--rows-per-task", BLOCK_ROWS)), ("whole", ())):
            succeeds(*ground.arguments(path, tmp_path / name, *more, *further))
            totals = json.loads((tmp_path / f"{name}.records" / "totals.json").read_text())
            assert (totals["without_text"], totals["bad_rows"]) == (13 * 450, 1)
            assert totals["documents"] == 27 * 450
        assert release_files(tmp_path / "whole") == release_files(tmp_path / "split")
        assert len(list((tmp_path / "ledger" / "entries").glob("*.parquet"))) == 1, "of the shard and of its pieces"
        (line,) = cv.Ledger(tmp_path / "ledger").spent().releases
        assert line["documents"] == totals["documents"]
        assert cv.plan(path, make_release(ground.space), on_bad_rows="drop").documents == 27 * 450
        with refused("wrong-setting", "on_bad_rows = 'dorp'", "did you mean drop?"):
            cv.plan(path, make_release(ground.space), on_bad_rows="dorp")


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".csv.gz"])
def test_a_run_ends_with_the_names_of_columns_that_it_did_not_copy(ground: Ground, tmp_path: Path, suffix: str) -> None:
    """``all`` and ``*`` are names of columns like any others."""
    source = write(tmp_path / f"x{suffix}", DOCUMENTS)
    for keep, left in ((["id", "note"], ""), (["note"], "id"), ([], "id, note")):
        more = [word for column in keep for word in ("--keep", column)]
        *_, last = succeeds(*ground.arguments(source, tmp_path / f"out {left}", "--id", "id", *more)).out.splitlines()
        assert last.startswith(f"not copied: {left} (" if left else "copied in the clear: id, note")
    for name in ("all", "*"):
        fails(ground.arguments(source, tmp_path / "no", "--keep", name), "unsuitable-data", f"no column {name!r}")


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
