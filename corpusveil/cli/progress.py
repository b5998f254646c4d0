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
from corpusveil.storage import files
from corpusveil.storage.records import Beat, Claim, Records, Shard
from corpusveil.storage.tasks import ShardTask
from corpusveil.waiting import LINE_SECONDS, PATIENCE, Manner, repeated, settled

POLL_SECONDS = 0.5
_WORDS = ("words", "unknown_words", "stop_words")


@dataclass(frozen=True, slots=True)
class State:
    """The progress of a run, on any engine; ``words``, and how many are ``unknown``, are of finished shards."""

    shards: int
    done: int
    failed: int
    tokens: int
    privatized: int
    changed: int
    seconds: float
    words: int = 0
    unknown: int = 0
    begun: float = 0.0
    """How much of the unfinished shards is read, in shards."""
    unit: str = "token"

    @property
    def rate(self) -> float:
        """Tokens, or pieces, a second."""
        return self.tokens / self.seconds if self.seconds else 0.0

    @property
    def left(self) -> float | None:
        """Seconds until the end, if the rest takes as long as the finished part; None without a finished part."""
        done = self.done + self.begun
        return self.seconds * (self.shards - done) / done if 0 < done < self.shards else None

    def shares(self) -> list[str]:
        """Return the shares of changed, known and unknown words in words: private, so only for a terminal."""
        if self.unit != "token":
            return []
        shares = [f"{self.changed / self.privatized:.0%} of known words changed"] if self.privatized else []
        if self.words:
            unknown = self.unknown / self.words
            shares.append(f"{1 - unknown:.0%} known, {unknown:.0%} unknown")
        return shares

    def lines(self) -> tuple[str, str]:
        """Return the line for below a bar, which is for a terminal, and one for where there is no bar."""
        shards = f"{self.done} of {several(self.shards, 'shard')}"
        if waiting.compiling:  # in this process
            return waiting.COMPILING, f"{shards}, {waiting.COMPILING}"
        speed = f"{float(f'{self.rate:.2g}'):,.0f} {self.unit}s/s"  # two digits
        failed = [f"{self.failed} failed"] if self.failed else []
        alone = [shards, several(self.tokens, self.unit), speed]
        alone += [*(self.shares() if sys.stderr.isatty() else []), *failed]
        alone += [] if self.left is None else [f"about {self.left:.0f} s left"]
        return ", ".join([speed, *self.shares(), *failed]), ", ".join(alone)


class _Progress:
    """The work of this run so far, from the records and heartbeats of its tasks."""

    def __init__(self, records: Records, tasks: Sequence[ShardTask]) -> None:
        self._records, self._waiting = records, {task.record_name for task in tasks}
        claim = records.read("run.json", Claim)
        self._unit = "piece" if claim and "store" in claim.configuration else "token"
        with contextlib.suppress(CorpusveilError, OSError):
            self._finished()  # by earlier runs
        self._done: Counter[str] = Counter()
        self._total, self._began = len(self._waiting), time.monotonic()

    def _finished(self) -> Counter[str]:
        """Return the counts of tasks that were finished since the last call."""
        new: Counter[str] = Counter()
        for name in self._records.names("shards"):
            if name in self._waiting and (record := self._records.read(f"shards/{name}", Shard)):
                self._waiting.remove(name)
                counts = record.counts
                new.update(
                    done=1, tokens=counts.tokens_written, privatized=counts.privatized, changed=counts.changed,
                    words=sum(counts.tokens.get(role, 0) for role in _WORDS),
                    unknown=counts.tokens.get("unknown_words", 0),
                )  # fmt: skip
        return new

    def read(self) -> State:
        """Return the progress of this run."""
        self._done += self._finished()
        now, begun = self._done.copy(), 0.0
        for name in self._records.names("progress"):
            if name in self._waiting and (beat := self._records.read(f"progress/{name}", Beat)):
                now.update({word: getattr(beat, word) for word in ("tokens", "privatized", "changed")})
                begun += beat.share
        counts = {word: now[word] for word in ("done", "tokens", "privatized", "changed", "words", "unknown")}
        failed = len(self._records.names("failed"))
        seconds = time.monotonic() - self._began
        return State(self._total, failed=failed, seconds=seconds, begun=begun, unit=self._unit, **counts)


class _TwoLines(Progress):
    """A bar with a line of text below it, which a terminal of 80 columns shows whole."""

    second = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the bar, and the line once there is one."""
        yield from super().get_renderables()
        if self.second:
            yield Text(self.second)


@contextlib.contextmanager
def _shown(how: Manner, title: str, look: Callable[[], tuple[float, int, str, str]]) -> Iterator[None]:
    """Look from time to time while the block lasts, and show it: as a bar, or as lines.

    ``look`` returns how much is done, of how much, a line for below the bar, and one for where there is no bar.
    """
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

    def stage(self, name: str, folder: str, tasks: int) -> contextlib.AbstractContextManager[None]:
        began = time.monotonic()

        def look() -> tuple[float, int, str, str]:
            done = len(files.listing(folder))
            return done, tasks, "", f"{name}: {done} of {tasks}, {time.monotonic() - began:.0f} s"

        return contextlib.nullcontext() if self.how == "none" else _shown(self.how, name, look)

    def shards(
        self, records: Records, tasks: Sequence[ShardTask], title: str
    ) -> contextlib.AbstractContextManager[None]:  # fmt: skip
        if self.how == "none":
            return contextlib.nullcontext()
        progress = _Progress(records, tasks)

        def look() -> tuple[float, int, str, str]:
            state = progress.read()
            return state.done + state.begun, state.shards, *state.lines()

        return _shown(self.how, title, look)
