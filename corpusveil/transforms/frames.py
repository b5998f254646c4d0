"""Texts of a list, a column or a frame as Arrow, and private texts back in the original kind; narwhals reads frames."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import pyarrow as pa

from corpusveil.errors import DataError, SettingError, column_twice, existing, listed, of_other_type
from corpusveil.storage.rows import Columns
from corpusveil.storage.values import is_string, not_kept, of_own_rows, require_kept

Kept = str | Sequence[str]
"""The columns to keep, by name."""
COMBINED_BYTES = 1 << 30
"""Chunks of columns below this size are joined and privatized at once; larger columns are done chunk by chunk."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One text column: ``texts``, the values of another ``column``, and ``back`` from private texts, in parts.

    ``column`` is None for texts that have no further columns.
    """

    texts: pa.ChunkedArray
    """Strings without a dictionary, in one chunk, unless it would be too large."""
    kind: pa.DataType
    """The Arrow type of the texts as they were given."""
    back: Callable[[list[pa.Array]], Any]
    column: Callable[[str], Any] | None = None
    dropped: Sequence[str] = ()
    """The names of the columns that do not come back."""

    def __len__(self) -> int:
        return len(self.texts)


def frame_of(data: Any, text: str, keep: Kept = ()) -> Frame:
    """Return the texts of a list, a column, or the column ``text`` of a frame, which goes back with those to ``keep``.

    Raises UserError for any other value, and for a column that is missing, occurs several times or cannot be kept.
    """
    if not isinstance(text, str):
        raise of_other_type("text", text, "the name of a column, which is a string")
    columns = Columns.from_names(text, None, keep)
    frame = _frame(data, columns)
    if frame.column is None and columns.keep:
        raise DataError(f"keep: these texts have no columns, so {listed(columns.keep)} cannot be kept.")
    return frame


def _frame(data: Any, columns: Columns) -> Frame:
    if isinstance(data, (list, tuple)):
        kind = tuple if isinstance(data, tuple) else list
        return Frame(*_plain(large_strings(data, None), columns.text), lambda parts: kind(_texts(parts)))
    if isinstance(data, (pa.Array, pa.RecordBatch)):  # one chunk of a column or a table
        whole = pa.chunked_array([data]) if isinstance(data, pa.Array) else pa.table(data)
        frame = _frame(whole, columns)
        return dataclasses.replace(frame, back=lambda parts: _one_chunk(frame.back(parts), columns.text))
    given = _read(data)
    if given.implementation.is_pandas_like():
        _refuse_index(given.to_native().index)
    if isinstance(given, nw.Series):
        return Frame(*_plain(_arrow(given, columns.text), columns.text), lambda parts: _like(given, parts))
    stays, dropped = stays_of(given.columns, columns)
    own = {name: _kept(given.get_column(name), name) for name in columns.keep}
    text = given.get_column(columns.text)
    made = pa.table if given.implementation.is_pyarrow() else type(given.to_native())

    def column(name: str) -> Any:
        place_of(given.columns, name)
        return column_values(given.get_column(name).to_native(), name)

    def to_frame(parts: list[pa.Array]) -> Any:
        own[columns.text] = _like(text, parts)
        return made({name: own[name] for name in (given.columns[place] for place in stays)})

    return Frame(*_plain(_arrow(text, columns.text), columns.text), to_frame, column, dropped)


def column_values(column: Any, what: str = "a column") -> Any:
    """Return the values of a column or list of any library: of Arrow, or a list of Python's values.

    Raises UserError, which says ``what`` it is, for what is not one value for each row in their order.
    """
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return column
    is_row_by_row = isinstance(column, Iterable) and len(getattr(column, "shape", (0,))) == 1
    if not is_row_by_row or isinstance(column, (Mapping, AbstractSet, str, bytes, bytearray)):
        raise of_other_type(what, column, "the name of a column, or a list or column with a value for each text")
    if hasattr(column, "to_arrow"):
        try:
            return column.to_arrow()
        except pa.ArrowInvalid:  # Polars has types that Arrow lacks
            raise DataError(f"{what}: a column of type {column.dtype} cannot be read; cast it first.") from None
    if hasattr(column, "isna"):
        return [None if gone else value for value, gone in zip(column.tolist(), column.isna(), strict=True)]
    return [value.item() if hasattr(value, "item") else value for value in column]


def _plain(texts: pa.Array | pa.ChunkedArray, name: str) -> tuple[pa.ChunkedArray, pa.DataType]:
    """Return texts as strings without a dictionary, in one chunk unless it would be too large, and their own type."""
    chunks = [texts] if isinstance(texts, pa.Array) else texts.chunks
    if len(chunks) != 1 and texts.nbytes < COMBINED_BYTES:
        whole = texts.combine_chunks()
        chunks = whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]
    kind = pa.large_string() if pa.types.is_dictionary(texts.type) else texts.type
    return pa.chunked_array([plain_texts(chunk, name) for chunk in chunks], kind), texts.type


def plain_texts(column: pa.Array, name: str) -> pa.Array:
    """Return a column of strings without a dictionary. Raises UserError for text that is not UTF-8."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raise DataError(f"{name}: this column has text that is not valid UTF-8; repair it first.") from None
    coded = pa.types.is_dictionary(column.type)
    return column.dictionary.cast(pa.large_string()).take(column.indices) if coded else column


