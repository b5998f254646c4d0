"""Progress of a run, read from its records: the same for every engine."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from corpusveil.collocations.stages import Watch
from corpusveil.errors import CorpusveilError
from corpusveil.storage import files
from corpusveil.storage.records import Records
from corpusveil.storage.tasks import ShardTask

POLL_SECONDS = 0.5
LINE_SECONDS = 5.0

Show = Callable[[int, int, int], None]


def watcher(how: str) -> Callable[[Records, Sequence[ShardTask]], contextlib.AbstractContextManager[None]] | None:
    """Return what shows progress in the manner ``how`` (auto, bar, lines, none) on standard error."""
    if how == "auto":
        how = "bar" if sys.stderr.isatty() else "lines"
    if how == "none":
        return None
    return _bar if how == "bar" else _lines


class _Progress:
    """Done shards, their input bytes, and written tokens, from records and heartbeats."""

    def __init__(self, records: Records, tasks: Sequence[ShardTask]) -> None:
        self._records = records
        self._sizes = {task.record_name: task.size for task in tasks}
        self._tokens: dict[str, int] = {}
        self.total = len(tasks)

    def read(self) -> tuple[int, int]:
        """Return shards done and tokens written so far."""
        for name in self._records.names("shards"):
            if name in self._sizes and name not in self._tokens and (record := self._records.read(f"shards/{name}")):
                self._tokens[name] = int(record["counts"]["tokens_written"])
        running = 0
        for name in self._records.names("progress"):
            if name not in self._tokens and (beat := self._records.read(f"progress/{name}")):
                running += int(beat["tokens"])
        return len(self._tokens), sum(self._tokens.values()) + running


@contextlib.contextmanager
def _polled(records: Records, tasks: Sequence[ShardTask], show: Show, every: float) -> Iterator[None]:
    state = _Progress(records, tasks)
    with contextlib.suppress(CorpusveilError, OSError):
        state.read()
    stop = threading.Event()

    def poll() -> None:
        while not stop.wait(every):
            with contextlib.suppress(CorpusveilError, OSError):  # a record that is just being replaced
                show(*state.read(), state.total)

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        with contextlib.suppress(CorpusveilError, OSError):
            show(*state.read(), state.total)


@contextlib.contextmanager
def _lines(records: Records, tasks: Sequence[ShardTask]) -> Iterator[None]:
    began = time.monotonic()

    def show(done: int, tokens: int, total: int) -> None:
        seconds = time.monotonic() - began
        left = f", about {seconds * (total - done) / done:.0f} s left" if 0 < done < total else ""
        rate = tokens / seconds / 1e6
        print(f"{done} of {total} shards, {tokens:,} tokens, {rate:.2f} M/s{left}", file=sys.stderr, flush=True)

    with _polled(records, tasks, show, LINE_SECONDS):
        yield


@contextlib.contextmanager
def _bar(records: Records, tasks: Sequence[ShardTask]) -> Iterator[None]:
    columns = (
        TextColumn("privatizing"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("shards"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    began = time.monotonic()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        line = bar.add_task("", total=len(tasks), rate="")

        def show(done: int, tokens: int, _total: int) -> None:
            rate = tokens / (time.monotonic() - began) / 1e6
            bar.update(line, completed=done, rate=f"{rate:.2f} M tokens/s")

        with _polled(records, tasks, show, POLL_SECONDS):
            yield


def stage_watcher(how: str) -> Watch | None:
    """Return what shows the progress of a flow of stages in the manner ``how`` (auto, bar, lines, none)."""
    if how == "auto":
        how = "bar" if sys.stderr.isatty() else "lines"
    if how == "none":
        return None

    @contextlib.contextmanager
    def watch(name: str, folder: str, tasks: int) -> Iterator[None]:
        bar = Progress(
            TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
            console=Console(stderr=True), disable=how != "bar",
        )  # fmt: skip
        began = last = time.monotonic()
        with bar:
            line = bar.add_task("", total=tasks)
            stop = threading.Event()

            def show() -> None:
                nonlocal last
                with contextlib.suppress(CorpusveilError, OSError):
                    done = len(files.listing(folder))
                    bar.update(line, completed=done)
                    if how == "lines" and (stop.is_set() or time.monotonic() - last >= LINE_SECONDS):
                        last = time.monotonic()
                        print(f"{name}: {done} of {tasks}, {last - began:.0f} s", file=sys.stderr, flush=True)

            def poll() -> None:
                while not stop.wait(POLL_SECONDS):
                    show()

            thread = threading.Thread(target=poll, daemon=True)
            thread.start()
            try:
                yield
            finally:
                stop.set()
                thread.join()
                show()

    return watch
