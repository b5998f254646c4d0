"""Progress of a run, read from its records: the same for every engine."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from corpusveil import waiting
from corpusveil.display import several
from corpusveil.errors import CorpusveilError
from corpusveil.pipelines.watch import Watch
from corpusveil.storage import events, files
from corpusveil.storage.durable import StageWatch
from corpusveil.storage.records import Beat, Records, Shard
from corpusveil.storage.tasks import ShardTask
from corpusveil.waiting import LINE_SECONDS, PATIENCE, Manner, repeated, settled

POLL_SECONDS = 0.5
_WORDS = ("words", "unknown_words", "stop_words")


@dataclass(frozen=True, slots=True)
class State:
    """The progress of a run, on any engine."""

    shards: int
    done: int
    failed: int
    tokens: int
    privatized: int
    changed: int
    seconds: float
    words: int = 0
    """Words of the finished shards, and how many of them are outside the vocabulary."""
    unknown: int = 0
    begun: float = 0.0
    """How much of the unfinished shards is read, in shards."""

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return self.tokens / self.seconds if self.seconds else 0.0

    @property
    def speed(self) -> str:
        """The rate with two digits, as far as it goes: 85 tokens/s, 4,200,000 tokens/s."""
        return f"{float(f'{self.rate:.2g}'):,.0f} tokens/s"

    @property
    def left(self) -> float | None:
        """Seconds until the end, if the rest takes as long as the finished part; None without a finished part."""
        done = self.done + self.begun
        return self.seconds * (self.shards - done) / done if 0 < done < self.shards else None

    @property
    def changed_share(self) -> float | None:
        """The share of known words (which the mechanism replaces) that changed, in whole hundredths."""
        return round(self.changed / self.privatized, 2) if self.privatized else None

    def shares(self) -> list[str]:
        """Return the shares of known, unknown and changed words in words: private, so only for a terminal."""
        shares = [] if self.changed_share is None else [f"{self.changed_share:.0%} of known words changed"]
        if self.words:
            unknown = self.unknown / self.words
            shares.append(f"{1 - unknown:.0%} known, {unknown:.0%} unknown")
        return shares


Shards = Callable[[Records, Sequence[ShardTask], str], contextlib.AbstractContextManager[None]]


class _Progress:
    """The work of tasks so far, from their records and heartbeats."""

    def __init__(self, records: Records, tasks: Sequence[ShardTask]) -> None:
        self._records = records
        self._waiting = {task.record_name for task in tasks}
        self._total = len(tasks)
        self._done: Counter[str] = Counter()
        self._before: Counter[str] = Counter()
        self._began = time.monotonic()

    def begin(self) -> None:
        """Exclude the work of earlier runs."""
        self.read()
        self._before = self._done.copy()
        self._total = len(self._waiting)

    def read(self) -> State:
        """Return the progress of this run."""
        for name in self._records.names("shards"):
            if name in self._waiting and (record := self._records.read(f"shards/{name}", Shard)):
                self._waiting.remove(name)
                counts = record.counts
                self._done.update(
                    tasks=1, tokens=counts.tokens_written, privatized=counts.privatized, changed=counts.changed,
                    words=sum(counts.tokens.get(role, 0) for role in _WORDS),
                    unknown=counts.tokens.get("unknown_words", 0),
                )  # fmt: skip
        now, begun = self._done - self._before, 0.0
        for name in self._records.names("progress"):
            if name in self._waiting and (beat := self._records.read(f"progress/{name}", Beat)):
                now.update({word: getattr(beat, word) for word in ("tokens", "privatized", "changed")})
                begun += beat.share
        failed = len(self._records.names("failed"))
        seconds = time.monotonic() - self._began
        return State(
            self._total, now["tasks"], failed, now["tokens"], now["privatized"], now["changed"], seconds,
            now["words"], now["unknown"], begun,
        )  # fmt: skip


class _TwoLines(Progress):
    """A bar with a line of text below it, which a terminal of 80 columns shows whole."""

    second = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the bar, and the line once there is one."""
        yield from super().get_renderables()
        if self.second:
            yield Text(self.second)


Look = Callable[[], tuple[float, int, str, str]]
"""Returns how much is done, of how much, a line for below the bar, and one without a bar."""


@contextlib.contextmanager
def _shown(how: Manner, title: str, look: Look) -> Iterator[None]:
    """Look from time to time while the block lasts, and show it: as a bar, or as lines."""
    columns = (TextColumn(title), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
    with _TwoLines(*columns, TimeRemainingColumn(), console=Console(stderr=True), disable=how != "bar") as bar:
        line = bar.add_task("", total=None)

        def show() -> None:
            with contextlib.suppress(CorpusveilError, OSError):  # a record is being replaced
                done, total, bar.second, alone = look()
                bar.update(line, completed=done, total=total)
                if how == "lines":
                    print(alone, file=sys.stderr, flush=True)

        every = POLL_SECONDS if how == "bar" else LINE_SECONDS
        try:
            with repeated(show, min(every, PATIENCE), every):
                yield
        finally:
            show()


class Terminal(Watch):
    """Prints the lines of a flow on standard output and error, and shows its progress in the manner ``how``."""

    def __init__(self, how: Manner) -> None:
        self.how = settled(how)

    def say(self, line: str) -> None:
        print(line)

    def warn(self, line: str) -> None:
        print(line, file=sys.stderr)

    def confide(self, line: str) -> None:
        if sys.stderr.isatty():
            print(line, file=sys.stderr)

    @property
    def stage(self) -> StageWatch | None:
        if self.how == "none":
            return None

        @contextlib.contextmanager
        def watch(name: str, folder: str, tasks: int) -> Iterator[None]:
            began = time.monotonic()

            def look() -> tuple[float, int, str, str]:
                done = len(files.listing(folder))
                return done, tasks, "", f"{name}: {done} of {tasks}, {time.monotonic() - began:.0f} s"

            with _shown(self.how, name, look):
                yield

        return watch

    @property
    def shards(self) -> Shards | None:
        if self.how == "none" and not events.wanted():
            return None

        @contextlib.contextmanager
        def watch(records: Records, tasks: Sequence[ShardTask], run: str) -> Iterator[None]:
            progress = _Progress(records, tasks)
            with contextlib.suppress(CorpusveilError, OSError):
                progress.begin()

            def look() -> tuple[float, int, str, str]:
                state = progress.read()
                left = None if state.left is None else round(state.left)
                # The log has no shares of words, which are for a terminal.
                events.tell(
                    "progress", run, shards=state.shards, shards_done=state.done, shards_failed=state.failed,
                    tokens=state.tokens, tokens_per_second=round(state.rate), seconds_left=left,
                )  # fmt: skip
                failed = [f"{state.failed} failed"] if state.failed else []
                below = [state.speed, *state.shares(), *failed]
                alone = [
                    f"{state.done} of {several(state.shards, 'shard')}",
                    several(state.tokens, "token"),
                    state.speed,
                ]
                alone += (state.shares() if sys.stderr.isatty() else []) + failed
                alone += [] if state.left is None else [f"about {state.left:.0f} s left"]
                if waiting.compiling:  # in this process
                    below, alone = [waiting.COMPILING], [alone[0], waiting.COMPILING]
                return state.done + state.begun, state.shards, ", ".join(below), ", ".join(alone)

            # A denoised release has no run with a name.
            with _shown(self.how, "privatizing shards" if run else "denoising shards", look):
                yield

        return watch
