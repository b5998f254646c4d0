"""The report of an attack: what was tried, how often, and what broke."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Attempt:
    """Counts of attempts, by name, and a sentence for each broken promise."""

    counts: dict[str, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def tried(self, what: str, count: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + count

    def check(self, holds: bool, sentence: str) -> None:
        if not holds:
            self.broken.append(sentence)
