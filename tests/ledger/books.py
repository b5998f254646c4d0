"""Accounts and entries that tests write by hand."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import corpusveil as cv
from corpusveil.budget.accounting import as_float
from corpusveil.ledger.account import schema
from corpusveil.ledger.entries import VERSION, Entry
from corpusveil.ledger.questions import connected, write_entry
from corpusveil.ledger.units import Unit
from corpusveil.spaces import Space
from corpusveil.storage.documents import Documents
from tests.engines.corpora import TEST_KEY

CUSTOMER = (Unit("customer", "customer"),)


class Row(NamedTuple):
    """What a document of a unit spends, in parts of 1e-9."""

    unit: int
    noise: int
    tokens: int = 1
    nats: int = 10**9


def about(release: str = "r", **more: Any) -> dict[str, Any]:
    return {
        "version": VERSION, "unit": "customer", "namespace": "", "column": "text", "release": release,
        "mechanism": "ring-geometric", "space": "5" * 64, "budget": {}, **more,
    }  # fmt: skip


def write_note(path: Path, rows: Iterable[Row]) -> str:
    columns = list(zip(*rows, strict=True))
    tags = [pa.array([uuid.UUID(int=tag).bytes for tag in column], pa.binary(16)) for column in columns[:2] or [[]] * 2]
    numbers = columns[2:] or [[]] * 2
    arrays = [pa.ExtensionArray.from_storage(pa.uuid(), tag) for tag in tags]
    table = pa.table(
        [*arrays, *(pa.array(number, pa.int64()) for number in numbers), pa.array(range(len(numbers[0])), pa.int64())],
        schema=schema(CUSTOMER),
    )
    pq.write_table(table, path)
    return str(path)


def entry_of(folder: Path, rows: Iterable[Row], **given: Any) -> Entry:
    """Return an entry of rows, in a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    number = len(list(folder.iterdir()))
    note = write_note(folder / f"{number}.note", rows)
    with connected() as (_, connection):
        return write_entry(connection, [note], 0, about(**given), str(folder / f"{number}.parquet"))


def release_of(space: Space, epsilon: float = 1.0, number: int = 0, per: Any = "document", **more: Any) -> cv.Release:
    """Return one of many releases: each number has a key of its own."""
    key = cv.Key(bytes([number]) + TEST_KEY[1:])
    return cv.Release(cv.mechanism("ring-geometric", space), cv.Budget(epsilon, per), cv.TextPolicy(), key=key, **more)


def nats_of(release: Any, text: str) -> float:
    """Return what a document with a text spends."""
    _, readings = release.kernel().account(Documents(pa.array([text]), [0]), bytes(32))
    return as_float(int(readings.nats[0]))
