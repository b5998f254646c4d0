"""Parquet: a column ``token`` or ``word`` and a column ``vector`` (lists of numbers); ``count`` is taken if there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.errors import BadRowError, ColumnError
from corpusveil.spaces.formats.vector_table import VectorTable
from corpusveil.storage.parquet import read_whole, sound

WORDS = ("token", "word")
VECTORS = ("vector", "vectors", "embedding")


def read(url: str) -> VectorTable:
    """Read this format. Raises UserError, which names the file, for a faulty file."""
    unsound = f"{url}: this is not a valid Parquet file of words and vectors; fetch or make it again."

    def pick(schema: pa.Schema) -> list[str]:
        columns = [_named(schema.names, names, url) for names in (WORDS, VECTORS)]
        return [*columns, "count"] if "count" in schema.names else columns

    table = read_whole(url, unsound, pick)
    words, vectors = _filled(table, 0, url), _filled(table, 1, url)
    if not (pa.types.is_string(words.type) or pa.types.is_large_string(words.type)):
        raise ColumnError(f"{url}: the column of words has to contain strings.")
    counts = None
    if table.num_columns > 2:
        column = _filled(table, 2, url)
        if not pa.types.is_integer(column.type):
            raise ColumnError(f"{url}: the column 'count' has to contain whole numbers.")
        with sound(f"{url}: the column 'count' contains a number beyond 64 bits."):
            counts = column.cast(pa.int64()).to_numpy()
    with sound(unsound):
        return VectorTable(words.to_pylist(), _matrix(vectors, url), 1, counts)


def _named(there: list[str], names: tuple[str, ...], url: str) -> str:
    for name in names:
        if name in there:
            return name
    raise ColumnError(f"{url}: the column {' or '.join(repr(name) for name in names)} is missing; add it.")


def _filled(table: pa.Table, place: int, url: str) -> Any:
    column = table.column(place).combine_chunks()
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py() + 1
        raise BadRowError(f"{url}, row {row}: '{table.column_names[place]}' is empty. Fill or delete this row.")
    return column


def _matrix(lists: Any, url: str) -> Any:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(kind(lists.type) for kind in kinds):
        raise ColumnError(f"{url}: the column of vectors has to contain lists of numbers.")
    if not (pa.types.is_floating(lists.type.value_type) or pa.types.is_integer(lists.type.value_type)):
        raise ColumnError(f"{url}: the column of vectors has to contain lists of numbers, not lists of other values.")
    if not len(lists):
        return np.empty((0, 0), np.float32)
    sizes = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    ragged = np.flatnonzero(sizes != sizes[0])
    if len(ragged):
        row = int(ragged[0])
        raise BadRowError(
            f"{url}, row {row + 1}: the vector has {sizes[row]} numbers, and {sizes[0]} are expected; correct or "
            "delete this row."
        )
    return lists.flatten().to_numpy(zero_copy_only=False).reshape(len(lists), -1)
