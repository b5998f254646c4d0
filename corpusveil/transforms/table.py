"""A release on texts in this process: a list, a column, or one column of a frame."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from corpusveil.errors import DataError, SettingError, listed, of_other_type
from corpusveil.kernel.transform import Transform
from corpusveil.ledger.caps import Spending, reserve_table
from corpusveil.ledger.summary import Ledger, require_ledger
from corpusveil.ledger.units import texts_of
from corpusveil.storage.documents import Documents
from corpusveil.transforms.frames import (
    Frame,
    Kept,
    cannot_hold,
    frame_of,
    is_text,
    large_strings,
    not_copied,
    plain_texts,
    require_text,
)
from corpusveil.transforms.identities import Ids, documents_in, identities_of
from corpusveil.transforms.release.keyed_release import AnyRelease, require_release
from corpusveil.waiting import reached, waiting

T = TypeVar("T")

Units: TypeAlias = str | Sequence[str] | Mapping[str, str] | None
"""The units of a ledger: a column or ``content``, several, or columns by name."""


def privatize(
    texts: T,
    release: AnyRelease,
    ids: Ids | None = None,
    text: str = "text",
    *,
    keep: Kept = (),
    ledger: Ledger | None = None,
    unit: Units = None,
    corpus: str | None = None,
) -> T:
    """Privatize texts, and return them as the type that was given.

    ``texts``: a list or tuple of strings; a Series or DataFrame of pandas or Polars; an Array, ChunkedArray,
    RecordBatch or Table of Arrow; or a frame that narwhals reads, such as a relation of DuckDB (a lazy one is
    collected). In a frame, the column ``text`` becomes private. Other columns come back only if ``keep`` names them,
    unchanged (strings, numbers, booleans, dates, timestamps); a warning names the others. A pandas index other than row
    numbers is refused.

    ``ids`` identify the documents and are required: the name of a column, an id per text (a string, an integer, which
    equals its digits, or a pair ``(name, row)``), or ``RowNumbers(name)``. Noise is a keyed function of ``text`` (the
    column's name, also of a list), id and text: the same three give the same output in any batch and order. A missing
    text stays missing.

    A ``ledger`` records the spending of privacy units before anything is drawn; equal noise is spent once. ``unit``
    names their column, or several, or ``"content"`` for the text itself; ``{"customer_id": column}`` also names it.
    ``corpus`` is a name space for values that are unique in one data set only.

    Raises UserError for texts of another type, a missing or unsuitable column, missing ids, and if a unit would exceed
    the cap (then the ledger is unchanged).

    >>> private = cv.privatize(texts, release, ids=["r-1", "r-2"])
    >>> private == cv.privatize(texts[::-1], release, ids=["r-2", "r-1"])[::-1]
    True
    """
    if corpus is not None and ledger is None:
        raise SettingError(f"corpus = {corpus!r} names a data set in a ledger, and no ledger is given; add ledger=.")
    frame = frame_of(texts, text, keep)
    _require_order(texts, ids)
    require_release(release)
    private: T = _privatized(frame, release, ids, text, require_ledger(ledger, unit, corpus))
    return private


def privatize_table(table: T, release: AnyRelease, text: str = "text", id: str | None = None, *, keep: Kept = ()) -> T:
    """Privatize the column ``text`` of a table or frame, as ``privatize`` does; the column ``id`` identifies documents.

    >>> import pyarrow as pa
    >>> table = pa.table({"id": ["r-1", "r-2"], "text": texts})
    >>> cv.privatize_table(table, release, id="id", keep=["id"]).column_names
    ['id', 'text']
    """
    return privatize(table, release, id, text, keep=keep)


def masker(release: AnyRelease, text: str = "text") -> Callable[[str], str]:
    """Return a function from one text to its private text, for hooks of logs and traces; threads may share it.

    Its texts have no id, so equal texts get equal output (as under the id ``""``), which discloses that they are equal;
    with fresh noise, a frequent text could be averaged. No ledger is asked. The function raises UserError for a value
    that is not text.

    >>> mask = cv.masker(release)
    >>> mask("The river was cold.") == mask("The river was cold.")
    True
    """
    kernel = require_release(release).kernel()

    def mask(value: str) -> str:
        if not isinstance(value, str):
            raise of_other_type("the text", value, "a string")
        private, _ = kernel.apply(Documents(large_strings([value], None), [""], text))
        return str(private[0])

    mask("a")  # what a process prepares once, before the first text waits for it
    return mask


@waiting("privatizing")
def _privatized(frame: Frame, release: AnyRelease, ids: Ids | None, text: str, spending: Spending | None) -> Any:
    kernel = release.kernel()
    if chunks := frame.texts.chunks:
        release.refuse(chunks[0])
    units = () if spending is None else spending.columns
    documents = documents_in(frame, ids, text, units)
    if spending is not None:
        for some in (part.with_text() for part in documents):  # before there is a ledger
            for unit in (unit for unit in spending.units if unit.column is not None):
                texts_of(some.values[str(unit.column)], unit, some.rows, some.place)
        account = spending.accounting(release.account(text))
        reserve_table(spending, account, map(account.spending, documents))
    if frame.dropped:
        warnings.warn(not_copied(listed(frame.dropped)), stacklevel=4)
    parts: list[pa.Array] = []
    for number, some in enumerate(documents, 1):
        parts += privatized_parts(kernel, some, frame.kind)
        reached("", number / len(documents))
    return frame.back(parts)


def _require_order(texts: Any, ids: Any) -> None:
    """Raise UserError for ids of pandas that have another index than the texts, which could mix up rows."""
    index: Any = getattr(ids, "index", None)
    own: Any = getattr(texts, "index", None)
    if hasattr(index, "equals") and hasattr(own, "equals") and not index.equals(own):
        raise SettingError(
            "ids: the index is another one than that of the texts; if the rows are in one order, give a list."
        )


def privatized_parts(kernel: Transform, documents: Documents, kind: pa.DataType) -> list[pa.Array]:
    """Return the private texts of documents in a type: one array, several where one can't hold them.

    Raises UserError if the type cannot hold them.
    """
    out, _ = kernel.apply(documents)
    try:
        return [_cast(out, kind)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # whose text would quote the column
        if not (pa.types.is_string(kind) and len(documents) > 1):  # a string array holds 2 GiB
            raise cannot_hold(documents.column, kind) from None
    half = len(documents) // 2
    halves = documents.part(0, half), documents.part(half, len(documents))
    return [part for some in halves for part in privatized_parts(kernel, some, kind)]


def of_columns(release: AnyRelease, name: str) -> Callable[[Any, Any, Any], pa.Array]:
    """Return the function of a column's name, ids and texts, Arrow arrays of equal length, to the private texts.

    Its sentences call it ``name``.
    """
    kernel = require_release(release).kernel()

    def run(column: pa.Array, ids: pa.Array, texts: pa.Array) -> pa.Array:
        names = column.unique().to_pylist() if is_text(column.type) else [""]
        texts, ids = (given.combine_chunks() if isinstance(given, pa.ChunkedArray) else given for given in (texts, ids))
        if pa.types.is_null(texts.type):
            texts = texts.cast(pa.string())
        if not names:
            return texts
        if len(names) > 1 or not names[0]:
            raise DataError(f"{name}: the first argument is the column's name, the same for all rows.")
        require_text(texts.type, names[0])
        documents = Documents(plain_texts(texts, names[0]), identities_of(ids, "id"), names[0])
        kind = texts.type.value_type if pa.types.is_dictionary(texts.type) else texts.type
        return pa.concat_arrays(privatized_parts(kernel, documents, kind))

    return run


def _cast(texts: pa.LargeStringArray, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_dictionary(kind):
        return texts.cast(kind)
    coded = texts.dictionary_encode()  # Arrow casts to dictionaries of some string types only
    indices, words = coded.indices.cast(kind.index_type), coded.dictionary.cast(kind.value_type)
    return pa.DictionaryArray.from_arrays(indices, words, ordered=kind.ordered)
