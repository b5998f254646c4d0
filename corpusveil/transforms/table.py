"""A release on a list of strings or an Arrow table, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import pyarrow as pa

from corpusveil.errors import UserError
from corpusveil.transforms.kernel import Kernel
from corpusveil.transforms.release import Release

T = TypeVar("T", pa.Table, pa.RecordBatch)

COMBINED_BYTES = 1 << 30
"""Chunks of a column below this are joined and privatized at once; larger columns chunk by chunk."""


def privatize(texts: Sequence[str], release: Release, source: str = "", ids: Any = None) -> list[str]:
    """Privatize strings; the identity of each is its id, without ``ids`` it is ``source`` and its place in the list.

    ``ids`` has one id a text: text, bytes, numbers, dates, UUIDs, or pairs ``(source, row)``, which are what a text has
    without it. Under one release key the same text with the same identity becomes the same output, so give each list a
    source of its own, or ids. A missing text (None, NaN, pandas.NA) comes out as None. Raises UserError for anything
    else that is no text, and for ids that are missing or too few.
    """
    if isinstance(texts, (str, bytes)):
        raise UserError("privatize takes a list of texts; put a single one in brackets.")
    column = large_strings(list(texts), None)
    identities = identities_of_texts(len(column), source, ids)
    out, _ = release.kernel().privatize(column, identities, "text")
    result: list[str] = out.to_pylist()
    return result


def privatize_table(
    table: T, release: Release, text: str = "text", id: str | None = None, source: str = "", ids: Any = None
) -> T:
    """Privatize one column of an Arrow table or record batch; the other columns stay as they are.

    ``text`` names a string column (of any of Arrow's string types, also as a dictionary). What identifies a document is
    the value of the column ``id``, or its entry of ``ids`` (as in ``privatize``; for batches of a larger table), or
    else ``source`` and the row number: equal texts in equal rows of two tables then get equal noise, so give each table
    a source of its own. Nulls stay null. The column keeps its type. Raises UserError when a column is missing, is not
    text, or can't hold the private text.
    """
    if id is not None and ids is not None:
        raise UserError("id names a column and ids gives the ids; pass one of them.")
    for name in (text, id):
        if name is not None and name not in table.schema.names:
            raise UserError(f"{name}: there is no such column; there are {', '.join(table.schema.names)}.")
        if name is not None and table.schema.names.count(name) > 1:
            raise UserError(f"{name}: there are several columns of this name; rename them first.")
    column = table.column(text)
    if not is_text(column.type):
        raise _cannot_hold(text, column.type)
    identities = identities_of_texts(len(column), source, ids) if id is None else identities_of(table.column(id), id)
    kernel = release.kernel()
    parts: list[pa.Array] = []
    first = 0
    for chunk in _chunks(column):
        parts += privatized_parts(kernel, chunk, identities[first : first + len(chunk)], text)
        first += len(chunk)
    if isinstance(table, pa.RecordBatch):
        if len(parts) > 1:
            raise _cannot_hold(text, column.type)
        private = parts[0]
    else:
        private = pa.chunked_array(parts, type=column.type)
    return table.set_column(table.schema.get_field_index(text), table.schema.field(text), private)


def privatized_parts(kernel: Kernel, column: pa.Array, identities: Sequence[Any], name: str) -> list[pa.Array]:
    """Return the private texts of a string column in its own type: one array, several where one can't hold them.

    Raises UserError for invalid UTF-8, and where the type can't hold them at all.
    """
    validated(column, name)
    coded = pa.types.is_dictionary(column.type)
    plain = column.dictionary.cast(pa.large_string()).take(column.indices) if coded else column
    out, _ = kernel.privatize(plain, identities, name)
    try:
        return [_cast(out, column.type)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # whose text would quote the column
        if not (pa.types.is_string(column.type) and len(column) > 1):  # a string array holds 2 GiB
            raise _cannot_hold(name, column.type) from None
    half = len(column) // 2
    return [
        *privatized_parts(kernel, column.slice(0, half), identities[:half], name),
        *privatized_parts(kernel, column.slice(half), identities[half:], name),
    ]


def _cast(texts: pa.LargeStringArray, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_dictionary(kind):
        return texts.cast(kind)
    coded = texts.dictionary_encode()  # Arrow casts to dictionaries of some string types only
    indices, words = coded.indices.cast(kind.index_type), coded.dictionary.cast(kind.value_type)
    return pa.DictionaryArray.from_arrays(indices, words, ordered=kind.ordered)


def is_text(kind: pa.DataType) -> bool:
    """Say whether a column of this Arrow type is text: strings of any of its kinds, or a dictionary of them."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def large_strings(texts: Sequence[str | None], name: str | None) -> pa.LargeStringArray:
    """Return strings as an Arrow array. Raises UserError, without quoting any, when one is no string or no UTF-8."""
    where = "" if name is None else f"{name}: "
    if any(isinstance(text, (bytes, bytearray)) for text in texts):  # which Arrow would take for UTF-8
        raise UserError(f"{where}each text has to be a string, not bytes; decode it first.")
    try:
        return pa.array(texts, type=pa.large_string(), from_pandas=True)  # a NaN is a missing text
    except UnicodeEncodeError:
        raise UserError(f"{where}a text holds half a surrogate pair, which is no character; mend it first.") from None
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise UserError(f"{where}each text has to be a string.") from None


def validated(column: pa.Array, name: str) -> pa.Array:
    """Return the column after a check that its bytes are UTF-8. Raises UserError when they are not."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raise UserError(f"{name}: this column holds text that is not valid UTF-8; mend it first.") from None
    return column


def identities_of(column: Any, name: str) -> list[Any]:
    """Return the ids of an Arrow column as Python values, instants in UTC. Raises UserError when one is missing."""
    if column.null_count:
        raise UserError(f"{name}: the id column has empty values; every document needs an id.")
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:  # the same instant, whatever zone a session shows it in
        column = column.cast(pa.timestamp(kind.unit, "UTC"))
    return checked_identities(column.to_pylist(), name)


def checked_identities(values: Sequence[Any], name: str) -> list[Any]:
    """Return ids as they are. Raises UserError when one is missing, or a tuple that does not end in a row number."""
    for value in values:
        if value is None:
            raise UserError(f"{name}: an id is missing; every document needs one.")
        if isinstance(value, tuple):
            *place, row = value or (None,)
            named = bool(place) and all(isinstance(one, str) for one in place)
            if not (named and isinstance(row, int) and 0 <= row < 1 << 64):
                raise UserError(
                    f"{name}: an id that is a tuple has to be names of where a row stands (text), and its number."
                )
    return list(values)


def identities_of_texts(rows: int, source: str, ids: Any) -> list[Any]:
    """Return the identities of so many texts: their ids, or without these the source and the row."""
    if ids is None:
        return [(source, number) for number in range(rows)]
    for method in ("to_pylist", "tolist", "to_list"):  # Arrow; NumPy and pandas; Polars
        if hasattr(ids, method):
            ids = getattr(ids, method)()
            break
    ids = list(ids)
    if len(ids) != rows:
        raise UserError(f"ids: {len(ids):,} for {rows:,} texts; give one a text.")
    return checked_identities(ids, "ids")


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """Return a column as arrays to work on: one, unless that would be too large."""
    if not isinstance(column, pa.ChunkedArray):
        return [column]
    if column.num_chunks == 1 or column.nbytes >= COMBINED_BYTES:
        chunks: list[pa.Array] = column.chunks
        return chunks
    whole = column.combine_chunks()
    return whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]


def _cannot_hold(name: str, kind: pa.DataType) -> UserError:
    return UserError(f"{name}: a column of type {kind} can't hold the private text; cast it to string first.")
