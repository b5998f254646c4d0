"""A real browser without a window, by its DevTools protocol over two pipes: no driver, no port, no package."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SECONDS = 120
"""For a browser to start and to answer, on a busy machine."""
LAUNCH = "import fcntl, os, sys; a, b = (fcntl.fcntl(int(one), fcntl.F_DUPFD, 10) for one in sys.argv[1:3]); "
LAUNCH += "os.dup2(a, 3); os.dup2(b, 4); os.execv(sys.argv[3], sys.argv[3:])"
"""The browser reads commands from descriptor 3 and answers on 4."""
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", "--hide-scrollbars",
)  # fmt: skip


def find_browser() -> str | None:
    """Return the browser that CORPUSVEIL_BROWSER names, or the first that is on the path."""
    named = os.environ.get("CORPUSVEIL_BROWSER")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


@dataclass(slots=True)
class Browser:
    """One tab of a running browser."""

    _read: int
    _write: int
    session: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)
    _buffer: bytes = b""
    _number: int = 0

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command; return its result. Events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._number:
                assert "error" not in told, (method, told["error"])
                result: dict[str, Any] = told["result"]
                return result
            self.events.append(told)

    def wait(self, method: str) -> None:
        """Wait for an event."""
        while not any(one.get("method") == method for one in self.events):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        ends = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, ends - time.monotonic()))
            assert ready, "the browser does not answer"
            more = os.read(self._read, 1 << 16)
            assert more, "the browser has ended"
            self._buffer += more
        first, _, self._buffer = self._buffer.partition(b"\0")
        told: dict[str, Any] = json.loads(first)
        return told

    def open(self, page: Path, width: int, *, dark: bool = False) -> None:
        """Load a page at a width in pixels and in a color scheme; events before it are forgotten."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", media="screen", features=scheme)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        self.events.clear()
        self.ask("Page.navigate", url=page.as_uri())
        self.wait("Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """Return what an expression is on the page."""
        told = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def screenshot(self, path: Path, height: float | None = None) -> None:
        """Write a picture of the whole page, or of this many pixels of its top."""
        size: list[float] = self.value("[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": min(size[1], height or size[1]), "scale": 1}
        told = self.ask("Page.captureScreenshot", captureBeyondViewport=True, format="png", clip=clip)
        path.write_bytes(base64.b64decode(told["data"]))


@contextmanager
def browser(executable: str, folder: Path) -> Iterator[Browser]:
    """Start a browser with a profile of its own in a folder, and end it."""
    to_read, its_write = os.pipe()
    its_read, to_write = os.pipe()
    command = [sys.executable, "-c", LAUNCH, str(its_read), str(its_write), executable, *FLAGS]
    command += [f"--user-data-dir={folder / 'profile'}", "about:blank"]
    with (folder / "browser.log").open("wb") as log:
        process = subprocess.Popen(
            command, pass_fds=(its_read, its_write), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env={**os.environ, "HOME": str(folder)},
        )  # fmt: skip
    os.close(its_read)
    os.close(its_write)
    try:
        made = Browser(to_read, to_write)
        target = made.ask("Target.createTarget", url="about:blank")["targetId"]
        made.session = made.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime"):
            made.ask(f"{domain}.enable")
        yield made
        made.session = ""
        made.ask("Browser.close")
    finally:
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(to_read)
        os.close(to_write)
