"""A lease: of several processes on any machines that want to work on the same folder, one does.

The holder has created ``lease.json``, which no other process creates while it is there, and regularly writes a
heartbeat beside it. A lease expires when its process has ended on this machine, or when the heartbeat stops of a
process that cannot be seen from here. Clocks are not compared: the heartbeat is watched for a while.

The guarded work is safe to do twice, since equal work writes equal bytes: a holder that was only slow, or two processes
that remove an expired lease at the same moment, may work side by side. Work that is not, such as removing the files of
a refused run, checks ``is_last`` first.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import random
import secrets
import socket
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from pydantic import PositiveInt

from corpusveil.errors import CorpusveilError, WorkError
from corpusveil.storage import files
from corpusveil.storage.records import Line, Record

FOLDER = "lease"
"""The place of an artifact's lease in its folder."""
LEASE, BEAT = "lease.json", "lease.beat"
BEAT_SECONDS = 10.0
PATIENCE_SECONDS = 35.0
ATTEMPTS = 40


class Holder(Record):
    """The holder of a lease: its machine, the number of its process, and when that began, in ticks of the machine."""

    host: Line
    machine: str
    process: PositiveInt
    began: str = ""
    mark: str = ""


@dataclass(slots=True)
class Lease:
    """A lease of a folder that this process holds; a context manager that ends it and removes its files."""

    url: str
    content: bytes
    made: tuple[str, ...] = ()
    """The local folders that were made for the lease, uppermost first; they are removed if they are empty."""
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._beat, daemon=True, name="lease")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join(BEAT_SECONDS)
        with contextlib.suppress(CorpusveilError, OSError):  # then the next one finds that this process has ended
            if self.is_last():
                files.remove(files.join(self.url, BEAT))
                files.remove(files.join(self.url, LEASE))
        for folder in reversed(self.made):
            with contextlib.suppress(OSError):
                os.rmdir(folder)

    def is_last(self) -> bool:
        """Say whether no other process considered this one dead and took its place."""
        return files.read_if_there(files.join(self.url, LEASE)) == self.content

    def beat(self) -> None:
        files.write_bytes(files.join(self.url, BEAT), secrets.token_hex(8).encode(), private=True)

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            try:
                self.beat()
            except (CorpusveilError, OSError):
                continue  # the store is down for a moment


def hold(url: str) -> Lease:
    """Return the lease of a folder at any fsspec URL. Raises WorkError if another run holds it."""
    held = take(url)
    if isinstance(held, str):
        raise WorkError(f"Another run is in progress ({held}); nothing was done.")
    return held


def take(url: str, patience: float | None = None) -> Lease | str:
    """Return the lease of a folder at any fsspec URL, or its holder.

    The heartbeat of another machine is watched for ``patience`` (35) seconds at most. Of several processes that request
    the lease, one gets it. Raises WorkError if it cannot be written.
    """
    patience = PATIENCE_SECONDS if patience is None else patience
    own = [files.absolute(url)] if posixpath.basename(url) == FOLDER and files.is_local(url) else []
    mine = Lease(url, _me().data(), tuple(files.missing_folders(url) or own))
    files.sweep(url)
    for _ in range(ATTEMPTS):
        try:
            if files.create_bytes(files.join(url, LEASE), mine.content, private=True):
                mine.beat()
                return mine
        except BaseException:
            mine.__exit__()  # also a file that was written although no answer came
            raise
        content = files.read_if_there(files.join(url, LEASE))
        if content is not None:
            if (busy := _busy(url, content, patience)) is not None:
                return busy
            if files.read_if_there(files.join(url, LEASE)) == content:
                files.remove(files.join(url, LEASE))
        time.sleep(random.uniform(0, 0.3))  # noqa: S311 - nothing secret
    return "a process that started at the same time"


def holder(url: str) -> str | None:
    """Return the probable holder of a lease; nothing is written, and no heartbeat is watched."""
    content = files.read_if_there(files.join(url, LEASE))
    return None if content is None else _busy(url, content, None)


def _busy(url: str, content: bytes, patience: float | None) -> str | None:
    """Return the holder of a lease, None if it is gone; without ``patience``, only if that is seen at once."""
    holder = Holder.of(content)  # None if it is damaged: then its heartbeat decides
    running = None if holder is None else _is_running(holder)
    if running is False or (running is None and patience is not None and not _beats(url, content, patience)):
        return None
    return "another machine, process ?" if holder is None else f"{holder.host}, process {holder.process}"


def _beats(url: str, content: bytes, patience: float) -> bool:
    """Say whether the holder of a lease is alive: whether a further heartbeat comes; a recent one may be its last."""
    address = files.join(url, BEAT)
    first, end = files.read_if_there(address), time.monotonic() + patience
    while time.monotonic() < end:
        time.sleep(min(1.0, patience / 8))
        if files.read_if_there(files.join(url, LEASE)) != content:
            return False
        if files.read_if_there(address) != first:
            return True
    return False


def _me() -> Holder:
    return Holder(
        host=socket.gethostname(), machine=_machine(), process=os.getpid(), began=_began(os.getpid()) or "",
        mark=secrets.token_hex(8),
    )  # fmt: skip


def _machine() -> str:
    """Return an identifier of this machine, on Linux since its start, and of its process namespace."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    return socket.gethostname()


def _began(process: int) -> str | None:
    """Return when a running process began, in ticks since the start of the machine, which nobody sets; on Linux."""
    with contextlib.suppress(OSError):
        status, *fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return None if status == "Z" else fields[18]
    return None


def _is_running(holder: Holder) -> bool | None:
    """Say whether a holder is a running process of this machine; None if only its heartbeat shows it."""
    if holder.machine != _machine() or not holder.began:
        return None
    return _began(holder.process) == holder.began
