"""Progress of a run, read from its records: the same for every engine."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from corpusveil.display import several
from corpusveil.errors import CorpusveilError
from corpusveil.pipelines.watch import Watch
from corpusveil.storage import files
from corpusveil.storage.corpus import Claim
from corpusveil.storage.records import Beat, Records, Shard
from corpusveil.storage.tasks import ShardTask
from corpusveil.waiting import LINE_SECONDS, PATIENCE, Manner, repeated, settled

POLL_SECONDS = 0.5
_WORDS = ("words", "unknown_words", "stop_words")


class _Progress:
    """The work of this run so far, on any engine, from the records and heartbeats of its tasks."""

    def __init__(self, records: Records, tasks: Sequence[ShardTask]) -> None:
        self._records, self._waiting = records, {task.record_name for task in tasks}
        claim = records.read("run.json", Claim)
        self._unit = "piece" if claim and "store" in claim.configuration else "token"
        with contextlib.suppress(CorpusveilError, OSError):
            self._finished()  # by earlier runs
        self._done: Counter[str] = Counter()
        self._total, self._began = len(self._waiting), time.monotonic()

    def _finished(self) -> Counter[str]:
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

    def look(self) -> tuple[float, int, str, str]:
        """Return how many shards are done, of how many, a line for below a bar, and one for where there is no bar."""
        self._done += self._finished()
        now, begun = self._done.copy(), 0.0
        for name in self._records.names("progress"):
            if name in self._waiting and (beat := self._records.read(f"progress/{name}", Beat)):
                now.update({word: getattr(beat, word) for word in ("tokens", "privatized", "changed")})
                begun += beat.share
        return now["done"] + begun, self._total, *self._lines(now, now["done"] + begun)

    def _lines(self, now: Counter[str], done: float) -> tuple[str, str]:
        shards = f"{now['done']} of {several(self._total, 'shard')}"
        seconds, failures = time.monotonic() - self._began, len(self._records.names("failed"))
        rate = now["tokens"] / seconds if seconds else 0.0
        speed = f"{float(f'{rate:.2g}'):,.0f} {self._unit}s/s"  # two digits
        shares = _shares(now) if self._unit == "token" else []
        failed = [f"{failures} failed"] if failures else []
        alone = [shards, several(now["tokens"], self._unit), speed, *(shares if sys.stderr.isatty() else []), *failed]
        if 0 < done < self._total:  # the rest takes as long as the finished part
            alone.append(f"about {seconds * (self._total - done) / done:.0f} s left")
        return ", ".join([speed, *shares, *failed]), ", ".join(alone)


def _shares(counts: Counter[str]) -> list[str]:
    """Return the shares of changed, known and unknown words in words: private, so only for a terminal."""
    shares = [f"{counts['changed'] / counts['privatized']:.0%} of known words changed"] if counts["privatized"] else []
    if counts["words"]:
        unknown = counts["unknown"] / counts["words"]
        shares.append(f"{1 - unknown:.0%} known, {unknown:.0%} unknown")
    return shares


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
    """Show the work of the block as a bar or as lines; ``look`` returns part, whole, and the text of each form."""
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
        return _shown(self.how, title, _Progress(records, tasks).look)
