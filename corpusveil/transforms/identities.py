"""What identifies a document (a column, ids, or row numbers: there is no default), and what its row has beside it."""

from __future__ import annotations

import datetime as dt
import decimal
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from corpusveil.display import several
from corpusveil.errors import BadRowError, BadTypeError, ColumnError, ShapeError, UnsetError, missing_ids, of_other_type
from corpusveil.storage.values import as_strings


@dataclass(frozen=True, slots=True)
class RowNumbers:
    """Row numbers as ids: row n of the data set ``name`` is the document (name, n), counted from 0.

    The ids depend on the order of rows. A row that moves, or that follows a removed row, is another document with other
    noise. Each data set needs a name of its own, because equal texts in equal rows under one name get equal noise. A
    batch of a larger data set needs the numbers of its rows there, as pairs: ``ids=[(name, 400), ...]``.

    Raises UserError for an empty name.
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise UnsetError(
                "RowNumbers needs a name for the data set whose rows it numbers, such as RowNumbers('reviews')."
            )

    def of(self, rows: int) -> list[tuple[str, int]]:
        """Return the ids of this many rows."""
        return [(self.name, number) for number in range(rows)]


_EXACT = 1 << 53
"""From here on, a float stands for several whole numbers."""
_DIGITS = 38
"""The most digits of a decimal number, in Arrow and in databases."""
MOST_BITS = 14_000
"""The most bits of a number that is an id: Python writes no number of more than 4,300 digits."""
Ids: TypeAlias = str | RowNumbers | Iterable[Any]
"""The name of a column, row numbers under a name, or one id a text."""


def identities_of_documents(ids: Ids | None, rows: int, column: Callable[[str], Any] | None = None) -> list[Any]:
    """Return the identities of this many documents.

    ``ids`` is a sequence of the same length, ``RowNumbers``, or the name of a column, whose values ``column`` returns
    (None for texts without columns). Raises UserError without ids, and for ids that are missing or too few.
    """
    if ids is None:
        raise UnsetError(
            "ids are missing, and the noise of a document depends on its id; give the name of a column (ids='url'), "
            "an id for each text (ids=[...]), or ids=cv.RowNumbers('name'), which numbers the rows of the data set "
            "of that name."
        )
    if isinstance(ids, RowNumbers):
        return list(ids.of(rows))
    if isinstance(ids, str):
        if column is None:
            raise ColumnError(
                f"ids = {ids!r} names a column, and these texts have no columns; give an id for each text, or "
                f"cv.RowNumbers({ids!r}) for row numbers under that name."
            )
        return identities_of(column(ids), ids)
    given = values_of(column_values(ids, "ids"))  # of a typed column, as if the frame had it
    listed = [
        value.item() if isinstance(value, np.generic) and value.dtype.kind in "iufb" else value for value in given
    ]
    if len(listed) != rows:
        raise ShapeError(f"ids: {len(listed):,} ids for {rows:,} texts; give an id for each text.")
    return checked_identities(listed, "ids")


def column_values(column: Any, what: str = "a column") -> Any:
    """Return the values of a column or list of any library: of Arrow where it has a type, otherwise a list.

    Raises UserError, which says ``what`` it is and quotes no value, for a type that Arrow lacks, and for what is not
    one value for each row in their order.
    """
    is_row_by_row = isinstance(column, Iterable) and len(getattr(column, "shape", (0,))) == 1
    if not is_row_by_row or isinstance(column, (Mapping, AbstractSet, str, bytes, bytearray)):
        raise of_other_type(what, column, "the name of a column, or a list or column with a value for each text")
    kind = getattr(column, "dtype", None)
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return column
    if kind is None or getattr(column, "nlevels", 1) > 1:
        return list(column)
    if str(kind) == "Object":  # of Polars, whose Arrow arrays are of addresses in memory
        return column.to_list()
    if kind == "object" and hasattr(column, "isna"):
        return [None if gone else value for value, gone in zip(column.tolist(), column.isna(), strict=True)]
    if isinstance(column, np.ndarray) and column.dtype.kind not in "mM":
        return list(column)
    try:
        return column.to_arrow() if hasattr(column, "to_arrow") else pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError):  # whose text may quote a value
        raise BadTypeError(f"{what}: Arrow has no type for the values of this {kind}; cast it first.") from None


def warn_of_repeated(identities: Sequence[Any]) -> None:
    """Warn a caller in Python whose texts share ids."""
    try:
        different = len(set(identities))
    except TypeError:  # an id of a type that is refused
        return
    if different < len(identities):
        warnings.warn(
            f"ids: {len(identities):,} texts have {several(different, 'different id')}. Equal texts with the same id "
            "get equal noise, which shows that they are equal; give each text an id of its own.",
            stacklevel=5,
        )


def identities_of(column: Any, name: str) -> list[Any]:
    """Return the ids of a column as Python values, instants in UTC. Raises UserError when one is missing."""
    values = values_of(column)
    if None in values:
        raise missing_ids(name)
    return checked_identities(values, name)


_MICROSECONDS = {
    pa.timestamp("ns"): pa.timestamp("us"),
    pa.timestamp("ns", "UTC"): pa.timestamp("us", "UTC"),
    pa.time64("ns"): pa.time64("us"),
}


def values_of(column: Any) -> list[Any]:
    """Return the values of an Arrow column as Python's, instants in UTC; a list is returned unchanged."""
    if isinstance(column, list):
        return column
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:  # the same instant, whatever zone a session shows it in
        column = column.cast(pa.timestamp(kind.unit, "UTC"))
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        return [value for chunk in chunks for value in map(_of_time, chunk, as_strings(chunk).to_pylist())]
    values: list[Any] = column.to_pylist()
    return values


def _of_time(value: pa.Scalar, text: str | None) -> Any:
    """Return a time as Python's, which pandas' could replace, or its text if Python has no such time."""
    try:
        return value.cast(_MICROSECONDS.get(value.type, value.type)).as_py()
    except (ValueError, OverflowError):
        return text


def checked_identities(values: Sequence[Any], name: str) -> list[Any]:
    """Return ids, whatever type a column gave them.

    Raises UserError if an id is missing, or is a tuple that does not end in a row number.
    """
    for value in values:
        if value is None or (
            value.is_nan() if isinstance(value, decimal.Decimal)
            else isinstance(value, (float, dt.date)) and value != value  # noqa: PLR0124 - NaN, NaT
        ):  # fmt: skip
            raise BadRowError(f"{name}: an id is missing; give every document an id.")
        if isinstance(value, int) and value.bit_length() > MOST_BITS:
            raise BadRowError(f"{name}: an id is a number of thousands of digits; give shorter ids.")
        if isinstance(value, tuple):
            *place, row = value or (None,)
            named = bool(place) and all(isinstance(part, str) for part in place)
            if not (named and isinstance(row, int) and 0 <= row < 1 << 64):
                raise BadRowError(
                    f"{name}: an id that is a tuple has to consist of names (text) and, at the end, the number "
                    "of the row."
                )
    return [value if type(value) in (str, int, tuple) else _of_any_type(value) for value in values]


def _of_any_type(value: Any) -> Any:
    """Return an id as each of its types has it: an instant in UTC, a whole number, which a join may make a float."""
    match value:
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(dt.UTC)
        case float() if value.is_integer() and abs(value) < _EXACT:
            return int(value)
        case decimal.Decimal() if (
            value.is_finite() and value.adjusted() < _DIGITS and value == value.to_integral_value()
        ):
            return int(value)
    return value
