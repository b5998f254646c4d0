"""The protocol of an engine, which runs tasks, and its measures, under the same names everywhere.

The engines are in ``corpusveil.jobs``, one file each: a dataclass with the two methods of ``Engine``, whose fields are
those settings of ``[engine]`` that it takes. An entry point of ``corpusveil.engines`` names it (``registry``).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from corpusveil.registry import Registry
from corpusveil.waiting import reached

NAMESPACE = "corpusveil"
NAMES = (
    "shards_done", "shards_kept", "shards_failed", "documents", "tokens", "privatized", "changed", "bad_rows",
)  # fmt: skip
"""Tasks done in this run, found done, and refused; what the done tasks wrote. Computed from the input: private."""

Measured = Mapping[str, int]
"""The amounts that a task, or a run, adds to each name."""


def total(parts: Iterable[Measured | None]) -> dict[str, int]:
    """Return the sum of the measures of tasks; None, from a task without measures, adds nothing."""
    sums: Counter[str] = Counter()
    for part in parts:
        sums.update(part or {})
    return dict(sums)


class Engine(Protocol):
    """Maps a function over tasks, on any machine; the result is what the function writes.

    Function and tasks are picklable. A task may be tried several times, also in parallel: it is safe to repeat. A
    method ``check``, if there is one, raises UserError if settings or packages prevent the engine from running.
    """

    def slots(self) -> int:
        """Return how many tasks run in parallel; 1 if that is not known."""

    def run(self, function: Callable[[Any], Measured | None], tasks: Sequence[Any]) -> Measured | None:
        """Run the function on every task; return the sums of its measures, as far as the engine keeps them."""


class Here:
    """An engine that is this process, which does one task after the other."""

    def slots(self) -> int:
        return 1

    def run(self, function: Callable[[Any], Measured | None], tasks: Sequence[Any]) -> dict[str, int]:
        done = []
        for number, task in enumerate(tasks):
            reached(f"task {number + 1} of {len(tasks)}", number / len(tasks))
            done.append(function(task))
        return total(done)


ENGINES: Registry[type[Engine]] = Registry("engine")


def settings_of(name: str) -> list[str]:
    """Return the settings of ``[engine]`` that an engine takes."""
    return [field.name for field in dataclasses.fields(ENGINES.find(name)) if field.init]  # type: ignore[arg-type]


def make_engine(name: str, **settings: Any) -> Engine:
    """Return an engine with these settings, ready to run. Raises UserError for an unknown engine, and if it cannot."""
    given = {setting: tuple(value) if isinstance(value, list) else value for setting, value in settings.items()}
    made = ENGINES.find(name)(**given)
    if hasattr(made, "check"):
        made.check()
    return made
