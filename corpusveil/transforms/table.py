"""A release on a list of strings or an Arrow table, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import pyarrow as pa

from corpusveil.errors import UserError
from corpusveil.transforms.release import Release

T = TypeVar("T", pa.Table, pa.RecordBatch)


def privatize(texts: Sequence[str], release: Release, source: str = "") -> list[str]:
    """Privatize strings; the identity of each is ``source`` and its place in the list.

    Under one release key the same text at the same place of the same source becomes the same output, so give each list
    a source of its own. Raises UserError for what is no text.
    """
    try:
        column = pa.array(list(texts), type=pa.large_string())
    except UnicodeEncodeError:
        raise UserError("A text holds half a surrogate pair, which is no character; mend it first.") from None
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise UserError("Each text has to be a string.") from None
    identities = [(source, number) for number in range(len(column))]
    out, _ = release.kernel().privatize(column, identities, "text")
    result: list[str] = out.to_pylist()
    return result


def privatize_table(table: T, release: Release, text: str = "text", id: str | None = None, source: str = "") -> T:
    """Privatize one column of an Arrow table or record batch; the other columns stay as they are.

    ``text`` names a string column, ``id`` a column that identifies each document (default: ``source`` and the row
    number; equal texts in equal rows of two tables then get equal noise, so give each table a source of its own). Nulls
    stay null. The column keeps its type. Raises UserError when a column is missing or is not text.
    """
    for name in (text, id):
        if name is not None and name not in table.schema.names:
            raise UserError(f"{name}: there is no such column; there are {', '.join(table.schema.names)}.")
        if name is not None and table.schema.names.count(name) > 1:
            raise UserError(f"{name}: there are several columns of this name; rename them first.")
    column = table.column(text)
    kind = column.type
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks)
    rows = [(source, number) for number in range(len(whole))]
    identities: Sequence[Any] = rows if id is None else identities_of(table.column(id), id)
    out, _ = release.kernel().privatize(validated(whole, text), identities, text)
    try:
        private = out.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # whose text would quote the column
        raise UserError(
            f"{text}: a column of type {kind} can't hold the private text; cast it to string first."
        ) from None
    return table.set_column(table.schema.get_field_index(text), table.schema.field(text), private)


def validated(column: pa.Array, name: str) -> pa.Array:
    """Return the column after a check that its bytes are UTF-8. Raises UserError when they are not."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raise UserError(f"{name}: this column holds text that is not valid UTF-8; mend it first.") from None
    return column


def identities_of(column: Any, name: str) -> list[Any]:
    """Return the ids of a column as Python values. Raises UserError when one is missing."""
    if column.null_count:
        raise UserError(f"{name}: the id column has empty values; every document needs an id.")
    values: list[Any] = column.to_pylist()
    return values
