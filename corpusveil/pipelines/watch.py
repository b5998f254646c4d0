"""The observer of a flow: it receives the flow's lines, and shows its progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from corpusveil.storage.records import Records
from corpusveil.storage.tasks import ShardTask


class Watch:
    """Prints and shows nothing; subclasses override the methods that they need."""

    def say(self, line: str) -> None:
        """Receive a line about a result."""

    def warn(self, line: str) -> None:
        """Receive a line about the current work, or a warning."""

    stage: Callable[[str, str, int], AbstractContextManager[Any]] | None = None
    """Shows a stage while it lasts: its name, and how many of its tasks have a record in a folder."""
    shards: Callable[[Records, Sequence[ShardTask], str], AbstractContextManager[Any]] | None = None
    """Shows the shards of a release while they are worked on: their records, the tasks, and a title."""
