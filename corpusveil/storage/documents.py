"""Documents on their way from what holds them to what is written: made by a form, a frame, a Spark batch, a bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Documents:
    """D documents: their texts, identities, and other columns that are needed.

    Attributes:
        texts: Arrow strings [D]; null where there is no text.
        identities: [D], what names each document: text, bytes, a number, or (corpus, path, row).
        column: the name of the text column, on which noise depends, too.
        values: the columns of units by name, [D] each, for a ledger.
        rows: [D], the number of each document's row in ``place``, a file or frame, for sentences.
    """

    texts: pa.Array
    identities: Sequence[Any]
    column: str = "text"
    values: Mapping[str, Any] = field(default_factory=dict)
    rows: Sequence[int] = ()
    place: str = "the texts"

    def __len__(self) -> int:
        return len(self.texts)

    def part(self, first: int, last: int) -> Documents:
        """Return the documents from ``first`` to before ``last``."""
        some = slice(first, last)
        return Documents(
            self.texts.slice(first, last - first), self.identities[some], self.column,
            {
                name: column.slice(first, last - first) if hasattr(column, "slice") else column[some]
                for name, column in self.values.items()
            },
            self.rows[some], self.place,
        )  # fmt: skip

    def with_text(self) -> Documents:
        """Return the documents that have a text."""
        if not self.texts.null_count:
            return self
        there = self.texts.is_valid()
        at = np.flatnonzero(np.asarray(there)).tolist()
        return Documents(
            self.texts.filter(there), chosen(self.identities, at), self.column,
            {name: chosen(column, at) for name, column in self.values.items()}, chosen(self.rows, at), self.place,
        )  # fmt: skip


def chosen(values: Any, at: Sequence[int]) -> Any:
    """Return the values at some places, None of None."""
    if values is None:
        return None
    return values.take(pa.array(at, pa.int64())) if hasattr(values, "take") else [values[place] for place in at]
