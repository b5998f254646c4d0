"""Who waits is told so, and nobody else is."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numba
import pytest
from numba.core import event

from corpusveil import waiting


class Screen(io.StringIO):
    """A standard error that says when a part of a line was written."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.terminal, self.awaited, self.written = terminal, "choosing", threading.Event()

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> int:
        if self.awaited in text:
            self.written.set()
        return super().write(text)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    monkeypatch.setattr(waiting, "_TICK", 0.01)
    token = waiting._manner.set("auto")
    yield
    waiting._manner.reset(token)


def screen(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> Screen:
    made = Screen(terminal=terminal)
    monkeypatch.setattr(sys, "stderr", made)
    return made


def test_a_library_call_speaks_on_a_terminal_and_leaves_it_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen(monkeypatch, terminal=True)
    shown.awaited = "25%"
    with waiting.waiting("choosing"):
        waiting.reached("epsilon 1", 0.25)
        assert shown.written.wait(600)
    assert "\rchoosing: epsilon 1, 0 s, 25%, about 0 s left" in shown.getvalue()
    assert shown.getvalue().endswith(" \r"), "the line is removed"


def test_a_library_call_says_nothing_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    shown, before = screen(monkeypatch, terminal=False), {*threading.enumerate()}
    with waiting.waiting("choosing"):
        assert not [thread for thread in threading.enumerate() if "(tick)" in thread.name and thread not in before]
    assert not shown.getvalue()


def test_a_notebook_shows_a_bar_and_a_command_in_it_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar is one output of its cell, which is empty in the end; what is worked on is no markup."""
    shown, outputs = screen(monkeypatch, terminal=False), []

    class Display:
        def __call__(self, content: dict[str, str], **_: Any) -> Display:
            outputs.append(content["text/html"])
            shown.write(content["text/html"])
            return self

        update = __call__

    package, module = ModuleType("IPython"), ModuleType("IPython.display")
    monkeypatch.setattr(package, "get_ipython", lambda: SimpleNamespace(kernel=None), raising=False)
    monkeypatch.setattr(module, "display", Display(), raising=False)
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    shown.awaited = "25%"
    with waiting.waiting("reading <a>"):
        waiting.reached("step", 0.25)
        assert shown.written.wait(60)
    assert '<progress value="0.250"></progress> reading &lt;a&gt;: step, 0 s, 25%, about 0 s left' in outputs
    assert not outputs[-1]
    waiting.choose("lines")
    shown.awaited, before = "choosing, 0 s\n", len(outputs)
    shown.written.clear()
    with waiting.waiting("choosing"):
        assert shown.written.wait(60)
    assert len(outputs) == before


def test_a_command_speaks_as_it_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    manners: tuple[tuple[waiting.Manner, bool, bool], ...] = (
        ("auto", False, True), ("lines", True, True), ("none", True, False)
    )  # fmt: skip
    for manner, terminal, speaks in manners:
        shown = screen(monkeypatch, terminal=terminal)
        waiting.choose(manner)
        with waiting.waiting("choosing"):
            assert not speaks or shown.written.wait(600)
        assert shown.getvalue() == ("choosing, 0 s\n" if speaks else "")


def test_compiling_is_called_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the step; a function that was compiled before is not compiled."""
    shown, seen = screen(monkeypatch, terminal=True), []

    @numba.njit  # keeps nothing, which the next run of this test would load
    def loop(count: int) -> int:
        return count + 1

    class Look(event.Listener):
        def on_start(self, _: Any) -> None:
            seen.append(shown.written.wait(60))

        def on_end(self, _: Any) -> None:
            shown.written.clear()
            shown.awaited = "drawing: epsilon 1, "

    shown.awaited = f"drawing: {waiting.COMPILING}, "
    with waiting.waiting("drawing"), event.install_listener("numba:compile", Look()):
        waiting.reached("epsilon 1", 0.5)
        loop(1)
        loop(2)
        assert seen == [True]
        assert shown.written.wait(60)
