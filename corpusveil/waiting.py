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
from typing import Any, Literal

PATIENCE = 2.0
LINE_SECONDS = 5.0
_RESTS = 20
"""The time between two looks (there may be 100,000 records to read), in multiples of the last look's time."""
ProgressStyle = Literal["auto", "bar", "lines", "none"]

_manner: ContextVar[ProgressStyle] = ContextVar("_manner", default="auto")
_shown: ContextVar[tuple[Any, Any, str] | None] = ContextVar("_shown", default=None)
"""The bar of the current work, its task, and what it is."""


def resolved_style(manner: ProgressStyle) -> ProgressStyle:
    """Return the manner of a command: ``auto`` is a bar on a terminal, and lines elsewhere."""
    return manner if manner != "auto" else "bar" if sys.stderr.isatty() else "lines"


def choose(manner: ProgressStyle) -> ProgressStyle:
    """Let all work of this command be shown in a manner, which is returned."""
    _manner.set(resolved_style(manner))
    return manner


def reached(step: str, share: float | None = None) -> None:
    """Say which step the current work has reached, and how much of this step is done, 0 to 1."""
    if (shown := _shown.get()) is not None:
        bar, task, what = shown
        bar.update(task, description=f"{what}: {step}", total=None if share is None else 1.0, completed=share or 0.0)


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show this work while it lasts; inside other work it is a step of that."""
    if _shown.get() is not None:
        reached(what)
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    manner = _manner.get()
    console = Console(stderr=True, force_terminal=manner == "bar" or None)
    is_seen = manner in ("auto", "bar") and (console.is_terminal or console.is_jupyter)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=24), TimeElapsedColumn())
    bar = Progress(*columns, console=console, transient=True, disable=not is_seen)
    token = _shown.set((bar, bar.add_task(what, total=None), what))
    speak = bar.start if is_seen else (lambda: write(f"{what} …\n"))
    is_told = is_seen or manner == "lines"
    try:
        with unless_done_in(PATIENCE, speak) if is_told else contextlib.nullcontext():
            yield
    finally:
        _shown.reset(token)
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
