"""What a shard job, a frame or a bundle applies to documents: the word kernel, the passage kernel, and the denoiser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from corpusveil.text.counts import Counts


class Transform(Protocol):
    """From D documents to what is written in their place. It pickles small, and is the same in every process."""

    @property
    def same_noise(self) -> bool:
        """Whether equal texts get equal noise, whatever their identities."""

    @property
    def scoped(self) -> bool:
        """Whether documents need units, within which pseudonyms are equal."""

    def privatize(
        self, texts: pa.Array, identities: Sequence[Any], column: str, units: Sequence[str] | None = None
    ) -> tuple[pa.LargeStringArray, Counts]:
        """Return the texts that are written, Arrow strings [D] -> large_string [D], nulls staying null, and counts.

        ``identities`` [D] name the documents, ``column`` is the name of their column, and ``units`` [D] their units.
        """
