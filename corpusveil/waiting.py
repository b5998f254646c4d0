"""Progress on standard error: the work, its step, how much of it is done, and its seconds.

A bar is shown on a terminal and in a notebook, once the work has taken ``PATIENCE``. A command shows it in the manner
of its ``--progress``; a library call elsewhere says nothing.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Literal

from corpusveil.errors import CorpusveilError

PATIENCE = 2.0
BAR_SECONDS, LINE_SECONDS = 0.5, 5.0
_RESTS = 20
"""The time between two looks (there may be 100,000 records to read), in multiples of the last look's time."""
ProgressStyle = Literal["auto", "bar", "lines", "none"]
HowFar = Callable[[], tuple[float, int, str]]
"""Returns how much of a work is done, of how many, and perhaps a text."""

_manner: ContextVar[ProgressStyle] = ContextVar("_manner", default="auto")
_step: ContextVar[Callable[[str, float | None], None] | None] = ContextVar("_step", default=None)
"""What shows a step of the current work."""


def choose(manner: ProgressStyle) -> ProgressStyle:
    """Let all work of this command be shown in a manner, which is returned; ``auto`` is lines but on a terminal."""
    _manner.set(manner if manner != "auto" else "bar" if sys.stderr.isatty() else "lines")
    return manner


def reached(step: str, share: float | None = None) -> None:
    """Say which step the current work has reached, and how much of this step is done, 0 to 1."""
    if (show := _step.get()) is not None:
        show(step, share)


@contextlib.contextmanager
def waiting(what: str, look: HowFar | None = None) -> Iterator[None]:
    """Show this work while it lasts; inside other work it is a step of that.

    Work that has a ``look`` is asked again and again how far it is, and its steps are not shown.
    """
    if _step.get() is not None:
        reached(what)
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    manner = _manner.get()
    console = Console(stderr=True, force_terminal=manner == "bar" or None)
    is_seen = manner in ("auto", "bar") and (console.is_terminal or console.is_jupyter)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=24), TimeElapsedColumn())
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=not is_seen)
    task, began = bar.add_task(what, total=None), time.monotonic()

    def show(step: str, share: float | None = None) -> None:
        bar.update(task, description=f"{what}: {step}", total=None if share is None else 1.0, completed=share or 0.0)

    def ask(look: HowFar) -> None:
        with contextlib.suppress(CorpusveilError, OSError):  # a record is being replaced
            done, total, text = look()
            step = f"{int(done)} of {total}{text and ', '}{text}"
            show(step, done / max(total, 1))
            if manner == "lines":
                write(f"{what}: {step}, {time.monotonic() - began:.0f} s\n")

    token = _step.set(show if look is None else lambda *_: None)
    try:
        with contextlib.ExitStack() as stack:
            if is_seen:
                stack.enter_context(unless_done_in(PATIENCE, bar.start))
            if look is not None and (is_seen or manner == "lines"):
                stack.callback(ask, look)
                every = BAR_SECONDS if is_seen else LINE_SECONDS
                stack.enter_context(repeated(lambda: ask(look), PATIENCE, every))
            elif manner == "lines":
                stack.enter_context(unless_done_in(PATIENCE, lambda: write(f"{what} …\n")))
            yield
    finally:
        _step.reset(token)
        bar.stop()


@contextlib.contextmanager
def repeated(look: Callable[[], None], first: float, every: float) -> Iterator[None]:
    """Call a function in a thread while the block lasts: after ``first`` seconds, and then each ``every`` seconds."""
    stop = threading.Event()

    def tick() -> None:
        pause = first
        while not stop.wait(pause):
            began = time.monotonic()
            look()
            pause = max(every, _RESTS * (time.monotonic() - began))

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextlib.contextmanager
def unless_done_in(seconds: float, act: Callable[[], None]) -> Iterator[None]:
    """Call a function once, in a thread, if the block has not ended by then."""
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def write(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # closed by whoever called: then nobody waits
        sys.stderr.write(line)
        sys.stderr.flush()
