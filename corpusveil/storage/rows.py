"""Rows of documents between a form and the kernel: which columns are read, batches, and rows that can't be read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusveil.choices import Separator
from corpusveil.errors import DataError, of_other_type

BLOCK_ROWS = 8192
"""Output is written in blocks of this many input rows, each complete in itself, so that splitting changes no bytes."""

BATCH_BYTES = 4 << 20

JSON = pa.json_(pa.large_string())
"""The type of kept columns that are JSON text, a value a row."""

SOURCE, PUBLIC = "source", "public"
"""The column that marks passages, on request, and its only value."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns a run reads: the text, perhaps an id, and those that are kept as they are.

    Rows with a text and without a unit in a column of ``units`` are left out. ``separator`` is that of the cells of
    CSV, in and out.
    """

    text: str = "text"
    id: str | None = None
    keep: tuple[str, ...] = ()
    separator: Separator = "comma"
    units: tuple[str, ...] = ()
    marked: bool = False
    """Whether a column ``SOURCE`` that says *public* is written next to the text, which is then a passage."""

    @classmethod
    def from_names(
        cls, text: str, id: str | None, keep: str | Sequence[str], separator: Separator = "comma"
    ) -> Columns:
        """Return the columns that a caller names."""
        if not isinstance(keep, Iterable):
            raise of_other_type("keep", keep, "the names of columns")
        return cls(text, id, (keep,) if isinstance(keep, str) else tuple(keep), separator)

    def __post_init__(self) -> None:
        if self.text in self.keep:
            raise DataError(f"{self.text}: the text column cannot be kept in the clear; keep other columns.")
        if self.marked and SOURCE in (self.text, *self.keep):
            raise DataError(f"mark_source: there is a column {SOURCE} already; keep others, or do not mark.")
        if len(set(self.keep)) < len(self.keep):
            raise DataError("A column to keep is named twice; name each column once.")

    def as_dict(self) -> dict[str, Any]:
        """Return the columns by name, and the separator of cells if it is not the default."""
        fields = {"text": self.text, "id": self.id, "keep": list(self.keep)}
        fields |= {SOURCE: PUBLIC} if self.marked else {}
        return fields if self.separator == "comma" else {**fields, "separator": self.separator}

    @property
    def written(self) -> Columns:
        """The columns that are written."""
        return dataclasses.replace(self, keep=(*self.keep, SOURCE), marked=False) if self.marked else self

    def beside(self, names: Sequence[str]) -> list[str]:
        """Return those of a file's columns that are neither the text nor kept, each once."""
        return [name for name in dict.fromkeys(names) if name not in (self.text, *self.keep)]

    @property
    def named(self) -> list[str]:
        """The names of all columns that are read, each once."""
        return list(dict.fromkeys([self.text, *([] if self.id is None else [self.id]), *self.keep]))


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that can't be read: its number from 0, and why."""

    number: int
    why: str


@dataclass(slots=True)
class Batch:
    """N sound rows that follow one another in the input, but for the ``bad`` ones between them.

    ``numbers`` are their numbers in the input, ``texts`` large_string [N] with nulls where a row has no text, ``ids``
    what the id column says, ``kept`` arrays [N] of the kept columns; ``stop`` is the number of the input row after the
    batch.
    """

    stop: int
    numbers: list[int] = field(default_factory=list)
    texts: pa.Array = field(default_factory=lambda: pa.array([], type=pa.large_string()))
    ids: list[str | int] | None = None
    kept: list[pa.Array] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)

    def identities(self, corpus: str, path: str) -> list[Any]:
        """Return the identity of each text: the id, else the corpus, the file's path in it, and the row."""
        return list(self.ids) if self.ids is not None else [(corpus, path, number) for number in self.numbers]

    def leave_out(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> int:
        """Take the rows of these input numbers out of the batch; return how many were in it."""
        stay = ~np.isin(self.numbers, rows)
        if stay.all():
            return 0
        mask = pa.array(stay)
        self.numbers = [number for number, here in zip(self.numbers, stay, strict=True) if here]
        self.texts = self.texts.filter(mask)
        self.ids = None if self.ids is None else [id for id, here in zip(self.ids, stay, strict=True) if here]
        self.kept = [column.filter(mask) for column in self.kept]
        return int(stay.size - stay.sum())
