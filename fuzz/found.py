"""What fuzzing found, once each: the reader, the smallest input, and a part of what its sentence says now.

``found.json`` has the inputs, compressed, as base64, and says what each is. Entries of a ledger are made here, because
their version is that of the code.
"""

from __future__ import annotations

import base64
import functools
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpusveil.ledger.entries import ABOUT, ROWS, VERSION, About, header_of
from fuzz.containers import RAW
from fuzz.invariant import CANARY

NAMED = ("unit", "namespace", "column", "release", "metric", "mechanism", "space")


def entries() -> Iterator[tuple[str, bytes, str]]:
    """Yield entries of a ledger without a number, with a negative one, and of a version that is none."""
    named: dict[str, Any] = dict.fromkeys(NAMED, CANARY)
    about = About(**named, version=VERSION, budget={}, documents=1, tokens=1)
    tags = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"c" * 16], pa.binary(16)))
    versions: tuple[Any, ...] = (CANARY, None, 1.5, [], True)
    headers = [json.dumps(about.model_dump(mode="json") | {"version": version}) for version in versions]
    for number, header in ((None, header_of(about)), (-1, header_of(about)), *((1, header) for header in headers)):
        columns = [tags, tags, *[pa.array([number], pa.int64())] * (len(ROWS) - 2)]
        sink = io.BytesIO()
        pq.write_table(pa.table(columns, schema=ROWS.with_metadata({ABOUT: header})), sink)
        yield "ledger", bytes([RAW]) + sink.getvalue(), ": "


@functools.cache
def found() -> tuple[tuple[str, bytes, str], ...]:
    """Return every finding."""
    kept = json.loads(Path(__file__).with_suffix(".json").read_text())
    return (*((row["reader"], zlib.decompress(base64.b64decode(row["data"])), row["said"]) for row in kept), *entries())
