"""Hostile files, one per line: name, bytes, further options and the expected sentence. Every file holds a secret."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from pyarrow.parquet import encryption

from corpusveil.errors import UserError
from tests.calls import command
from tests.engines.corpora import UNKNOWN, Ground, packed
from tests.storage.test_values import OTHERS

SECRET = UNKNOWN.encode()
SENTENCE = b"bababa dedede kikiki " + SECRET
SOUND = {"jsonl": b'{"text": "' + SENTENCE + b'"}\n', "csv": SENTENCE + b"\n", "txt": SENTENCE + b"\n"}
HEADER = {"jsonl": b"", "csv": b"text\n", "txt": b""}


@dataclass(frozen=True)
class Hostile:
    """A file that can't be read as it should, or can't with these options."""

    name: str
    file: str
    data: bytes
    said: str
    more: tuple[str, ...] = ()


def text_of(form: str, rows: int = 3000) -> bytes:
    """Return a sound file of different rows."""
    lines = [SOUND[form].replace(b"kikiki", b"kikiki %d" % number) for number in range(rows)]
    return HEADER[form] + b"".join(lines)


def compressed() -> Iterator[Hostile]:
    """Damage to compressed files: every codec and every form of lines, not each with each."""
    cut, unsound = "ends in the middle of its compressed data", "not a valid"
    for form, codec in (("jsonl", "gz"), ("csv", "zst"), ("txt", "gz")):
        data, file = text_of(form), f"x.{form}.{codec}"
        whole = packed(data, codec)
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 0x55
        checksum = whole[:-1] + bytes([whole[-1] ^ 1])
        other = "this gzip file is damaged" if codec == "gz" else unsound
        for name, damaged, said in (
            ("the last byte missing", whole[:-1], cut),
            ("cut in the second member", whole + whole[: len(whole) // 3], cut),
            ("not compressed", data, other),
            ("another compression", packed(data, "zst" if codec == "gz" else "gz"), other),
            ("rubbish after it", whole + SECRET * 3, unsound),
            ("a wrong byte in the middle", bytes(flipped), ""),
            ("a wrong checksum", checksum, unsound),
        ):
            yield Hostile(name, file, damaged, said)


def parquet_of(columns: dict[str, Any], **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


class Keys(encryption.KmsClient):
    """A store of keys that keeps none secret."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return key_bytes.hex().encode()


def parquet() -> Iterator[Hostile]:
    """Files that are not Parquet, and columns that are not text."""
    whole = parquet_of({"text": [SENTENCE.decode()] * 500, "id": range(500)}, compression="none")
    names = pa.schema([("text", pa.string()), ("text", pa.string())])
    twice = io.BytesIO()
    pq.write_table(pa.table([["a"], [UNKNOWN]], schema=names), twice)
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    sums = parquet_of({"text": [SENTENCE.decode()]}, write_page_checksum=True, **plain)
    encrypted, keys = io.BytesIO(), encryption.EncryptionConfiguration(footer_key="k", uniform_encryption=True)
    crypto = encryption.CryptoFactory(lambda _: Keys()).file_encryption_properties(
        encryption.KmsConnectionConfig(), keys
    )
    with pq.ParquetWriter(encrypted, names, encryption_properties=crypto) as writer:
        writer.write_table(pa.table([["a"], [UNKNOWN]], schema=names))
    not_utf8 = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\x09\0\0\0"), pa.py_buffer(SECRET + b"\xff"))
    for name, data, said in (
        ("empty", b"", "not a valid Parquet file"),
        ("a hole in it", whole[:8] + bytes(400) + whole[408:], "not a valid Parquet file"),
        ("no text column", parquet_of({"body": [UNKNOWN]}), "there is no column 'text'"),
        ("two text columns", twice.getvalue(), "there are several columns 'text'"),
        ("numbers", parquet_of({"text": [1, 2]}), "is of type int64, not text"),
        ("bytes", parquet_of({"text": [SECRET]}), "is of type binary, not text"),
        ("not UTF-8", parquet_of({"text": not_utf8}), "text that is not UTF-8"),
        ("a wrong checksum of a page", sums.replace(b"dedede", b"dededa", 1), "not a valid Parquet file"),
        ("encrypted", encrypted.getvalue(), "encrypted"),
    ):
        yield Hostile(name, "x.parquet", data, said)
    table = {"text": [UNKNOWN, "a"], "n": [1, None], "f": [0.5, 1.5], "k": pa.concat_arrays([not_utf8, not_utf8])}
    for name, more, said in (
        ("an id that is null", ("--id", "n"), "row 2: the id column 'n' is empty"),
        ("an id that is a float", ("--id", "f"), "the id column 'f' is double"),
        ("no id column", ("--id", "m"), "there is no column 'm'"),
        ("a kept column that is not UTF-8", ("--keep", "k"), "not UTF-8"),
    ):
        yield Hostile(name, "x.parquet", parquet_of(table), said, more)
    for name, column in OTHERS.items():
        said = f"{name}: a kept column has strings"
        yield Hostile(name, "x.parquet", parquet_of({"text": ["bababa"], name: column}), said, ("--keep", name))


