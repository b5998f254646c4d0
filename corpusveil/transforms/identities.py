"""The documents of a frame, and what identifies each: a column, ids, or row numbers; there is no default."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from corpusveil.display import several
from corpusveil.errors import DataError, SettingError, missing_ids
from corpusveil.storage.documents import Documents
from corpusveil.storage.values import is_string
from corpusveil.transforms.frames import Frame, column_values, plain_texts


@dataclass(frozen=True, slots=True)
class RowNumbers:
    """Row numbers as ids: row n of the data set ``name`` is the document (name, n), counted from 0.

    Equal texts in equal rows under one name get equal noise, so each data set needs a name of its own; a row that moves
    is another document. For a batch of a larger data set, give the rows' numbers in that set:
    ``ids=[(name, 400), ...]``. Raises UserError for an empty name.

    >>> len(cv.privatize(["The river was cold."], release, ids=cv.RowNumbers("reviews-2026")))
    1
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SettingError(
                "RowNumbers needs a name for the data set whose rows it numbers, such as RowNumbers('reviews')."
            )


Ids: TypeAlias = str | RowNumbers | Iterable[Any]
"""The name of a column, row numbers under a name, or one id a text."""
_LEAST, _MOST = -(1 << 63), 1 << 64
"""The bounds of whole numbers that are ids: 64 bits, with a sign or without."""


def documents_in(frame: Frame, ids: Ids | None, text: str, units: Sequence[str]) -> list[Documents]:
    """Return the documents of a frame, as many parts as its texts have chunks; units are columns.

    Warns, on behalf of the caller of ``privatize``, if texts share ids.
    """
    if frame.column is None and units:
        raise DataError(f"unit {units[0]}: these texts have no columns; give a table that has this one.")
    identities = identities_of_documents(ids, len(frame), frame.column)
    if said := repeated_ids(identities):
        warnings.warn(f"ids: {said}", stacklevel=5)
    of_units = {} if frame.column is None else {name: frame.column(name) for name in units}
    whole = Documents(frame.texts, identities, text, of_units, range(len(frame)), "the texts")
    made, first = list[Documents](), 0
    for chunk in frame.texts.chunks:
        made.append(dataclasses.replace(whole.part(first, first + len(chunk)), texts=chunk))
        first += len(chunk)
    return made


def identities_of_documents(ids: Ids | None, rows: int, column: Callable[[str], Any] | None = None) -> list[Any]:
    """Return the identities of this many documents.

    ``ids`` is a sequence of the same length, ``RowNumbers``, or the name of a column, whose values ``column`` returns
    (None for texts without columns). Raises UserError without ids, and for ids that are missing or too few.
    """
    if ids is None:
        raise SettingError(
            "ids are missing, and the noise of a document depends on its id; give the name of a column (ids='url'), "
            "an id for each text (ids=[...]), or ids=cv.RowNumbers('name'), which numbers the rows of the data set "
            "of that name."
        )
    if isinstance(ids, RowNumbers):
        return [(ids.name, number) for number in range(rows)]
    if isinstance(ids, str):
        if column is None:
            raise DataError(
                f"ids = {ids!r} names a column, and these texts have no columns; give an id for each text, or "
                f"cv.RowNumbers({ids!r}) for row numbers under that name."
            )
        return identities_of(column(ids), ids)
    given = column_values(ids, "ids")
    if len(given) != rows:
        raise SettingError(f"ids: {len(given):,} ids for {rows:,} texts; give an id for each text.")
    return identities_of(given, "ids")


def repeated_ids(identities: Sequence[Any]) -> str:
    """Return a warning if texts share ids; nothing if they do not."""
    different = len({str(identity) if isinstance(identity, int) else identity for identity in identities})
    if different == len(identities):
        return ""
    return (
        f"{len(identities):,} texts have {several(different, 'different id')}. Equal texts with the same id get equal "
        "noise, which shows that they are equal; give each text an id of its own."
    )


def identities_of(column: Any, name: str) -> list[Any]:
    """Return the ids of a column or list: strings, integers, or row numbers under a name.

    Raises UserError for a column of another type, and for an id that is missing or empty.
    """
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not (is_string(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
            raise DataError(f"{name}: an id is a string or an integer, and this column is {kind}; cast it first.")
        if column.null_count:
            raise missing_ids(name)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        column = [value for chunk in chunks for value in plain_texts(chunk, name).to_pylist()]
    return checked_identities(column, name)


def checked_identities(values: Sequence[Any], name: str) -> list[Any]:
    """Return ids. Raises UserError for one that is missing, empty, or neither a string nor an integer.

    A tuple is the number of a row after the names of where that is.
    """
    kinds = {*map(type, values)}
    if not kinds <= {str, int} or "" in values or int in kinds:
        for row, value in enumerate(values):
            if value is None or value == "":
                raise missing_ids(name)
            place = value[:-1] if isinstance(value, tuple) else ()
            number = value[-1] if place and all(isinstance(part, str) for part in place) else value
            is_number = type(number) is int and (0 if place else _LEAST) <= number < _MOST
            if not (is_number or isinstance(value, str)):
                raise DataError(
                    f"{name}: row {row:,} (counted from 0): an id is a string, an integer of 64 bits, or a pair "
                    f"(name, row), and this one is of type {type(value).__name__}; cast it first."
                )
    return list(values)
