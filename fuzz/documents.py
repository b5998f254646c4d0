"""Documents: JSON lines, CSV, plain text and Parquet, each plain or compressed."""

from __future__ import annotations

import functools
import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpusveil.storage import compression, files, formats, forms, rows
from corpusveil.storage.forms import parquet
from corpusveil.storage.rows import JSON, Batch, Columns
from corpusveil.storage.values import as_json, as_strings
from corpusveil.text import markup
from fuzz.containers import RAW, Choices, changed, one, packed, pieces
from fuzz.invariant import CANARY, Reader, need, need_sentence, refused

BLOCK = 4
rows.BLOCK_ROWS = forms.BLOCK_ROWS = BLOCK  # small sizes, so that small inputs have every kind of boundary
rows.BATCH_BYTES = forms.BATCH_BYTES = 48
parquet._READ_ROWS = 3
compression.CHUNK_BYTES = 24

CHOICES = (Columns(), Columns(id="id"), Columns(keep=("a",)), Columns(id="a", keep=("id", "a")))
"""The columns that are read, by two bits of the first byte."""
JSON_LINES = [
    f'{{"text": "{CANARY} one", "id": 1, "a": [1, {{"b": "{CANARY}"}}]}}',
    f'{{"id": "x", "a": 123456789012345678901234567890, "text": "\\ud83e\\uddff\\n{CANARY}"}}',
    '{"text": "", "id": -9223372036854775808, "a": null}',
    '{"text": null, "id": "", "a": 0}',
    '{"a": 1.5e300, "text": "\\"", "id": 18446744073709551615, "text": "twice"}',
]
CSV_LINES = ["text,id,a", f"{CANARY} one,1,x", f'"a ""quoted"" {CANARY},\nline",2,"', '"', '"",3,é', "\r"]
TEXT_LINES = [f"{CANARY} one", "", "é\u2028", "carriage\r"]
LINES = {"jsonl": JSON_LINES, "csv": CSV_LINES, "txt": TEXT_LINES}


@dataclass
class Rows:
    """Every valid row of a file, and the faults of other rows."""

    numbers: list[int]
    texts: list[str | None]
    ids: list[Any] | None
    kept: list[list[Any]]
    bad: list[tuple[int, str]]
    stop: int


def plain(column: pa.Array) -> list[Any]:
    return (column.storage if column.type == JSON else column).to_pylist()


def gather(batches: Sequence[Batch], columns: Columns) -> Rows:
    found = Rows([], [], None if columns.id is None else [], [[] for _ in columns.keep], [], 0)
    for batch in batches:
        batch.texts.validate(full=True)
        sizes = {len(batch.numbers), len(batch.texts), *map(len, batch.kept)}
        need(len(sizes) == 1 and (batch.ids is None or len(batch.ids) in sizes), "columns of different lengths")
        found.numbers += batch.numbers
        found.texts += batch.texts.to_pylist()
        if found.ids is not None:
            found.ids += batch.ids or []
        for values, column in zip(found.kept, batch.kept, strict=True):
            values.extend(plain(column))
        found.bad += [(bad.number, bad.why) for bad in batch.bad]
        found.stop = batch.stop
    return found


def read(path: Path, columns: Columns, start: int = 0, stop: int | None = None) -> list[Batch]:
    form = formats.find(formats.form_of(path.name))
    with files.open_read(str(path)) as file:
        return list(form.batches(file, str(path), columns, start, stop))


