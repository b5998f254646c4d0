"""Progress of a run, read from its records: the same for every engine."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from corpusveil.display import several
from corpusveil.errors import CorpusveilError
from corpusveil.pipelines.watch import Watch
from corpusveil.storage import files
from corpusveil.storage.corpus import Claim
from corpusveil.storage.records import Beat, Records, Shard
from corpusveil.storage.tasks import ShardTask
from corpusveil.waiting import LINE_SECONDS, PATIENCE, ProgressStyle, repeated, resolved_style

POLL_SECONDS = 0.5


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
                new.update(shards=1, tokens=record.counts.tokens_written)
        return new

    def look(self) -> tuple[float, int, str]:
        """Return how many shards are done, of how many, and a line with the speed."""
        self._done += self._finished()
        shards, tokens = float(self._done["shards"]), self._done["tokens"]
        for name in self._records.names("progress"):
            if name in self._waiting and (beat := self._records.read(f"progress/{name}", Beat)):
                shards, tokens = shards + beat.share, tokens + beat.tokens
        seconds, failures = time.monotonic() - self._began, len(self._records.names("failed"))
        speed = f"{float(f'{tokens / max(seconds, 1e-9):.2g}'):,.0f} {self._unit}s/s"  # two digits
        failed = f", {failures} failed" if failures else ""
        return shards, self._total, f"{several(tokens, self._unit)}, {speed}{failed}"


@contextlib.contextmanager
def _shown(how: ProgressStyle, title: str, look: Callable[[], tuple[float, int, str]]) -> Iterator[None]:
    """Show the work of the block as a bar or as lines; ``look`` returns part, whole, and a text."""
    columns = (TextColumn(title), BarColumn(bar_width=20), MofNCompleteColumn(), TextColumn("{task.description}"))
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, disable=how != "bar") as bar:
        line = bar.add_task("", total=None)

        def show() -> None:
            with contextlib.suppress(CorpusveilError, OSError):  # a record is being replaced
                done, total, text = look()
                bar.update(line, completed=done, total=total, description=text)
                if how == "lines":
                    print(f"{title}: {int(done)} of {total}, {text}", file=sys.stderr, flush=True)

        every = POLL_SECONDS if how == "bar" else LINE_SECONDS
        try:
            with repeated(show, min(every, PATIENCE), every):
                yield
        finally:
            show()


class Terminal(Watch):
    """Prints the lines of a flow on standard output and error, and shows its progress in the manner ``how``."""

    def __init__(self, how: ProgressStyle) -> None:
        self.how = resolved_style(how)

    def say(self, line: str) -> None:
        print(line)

    def warn(self, line: str) -> None:
        print(line, file=sys.stderr)

    def stage(self, name: str, folder: str, tasks: int) -> contextlib.AbstractContextManager[None]:
        began = time.monotonic()

        def look() -> tuple[float, int, str]:
            return len(files.listing(folder)), tasks, f"{time.monotonic() - began:.0f} s"

        return contextlib.nullcontext() if self.how == "none" else _shown(self.how, name, look)

    def shards(
        self, records: Records, tasks: Sequence[ShardTask], title: str
    ) -> contextlib.AbstractContextManager[None]:  # fmt: skip
        if self.how == "none":
            return contextlib.nullcontext()
        return _shown(self.how, title, _Progress(records, tasks).look)
