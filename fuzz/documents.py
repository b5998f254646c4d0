"""Documents: JSON lines, CSV, plain text and Parquet, plain and compressed."""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpusveil.storage import compression, files, formats, forms, rows
from corpusveil.storage.forms import parquet
from corpusveil.storage.rows import Batch, Columns
from fuzz.invariant import CANARY, RAW, Reader, changed, need, need_sentence, packed, refused

BLOCK = 4
rows.BLOCK_ROWS = forms.BLOCK_ROWS = BLOCK  # small sizes, so that small inputs have every kind of boundary
rows.BATCH_BYTES = forms.BATCH_BYTES = 48
parquet._READ_ROWS = 3
compression.CHUNK_BYTES = 24

CHOICES = (Columns(), Columns(id="id"), Columns(keep=("a",)), Columns(id="a", keep=("id", "a")))
"""The columns that are read, by two bits of the first byte."""
JSON_LINES = [
    f'{{"text": "{CANARY} one", "id": 1, "a": "{CANARY}"}}',
    f'{{"id": "x", "a": 123456789012345678901234567890, "text": "\\ud83e\\uddff\\n{CANARY}"}}',
    '{"text": "", "id": -9223372036854775808, "a": null}',
    '{"text": null, "id": "", "a": 0}',
    '{"a": 1.5e300, "text": "\\"", "id": 18446744073709551615, "text": "twice"}',
]
LINES = {
    "jsonl": JSON_LINES,
    "csv": ["text,id,a", f"{CANARY} one,1,x", f'"a ""quoted"" {CANARY},\nline",2,"', '"', '"",3,é', "\r"],
    "txt": [f"{CANARY} one", "", "é\u2028", "carriage\r"],
}


@dataclass
class Rows:
    """Every valid row of a file, and the faults of other rows."""

    numbers: list[int]
    texts: list[str | None]
    ids: list[Any] | None
    kept: list[list[Any]]
    bad: list[tuple[int, str]]
    stop: int


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
            values.extend(column.to_pylist())
        found.bad += [(bad.number, bad.why) for bad in batch.bad]
        found.stop = batch.stop
    return found


def read(path: Path, columns: Columns, start: int = 0, stop: int | None = None) -> list[Batch]:
    form = formats.form_of(path.name)
    with files.open_read(str(path)) as file:
        return list(form.batches(file, str(path), columns, start, stop))


def check(data: bytes, folder: Path, suffix: str) -> None:
    """Read rows whole and in parts."""
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
        need(form.count_rows(file, str(path)) in (None, len(numbers)), "another number of rows than was read")
    need(not numbers or whole.stop == len(numbers), "a last batch that stops elsewhere")
    for border in {BLOCK, len(numbers) // 2 // BLOCK * BLOCK} - {0}:
        parts = gather([*read(path, columns, 0, border), *read(path, columns, border)], columns)
        parts.stop = whole.stop
        need(parts == whole, "other rows when the file is read in parts")


def _file(content: bytes, suffix: str, *, raw: bool) -> bytes:
    if suffix == ".parquet":
        return content if raw else changed(_table(compression="none", use_dictionary=False), content)
    return packed(content, next((one for one in (".gz", ".zst") if suffix.endswith(one)), ""), raw=raw)


def _table(**options: Any) -> bytes:
    texts, sink = [f"{CANARY} {k}" for k in range(9)], io.BytesIO()
    pq.write_table(pa.table({"text": texts, "id": list(range(9)), "a": texts}), sink, **options)
    return sink.getvalue()


def line_seeds(form: str, codec: str) -> Iterator[bytes]:
    data = "\n".join(LINES[form]).encode()
    for choice in range(4):
        yield bytes([choice]) + data
        yield bytes([choice + 4]) + data.replace(b"\n", b"\r\n") + b"\n"
    yield bytes([RAW]) + packed(data, codec, raw=False)
    yield b"\0\xef\xbb\xbf" + data * 3


def parquet_seeds() -> Iterator[bytes]:
    for choice in range(4):
        yield bytes([choice]) + bytes(6)
    for options in ({"compression": "none", "use_dictionary": False}, {"compression": "zstd"}):
        yield bytes([RAW | 3]) + _table(**options)


def readers() -> Iterator[Reader]:
    for form in LINES:
        for codec in ("", ".gz"):
            suffix = f".{form}{codec}"
            seeds = functools.partial(line_seeds, form, codec)
            yield Reader(suffix[1:], seeds, functools.partial(check, suffix=suffix))
    yield Reader("parquet", parquet_seeds, functools.partial(check, suffix=".parquet"))