def _read(data: Any) -> nw.Series[Any] | nw.DataFrame[Any]:
    """Return a column or a frame as one of narwhals; a lazy frame is collected."""
    if type(data).__module__.startswith("pyspark."):
        raise SettingError("Spark DataFrames stay in Spark; use corpusveil.transforms.spark.privatize_frame.")
    try:
        given: Any = nw.from_native(data, allow_series=True, pass_through=True)
        if given is data and hasattr(data, "__arrow_c_stream__"):
            given = nw.from_native(pa.table(data))
        given = given.collect() if isinstance(given, nw.LazyFrame) else given
    except nw.exceptions.DuplicateError:
        names = list(getattr(data, "column_names", getattr(data, "columns", ())))
        raise column_twice(next(name for name in names if names.count(name) > 1)) from None
    if not isinstance(given, (nw.Series, nw.DataFrame)):
        hint = "; put a single text in brackets" if isinstance(data, str) else ""
        raise SettingError(
            f"A value of type {type(data).__name__} is not a list of texts, a column or a frame; give a list of "
            f"strings, or an object of pandas, Polars, Arrow or DuckDB{hint}."
        )
    return given


def not_copied(names: str) -> str:
    """Say what was left out of a frame."""
    return f"not copied: {names}. Only columns that keep names are copied."


def is_text(kind: pa.DataType) -> bool:
    """Say whether a column of this Arrow type is text: strings of any of its kinds, or a dictionary of them."""
    return is_string(kind.value_type if pa.types.is_dictionary(kind) else kind)


def require_text(kind: pa.DataType, name: str) -> None:
    """Raise UserError unless a column of this Arrow type is text."""
    if not is_text(kind):
        raise cannot_hold(name, kind)


def cannot_hold(name: str, kind: object) -> DataError:
    """Return the error of a column whose type can't hold private text."""
    return DataError(f"{name}: a column of type {kind} cannot hold the private text; cast it to string first.")


def large_strings(texts: Sequence[str | None], name: str | None) -> pa.LargeStringArray:
    """Return strings as an Arrow array. Raises UserError, which quotes no text, for a value that is not valid text."""
    try:
        if not any(isinstance(text, (bytes, bytearray)) for text in texts):  # which Arrow would take for UTF-8
            return pa.array(texts, type=pa.large_string(), from_pandas=True)  # a NaN is a missing text
    except (UnicodeEncodeError, pa.ArrowInvalid, pa.ArrowTypeError):
        pass
    raise next(filter(None, (_fault(text, row, name) for row, text in enumerate(texts))))


