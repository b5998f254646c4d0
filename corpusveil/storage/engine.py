"""What runs tasks: the protocol of an engine, and what engines count, under the same names everywhere.

The engines themselves are in ``corpusveil.jobs``, one file each; ``jobs.registry`` says how another one is added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

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


class Engine(Protocol):
    """Maps a function over tasks, somewhere; what the function writes is the result.

    Function and tasks are picklable. A task may be tried several times, also at once: it is safe to repeat.
    """

    def slots(self) -> int:
        """Return how many tasks can be done at once; 1 where that is not known."""

    def run(self, function: Callable[[Any], Measured | None], tasks: Sequence[Any]) -> Measured | None:
        """Run it on every task; return the sums of what it measured, as far as the engine keeps them."""


@runtime_checkable
class Checking(Engine, Protocol):
    """An engine that can say before anything is written whether it will run."""

    def check(self) -> None:
        """Raise UserError where its settings, or what is installed, do not let it run."""


@runtime_checkable
class Detachable(Engine, Protocol):
    """An engine whose jobs can go on after the call has returned."""

    @property
    def detached(self) -> bool:
        """Say whether they do."""

    def launch(
        self, function: Callable[[Any], Measured | None], tasks: Sequence[Any], then: Callable[[Any], Any]
    ) -> Measured | None:
        """Start a job that does the tasks and then calls ``then``, once; return at once when detached."""
