"""Texts within lists and objects: the path to them, their places, and values of Python and Arrow with other texts."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusveil.arrays import Int64
from corpusveil.errors import BadRowError, BadValueError, ColumnError, existing

_PART = re.compile(r"([^\[\].]+)((?:\[\])*)")


@dataclass(frozen=True, slots=True)
class Path:
    """Where texts lie: a top-level ``column``, and then names of fields; None stands for the elements of a list."""

    text: str
    column: str
    steps: tuple[str | None, ...]

    @property
    def has_fields(self) -> bool:
        """Whether texts are fields, beside which there can be others."""
        return any(step is not None for step in self.steps)

    def name(self, many: int) -> str:
        """Return the path after the first ``many`` steps, as text."""
        return self.column + "".join("[]" if step is None else f".{step}" for step in self.steps[:many])

    def disclosed(self) -> str:
        """Return what is released beside the texts as it is."""
        around = f"everything in {self.column} around its texts, and " if self.has_fields else ""
        return f"{around}how many texts of {self.text} a row has"

    def is_alone(self) -> str:
        """Say what the budget is about."""
        return f"Each text of {self.text} is a document with a budget of its own; those of a row add up."


@functools.lru_cache
def path_of(text: str) -> Path | None:
    """Return the path that the name of a text column is; None if it is the name of a top-level column.

    A path has ``[]`` after the name of each list, or begins with a dot: ``messages[].content``, ``.author.about``.
    Raises UserError for one that is incomplete.
    """
    dotted = text.startswith(".")
    if "[]" not in text and not (dotted and "." in text[1:]):
        return None
    parts = [_PART.fullmatch(part) for part in text.removeprefix(".").split(".")]
    steps = [step for part in parts if part for step in (part[1], *[None] * (len(part[2]) // 2))]
    if None in parts or (dotted and None in steps):
        raise BadValueError(
            f"text {text}: a path to texts is the names of fields with dots between them and [] behind lists, as in "
            "messages[].content, or begins with a dot if there is no list, as in .author.about."
        )
    return Path(text, str(steps[0]), tuple(steps[1:]))


def column_of(text: str) -> str:
    """Return the top-level column that is the text, or has texts within it."""
    path = path_of(text)
    return text if path is None else path.column


def refuse_nested(text: str, what: str) -> None:
    """Raise UserError for a path where only top-level columns can be read."""
    if path_of(text) is not None:
        raise ColumnError(f"{text}: {what} only texts of a top-level column; copy these texts to a column first.")


@dataclass(frozen=True, slots=True)
class Places:
    """Where D texts lie: the numbers of their ``rows`` [D], ascending, and ``within`` the K lists there [D, K]."""

    rows: Int64
    within: Int64

    @classmethod
    def of(cls, places: Sequence[tuple[int, ...]], depth: int) -> Places:
        """Return the places of texts, each a row and its numbers in this many lists."""
        table = np.array(places, dtype=np.int64).reshape(-1, 1 + depth)
        return cls(table[:, 0], table[:, 1:])

    def identities(self, rows: Sequence[Any]) -> list[Any]:
        """Return the ids of the texts from those of all rows: that of the row, and the numbers in the lists."""
        return list(zip(map(rows.__getitem__, self.rows.tolist()), map(tuple, self.within.tolist()), strict=True))


def changed(
    value: Any,
    path: Path,
    change: Callable[[str | None, tuple[int, ...]], Any],
    fields: Callable[[Any], Any] = lambda value: value,
    with_field: Callable[[Any, str, Any], Any] = lambda value, name, field: {**value, name: field},
) -> Any:
    """Return a value of Python after a ``change`` of its texts, by their numbers in lists; the value itself stays.

    ``fields`` of an object and the object ``with_field`` are by default those of mappings. Raises BadRowError, which
    quotes nothing, where something else is than the path says: a text that is overlooked would be released.
    """

    def walk(value: Any, many: int, at: tuple[int, ...]) -> Any:
        if many == len(path.steps):
            if value is not None and not isinstance(value, str):
                raise BadRowError(f"{path.text} is not always text; make it strings or null.")
            return change(value, at)
        if value is None:
            return None
        step = path.steps[many]
        if step is None:
            if not isinstance(value, (list, tuple, np.ndarray)):
                raise BadRowError(f"{path.name(many)} is not always a list; make it lists or null.")
            items = [walk(item, many + 1, (*at, place)) for place, item in enumerate(value)]
            return np.fromiter(items, object, len(items)) if isinstance(value, np.ndarray) else type(value)(items)
        there = fields(value)
        is_object = isinstance(there, Mapping)
        if not is_object or step not in there:
            what = f"has no field {step!r} in some objects" if is_object else "is not always an object"
            raise BadRowError(f"{path.name(many)} {what}; write null where there is no text.")
        return with_field(value, step, walk(there[step], many + 1, at))

    return walk(value, 0, ())


def leaf_type(kind: pa.DataType, path: Path) -> pa.DataType:
    """Return the type of the texts within a column of a type. Raises UserError where the path does not lead there."""
    for many, step in enumerate(path.steps):
        if step is None:
            if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
                what = str(kind).partition("<")[0]
                raise ColumnError(
                    f"{path.text}: {path.name(many)} is a {what}, not a list; make it one, or leave out []."
                )
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


def collected(values: Sequence[Any], path: Path, **how: Any) -> tuple[list[str | None], Places]:
    """Return the texts within values of Python, and where they lie; ``how`` are further arguments of ``changed``."""
    texts: list[str | None] = []
    places: list[tuple[int, ...]] = []
    for row, value in enumerate(values):

        def take(text: str | None, at: tuple[int, ...], row: int = row) -> str | None:
            texts.append(text)
            places.append((row, *at))
            return text

        changed(value, path, take, **how)
    return texts, Places.of(places, path.steps.count(None))


def refilled(values: Sequence[Any], path: Path, texts: Iterator[str | None], **how: Any) -> list[Any]:
    """Return values of Python with other texts, in the order in which they were collected."""
    return [changed(value, path, lambda _, __: next(texts), **how) for value in values]
