"""The protocol of an engine, which runs tasks.

The engines are in ``corpusveil.jobs``, one file each: a dataclass with the two methods of ``Engine``, whose fields are
those settings of ``[engine]`` that it takes. An entry point of ``corpusveil.engines`` names it (``registry``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from corpusveil.registry import Registry
from corpusveil.waiting import reached


class Engine(Protocol):
    """Maps a function over tasks, on any machine; the result is what the function writes.

    Function and tasks are picklable. A task may be tried several times, also in parallel: it is safe to repeat. A
    method ``check``, if there is one, raises UserError if settings or packages prevent the engine from running.
    """

    def slots(self) -> int:
        """Return how many tasks run in parallel; 1 if that is not known."""

    def run(self, function: Callable[[Any], object], tasks: Sequence[Any]) -> object:
        """Run the function on every task; what either returns is not used."""


class Here:
    """An engine that is this process, which does one task after the other."""

    def slots(self) -> int:
        return 1

    def run(self, function: Callable[[Any], object], tasks: Sequence[Any]) -> None:
        for number, task in enumerate(tasks):
            reached(f"task {number + 1} of {len(tasks)}", number / len(tasks))
            function(task)


ENGINES: Registry[type[Engine]] = Registry("engine")


def settings_of(name: str) -> list[str]:
    """Return the settings of ``[engine]`` that an engine takes."""
    return [field.name for field in dataclasses.fields(ENGINES.find(name)) if field.init]  # type: ignore[arg-type]
