"""A release on a Spark DataFrame: the batch kernel under ``mapInArrow``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from corpusveil.errors import UserError
from corpusveil.transforms.kernel import Kernel
from corpusveil.transforms.release import Release
from corpusveil.transforms.table import identities_of, validated


def privatize_frame(df: Any, release: Release, text: str = "text", id: str | None = None) -> Any:
    """Privatize the string column ``text`` of a DataFrame; the other columns stay as they are.

    ``id`` names a column whose value identifies each document: a DataFrame has no row numbers, so it is needed. Two
    rows with the same id and the same text get the same output. Raises UserError when a column is missing or not text.
    """
    if id is None:
        raise UserError("A DataFrame has no row order to tell documents by; name a column that does: id='...'.")
    for name in (text, id):
        if name not in df.columns:
            raise UserError(f"{name}: there is no such column; there are {', '.join(df.columns)}.")
    kind = df.schema[text].dataType.simpleString()
    if kind != "string":
        raise UserError(f"{text}: this column is of type {kind}; text is needed.")
    return df.mapInArrow(_batches(release.kernel(), text, id), df.schema)


def _batches(
    kernel: Kernel, text: str, identity: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            column = validated(batch.column(text), text)
            out, _ = kernel.privatize(column, identities_of(batch.column(identity), identity), text)
            number = batch.schema.get_field_index(text)
            yield batch.set_column(number, batch.schema.field(number), out.cast(column.type))

    return run
