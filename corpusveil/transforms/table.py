"""A release on texts in this process: a list, a column, or one column of a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, overload

import pyarrow as pa

from corpusveil.errors import UserError
from corpusveil.transforms.frames import Frame, cannot_hold, frame_of
from corpusveil.transforms.identities import identities_of_documents
from corpusveil.transforms.kernel import Kernel
from corpusveil.transforms.release import Release, require_release

T = TypeVar("T")

COMBINED_BYTES = 1 << 30
"""Chunks of a column below this are joined and privatized at once; larger columns chunk by chunk."""


@overload
def privatize(texts: list[str], release: Release, ids: Any = ..., text: str = ...) -> list[str]: ...


@overload
def privatize(texts: Any, release: Release, ids: Any = ..., text: str = ...) -> Any: ...


def privatize(texts: Any, release: Release, ids: Any = None, text: str = "text") -> Any:
    """Privatize texts, and return them in the kind that they came in.

    ``texts`` is a list, tuple or NumPy array of strings, a Series or DataFrame of pandas or Polars, an Array,
    ChunkedArray, RecordBatch or Table of Arrow, a Hugging Face Dataset, or has an Arrow stream (and comes back as
    Arrow). Of a frame the column ``text`` becomes private; the others, the index, types and order stay as they are.

    ``ids`` identify the documents, and are needed: the name of a frame's column, one id a text (text, bytes, numbers,
    dates, UUIDs, or pairs ``(name, row)``), or ``RowNumbers(name)``. A document's noise is a keyed function of ``text``
    (the column's name, also where there are no columns), its id and its text: under one release the same three give the
    same output, in any batch and order. A missing text (None, NaN, pandas.NA) stays missing.

    Raises UserError for anything else, for a column that is missing, is not text or can't hold the private text, and
    for ids that are missing or too few.
    """
    return _privatized(frame_of(texts, text), release, ids, text)


def privatize_table(table: T, release: Release, text: str = "text", id: str | None = None, ids: Any = None) -> T:
    """Privatize the column ``text`` of an Arrow table, record batch, or frame, and return a table of the same kind.

    ``id`` names the column that identifies documents; or give ``ids`` as in ``privatize``, which this is. In a column
    of Arrow's (of any of its string types, also as a dictionary) nulls stay null, and the type stays.
    """
    if id is not None and ids is not None:
        raise UserError("id names a column and ids gives the ids; pass one of them.")
    frame = frame_of(table, text)
    if frame.column is None:
        raise UserError(
            f"privatize_table takes a table or frame, and a value of type {type(table).__name__} has no columns; use "
            "cv.privatize for it."
        )
    private: T = _privatized(frame, release, ids if id is None else id, text)
    return private


def _privatized(frame: Frame, release: Release, ids: Any, text: str) -> Any:
    kernel = require_release(release).kernel()
    identities = identities_of_documents(ids, len(frame.texts), frame.column)
    parts: list[pa.Array] = []
    first = 0
    for chunk in _chunks(frame.texts):
        parts += privatized_parts(kernel, chunk, identities[first : first + len(chunk)], text)
        first += len(chunk)
    return frame.back(parts)


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
            raise cannot_hold(name, column.type) from None
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


def validated(column: pa.Array, name: str) -> pa.Array:
    """Return the column after a check that its bytes are UTF-8. Raises UserError when they are not."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raise UserError(f"{name}: this column holds text that is not valid UTF-8; mend it first.") from None
    return column


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """Return a column as arrays to work on: one, unless that would be too large."""
    if not isinstance(column, pa.ChunkedArray):
        return [column]
    if column.num_chunks == 1 or column.nbytes >= COMBINED_BYTES:
        chunks: list[pa.Array] = column.chunks
        return chunks
    whole = column.combine_chunks()
    return whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]
