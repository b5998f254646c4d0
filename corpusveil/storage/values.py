"""Kept values between forms: as JSON text, and as strings.

All is done in Arrow's own types. Those of Python have no nanoseconds and no year 10000, and which of them Arrow chooses
depends on whether pandas is installed.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.arrays import Int64
from corpusveil.errors import ColumnError
from corpusveil.storage.rows import JSON

_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""How many digits of a second a unit has."""
VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
"""Types of which Arrow can take no rows."""
_LISTS = (
    (pa.types.is_list, pa.list_),
    (pa.types.is_large_list, pa.large_list),
    (pa.types.is_list_view, pa.list_view),
    (pa.types.is_large_list_view, pa.large_list_view),
)
_NARROW, _DAY_MS, _AFTER_HOURS = 32, 86_400_000, len("1970-01-01T00")


def as_json(column: pa.Array) -> pa.Array:
    """Return each value of a kept column as JSON text, large_string [N].

    Bytes are base64, decimals strings, maps lists of pairs; times are ISO 8601 with all digits of their unit, in UTC if
    they have a time zone. NaN and infinities, which JSON lacks, are strings.
    """
    if column.type == JSON:
        return column.storage
    column = plain(column)
    if is_string(column.type):
        return json_strings(column.cast(pa.large_string()))
    if pa.types.is_nested(column.type):
        texts = _nested(column)
    else:
        texts = _scalars(column)
        if pa.types.is_floating(column.type):
            texts = pc.if_else(_is_number(column), texts, joined('"', texts, '"'))
        elif not (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
            texts = joined('"', texts, '"')
    return pc.if_else(column.is_valid(), texts, pa.scalar("null", pa.large_string()))


def as_strings(column: pa.Array) -> pa.Array:
    """Return a kept column as large_string [N]: strings and nulls unchanged, other values as their JSON text."""
    if column.type == JSON:
        texts = column.storage.to_pylist()
        strings = [None if text == "null" else orjson.loads(text) if text.startswith('"') else text for text in texts]
        return pa.array(strings, type=pa.large_string())
    column = plain(column)
    if pa.types.is_nested(column.type):
        return pc.if_else(column.is_valid(), _nested(column), None)
    return _scalars(column)


def refuse_unsaid(names: Sequence[str], kept: Sequence[pa.Array], file: str, language: str) -> None:
    """Raise ColumnError for the first kept column with what JSON cannot say, or CSV, in whose cells NaN is a text."""
    for name, column in zip(names, kept, strict=False):  # all further fields of JSON have no name here, nor a type
        if language == "CSV" and pa.types.is_floating(column.type):
            continue
        if (what := _unsaid(column)) is not None:
            raise ColumnError(
                f"{file}: the kept column {name!r} has {what}, which {language} cannot say; write Parquet, change the "
                "column, or leave it out."
            )


def is_string(kind: pa.DataType) -> bool:
    """Say whether a type is one of Arrow's strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def plain(column: pa.Array) -> pa.Array:
    """Return a column without its dictionary or extension, but for JSON text; UUIDs as they are written."""
    if pa.types.is_dictionary(column.type):
        return plain(column.dictionary_decode())
    if column.type == JSON or not isinstance(column.type, pa.BaseExtensionType):
        return column
    if column.type == pa.bool8():
        return column.storage.cast(pa.bool_())
    if column.type != pa.uuid():
        return plain(column.storage)
    return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.large_string())


def joined(*pieces: pa.Array | str) -> pa.Array:
    """Return texts that pieces make one after the other, large_string [N]; null where one is."""
    texts = [pa.scalar(piece, pa.large_string()) if isinstance(piece, str) else piece for piece in (*pieces, "")]
    return pc.binary_join_element_wise(*texts)  # the last is what stands between the others


def json_strings(texts: pa.Array, before: str = "", after: str = "") -> pa.Array:
    """Return large_string [N] as JSON strings, ``null`` for nulls, each between two pieces; as orjson writes them.

    Arrow joins texts in which JSON escapes nothing in a fifth of orjson's time.
    """
    data, offsets = string_bytes(texts)
    some = data[offsets[0] : offsets[-1]]
    escaped = np.flatnonzero((some < 0x20) | (some == 0x22) | (some == 0x5C))
    odd = texts.is_null().to_numpy(zero_copy_only=False).copy()
    odd[np.searchsorted(offsets, escaped + offsets[0], side="right") - 1] = True
    lines = joined(f'{before}"', texts, f'"{after}')
    if odd.any():
        written = [f"{before}{orjson.dumps(text).decode()}{after}" for text in texts.filter(odd).to_pylist()]
        lines = pc.replace_with_mask(lines, odd, pa.array(written, pa.large_string()))
    return lines


def string_bytes(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of large_string [N], and where each text begins and the last ends; int64 [N + 1]."""
    _, bounds, body = texts.buffers()
    data = np.empty(0, dtype=np.uint8) if body is None else np.frombuffer(body, dtype=np.uint8)
    if not len(texts):
        return data, np.zeros(1, dtype=np.int64)
    return data, np.frombuffer(bounds, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]


def list_sizes(lists: pa.Array) -> Int64:
    """Return how many elements each list has, 0 for nulls; int64 [N]."""
    sizes: Int64 = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return sizes


def _unsaid(column: pa.Array) -> str | None:
    """Return what is in a column that JSON has no word for."""
    for part in within(column):
        if pa.types.is_floating(part.type) and pc.all(_is_number(part)).as_py() is False:
            return "NaN or Infinity"
        if pa.types.is_struct(part.type) and len({field.name for field in part.type}) < part.type.num_fields:
            return "several fields of one name"
    return None


def within(column: pa.Array) -> Iterator[pa.Array]:
    """Yield a column, and all columns within it, without what lies below nulls."""
    column = plain(column)
    yield column
    if pa.types.is_struct(column.type):
        for field in column.flatten():
            yield from within(field)
    elif pa.types.is_nested(column.type):
        yield from within(_as_lists(column).flatten())


def _as_lists(column: pa.Array) -> pa.Array:
    """Return maps as lists of structs, lists unchanged."""
    kind = column.type
    return column.cast(pa.list_(pa.struct([kind.key_field, kind.item_field]))) if pa.types.is_map(kind) else column


def _nested(column: pa.Array) -> pa.Array:
    """Return the JSON text of lists, maps and structs, large_string [N]; of nulls some other text."""
    if pa.types.is_struct(column.type):
        names = [f"{orjson.dumps(field.name).decode()}:" for field in column.type]
        return _fields(column, names, "{}")
    lists = _as_lists(column)
    values = lists.flatten()
    texts = _fields(values, ("", ""), "[]") if pa.types.is_map(column.type) else as_json(values)
    ends = np.cumsum([0, *list_sizes(lists)])
    is_last = np.zeros(len(texts), dtype=np.bool_)
    is_last[ends[1:][np.diff(ends) > 0] - 1] = True
    data, offsets = string_bytes(pc.if_else(pa.array(is_last), texts, joined(texts, ",")))
    buffers = [None, pa.py_buffer(offsets[ends]), pa.py_buffer(data)]
    return joined("[", pa.Array.from_buffers(pa.large_string(), len(lists), buffers), "]")


def _fields(column: pa.Array, names: Sequence[str], brackets: str) -> pa.Array:
    """Return the fields of structs as JSON text, large_string [N], each after its name."""
    texts = [(f",{name}", as_json(values)) for name, values in zip(names, column.flatten(), strict=True)]
    (_, first), *others = texts
    return joined(f"{brackets[0]}{names[0]}", first, *chain.from_iterable(others), brackets[1])


def _is_number(column: pa.Array) -> pa.Array:
    return pc.is_finite(column.cast(pa.float64()))


def _scalars(column: pa.Array) -> pa.Array:
    """Return values that are not nested as text, large_string [N], null for nulls."""
    kind = column.type
    if pa.types.is_temporal(kind):
        texts = _times(column)
    elif pa.types.is_floating(kind):
        texts = _floats(column.cast(pa.float32()) if pa.types.is_float16(kind) else column)
    elif not _is_binary(kind):
        return column.cast(pa.large_string())
    else:
        values = [base64.b64encode(value or b"").decode() for value in column.to_pylist()]
        texts = pa.array(values, pa.large_string())
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.large_string()))


