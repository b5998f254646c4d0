"""A lease: of several processes on any machines that want to work on the same folder, one does.

The holder has created ``lease.json``, which no other process creates while it is there, and regularly writes it again.
A lease expires when its process has ended on this machine, or when the file of a process that cannot be seen from here
stays as it is. Clocks are not compared: the file is watched for a while.

The guarded work is safe to do twice, since equal work writes equal bytes: a holder that was only slow, or two processes
that remove an expired lease at the same moment, may work side by side. Work that is not, such as removing the files of
a refused run, checks ``is_last`` first.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from pydantic import PositiveInt

from corpusveil.errors import CorpusveilError, WorkError
from corpusveil.storage import files
from corpusveil.storage.records import Line, Record
from corpusveil.waiting import repeated

LEASE = "lease.json"
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
    beat: int = 0


@dataclass(slots=True)
class Lease:
    """A lease that this process holds by a file; a context manager that ends it and removes the file."""

    url: str
    me: Holder
    made: Sequence[str] = ()
    """The local folders that were made for the lease, uppermost first; they are removed if they are empty."""
    _beating: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __enter__(self) -> Self:
        self._beating.enter_context(repeated(self._beat, BEAT_SECONDS, BEAT_SECONDS))
        return self

    def __exit__(self, *_: object) -> None:
        self._beating.close()
        with contextlib.suppress(CorpusveilError, OSError):  # then the next one finds that this process has ended
            if self.is_last():
                files.remove(self.url)
        for folder in reversed(self.made):
            with contextlib.suppress(OSError):
                os.rmdir(folder)

    def is_last(self) -> bool:
        """Say whether no other process considered this one dead and took its place."""
        there = Holder.parse(files.read_if_there(self.url) or b"")
        return there is not None and there.mark == self.me.mark

    def _beat(self) -> None:
        with contextlib.suppress(CorpusveilError, OSError):  # the store is down for a moment
            if self.is_last():
                self.me = self.me.model_copy(update={"beat": self.me.beat + 1})
                files.write_bytes(self.url, self.me.data(), private=True)


def hold(url: str) -> Lease:
    """Return the lease of a folder at any fsspec URL. Raises WorkError if another run holds it."""
    held = take(url)
    if isinstance(held, str):
        raise WorkError(f"Another run is in progress ({held}); nothing was done.")
    return held


def take(url: str) -> Lease | str:
    """Return the lease of a folder at any fsspec URL, or its holder; of several processes that ask, one gets it.

    The file of another machine is watched for 35 seconds at most. Raises WorkError if it cannot be written.
    """
    held = Lease(files.join(url, LEASE), _me(), files.missing_folders(url))
    files.sweep(url)
    for _ in range(ATTEMPTS):
        try:
            if files.create_bytes(held.url, held.me.data(), private=True):
                return held
        except BaseException:
            held.__exit__()  # also a file that was written although no answer came
            raise
        content = files.read_if_there(held.url)
        if content is not None:
            if (busy := _busy(held.url, content, PATIENCE_SECONDS)) is not None:
                return busy
            if files.read_if_there(held.url) == content:
                files.remove(held.url)
        time.sleep(random.uniform(0, 0.3))  # noqa: S311 - nothing secret
    return "a process that started at the same time"


def holder(url: str) -> str | None:
    """Return the probable holder of the lease of a folder; nothing is written, and no file is watched."""
    content = files.read_if_there(files.join(url, LEASE))
    return None if content is None else _busy(files.join(url, LEASE), content, 0)


def _busy(url: str, content: bytes, patience: float) -> str | None:
    """Return the holder of a lease, None if it is gone; one that cannot be seen from here is watched."""
    there = Holder.parse(content)  # None if it is damaged: then only another beat is a sign of life
    if there is not None and there.machine == _machine() and there.began:
        is_alive = _began(there.process) == there.began
    else:
        is_alive, end = not patience, time.monotonic() + patience
        while not is_alive and time.monotonic() < end:
            time.sleep(min(1.0, patience / 8))
            now = files.read_if_there(url)
            if now is None:
                break
            is_alive = now != content
    name = "another machine, process ?" if there is None else f"{there.host}, process {there.process}"
    return name if is_alive else None


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
