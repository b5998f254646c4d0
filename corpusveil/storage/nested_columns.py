"""Texts within the lists and structs of Arrow columns: one after another, and the column again; no loop over rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.arrays import Int64
from corpusveil.errors import ColumnError, existing
from corpusveil.storage.nested import Path, Places


def leaf_type(kind: pa.DataType, path: Path) -> pa.DataType:
    """Return the type of the texts within a column of a type. Raises UserError where the path does not lead there."""
    for many, step in enumerate(path.steps):
        if step is None:
            if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
                raise ColumnError(f"{path.text}: {path.name(many)} is not a list; leave out the [] after it.")
            if pa.types.is_fixed_size_list(kind) and "string_view" in str(kind):  # of which Arrow takes no values
                raise ColumnError(f"{path.text}: {path.name(many)} has string views in lists of fixed size; cast it.")
            kind = kind.value_type
        elif not pa.types.is_struct(kind) or kind.get_field_index(step) < 0:
            names = [field.name for field in kind] if pa.types.is_struct(kind) else []
            raise ColumnError(f"{path.text}: {path.name(many)} has no single field {step!r}{existing(step, names)}")
        else:
            kind = kind.field(step).type
    return kind


def flat(column: pa.Array, path: Path) -> tuple[pa.Array, Places]:
    """Return the texts within a column, in its own type of text [D], and where they lie.

    Nothing below a null is a text. Raises UserError as ``leaf_type``.
    """
    leaf_type(column.type, path)
    rows: Int64 = np.arange(len(column))
    within: list[Int64] = []
    for step in path.steps:
        if step is None:
            sizes = list_sizes(column)
            inside = np.repeat(np.arange(len(column)), sizes)
            number = np.arange(inside.size) - (np.cumsum(sizes) - sizes)[inside]
            rows, within = rows[inside], [*(places[inside] for places in within), number]
            column = column.flatten()
        else:
            column = column.flatten()[column.type.get_field_index(step)]
    return column, Places(rows, np.stack(within, axis=1) if within else np.empty((len(rows), 0), dtype=np.int64))


def filled(column: pa.Array, texts: pa.Array, steps: Sequence[str | None]) -> pa.Array:
    """Return a column with other texts [D], in their type; all else stays, and nothing is left below its nulls."""
    if not steps:
        return texts
    step, *rest = steps
    kind, valid = column.type, column.is_valid().to_numpy(zero_copy_only=False)
    buffers = [pa.py_buffer(np.packbits(valid, bitorder="little")) if column.null_count else None]
    if step is not None:
        at, every = kind.get_field_index(step), column.flatten()
        children = [column.field(k) for k in range(kind.num_fields)]
        children[at] = filled(every[at], texts, rest)
        kind = pa.struct([field.with_type(child.type) for field, child in zip(kind, children, strict=True)])
    else:
        child = filled(column.flatten(), texts, rest)
        field = kind.value_field.with_type(child.type)
        if pa.types.is_fixed_size_list(kind):
            kind, taken = pa.list_(field, kind.list_size), np.repeat(valid, kind.list_size)
            if column.null_count:  # whose places have to be there
                child = child.take(pa.array(np.cumsum(taken) - 1, mask=~taken))
        else:
            large = pa.types.is_large_list(kind)
            kind = pa.large_list(field) if large else pa.list_(field)
            ends = np.cumsum(list_sizes(column), dtype=np.int64 if large else np.int32)
            buffers.append(pa.py_buffer(np.concatenate([ends[:0], [0], ends]).astype(ends.dtype)))
        children = [child]
    return pa.Array.from_buffers(kind, len(column), buffers, column.null_count, children=children)


def list_sizes(lists: pa.Array) -> Int64:
    """Return how many elements each list has, 0 for nulls; int64 [N]."""
    sizes: Int64 = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return sizes
