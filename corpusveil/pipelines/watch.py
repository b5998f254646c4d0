"""The observer of a flow, which receives the flow's lines."""

from __future__ import annotations

from collections.abc import Collection

from corpusveil.display import several


class Watch:
    """Prints nothing; subclasses override the methods that they need."""

    def say(self, line: str) -> None:
        """Receive a line about a result."""

    def hidden(self, urls: Collection[str]) -> None:
        """Say which files and folders of the input are not read."""
        if urls:
            what = several(len(urls), "hidden file or folder", "hidden files or folders")
            self.say(f"not read: {what} of the input (names with a dot or an underscore first), such as {min(urls)}")

    def warn(self, line: str) -> None:
        """Receive a line about the current work, or a warning."""
