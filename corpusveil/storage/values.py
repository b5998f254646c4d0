"""Kept values between forms: as JSON text, and as strings; and texts within values, in the place of others."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
from itertools import chain, pairwise
from typing import Any

import orjson
import pyarrow as pa

from corpusveil.errors import listed
from corpusveil.storage.json_text import quoted
from corpusveil.storage.nested import Path, filled
from corpusveil.storage.rows import JSON, Batch, Columns

HOLE = b"\0"
"""What stands in JSON text in the place of a text, and nowhere else: JSON escapes it."""


def _plain(value: Any) -> Any:
    """Return JSON values for types that JSON lacks."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (dt.datetime, dt.date, dt.time)):  # a time stamp of pandas
        return value.isoformat()
    if isinstance(value, (decimal.Decimal, dt.timedelta)):
        return str(value)
    raise TypeError(type(value).__name__)


def as_json(column: pa.Array) -> list[bytes]:
    """Return each value of a kept column as JSON text: bytes as base64, times as ISO 8601, decimals as strings."""
    if column.type == JSON:
        values: list[bytes] = column.storage.cast(pa.large_binary()).to_pylist()
        return values
    return [orjson.dumps(value, _plain, orjson.OPT_NON_STR_KEYS) for value in column.to_pylist()]


def as_strings(column: pa.Array) -> pa.Array:
    """Return a kept column as large_string [N]: strings and nulls unchanged, other values as JSON text."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column.cast(pa.large_string())
    values = [
        None if text == b"null" else orjson.loads(text) if text.startswith(b'"') else text.decode()
        for text in as_json(column)
    ]
    return pa.array(values, type=pa.large_string())


def beside(batch: Batch, path: Path) -> str:
    """Return the names of fields beside texts, and beside what they lie in, that rows of a batch have."""
    column: pa.Array = batch.around
    values: list[Any] = (
        [orjson.loads(text.replace(HOLE, b"null")) for text in as_json(column)]
        if column.type == JSON
        else column.to_pylist()
    )
    names = []
    for many, step in enumerate(path.steps):
        there = [value for value in values if value is not None]
        if step is None:
            values = [item for value in there for item in value]
        else:
            others = dict.fromkeys(name for value in there for name in value if name != step)
            names += [f"{listed(others)} in {path.name(many)}"] if others else []
            values = [value[step] for value in there]
    return "; ".join(names)


def written(batch: Batch, texts: pa.Array, columns: Columns) -> pa.Array:
    """Return the text column [N] of a batch as it is written, with other texts large_string [D]."""
    if batch.around is None or columns.path is None:
        return texts
    if batch.around.type != JSON:
        return filled(batch.around, texts, columns.path.steps)
    cells, ends = quoted(texts, b"", b"")
    private = [cells[first:last] for first, last in pairwise([0, *ends.tolist()])]
    pieces: list[Any] = b"\n".join(as_json(batch.around)).split(HOLE)  # JSON text has no line break either
    pieces[1:] = chain.from_iterable(zip(private, pieces[1:], strict=True))
    whole = b"".join(pieces)
    values = pa.array(whole.split(b"\n") if len(batch.around) else [], pa.large_binary())
    return pa.ExtensionArray.from_storage(JSON, values.cast(pa.large_string()))