def rows() -> Iterator[Hostile]:
    """A sound row, followed by an unsound one."""
    not_json, no_object = "row 2: not valid JSON", "row 2: not a JSON object"
    column, not_text = "row 2: has no column 'text'", "row 2: column 'text' is not text"
    for name, line, said in (
        ("half a line", b'{"text": "' + SECRET, not_json),
        ("Latin-1", b'{"text": "caf\xe9 ' + SECRET + b'"}', not_json),
        ("a lone high surrogate", b'{"text": "\\ud800' + SECRET + b'"}', not_json),
        ("NaN", b'{"text": "", "n": NaN, "s": "' + SECRET + b'"}', not_json),
        ("a deep nest", b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", not_json),
        ("another column", b'{"txt": "' + SECRET + b'"}', column),
        ("a number for text", b'{"text": 17}', not_text),
        ("an object for text", b'{"text": {"text": "' + SECRET + b'"}}', not_text),
        ("a list", b'["' + SECRET + b'"]', no_object),
    ):
        yield Hostile(name, "x.jsonl", SOUND["jsonl"] + line + b"\n", said)
    for name, line, said in (
        ("Latin-1", b"caf\xe9 " + SECRET, "row 2: not valid UTF-8"),
        ("a cut character", SECRET + b"\xf0\x9f\xa7", "row 2: not valid UTF-8"),
    ):
        yield Hostile(name, "x.txt", SOUND["txt"] + line + b"\n", said)
        yield Hostile(name, "x.csv", text_of("csv", 1) + line + b"\n", "row 2: not valid CSV")
    for name, line, said in (
        ("a field too many", b"a," + SECRET, "row 2: not valid CSV"),
        ("an open quote", b'"' + SECRET, "line 3: not valid CSV"),
        ("text behind a quote", b'"' + SECRET + b'"a', "line 3: not valid CSV"),
        ("a quote in a cell", b'a "' + SECRET + b'" b', "line 3: not valid CSV"),
        ("a lone carriage return", b"a\rb " + SECRET, "not valid CSV"),
    ):
        yield Hostile(name, "x.csv", text_of("csv", 1) + line + b"\n", said)
    for name, header, said in (
        ("a header without the column", b"body,other", "names no column 'text', and has 2 fields;"),
        ("words in place of a header", SECRET + b",ill", "names no column 'text', and has 2 fields;"),
        ("a header with a character that does not print", b"t\0ext,other", "and has 2 fields; if it"),
        ("a header with it twice", b"text,text", "names several columns 'text'"),
        ("a header that is not UTF-8", b"text,\xff", "the first line, which names the columns, is not valid CSV"),
        ("a header with an open quote", b'"text', "the first line"),
    ):
        yield Hostile(name, "x.csv", header + b"\n" + SECRET + b",x\n", said)


def columns() -> Iterator[Hostile]:
    """Columns that are not there, or not what they have to be, in sound files."""
    json = b'{"text": "' + SENTENCE + b'", "f": 1.5, "n": null, "b": true, "l": [1], "o": {}}\n'
    for name in "fnblo":
        what = "empty" if name == "n" else "neither a string nor a whole number"
        said = f"row 1: the id column {name!r} is {what}"
        yield Hostile(f"the id column {name}", "x.jsonl", json, said, ("--id", name))
    table = b"text,a\n" + SENTENCE + b",1\n"
    for more, said in (
        (("--id", "m"), "'m'"),
        (("--keep", "m"), "'m'"),
        (("--text", "m"), "'m'"),
        (("--keep", "text"), "text: the text column cannot be kept"),
        (("--keep", "a", "--keep", "a"), "named twice"),
    ):
        yield Hostile(" ".join(more), "x.csv", table, said, more)
    values = b"text," + SECRET + b" Zyx,1\n" + SENTENCE + b",1,2\n"
    yield Hostile("values beside a name in the first line", "x.csv", values, "names no column 'm'", ("--id", "m"))
    for more in (("--id", "a"), ("--keep", "a")):
        yield Hostile(" ".join(more), "x.txt", SENTENCE, f"{more[0][2:]} a: plain text has no other columns", more)


def whole_files() -> Iterator[Hostile]:
    """Files in another encoding, with what mends them, and uploads that failed."""
    for form, line in SOUND.items():
        text = (HEADER[form] + line).decode().replace("kikiki", "k\xf6")
        for encoding, said in (
            ("utf-16", "iconv -f UTF-16 -t UTF-8"), ("latin-1", "iconv -f LATIN1 -t UTF-8"),
            ("utf-32", "iconv -f UTF-32 -t UTF-8"), ("utf-16-be", "second byte"), ("utf-16-le", "iconv -f UTF-16LE"),
        ):  # fmt: skip
            yield Hostile(encoding, f"x.{form}", text.encode(encoding), said)
            yield Hostile(encoding, f"x.{form}", text.encode(encoding), said, ("--rows-per-task", "8192"))
    lines, packing = SOUND["jsonl"], zstandard.ZstdCompressionParameters(window_log=30)
    words = zstandard.train_dictionary(500, [b"abcdefgh %d hello" % k for k in range(900)])
    for compressor, said in (
        (zstandard.ZstdCompressor(compression_params=packing), "--long"),
        (zstandard.ZstdCompressor(dict_data=words), "needs a dictionary"),
    ):
        stream = compressor.compressobj()
        yield Hostile(said, "x.jsonl.zst", stream.compress(lines * 99) + stream.flush(), said)
    array, workbook = b'[\n{"text": "' + SECRET + b'"}\n]', b"PK\3\4" + SECRET
    for name, data, said in (
        ("x.json", array, "jq -c '.[]'"), ("x.jsonl", array.replace(b"\n", b""), "jq -c '.[]'"),
        ("x.json", b'{\n"text": "' + SECRET + b'"\n}', "jq -c '.'"), ("x.xlsx", workbook, "use one of the endings"),
        ("x.csv", workbook, "workbook of Excel"),
    ):  # fmt: skip
        yield Hostile("another form", name, data, said)
    archive = tarfile.TarInfo("x.txt").tobuf() + SECRET
    for name, data, said in (
        ("x.txt", archive, "archive of tar"), ("x.txt.gz", packed(packed(SECRET, "gz"), "gz"), "packed twice"),
        ("x.jsonl", packed(lines, "gz"), "name in .gz"), ("x.csv", packed(lines, "zst"), "name in .zst"),
        ("x.txt", parquet_of({"text": [UNKNOWN]}), "Parquet"), ("x.txt", b"%PDF-1.7\n" + SECRET, "PDF"),
        ("x.txt", b"{\\rtf1 " + SECRET, "RTF"), ("x.txt", SECRET + b"\r" + SECRET, "carriage return"),
        ("x.txt.gz", packed(SECRET + b"\r" + SECRET + b"\n", "gz"), "tr "),
        ("x.jsonl.gz", lines, "this gzip file is damaged"),
        ("x.txt", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    ):  # fmt: skip
        yield Hostile("another file", name, data, said)
    for name, codec in (("x.json.gz", "gzip"), ("x.csv.gz", "gzip"), ("x.txt.zst", "zstd")):
        yield Hostile("empty", name, b"", f"has 0 bytes, and a {codec} file never has; its upload has probably failed")


KINDS = (compressed, parquet, rows, columns, whole_files)


@pytest.mark.parametrize(("kind", "drop"), [
    *((kind, False) for kind in KINDS), *((kind, True) for kind in (parquet, rows)),
    *(pytest.param(kind, True, marks=pytest.mark.nightly) for kind in (compressed, columns, whole_files)),
])  # fmt: skip
def test_is_one_sentence(ground: Ground, tmp_path: Path, kind: Callable[[], Iterator[Hostile]], drop: bool) -> None:
    """The file is named, nothing private is said, no half shard appears, the input stays as it was."""
    more = ("--on-bad-rows", "drop") if drop else ()
    for number, hostile in enumerate(kind()):
        folder = tmp_path / str(number)
        source, output = folder / hostile.file, folder / "out"
        folder.mkdir()
        source.write_bytes(hostile.data)
        ended = command(*ground.arguments(source, output, *hostile.more, *more))
        assert UNKNOWN not in ended.err + ended.out, hostile
        assert "Traceback" not in ended.err, hostile
        assert source.read_bytes() == hostile.data, hostile
        if drop and ended.status == 0:
            assert ", row " not in ended.err, hostile
            assert " dropped; the private records name the first ones" in ended.err, hostile
            assert not [path for path in output.rglob("*") if path.is_file() and SECRET in path.read_bytes()], hostile
            continue
        assert ended.status == 2, hostile
        (sentence,) = ended.err.splitlines()
        assert sentence.startswith("corpusveil: "), hostile
        assert hostile.said in sentence, (hostile, sentence)
        assert hostile.more or str(source) in sentence, hostile
        assert not [*output.rglob("*part*"), *output.rglob("manifest.json")], hostile


def test_a_name_with_line_breaks_or_commands_for_a_terminal_is_escaped_in_one_line() -> None:
    for name, said in (("a\nb", r"a\nb"), ("a\u2028b", r"a\u2028b"), ("\x1b[2J", r"\x1b[2J"), ("été 東", "été 東")):
        assert str(UserError(f"x.csv, {name}: there is no such column.")) == f"x.csv, {said}: there is no such column."
