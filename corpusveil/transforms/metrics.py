"""What engines count while tasks are done, under the same names everywhere: Spark's accumulators, Beam's metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

NAMESPACE = "corpusveil"
NAMES = (
    "shards_done", "shards_kept", "shards_failed", "documents", "tokens", "privatized", "changed", "quarantined",
)  # fmt: skip
"""Tasks done in this run, found done, and refused; what those done have written. Computed from the input: private."""

Measured = Mapping[str, int]
"""What one task, or a run, adds to each name."""


def total(parts: Iterable[Measured | None]) -> dict[str, int]:
    """Return the sum of what tasks returned; None, of a task that measures nothing, adds nothing."""
    sums: Counter[str] = Counter()
    for part in parts:
        sums.update(part or {})
    return dict(sums)