def check(data: bytes, folder: Path, suffix: str) -> None:
    """Read rows whole and in parts, against other readers, and again after they were written in every form."""
    path = folder / f"x{suffix}"
    choice, content = data[:1] or b"\0", data[1:]
    columns = Columns() if ".txt" in suffix else CHOICES[choice[0] & 3]
    path.write_bytes(_file(content, suffix, raw=bool(choice[0] & RAW)))
    batches = refused(lambda: read(path, columns), path)
    if batches is None:
        return
    whole = gather(batches, columns)
    for number, why in whole.bad:
        need_sentence(f"{path}, row {number + 1}: {why}", str(path))
    numbers = sorted([*whole.numbers, *(number for number, _ in whole.bad)])
    need(numbers == list(range(len(numbers))), "rows that are not numbered one after the other")
    form = formats.find(suffix)
    with files.open_read(str(path)) as file:
        need(form.rows(file, str(path)) == len(numbers), "another number of rows than was read")
    need(not numbers or whole.stop == len(numbers), "a last batch that stops elsewhere")
    for border in {BLOCK, len(numbers) // 2 // BLOCK * BLOCK} - {0}:
        parts = gather([*read(path, columns, 0, border), *read(path, columns, border)], columns)
        parts.stop = whole.stop
        need(parts == whole, "other rows when the file is read in parts")
    if ".jsonl" in suffix:
        _against_json(packed_lines(path, suffix), whole, columns)
    with files.open_read(str(path)) as file:
        types = form.kept_types(file, str(path), columns)
    for target in {suffix, (".jsonl", ".csv", ".parquet")[(choice[0] >> 2) % 3]}:
        _round_trip(batches, columns, types, folder / f"y{target}", target)


def packed_lines(path: Path, suffix: str) -> list[bytes]:
    """Return the lines of a file that are not blank."""
    with files.open_read(str(path)) as file:
        codec: Any = next(one for one in (".gz", ".zst", "") if suffix.endswith(one))
        data = b"".join(compression.chunks(file, str(path), codec))
    return [line for line in data.split(b"\n") if line.strip()]


def _against_json(lines: list[bytes], whole: Rows, columns: Columns) -> None:
    for place, number in enumerate(whole.numbers):
        value = json.loads(lines[number])
        need(value[columns.text] == whole.texts[place], "another text than the json module reads")
        need(whole.ids is None or value[str(columns.id)] == whole.ids[place], "another id than the json module reads")
        for name, values in zip(columns.keep, whole.kept, strict=True):
            need(json.loads(values[place]) == value[name], "another kept value than the json module reads")


def _round_trip(
    batches: Sequence[Batch], columns: Columns, types: Sequence[pa.DataType], path: Path, suffix: str
) -> None:
    form, columns = formats.find(suffix), Columns(columns.text, None, columns.keep)
    with path.open("wb") as sink:
        writer = form.writer(sink, columns, hashlib.sha256(), types)
        for batch in batches:
            if batch.numbers:
                writer.write(batch.texts, batch.kept)
            if batch.stop % BLOCK == 0:
                writer.end_block()
        if batches and batches[-1].stop % BLOCK:
            writer.end_block()
        writer.close()
    before = gather(batches, columns)
    after = gather(read(path, columns), columns)
    need(not after.bad, f"rows that can't be read again from {suffix}")
    texts = before.texts
    if ".csv" in suffix or ".txt" in suffix:
        texts = [text or "" for text in texts]
    if ".txt" in suffix:
        texts = [
            str(text).lstrip("\ufeff").replace("\r\n", " ").replace("\n", " ").replace("\r", " ") for text in texts
        ]
    need(after.texts == texts, f"other texts when they are read again from {suffix}")
    kept = [[value for batch in batches for value in _written(batch.kept[k], suffix)] for k in range(len(columns.keep))]
    need(repr(after.kept) == repr(kept), f"other kept values when they are read again from {suffix}")


def _written(column: pa.Array, suffix: str) -> list[Any]:
    """Return the values of a kept column as a form writes them."""
    if ".csv" in suffix:
        return [value or "" for value in as_strings(column).to_pylist()]
    if ".jsonl" in suffix:
        return as_json(column).to_pylist()
    return plain(as_strings(column) if column.type == JSON else column)


def _file(content: bytes, suffix: str, *, raw: bool) -> bytes:
    if suffix != ".parquet":
        codec = next((one for one in (".gz", ".zst") if suffix.endswith(one)), "")
        return packed(content, codec, raw=raw)
    return content if raw else _table(content)


KINDS = (
    pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.null(), pa.int64(),
    pa.uint64(), pa.binary(), pa.float64(), pa.list_(pa.string()), pa.struct([("b", pa.int32())]), pa.bool_(),
    pa.timestamp("ns", "UTC"), pa.decimal128(38, 9), pa.date32(), pa.time64("ns"), pa.duration("s"),
    pa.map_(pa.string(), pa.int64()), pa.float16(), pa.dictionary(pa.int8(), pa.large_string()),
)  # fmt: skip


def _table(content: bytes) -> bytes:
    """Return a Parquet file of a table that bytes describe, with further bytes as edits."""
    described, edits = pieces(content, 2)
    given = Choices(described)
    size = given.number(0, 20)
    table = {}
    for name in ("text", "id", "a"):
        kind = KINDS[given.number(0, 24) % len(KINDS)] if name != "text" else KINDS[given.number(0, 5)]
        table[name] = _column(given, kind, size)
    sink = io.BytesIO()
    size, codec = given.number(1, 8), ("none", "snappy", "zstd", "gzip")[given.number(0, 3)]
    pq.write_table(
        pa.table(table), sink, row_group_size=size, compression=codec, use_dictionary=bool(given.number(0, 1)),
        data_page_version=("1.0", "2.0")[given.number(0, 1)], store_schema=bool(given.number(0, 1)),
        write_statistics=bool(given.number(0, 1)),
    )  # fmt: skip
    return changed(sink.getvalue(), edits)


def _column(given: Choices, kind: pa.DataType, size: int) -> pa.Array:
    def value() -> Any:
        if given.number(0, 9) == 9:
            return None
        number = given.integer()
        text = CANARY + given.text(6)
        return {
            "list<item: string>": [text], "struct<b: int32>": {"b": number}, "bool": number > 0,
            "binary": text.encode(),
            "map<string, int64>": [(text, number)], "float": number / 7, "double": number / 7, "halffloat": 0.5,
            "date32[day]": abs(number) % 9999, "decimal128(38, 9)": number, "time64[ns]": abs(number),
        }.get(str(kind), abs(number) if _is_number(kind) else text)  # fmt: skip

    if pa.types.is_dictionary(kind):
        return pa.array([value() for _ in range(size)], kind.value_type).dictionary_encode().cast(kind)
    if pa.types.is_null(kind):
        return pa.nulls(size)
    return pa.array([value() for _ in range(size)], kind)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_temporal(kind)


def line_seeds(form: str, codec: str) -> Iterator[bytes]:
    data = "\n".join(LINES[form]).encode()
    for choice in range(4):
        yield bytes([choice]) + data
        yield bytes([choice + 4]) + data.replace(b"\n", b"\r\n") + b"\n"
    yield bytes([RAW]) + packed(data, codec, raw=False)
    yield b"\0\xef\xbb\xbf" + data * 3


def parquet_seeds() -> Iterator[bytes]:
    for choice in range(4):
        for fill in (0, 60, 130, 255):
            described = bytes((fill + 7 * k) % 256 for k in range(400))
            yield bytes([choice]) + one(described, bytes(6))
    yield bytes([RAW]) + _table(one(bytes(range(200)), b""))
    table = pa.table({"text": [f"{CANARY} {k}" for k in range(9)], "id": list(range(9)), "a": [[k] for k in range(9)]})
    for options in ({"compression": "none", "use_dictionary": False}, {"compression": "zstd"}):
        sink = io.BytesIO()
        pq.write_table(table, sink, **options)
        yield bytes([RAW | 3]) + sink.getvalue()


def check_markup(data: bytes, folder: Path) -> None:  # noqa: ARG001 - no file is read
    """Read HTML: no text is refused, and what is hidden in it does not show."""
    text = data.decode("utf-8", "replace")
    (read,) = markup.plain_texts(pa.array([text], pa.large_string())).to_pylist()
    need(read == markup.plain(text), "another text in a column")
    hidden = f'<p title="{CANARY}">{text.replace(CANARY, "")}' if not set("<>") & set(text) else ""
    need(CANARY not in markup.plain(hidden), "an attribute that shows")


def markup_seeds() -> Iterator[bytes]:
    for part in (
        f'<p class="{CANARY}">a<br/>b &amp; c</p>', f"<a href='{CANARY} > '>x</a>", f"<!-- {CANARY} --><{CANARY}>",
        f"<script>{CANARY}</script><style>", "<![CDATA[ a < b ]]>", "<!DOCTYPE html><?xml?>",
        "1 < 2 > 0 &#x41; &lt;b&gt;",
    ):  # fmt: skip
        yield part.encode()
        yield f"{part} é {part}".encode()


def readers() -> Iterator[Reader]:
    yield Reader("markup", markup_seeds, check_markup)
    for form in LINES:
        for codec in ("", ".gz", ".zst"):
            suffix = f".{form}{codec}"
            seeds = functools.partial(line_seeds, form, codec)
            yield Reader(suffix[1:], seeds, functools.partial(check, suffix=suffix))
    yield Reader("parquet", parquet_seeds, functools.partial(check, suffix=".parquet"))
