"""Kept values between forms: as JSON text, and as strings."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from corpusveil.errors import listed
from corpusveil.storage.nested import Path
from corpusveil.storage.rows import JSON, Batch


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


def string_bytes(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of large_string [N], and where each text begins and the last ends; int64 [N + 1]."""
    _, bounds, body = texts.buffers()
    data = np.empty(0, dtype=np.uint8) if body is None else np.frombuffer(body, dtype=np.uint8)
    if not len(texts):
        return data, np.zeros(1, dtype=np.int64)
    return data, np.frombuffer(bounds, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]


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
    values = [orjson.loads(value) for value in as_json(batch.whole(pa.nulls(len(batch.texts), pa.large_string())))]
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
