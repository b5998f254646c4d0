"""What a kernel counts while it works. Private, but for documents and written tokens, which the output shows anyway."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from corpusveil.errors import UserError
from corpusveil.text.policy import ROLE_NAMES


@dataclass(slots=True)
class Counts:
    """Totals of one or more batches; ``roles`` int64 [7] counts the input's tokens by role."""

    documents: int = 0
    tokens_written: int = 0
    privatized: int = 0
    unchanged: int = 0
    input_bytes: int = 0
    quarantined: int = 0
    dropped: int = 0
    roles: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(ROLE_NAMES), dtype=np.int64))

    def __iadd__(self, other: Counts) -> Self:
        self.documents += other.documents
        self.tokens_written += other.tokens_written
        self.privatized += other.privatized
        self.unchanged += other.unchanged
        self.input_bytes += other.input_bytes
        self.quarantined += other.quarantined
        self.dropped += other.dropped
        self.roles = self.roles + other.roles
        return self

    def public(self) -> dict[str, int]:
        """Return what anyone can count in the output."""
        return {"documents": self.documents, "tokens": self.tokens_written}

    def private(self) -> dict[str, Any]:
        """Return everything, for the records."""
        return {
            "documents": self.documents,
            "tokens_written": self.tokens_written,
            "privatized": self.privatized,
            "changed": self.privatized - self.unchanged,
            "unchanged": self.unchanged,
            "input_bytes": self.input_bytes,
            "quarantined": self.quarantined,
            "dropped": self.dropped,
            "tokens": dict(zip(ROLE_NAMES, self.roles.tolist(), strict=True)),
        }

    def measured(self) -> dict[str, int]:
        """Return what engines add up (``transforms.metrics``)."""
        return {
            "documents": self.documents,
            "tokens": self.tokens_written,
            "privatized": self.privatized,
            "changed": self.privatized - self.unchanged,
            "quarantined": self.quarantined,
        }

    @classmethod
    def of(cls, record: dict[str, Any], where: str) -> Counts:
        """Return the counts that ``private`` wrote. Raises UserError, which names the records, for other ones."""
        if set(record["tokens"]) != set(ROLE_NAMES):
            raise UserError(f"{where}: these records count other kinds of tokens; use the version that wrote them.")
        return cls(
            record["documents"],
            record["tokens_written"],
            record["privatized"],
            record["unchanged"],
            record["input_bytes"],
            record["quarantined"],
            record["dropped"],
            np.array([record["tokens"][name] for name in ROLE_NAMES], dtype=np.int64),
        )