def _fault(text: Any, row: int, name: str | None) -> DataError | None:
    where = f"{'' if name is None else f'{name}: '}row {row:,} (counted from 0)"
    if isinstance(text, (bytes, bytearray)):
        return DataError(f"{where}: a text is bytes, not a string; decode it first.")
    try:
        pa.array([text], type=pa.large_string(), from_pandas=True)
    except UnicodeEncodeError:
        return DataError(
            f"{where}: a text contains half a surrogate pair, which is not a character; repair the text first."
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return DataError(f"{where}: a text is not a string, but of type {type(text).__name__}; convert it first.")
    return None


def stays_of(names: Sequence[Any], columns: Columns) -> tuple[list[int], list[Any]]:
    """Return which columns come back, by their places, and the names of all others."""
    stays = sorted(place_of(names, name) for name in (columns.text, *columns.keep))
    return stays, [name for place, name in enumerate(names) if place not in stays]


def place_of(names: Sequence[Any], name: str) -> int:
    """Return the place of a column. Raises UserError if it is missing or occurs several times."""
    places = [place for place, other in enumerate(names) if other == name]
    if not places:
        raise DataError(f"{name}: there is no such column{existing(name, names)}")
    if len(places) > 1:
        raise column_twice(name)
    return places[0]


def _refuse_index(index: Any) -> None:
    """Raise SettingError for an index that is more than row numbers: values of rows, such as those of customers."""
    if type(index).__name__ != "RangeIndex" or index.name is not None:
        raise SettingError(
            "the index is more than row numbers, and an index is not released; give frame.reset_index(drop=True), or "
            "reset_index(), after which its values are a column."
        )


def _texts(parts: Sequence[pa.Array]) -> list[str | None]:
    return [text for part in parts for text in part.to_pylist()]


def _one_chunk(made: Any, text: str) -> Any:
    chunks = made.chunks if isinstance(made, pa.ChunkedArray) else made.combine_chunks().to_batches()
    if len(chunks) > 1:
        raise cannot_hold(text, made.schema.field(text).type if isinstance(made, pa.Table) else made.type)
    return chunks[0] if chunks else made.combine_chunks()


def _arrow(series: nw.Series[Any], name: str) -> Any:
    is_coded = isinstance(series.dtype, (nw.Categorical, nw.Enum)) and not series.implementation.is_pyarrow()
    if is_coded:  # its words are fixed, and its type names them
        raise cannot_hold(name, type(series.dtype).__name__)
    if series.implementation.is_pandas_like():
        return large_strings(series.to_native().tolist(), name)
    values = column_values(series, name)
    require_text(values.type, name)
    return values


def _kept(series: nw.Series[Any], name: str) -> Any:
    """Return a kept column with the values of its rows alone. Raises UserError for a type that is not kept."""
    try:
        values = series.to_arrow()
    except (UnicodeEncodeError, pa.ArrowException, OverflowError):  # values of several types
        raise not_kept(name, type(series.dtype).__name__) from None
    require_kept(values.type, name)
    values = of_own_rows(values)
    made = _like(series, values.chunks if isinstance(values, pa.ChunkedArray) else [values])
    native = series.to_native()
    if series.implementation.is_pandas_like() and not ((made == native) | native.isna()).all():
        raise not_kept(name, "values of several types")  # of which Arrow made one
    return made


def _like(series: nw.Series[Any], parts: list[pa.Array]) -> Any:
    """Return values of Arrow as a column of the kind, type and index of another one."""
    native = series.to_native()
    if isinstance(native, pa.ChunkedArray):
        return pa.chunked_array(parts, native.type)
    if series.implementation.is_pandas_like():
        is_time = parts and native.dtype.kind == "M"  # Python has no year 10000
        values = pa.chunked_array(parts).to_pandas().array if is_time else _texts(parts)
        return type(native)(values, index=native.index, name=native.name, dtype=native.dtype)
    return type(native)(native.name, pa.chunked_array(parts)).cast(native.dtype)