def _is_binary(kind: pa.DataType) -> bool:
    is_binary = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return any(is_one(kind) for is_one in is_binary)


def _floats(column: pa.Array) -> pa.Array:
    """Return the shortest text of each float, large_string [N], whatever for nulls."""
    values = column.fill_null(0).to_numpy()
    written = orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].split(b",")
    texts = pa.array(written if len(values) else [], pa.large_binary()).cast(pa.large_string())
    odd = np.where(np.isnan(values), "NaN", np.where(values > 0, "Infinity", "-Infinity"))
    return pc.if_else(_is_number(column).fill_null(True), texts, pa.array(odd, pa.large_string()))


def _times(column: pa.Array) -> pa.Array:
    """Return dates, times and durations as ISO 8601, large_string [N], whatever for nulls; of any year."""
    kind = column.type
    counts = column.view(pa.int32() if kind.bit_width == _NARROW else pa.int64()).fill_null(0).cast(pa.int64())
    if pa.types.is_duration(kind):
        return _durations(counts.cast(pa.large_string()), _DIGITS[kind.unit])
    if pa.types.is_date(kind):
        days = counts.to_numpy() // (1 if pa.types.is_date32(kind) else _DAY_MS)
        return _iso(days.view("M8[D]"))
    digits = _DIGITS[kind.unit]
    seconds, parts = np.divmod(counts.to_numpy(), 10**digits)
    texts = _iso(seconds.view("M8[s]"))
    if digits:
        texts = joined(texts, ".", pc.utf8_lpad(pa.array(parts).cast(pa.large_string()), digits, "0"))
    if pa.types.is_timestamp(kind):
        return texts if kind.tz is None else joined(texts, "Z")
    hours = pa.array(seconds // 3600).cast(pa.large_string())  # some databases have a time 24:00
    return joined(pc.utf8_lpad(hours, 2, "0"), pc.utf8_slice_codeunits(texts, _AFTER_HOURS))


def _iso(times: npt.NDArray[np.datetime64]) -> pa.Array:
    texts = pa.array(np.datetime_as_string(times), pa.large_string())
    return pc.replace_substring_regex(texts, r"^-(\d{3}-)", r"-0\1")  # NumPy counts the sign as a digit of the year


def _durations(counts: pa.Array, digits: int) -> pa.Array:
    """Return counts of units as seconds with this number of digits after the point."""
    texts = pc.utf8_lpad(pc.utf8_ltrim(counts, "-"), digits + 1, "0")
    sign = pc.if_else(pc.starts_with(counts, "-"), pa.scalar("-", pa.large_string()), pa.scalar("", pa.large_string()))
    if not digits:
        return joined(sign, "PT", texts, "S")
    whole, rest = pc.utf8_slice_codeunits(texts, 0, -digits), pc.utf8_slice_codeunits(texts, -digits)
    return joined(sign, "PT", whole, ".", rest, "S")


def of_own_rows(column: Any, *, nullable: bool = True) -> Any:
    """Return a column whose buffers and dictionaries, also within it, have the values of its rows alone.

    Others are of rows that were filtered out, or lie below nulls; a pickle, a stream and a printed column show them.
    Where a column is not ``nullable``, what lies below the null of a row around it is some value of no meaning.
    Raises ColumnError for a type that Arrow cannot copy.
    """
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array(map(of_own_rows, column.chunks), column.type)
    kind, other = column.type, with_leaves(column.type, _taken_as)
    try:
        if other != kind:
            return of_own_rows(column.cast(other), nullable=nullable).cast(kind)
        return _of_own_rows(column, kind, nullable=nullable)
    except pa.ArrowNotImplementedError:
        raise ColumnError(f"Arrow cannot copy a column of type {kind}; cast it, or do not keep it.") from None


def _of_own_rows(column: Any, kind: Any, *, nullable: bool) -> Any:
    if isinstance(kind, pa.BaseExtensionType):
        return kind.wrap_array(of_own_rows(column.storage, nullable=nullable))
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_encode(of_own_rows(pc.run_end_decode(column)), kind.run_end_type)
    missing = np.asarray(column.is_null())
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):  # whose casts and views Arrow gets wrong
        sizes = list_sizes(column).astype(np.int32 if pa.types.is_list_view(kind) else np.int64)
        starts = (np.cumsum(sizes) - sizes).astype(sizes.dtype)
        values = of_own_rows(column.flatten())
        return type(column).from_arrays(pa.array(starts), pa.array(sizes), values, type=kind, mask=column.is_null())
    whole = column.take(pa.array(np.arange(len(column)), mask=missing))  # of a null only that it is one
    if pa.types.is_dictionary(kind):
        used = whole.indices.drop_null().unique().sort()
        indices, values = (
            pc.index_in(whole.indices, used).cast(kind.index_type),
            of_own_rows(whole.dictionary.take(used)),
        )
        return pa.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered)
    if not pa.types.is_nested(kind) or pa.types.is_union(kind):
        return whole if nullable else pa.Array.from_buffers(kind, len(whole), [None, *whole.buffers()[1:]], 0)
    if pa.types.is_struct(kind):
        own, children = 1, [(whole.field(at), field.nullable) for at, field in enumerate(kind)]
    elif pa.types.is_map(kind):
        fields = [kind.key_field, kind.item_field]
        own, children = 2, [(pa.StructArray.from_arrays([whole.keys, whole.items], fields=fields), True)]
    else:
        own, children = (1 if pa.types.is_fixed_size_list(kind) else 2), [(whole.values, kind.value_field.nullable)]
    copied = [of_own_rows(child, nullable=nulls or not missing.any()) for child, nulls in children]
    buffers = [whole.buffers()[0] if nullable else None, *whole.buffers()[1:own]]
    return pa.Array.from_buffers(kind, len(whole), buffers, whole.null_count if nullable else 0, 0, copied)


def _taken_as(kind: pa.DataType) -> pa.DataType | None:
    """Return the type of which Arrow takes rows in the place of one of which it takes none."""
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, VIEWS.get(kind.value_type, kind.value_type), ordered=kind.ordered)
    return VIEWS.get(kind)


def with_leaves(kind: pa.DataType, of: Callable[[pa.DataType], pa.DataType | None]) -> pa.DataType:
    """Return a type without metadata, in which some types are those ``of`` them."""

    def field(given: pa.Field) -> pa.Field:
        return pa.field(given.name, with_leaves(given.type, of), given.nullable)

    if (other := of(kind)) is not None:
        return other
    if pa.types.is_struct(kind):
        return pa.struct(list(map(field, kind)))
    if pa.types.is_map(kind):
        return pa.map_(field(kind.key_field), field(kind.item_field), keys_sorted=kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(field(kind.value_field), kind.list_size)
    return next((make(field(kind.value_field)) for is_one, make in _LISTS if is_one(kind)), kind)
