"""A lease: of several processes that want to work on one thing, anywhere, one does.

Leases are numbered files, each created only where none is yet. Who holds the last one writes a beat beside it now and
then and marks it as ended; it passes on when it has ended, when its process is gone from this machine, or when its beat
stands still. Clocks are not compared: a beat that looks old is watched for a while. A holder that was only slow may so
be joined by a second one, so what a lease guards has to be safe to do twice.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import psutil

from corpusveil.errors import CorpusveilError
from corpusveil.storage import files
from corpusveil.storage.shapes import fits, line, parsed

BEAT_SECONDS = 10.0
PATIENCE_SECONDS = 35.0
_HOLDER = {"host": line, "machine": str, "process": int}
_NAME = re.compile(r"lease-(\d{8})\.(json|beat|end)")


@dataclass(slots=True)
class Lease:
    """A lease of a folder that this process holds; a context manager that ends it."""

    url: str
    number: int
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        threading.Thread(target=self._beat, daemon=True, name="lease").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        files.write_bytes(_address(self.url, self.number, "end"), b"", private=True)

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            try:
                _write_beat(self.url, self.number)
            except (CorpusveilError, OSError):
                continue  # a store that is down for a moment


def take(url: str, patience: float | None = None) -> Lease | str:
    """Return the lease of a folder at any fsspec URL, or who holds it, in words.

    A lease whose beat looks old is watched for ``patience`` (35) seconds. Raises WorkError where it can't be written.
    """
    patience = PATIENCE_SECONDS if patience is None else patience
    files.sweep(url)
    last = max(_numbers(url), default=0)
    if last and not files.exists(_address(url, last, "end")):
        holder = _holder(url, last)
        if not _is_gone(holder) and _beats(url, last, patience):
            return f"{holder.get('host', 'another machine')}, process {holder.get('process', '?')}"
    mine = last + 1
    made = files.create_bytes(_address(url, mine, "json"), json.dumps(_me()).encode(), private=True)
    if not made or max(_numbers(url)) > mine:
        return "a process that started at the same time"
    _write_beat(url, mine)
    for name in files.listing(url):
        if (found := _NAME.fullmatch(name)) and int(found[1]) < last:
            files.remove(files.join(url, name))
    return Lease(url, mine)


def _address(url: str, number: int, kind: str) -> str:
    return files.join(url, f"lease-{number:08d}.{kind}")


def _numbers(url: str) -> list[int]:
    found = (_NAME.fullmatch(name) for name in files.listing(url))
    return [int(one[1]) for one in found if one is not None and one[2] == "json"]


def _write_beat(url: str, number: int) -> None:
    beat = {"time": time.time(), "mark": secrets.token_hex(8)}
    files.write_bytes(_address(url, number, "beat"), json.dumps(beat).encode(), private=True)


def _beats(url: str, number: int, patience: float) -> bool:
    """Say whether the holder of a lease is alive, watching where its last beat looks old."""
    first = files.read_if_there(_address(url, number, "beat"))
    told = _told(first)
    if fits(told, {"time": float}) and 0 <= time.time() - told["time"] < patience:
        return True
    end = time.monotonic() + patience
    while time.monotonic() < end:
        time.sleep(min(1.0, patience / 8))
        if files.exists(_address(url, number, "end")):
            return False
        if files.read_if_there(_address(url, number, "beat")) != first:
            return True
    return False


def _holder(url: str, number: int) -> dict[str, Any]:
    told = _told(files.read_if_there(_address(url, number, "json")))
    return told if fits(told, _HOLDER) else {}


def _told(data: bytes | None) -> dict[str, Any]:
    """Return what a file of a lease says; nothing, where it is damaged: then its holder has to show signs of life."""
    told = parsed(data or b"{}")
    return told if isinstance(told, dict) else {}


def _me() -> dict[str, Any]:
    process = psutil.Process()
    return {"host": socket.gethostname(), "machine": _machine(), "process": process.pid, "began": process.create_time()}


def _machine() -> str:
    """Return what tells this machine since it started, and on Linux what its processes are counted in."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{socket.gethostname()} {psutil.boot_time()}"


def _is_gone(holder: dict[str, Any]) -> bool:
    """Say whether a holder is known to have died: a process of this machine that runs no more."""
    if holder.get("machine") != _machine() or not fits(holder, {"began": float}):
        return False
    try:
        process = psutil.Process(holder["process"])
        return process.status() == psutil.STATUS_ZOMBIE or abs(process.create_time() - holder["began"]) > 1
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:
        return False
