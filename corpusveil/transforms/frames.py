"""Texts of every kind of list, column and frame as Arrow, and private texts back in the original kind.

This module never imports pandas, Polars or datasets: a caller with one of their objects has imported them.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from corpusveil.errors import (
    UNNAMED,
    BadRowError,
    BadTypeError,
    ColumnError,
    ConflictError,
    ShapeError,
    UserError,
    column_twice,
    listed,
    no_column,
    of_other_type,
)
from corpusveil.storage.rows import Columns
from corpusveil.storage.values import is_string, of_own_rows
from corpusveil.transforms.identities import column_values


@dataclass(frozen=True, slots=True)
class Frame:
    """One text column: ``texts``, the values of another ``column``, and ``back`` from private texts, in parts.

    ``column`` is None for texts that have no further columns.
    """

    texts: pa.Array | pa.ChunkedArray
    back: Callable[[list[pa.Array]], Any]
    column: Callable[[str], Any] | None = None
    dropped: Sequence[Any] = ()
    """The names of what the frame had, and what is given back has not."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.texts)


Kept = str | Sequence[str]
"""The columns to keep, by name, or ``all``."""
MOST_ROWS = 16
"""The rows of a frame that was filtered, for one that is left, up to which an index counts as numbers of rows."""


def frame_of(data: Any, text: str, keep: Kept = "all") -> Frame:
    """Return the texts of a list, a column, or the column ``text`` of a frame, which goes back with those to ``keep``.

    Raises UserError for any other value, and for a column that is missing or occurs several times.
    """
    if not isinstance(text, str):
        raise of_other_type("text", text, "the name of a column, which is a string")
    columns = Columns.of(text, None, keep)
    frame = _frame(data, text, columns)
    if frame.column is None and columns.keep:
        raise ColumnError(f"keep: these texts have no columns, so {listed(columns.keep)} cannot be kept.")
    return frame


def warn_of_dropped(frame: Frame) -> None:
    """Warn a caller in Python of what does not come back."""
    if frame.dropped:
        warnings.warn(not_copied(listed(frame.dropped)), stacklevel=5)


def not_copied(names: str) -> str:
    """Say what was left out of a frame."""
    return f"not copied: {names}. Other columns leave only if keep names them (keep='all' for all of them)."


def _frame(data: Any, text: str, columns: Columns) -> Frame:
    for cls in type(data).__mro__:
        kind = _KINDS.get((cls.__module__.partition(".")[0], cls.__name__))
        if kind is not None:
            return kind(data, text, columns)
    if type(data).__module__.startswith("pyspark."):  # whose Arrow stream would be sent to this process
        raise BadTypeError("Spark DataFrames stay in Spark; use corpusveil.transforms.spark.privatize_frame.")
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return _interface(data, text, columns)
    if isinstance(data, (Sequence, Iterator)) and not isinstance(data, (str, bytes, bytearray, memoryview)):
        return _list(data, text, columns)
    hint = "; put a single text in brackets" if isinstance(data, str) else ""
    raise BadTypeError(
        f"A value of type {type(data).__name__} is not a list of texts, a column or a frame; give a list of strings, "
        f"or an object of NumPy, pandas, Polars, Arrow or datasets.Dataset{hint}."
    )


def is_text(kind: pa.DataType) -> bool:
    """Say whether a column of this Arrow type is text: strings of any of its kinds, or a dictionary of them."""
    return is_string(kind.value_type if pa.types.is_dictionary(kind) else kind)


def large_strings(texts: Sequence[str | None], name: str | None) -> pa.LargeStringArray:
    """Return strings as an Arrow array. Raises UserError, which quotes no text, for a value that is not valid text."""
    try:
        if not any(isinstance(text, (bytes, bytearray)) for text in texts):  # which Arrow would take for UTF-8
            return pa.array(texts, type=pa.large_string(), from_pandas=True)  # a NaN is a missing text
    except (UnicodeEncodeError, pa.ArrowInvalid, pa.ArrowTypeError):
        pass
    raise next(filter(None, (_fault(text, row, name) for row, text in enumerate(texts))))


