"""What a shard job, a frame or a bundle applies to documents: the word kernel, the passage kernel, and the denoiser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from corpusveil.text.counts import Counts

Known: TypeAlias = "Sequence[Sequence[str]] | None"
"""For each document, values of its row that are spans where they stand in its text."""


class Transform(Protocol):
    """From D documents to what is written in their place. It pickles small, and is the same in every process."""

    @property
    def same_noise(self) -> bool:
        """Whether equal texts get equal noise, whatever their identities."""

    @property
    def scoped(self) -> bool:
        """Whether documents need units, within which pseudonyms are equal."""

    def privatize(
        self, texts: pa.Array, identities: Sequence[Any], column: str, units: Sequence[str] | None = None,
        known: Known = None,
    ) -> tuple[pa.LargeStringArray, Counts]:  # fmt: skip
        """Return the texts that are written, Arrow strings [D] -> large_string [D], nulls staying null, and counts.

        ``identities`` [D] name the documents, ``column`` is the name of their column, ``units`` [D] their units, and
        ``known`` [D] values of their rows that are spans.
        """
