"""A cluster, one of whose machines has a network of its own that can be cut."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.engines.processes import Cluster

HERE, THERE = "10.203.0.1", "10.203.0.2"
SPACE, LINK = "corpusveil-cut", "cv-cut0"


def _ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=not check)


class _Parted(Cluster):
    def place(self, number: int) -> tuple[list[str], str]:
        return (["ip", "netns", "exec", SPACE], THERE) if number else ([], self.host)


@contextlib.contextmanager
def parted(folder: Path) -> Iterator[tuple[Cluster, str, Callable[[], None]]]:
    """Yield a cluster, the network namespace of its second worker, and what cuts that off. It takes root."""
    folder.mkdir()
    _ip("netns", "del", SPACE, check=False)
    _ip("link", "del", LINK, check=False)
    _ip("netns", "add", SPACE)
    try:
        _ip("link", "add", LINK, "type", "veth", "peer", "name", "cv-cut1")
        _ip("link", "set", "cv-cut1", "netns", SPACE)
        _ip("addr", "add", f"{HERE}/24", "dev", LINK)
        _ip("link", "set", LINK, "up")
        _ip("-n", SPACE, "addr", "add", f"{THERE}/24", "dev", "cv-cut1")
        for name in ("cv-cut1", "lo"):
            _ip("-n", SPACE, "link", "set", name, "up")
        machines = _Parted(folder, HERE)
        try:
            machines.start()
            yield machines, f"net:[{os.stat(f'/run/netns/{SPACE}').st_ino}]", lambda: _ip("link", "set", LINK, "down")
        finally:
            machines.stop()
    finally:
        _ip("netns", "del", SPACE, check=False)
        _ip("link", "del", LINK, check=False)
