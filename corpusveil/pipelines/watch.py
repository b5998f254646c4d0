"""The observer of a flow, which receives the flow's lines."""

from __future__ import annotations


class Watch:
    """Prints nothing; subclasses override the methods that they need."""

    def say(self, line: str) -> None:
        """Receive a line about a result."""

    def warn(self, line: str) -> None:
        """Receive a line about the current work, or a warning."""
