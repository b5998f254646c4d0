"""Parquet: a column ``token`` or ``word`` and a column ``vector`` (lists of numbers); ``count`` is taken if there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpusveil.errors import UserError
from corpusveil.spaces.formats.table import Table
from corpusveil.storage import files

WORDS = ("token", "word")
VECTORS = ("vector", "vectors", "embedding")


def read(url: str) -> Table:
    """Read this format; what is wrong with a file is a ``UserError`` that names it."""
    with files.open_read(url) as file:
        try:
            table = pq.read_table(file)
            table.validate(full=True)
            names = set(table.column_names)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise UserError(f"{url}: not a sound Parquet file ({error}).") from None
    words, vectors = _column(table, WORDS, url), _column(table, VECTORS, url)
    if not (pa.types.is_string(words.type) or pa.types.is_large_string(words.type)):
        raise UserError(f"{url}: the column of words must hold strings, not {words.type}.")
    counts = table["count"].cast(pa.int64()).to_numpy() if "count" in names else None
    return Table(words.to_pylist(), _matrix(vectors, url), 1, counts)


def _column(table: pa.Table, names: tuple[str, ...], url: str) -> Any:
    for name in names:
        if name in table.column_names:
            column = table[name].combine_chunks()
            if column.null_count:
                row = pc.index(pc.is_null(column), True).as_py() + 1
                raise UserError(f"{url}, row {row}: '{name}' is empty. Fill or delete this row.")
            return column
    raise UserError(f"{url}: no column {' or '.join(repr(name) for name in names)}.")


def _matrix(lists: Any, url: str) -> Any:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(kind(lists.type) for kind in kinds):
        raise UserError(f"{url}: the column of vectors must hold lists of numbers, not {lists.type}.")
    if not len(lists):
        return np.empty((0, 0), np.float32)
    sizes = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    ragged = np.flatnonzero(sizes != sizes[0])
    if len(ragged):
        row = int(ragged[0])
        raise UserError(f"{url}, row {row + 1}: {sizes[row]} numbers where {sizes[0]} are expected.")
    return lists.flatten().to_numpy(zero_copy_only=False).reshape(len(lists), -1)