def _fault(text: Any, row: int, name: str | None) -> BadRowError | None:
    """Return the error of a value that is not valid text."""
    where = f"{'' if name is None else f'{name}: '}row {row:,} (counted from 0)"
    if isinstance(text, (bytes, bytearray)):
        return BadRowError(f"{where}: a text is bytes, not a string; decode it first.")
    try:
        pa.array([text], type=pa.large_string(), from_pandas=True)
    except UnicodeEncodeError:
        return BadRowError(
            f"{where}: a text contains half a surrogate pair, which is not a character; repair the text first."
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return BadRowError(f"{where}: a text is not a string, but of type {type(text).__name__}; convert it first.")
    return None


def cannot_hold(name: str, kind: object) -> UserError:
    """Return the error of a column whose type can't hold private text."""
    return ColumnError(f"{name}: a column of type {kind} cannot hold the private text; cast it to string first.")


def _place(names: Sequence[Any], name: str) -> int:
    """Return the place of a column. Raises UserError if it is missing or occurs several times."""
    places = [place for place, other in enumerate(names) if other == name]
    if not places:
        raise no_column(name, names)
    if len(places) > 1:
        raise column_twice(name)
    return places[0]


def _texts(parts: list[pa.Array]) -> list[str | None]:
    return [text for part in parts for text in part.to_pylist()]


def _list(data: Any, _text: str, _: Columns) -> Frame:
    kind = tuple if isinstance(data, tuple) else list
    return Frame(large_strings(list(data), None), lambda parts: kind(_texts(parts)))


def _numpy(data: Any, _text: str, _: Columns) -> Frame:
    if data.ndim != 1:
        raise ShapeError(
            f"An array of texts has one dimension, and this array has {data.ndim}; pass a single column of it."
        )
    texts = large_strings(data.tolist(), None)
    kind = object if texts.null_count else np.str_  # whose width is what the private texts need
    kind = data.dtype if data.dtype.kind in "OT" else kind
    return Frame(texts, lambda parts: np.array(_texts(parts), dtype=kind))


def _arrow_column(data: Any, text: str, _: Columns | None = None) -> Frame:
    require_text(data.type, text)

    def back(parts: list[pa.Array]) -> Any:
        if isinstance(data, pa.ChunkedArray):
            return pa.chunked_array(parts, type=data.type)
        if len(parts) > 1:
            raise cannot_hold(text, data.type)
        return parts[0]

    return Frame(data, back)


def stays_of(names: Sequence[Any], columns: Columns) -> tuple[list[int], list[Any]]:
    """Return which columns come back, by their places, and the names of all others."""
    if columns.others == "keep":
        return list(range(len(names))), []
    wanted = [_place(names, name) for name in (columns.text, *columns.keep)]
    return sorted(wanted), [name for place, name in enumerate(names) if place not in wanted]


def _arrow_table(data: Any, text: str, columns: Columns) -> Frame:
    names = data.schema.names
    place = _place(names, text)
    stays, dropped = stays_of(names, columns)

    def back(made: Any) -> Any:
        schema = made.schema  # whose metadata may tell of columns and rows that are gone
        if columns.others != "keep":
            schema = pa.schema([field.remove_metadata() for field in schema])
        return type(made).from_arrays(list(map(of_own_rows, made.columns)), schema=schema)

    column = _arrow_column(data.column(place), text)
    return dataclasses.replace(
        column,
        back=lambda parts: back(data.set_column(place, data.schema.field(place), column.back(parts)).select(stays)),
        column=lambda name: data.column(_place(names, name)),
        dropped=dropped,
    )


def require_text(kind: pa.DataType, name: str) -> None:
    """Raise UserError unless a column of this Arrow type is text."""
    if not is_text(kind):
        raise cannot_hold(name, kind)


def _index(data: Any, columns: Columns) -> tuple[Any, list[Any]]:
    """Return the index of what comes back, and what it loses: row numbers stay, anything else is kept like a column."""
    index = data.index
    names = [UNNAMED if name is None else name for name in index.names]
    if (names == [UNNAMED] and _are_row_numbers(index)) or columns.others == "keep" or set(names) <= set(columns.keep):
        for unused in ("remove_unused_levels", "remove_unused_categories"):  # which may be of rows filtered out
            index = getattr(index, unused, lambda same=index: same)()
        return index, []
    gone = [at for at, name in enumerate(names) if name not in columns.keep]
    return (None if len(gone) == len(names) else index.droplevel(gone)), [names[at] for at in gone]


def _are_row_numbers(index: Any) -> bool:
    """Say whether an index is a range, or numbers of rows of a filtered frame; others could be those of customers."""
    if index.dtype.kind not in "iu" or len(index) == 0:
        return bool(index.dtype.kind in "iu")
    if type(index).__name__ == "RangeIndex":
        return True
    return bool(index.is_unique and index.min() >= 0 and index.max() < MOST_ROWS * len(index))


def _pandas_series(data: Any, text: str, columns: Columns) -> Frame:
    index, gone = _index(data, columns)
    if gone:
        raise ConflictError(
            f"the series would lose its index, {listed(gone)}, and a column that is set from it would have the texts "
            "of other rows: give keep='all' to have the index back, in the clear, or series.reset_index(drop=True)."
        )
    return _pandas_values(data, text, index)


def _pandas_values(data: Any, text: str, index: Any) -> Frame:
    kind = data.dtype
    if kind == "category":
        kind = type(kind)(ordered=kind.ordered)  # whose categories are those of the private texts
    texts = data.tolist()

    def back(parts: list[pa.Array]) -> Any:
        made: Any = _texts(parts)
        if kind == "object":  # each library's mark for a missing text stays
            made = [before if after is None else after for before, after in zip(texts, made, strict=True)]
        return type(data)(made, index=index, name=data.name, dtype=kind)

    return Frame(large_strings(texts, text), back)


def _pandas_frame(data: Any, text: str, columns: Columns) -> Frame:
    names = list(data.columns)
    place = _place(names, text)
    index, gone = _index(data, columns)
    of_index = [name for name in data.index.names if name not in names]
    stays, dropped = stays_of(names, columns.without(of_index))
    series = _pandas_values(data.iloc[:, place], text, data.index)

    def back(parts: list[pa.Array]) -> Any:
        made = data.copy()
        made.isetitem(place, series.back(parts))
        made = made.iloc[:, stays]
        for at, kind in enumerate(made.dtypes):
            if kind == "category":
                made.isetitem(at, made.iloc[:, at].cat.remove_unused_categories())
            elif hasattr(kind, "__from_arrow__") and hasattr(kind, "numpy_dtype"):  # of Arrow, or with a mask
                made.isetitem(at, kind.__from_arrow__(of_own_rows(made.iloc[:, at].array.__arrow_array__())))
        if columns.others != "keep":  # what describes a frame may tell of columns and rows that are gone
            made.columns, made.attrs = list(made.columns), {}
        return made.reset_index(drop=True) if index is None else made.set_axis(index)

    def column(name: str) -> Any:
        level = data.index.get_level_values(name) if name in of_index else None
        return column_values(data.iloc[:, _place(names, name)] if level is None else level, name)

    return dataclasses.replace(series, back=back, column=column, dropped=[*dropped, *gone])


def _polars_series(data: Any, text: str, _: Columns | None = None) -> Frame:
    if type(data.dtype).__name__ == "Enum":  # whose words are given
        raise cannot_hold(text, "Enum")
    values = data.to_arrow()
    if is_text(values.type) and pa.types.is_dictionary(values.type):
        values = values.dictionary.cast(pa.large_string()).take(values.indices)
    column = _arrow_column(values, text)
    return dataclasses.replace(column, back=lambda parts: type(data)(data.name, column.back(parts)).cast(data.dtype))


def _polars_frame(data: Any, text: str, columns: Columns) -> Frame:
    stays, dropped = stays_of(data.columns, columns)
    values = data.get_column(data.columns[_place(data.columns, text)])
    column = _polars_series(values, text)

    def back(made: Any) -> Any:
        return made.with_columns(map(_of_own_rows, made.iter_columns()))

    return dataclasses.replace(
        column,
        back=lambda parts: back(data.with_columns(column.back(parts))[:, stays]),
        column=lambda name: column_values(data.get_column(data.columns[_place(data.columns, name)]), name),
        dropped=dropped,
    )


def _of_own_rows(column: Any) -> Any:
    """Return a Polars column whose buffers have the values of its rows alone; objects of Python lie in none."""
    if str(column.dtype) == "Object":
        return column
    try:
        return type(column)(column.name, of_own_rows(column.to_arrow())).cast(column.dtype)
    except pa.ArrowInvalid:  # a type that Arrow lacks
        return type(column)(column.name, column.to_list(), dtype=column.dtype)


def _polars_lazy(data: Any, text: str, columns: Columns) -> Frame:
    frame = _polars_frame(data.collect(), text, columns)
    return dataclasses.replace(frame, back=lambda parts: frame.back(parts).lazy())


def _dataset(data: Any, text: str, columns: Columns) -> Frame:
    column = _arrow_table(data.with_format("arrow")[:], text, columns)
    names = [name for name in data.column_names if name not in column.dropped]
    like = data.select_columns(names) if column.dropped else data
    info = like.info if columns.others == "keep" else type(like.info)(features=like.features)

    def back(parts: list[pa.Array]) -> Any:
        return type(data)(column.back(parts), info=info, split=data.split).with_format(**like.format)

    return dataclasses.replace(column, back=back)


def _interface(data: Any, text: str, columns: Columns) -> Frame:
    """Read an object that exports its columns by Arrow's C interface; it is returned as Arrow."""
    column = pa.chunked_array(data) if hasattr(data, "__arrow_c_stream__") else pa.array(data)
    if pa.types.is_struct(column.type):
        return _arrow_table(pa.Table.from_struct_array(column), text, columns)
    return _arrow_column(column, text)


_KINDS: dict[tuple[str, str], Callable[[Any, str, Columns], Frame]] = {
    ("builtins", "list"): _list,
    ("builtins", "tuple"): _list,
    ("numpy", "ndarray"): _numpy,
    ("pyarrow", "Array"): _arrow_column,
    ("pyarrow", "ChunkedArray"): _arrow_column,
    ("pyarrow", "RecordBatch"): _arrow_table,
    ("pyarrow", "Table"): _arrow_table,
    ("pandas", "Series"): _pandas_series,
    ("pandas", "DataFrame"): _pandas_frame,
    ("polars", "Series"): _polars_series,
    ("polars", "DataFrame"): _polars_frame,
    ("polars", "LazyFrame"): _polars_lazy,
    ("datasets", "Dataset"): _dataset,
}
"""The readers of classes, by package and name; derived classes are read in the same way."""
