"""The counts of a kernel. Private, except for documents and written tokens, which the output shows anyway."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from corpusveil.errors import VersionError
from corpusveil.storage.records import Counted
from corpusveil.text.policy import ALL_ROLES, KNOWN_WORD, ROLE_NAMES, STOP_WORD, UNKNOWN_WORD

NUMBERS = ("documents", "tokens_written", "privatized", "unchanged", "input_bytes", "bad_rows", "dropped")
MANY_UNKNOWN = 0.05
"""Above this share of words outside the vocabulary, a release says little of its texts."""


@dataclass(slots=True)
class Counts:
    """Totals of one or more batches; ``roles`` int64 [8] counts the input's tokens by role."""

    documents: int = 0
    tokens_written: int = 0
    privatized: int = 0
    unchanged: int = 0
    input_bytes: int = 0
    bad_rows: int = 0
    dropped: int = 0
    without_text: int = 0
    """Rows whose text is null, and stays null; not in ``documents``."""
    spans: Counter[str] = field(default_factory=Counter)
    """Recognized spans by kind."""
    roles: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(ALL_ROLES), dtype=np.int64))

    def __iadd__(self, other: Counts) -> Self:
        for name in (*NUMBERS, "without_text", "roles", "spans"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    def public(self) -> dict[str, int]:
        """Return the counts that anyone can make from the output."""
        return {"documents": self.documents, "tokens": self.tokens_written}

    def private(self) -> Counted:
        """Return everything, for the records."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        numbers |= {"without_text": self.without_text} if self.without_text else {}
        tokens = {
            name: count
            for name, count in zip(ALL_ROLES, self.roles.tolist(), strict=True)
            if count or name in ROLE_NAMES
        }
        spans: dict[str, Any] = {"spans": dict(sorted(self.spans.items()))} if self.spans else {}
        return Counted(**numbers, **spans, changed=self.privatized - self.unchanged, tokens=tokens)

    @property
    def unknown_share(self) -> float:
        """The share of the words that are outside the vocabulary; 0 without words. Private."""
        known, unknown, stops = (int(count) for count in self.roles[[KNOWN_WORD, UNKNOWN_WORD, STOP_WORD]])
        return unknown / max(1, known + unknown + stops)

    @classmethod
    def from_record(cls, record: Counted, where: str) -> Counts:
        """Return the counts that ``private`` wrote. Raises UserError, which names the records, for other counts."""
        if not set(ROLE_NAMES) <= set(record.tokens) <= set(ALL_ROLES):
            raise VersionError(
                f"{where}: these records count other kinds of tokens; use the version of corpusveil that wrote them."
            )
        numbers = {name: getattr(record, name) for name in (*NUMBERS, "without_text")}
        return cls(
            **numbers,
            spans=Counter(record.spans),
            roles=np.array([record.tokens.get(name, 0) for name in ALL_ROLES], dtype=np.int64),
        )
