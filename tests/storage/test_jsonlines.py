"""JSON lines: errors name file and row of a fault, and nothing is half written."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

from corpusveil.storage.formats import find
from corpusveil.storage.rows import BLOCK_ROWS, Columns
from tests.calls import fails, succeeds
from tests.engines.corpora import UNKNOWN, Ground, data_files, encode, read_shard, rows

GOOD = b'{"text": "bababa"}\n'
SECRET = UNKNOWN.encode()
JSON_LINES, JSON_LINES_GZIP = find(".jsonl"), find(".jsonl.gz")


def place(folder: Path, data: bytes, name: str = "bad.json.gz") -> Path:
    """Write a sound shard and, behind it, one with these bytes."""
    folder.mkdir(exist_ok=True)
    (folder / "a.json.gz").write_bytes(gzip.compress(GOOD))
    (folder / name).write_bytes(data)
    return folder


class TestWrongInput:
    """Which input is wrong is a table of tests/hostile."""

    def test_is_said_by_file_and_row(self, ground: Ground, tmp_path: Path) -> None:
        lines = GOOD * (BLOCK_ROWS + 5) + b'{"text": "' + SECRET + b'"\n' + GOOD
        source, output = place(tmp_path / "in", gzip.compress(lines)), tmp_path / "out"
        said = fails(ground.arguments(source, output), "bad-shards", f"{source}/bad.json.gz, row {BLOCK_ROWS + 6}: ")
        assert UNKNOWN not in said
        assert [path.name for path in output.rglob("*") if path.is_file()] == ["part-00000-of-00002.json.gz"]

    def test_compression_is_said_by_file_whose_rows_are_ranges_too(self, ground: Ground, tmp_path: Path) -> None:
        whole = gzip.compress(encode(rows(500, 0)))
        stored = bytearray(gzip.compress(encode(rows(500, 0)), 0))  # a flipped byte is one of the text, too
        stored[stored.index(b"text", len(stored) // 2)] ^= 1
        cut, false_sum = whole + whole[:200], whole[:-8] + bytes(8)
        for data, said in ((cut, "ends in the middle"), (false_sum, "gzip file is damaged"), (stored, "is damaged")):
            arguments = ground.arguments(place(tmp_path / "in", data), tmp_path / "out", "--rows-per-task", BLOCK_ROWS)
            fails(arguments, "bad-shards", "bad.json.gz: ", said)
            assert not (tmp_path / "out" / "manifest.json").exists()


class TestUnusualInput:
    def test_gives_a_row_for_each(self) -> None:
        for data, texts in (
            (b"", []),
            (b"\n\n", []),
            (GOOD.strip(), ["bababa"]),
            (b"\n" + GOOD + b"\n  \n" + GOOD + b"\n", ["bababa"] * 2),
            (GOOD.replace(b"\n", b"\r\n") * 3, ["bababa"] * 3),
            (b'{"text": "a\\nb\\u2028c"}\n' + '{"text": "\u2028\u0085"}'.encode(), ["a\nb\u2028c", "\u2028\u0085"]),
            (b'  {"text" :\t"x"}  \n', ["x"]),
        ):
            for form, file in ((JSON_LINES, data), (JSON_LINES_GZIP, gzip.compress(data))):
                batches = form.batches(io.BytesIO(file), "x", Columns())
                assert [text for batch in batches for text in batch.texts.to_pylist()] == texts, data
                assert form.rows(io.BytesIO(file), "x") == len(texts), data

    def test_another_text_column_keeps_its_name(self, ground: Ground, tmp_path: Path) -> None:
        (tmp_path / "one.json").write_bytes(b'{"text": "kept out", "re\\"view": "bababa bababa"}\n')
        succeeds(*ground.arguments(tmp_path / "one.json", tmp_path / "out", "--text", 're"view'))
        (row,) = read_shard(data_files(tmp_path / "out")[0])
        assert list(row) == ['re"view']


class TestKeptColumns:
    VALUES: tuple[str, ...] = (
        '"caf\u00e9 \\" \\\\ \\u0000 \u2028 \U0001f9ff"', '""', "0", "-1", "9007199254740993", "18446744073709551615",
        "0.1", "1e-300", "-0.0", "1.0", "true", "null", "[]", "{}", '{"b": [1, {"a": null}], "a": ["x", 0.25]}',
        "18446744073709551616", "123456789012345678901234567890", "[-99999999999999999999]",
    )  # fmt: skip

    def test_survive_as_they_are_however_large_the_number(self, ground: Ground, tmp_path: Path) -> None:
        lines = [f'{{"secret": "{UNKNOWN}", "kept": {value}, "text": "bababa"}}\n' for value in self.VALUES]
        (tmp_path / "one.json").write_text("".join(lines))
        succeeds(*ground.arguments(tmp_path / "one.json", tmp_path / "out", "--keep", "kept"))
        text = data_files(tmp_path / "out")[0].read_text()
        assert UNKNOWN not in text
        written = [json.loads(line, parse_int=str, parse_float=str) for line in text.split("\n")[:-1]]
        assert {tuple(row) for row in written} == {("text", "kept")}
        assert [row["kept"] for row in written] == [json.loads(v, parse_int=str, parse_float=str) for v in self.VALUES]
