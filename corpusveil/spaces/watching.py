"""How far the ordering of a space is, for what shows it: a program that shows nothing sets nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

Show = Callable[[str, float], None]
"""Takes the name of a step and the share of it that is done, 0 to 1."""

_show: ContextVar[Show | None] = ContextVar("_show", default=None)


@contextlib.contextmanager
def shown(show: Show | None) -> Iterator[None]:
    """Let ``show`` take the steps that this thread reaches; None: nothing does."""
    token = _show.set(show)
    try:
        yield
    finally:
        _show.reset(token)


def reached(step: str, share: float) -> None:
    """Say how much of a step is done."""
    show = _show.get()
    if show is not None:
        show(step, share)
