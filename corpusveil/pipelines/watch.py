"""The observer of a flow: it receives the flow's lines, and shows its progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from corpusveil.display import several
from corpusveil.storage.records import Records
from corpusveil.storage.rows import Batch
from corpusveil.storage.tasks import ShardTask

if TYPE_CHECKING:
    import pyarrow as pa

    from corpusveil.transforms.release.fit import Unknown
    from corpusveil.transforms.release.release import AnyRelease


class Watch:
    """Prints and shows nothing; subclasses override the methods that they need."""

    def say(self, line: str) -> None:
        """Receive a line about a result."""

    def warn(self, line: str) -> None:
        """Receive a line about the current work, or a warning."""

    def confide(self, line: str) -> None:
        """Receive a line about the corpus that is only for a terminal, never for a log."""

    stage: Callable[[str, str, int], AbstractContextManager[Any]] | None = None
    """Shows a stage while it lasts: its name, and how many of its tasks have a record in a folder."""
    shards: Callable[[Records, Sequence[ShardTask], str], AbstractContextManager[Any]] | None = None
    """Shows the shards of a release while they are worked on: their records, the tasks, and a title."""


class Later(Watch):
    """Holds lines back until the work begins, so that an error comes before announcements."""

    def __init__(self, watch: Watch) -> None:
        self._watch, self._held = watch, list[tuple[Callable[[str], None], str]]()

    def say(self, line: str) -> None:
        self._held.append((self._watch.say, line))

    def warn(self, line: str) -> None:
        self._held.append((self._watch.warn, line))

    def begin(self) -> None:
        """Pass on the lines that were held back."""
        for take, line in self._held:
            take(line)
        self._held.clear()


def tell_unknown(unknown_share: float | None, watch: Watch, unknown: Unknown | None = None) -> None:
    """Warn where a large share of the words is unknown, and list the most frequent. Shares and words are private."""
    from corpusveil.transforms.release.fit import MANY_UNKNOWN

    if unknown_share is not None and unknown_share > MANY_UNKNOWN:
        watch.warn(
            "warning: many words of this text are not in the vocabulary of the space and are replaced regardless of "
            "their meaning. Check that the space has the language and domain of the text."
        )
        watch.confide(f"{unknown_share:.0%} of the words are unknown (private).")
    for line in [] if unknown is None else unknown.lines():
        watch.confide(line)


def tell_first(batch: Batch, release: AnyRelease, watch: Watch) -> None:
    """Tell what the first rows show: doubts about their texts, and ids that several of them share."""
    tell_doubts(release, batch.texts, watch)
    if batch.ids is not None and release.duplicates == "independent" and len(set(batch.ids)) < len(batch.ids):
        watch.warn(
            f"warning: the first {len(batch.ids):,} rows have {several(len(set(batch.ids)), 'different id')}. Equal "
            "texts with the same id get equal noise, which shows that they are equal; give each row an id of its own."
        )


def tell_doubts(release: AnyRelease, texts: pa.Array, watch: Watch) -> None:
    """Warn if the release hardly suits the first of these texts."""
    from corpusveil.transforms.release.fit import doubts

    for sentence in doubts(release, texts):
        watch.warn(f"warning: {sentence}")
