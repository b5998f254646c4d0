"""What somebody who waits is told on standard error: the work, its step, how far it is, and its seconds.

A library call says it where somebody looks, on a terminal or in a notebook, once it has taken ``PATIENCE``; a program
whose standard error goes elsewhere hears nothing. A command says it in the manner of its ``--progress``.
"""

from __future__ import annotations

import contextlib
import html
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

PATIENCE = 2.0
LINE_SECONDS = 5.0
_TICK = 1.0
_RESTS = 20
"""The time between two looks (there may be 100,000 records to read), in multiples of the last look's time."""
COMPILING = "compiling, once for this installation"
compiling = 0
"""The number of functions that are being compiled; ``corpusveil.compiled`` counts them."""
Manner = Literal["auto", "bar", "lines", "none"]


@dataclass(slots=True)
class _Wait:
    """A piece of work; ``share`` is how much of its ``step`` is done, None if it is unknown."""

    what: str
    step: str = ""
    share: float | None = None
    began: float = field(default_factory=time.monotonic)
    step_began: float = field(default_factory=time.monotonic)

    def reach(self, step: str, share: float | None) -> None:
        if step != self.step:
            self.step_began = time.monotonic()
        self.step, self.share = step, share

    def line(self) -> str:
        now = time.monotonic()
        step = COMPILING if compiling else self.step
        parts = [f"{self.what}: {step}" if step else self.what, f"{now - self.began:.0f} s"]
        if self.share and not compiling:
            left = (now - self.step_began) * (1 - self.share) / self.share
            parts += [f"{self.share:.0%}", f"about {left:.0f} s left"]
        return ", ".join(parts)


_manner: ContextVar[Manner] = ContextVar("_manner", default="auto")
_wait: ContextVar[_Wait | None] = ContextVar("_wait", default=None)


@dataclass(slots=True)
class _Process:
    """What this process has done: seconds that it compiled, lines that are shown now, and whether it has said so."""

    compiled: float = 0.0
    shown: int = 0
    has_said: bool = False


_process = _Process()


def compiled(seconds: float) -> None:
    """Say once that loops compile, after ``PATIENCE`` of it, to who called from Python and sees nothing else."""
    _process.compiled += seconds
    is_seen = _process.has_said or _process.shown or _manner.get() != "auto"
    if _process.compiled >= PATIENCE and not is_seen:
        from multiprocessing import parent_process  # who asks for help loads none

        _process.has_said = True
        if parent_process() is None:
            write(f"corpusveil: {COMPILING}: half a minute of work, for each kind of release\n")


def settled(manner: Manner) -> Manner:
    """Return the manner of a command: ``auto`` is a bar on a terminal, and lines elsewhere."""
    return manner if manner != "auto" else "bar" if sys.stderr.isatty() else "lines"


def choose(manner: Manner) -> Manner:
    """Let all work of this command be shown in a manner, which is returned."""
    _manner.set(settled(manner))
    return manner


def reached(step: str, share: float | None = None) -> None:
    """Say which step the current work has reached, and how much of this step is done, 0 to 1."""
    wait = _wait.get()
    if wait is not None:
        wait.reach(step, share)


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


def _is_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    return hasattr(None if ipython is None else ipython.get_ipython(), "kernel")


class _Cell:
    """A bar in the output of a notebook's cell, which IPython shows without widgets."""

    def __init__(self) -> None:
        self._shown: Any = None

    def show(self, line: str, share: float | None) -> None:
        value = "" if share is None else f' value="{share:.3f}"'
        self._put({"text/plain": line, "text/html": f"<progress{value}></progress> {html.escape(line)}"})

    def clear(self) -> None:
        self._put({"text/plain": "", "text/html": ""})

    def _put(self, content: dict[str, str]) -> None:
        from IPython.display import display

        if self._shown is None:
            self._shown = display(content, raw=True, display_id=True)
        else:
            self._shown.update(content, raw=True)


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


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show this work while it lasts; inside other work it is a step of that."""
    manner, outer = _manner.get(), _wait.get()
    if outer is not None:
        outer.reach(what, None)
        yield
        return
    cell = _Cell() if manner == "auto" and _is_notebook() else None
    if manner == "auto":  # no command
        manner = "bar" if cell or sys.stderr.isatty() else "none"
    wait, width = _Wait(what), 0

    def show() -> None:
        """Write the line, on a terminal over the last one."""
        nonlocal width
        line = wait.line()
        if cell is None:
            write(f"\r{line.ljust(width)}" if manner == "bar" else f"{line}\n")
        else:
            cell.show(line, wait.share)
        width = len(line)

    _process.shown += manner != "none"
    token = _wait.set(wait)
    pause = _TICK if manner == "bar" else LINE_SECONDS
    try:
        with repeated(show, PATIENCE, pause) if manner != "none" else contextlib.nullcontext():
            yield
    finally:
        _process.shown -= manner != "none"
        _wait.reset(token)
        if manner == "bar" and width:
            write(f"\r{' ' * width}\r") if cell is None else cell.clear()


def write(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # closed by whoever called: then nobody waits
        sys.stderr.write(line)
        sys.stderr.flush()
