"""A release on texts in this process: a list, a column, or one column of a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, overload

import pyarrow as pa

from corpusveil.errors import BadRowError, BadTypeError, ConflictError, UnsetError
from corpusveil.transforms.frames import Frame, cannot_hold, frame_of
from corpusveil.transforms.identities import Ids, RowNumbers, identities_of_documents
from corpusveil.transforms.kernel import Kernel
from corpusveil.transforms.ledger import Ledger, require_ledger
from corpusveil.transforms.release import Release, require_release
from corpusveil.transforms.spending import Spending, reserve_table

T = TypeVar("T")

COMBINED_BYTES = 1 << 30
"""Chunks of columns below this size are joined and privatized at once; larger columns are done chunk by chunk."""


@overload  # for type checkers, which require ids, and a corpus with a ledger
def privatize(texts: T, release: Release, ids: Ids, text: str = ...) -> T: ...


@overload
def privatize(texts: T, release: Release, ids: Ids, text: str = ..., *, ledger: Ledger, corpus: str) -> T: ...


@overload
def privatize(texts: T, release: Release, ids: RowNumbers, text: str = ..., *, ledger: Ledger) -> T: ...


def privatize(
    texts: Any,
    release: Release,
    ids: Ids | None = None,
    text: str = "text",
    *,
    ledger: Ledger | None = None,
    corpus: str | None = None,
) -> Any:
    """Privatize texts, and return them as the type that was given.

    ``texts`` is a list, tuple or NumPy array of strings, a Series or DataFrame of pandas or Polars, an Array,
    ChunkedArray, RecordBatch or Table of Arrow, a Hugging Face Dataset, or an object with an Arrow stream (which is
    returned as Arrow). In a frame, the column ``text`` becomes private. The other columns, the index, types and order
    stay as they are.

    ``ids`` are required and identify the documents. They are the name of a frame's column, one id per text (text,
    bytes, numbers, dates, UUIDs, or pairs ``(name, row)``), or ``RowNumbers(name)``. A document's noise is a keyed
    function of ``text`` (the column's name, also without columns), its id and its text. Under one release the same
    three give the same output, in any batch and order. A missing text (None, NaN, pandas.NA) stays missing.

    With a ``ledger``, the documents' spending is written there before anything is drawn. The ledger recognizes a
    document by its content, and by its id in the ``corpus``, a name of the data set (by default that of
    ``RowNumbers``). One release of one document, here or from a file, is spent once.

    Raises UserError for texts of any other type; for a column that is missing, is not text or can't hold the private
    text; for ids that are missing or too few; and if a document would spend more than a cap (the ledger stays as it
    was).
    """
    return _privatized(frame_of(texts, text), release, ids, text, require_ledger(ledger), corpus)


def privatize_table(table: T, release: Release, text: str = "text", id: str | None = None, ids: Ids | None = None) -> T:
    """Privatize the column ``text`` of an Arrow table, record batch or frame, and return a table of the same type.

    ``id`` names the column that identifies documents; alternatively give ``ids`` as in ``privatize``, which does the
    work. A column of any of Arrow's string types, also as a dictionary, keeps its type, and its nulls stay null.
    """
    if id is not None and ids is not None:
        raise ConflictError("id names a column and ids gives the ids; pass only one.")
    frame = frame_of(table, text)
    if frame.column is None:
        raise BadTypeError(
            f"privatize_table takes a table or frame, and a value of type {type(table).__name__} has no columns; use "
            "cv.privatize."
        )
    private: T = _privatized(frame, release, ids if id is None else id, text, None, None)
    return private


def _privatized(
    frame: Frame, release: Release, ids: Ids | None, text: str, spending: Spending | None, corpus: str | None
) -> Any:
    kernel = require_release(release).kernel()
    identities = identities_of_documents(ids, len(frame.texts), frame.column)
    chunks = _chunks(frame.texts)
    name = _corpus(corpus, ids, spending)
    if spending is not None:
        reserve_table(spending, release, text, [_plain(validated(chunk, text)) for chunk in chunks], identities, name)
    parts: list[pa.Array] = []
    first = 0
    for chunk in chunks:
        parts += privatized_parts(kernel, chunk, identities[first : first + len(chunk)], text)
        first += len(chunk)
    return frame.back(parts)


def _corpus(corpus: str | None, ids: Ids | None, spending: Spending | None) -> str:
    """Return the corpus' name for a ledger. Raises UserError if only one of the two is given."""
    if spending is None:
        if corpus is not None:
            raise UnsetError(f"corpus = {corpus!r} names a data set in a ledger, and no ledger is given; add ledger=.")
        return ""
    name = ids.name if corpus is None and isinstance(ids, RowNumbers) else corpus
    if not isinstance(name, str) or not name:
        raise UnsetError(
            "ledger: a ledger identifies documents by their ids in a corpus; name the data set, as in corpus='reviews'."
        )
    return name


def privatized_parts(kernel: Kernel, column: pa.Array, identities: Sequence[Any], name: str) -> list[pa.Array]:
    """Return the private texts of a string column in its own type: one array, several where one can't hold them.

    Raises UserError for invalid UTF-8, and if the type cannot hold them.
    """
    out, _ = kernel.privatize(_plain(validated(column, name)), identities, name)
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


def _plain(column: pa.Array) -> pa.Array:
    """Return a column of strings without a dictionary."""
    coded = pa.types.is_dictionary(column.type)
    return column.dictionary.cast(pa.large_string()).take(column.indices) if coded else column


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
        raise BadRowError(f"{name}: this column has text that is not valid UTF-8; repair it first.") from None
    return column


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """Return a column as arrays to process: a single array, unless it would be too large."""
    if not isinstance(column, pa.ChunkedArray):
        return [column]
    if column.num_chunks == 1 or column.nbytes >= COMBINED_BYTES:
        chunks: list[pa.Array] = column.chunks
        return chunks
    whole = column.combine_chunks()
    return whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]
