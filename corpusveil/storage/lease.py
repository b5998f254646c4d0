"""A lease: of several processes on any machines that want to work on the same folder, one does.

Leases are numbered files, each created only if it does not exist. The holder of the last lease regularly writes a
heartbeat file beside it, and removes both at its end. A lease expires when its process has ended on this machine, or
when the heartbeat stops of a process that cannot be seen from here. Clocks are not compared: its heartbeat is watched
for a while.
If a holder on another machine was only slow, a second process may join it, so the guarded work must be safe to do
twice. Work that is not, such as removing the files of a refused run, checks ``is_last`` first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import posixpath
import random
import re
import secrets
import socket
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import psutil
from pydantic import FiniteFloat, PositiveInt

from corpusveil.errors import CorpusveilError, OtherRunError
from corpusveil.storage import files
from corpusveil.storage.records import Line, Record

FOLDER = "lease"
"""The place of an artifact's lease in its folder."""
BEAT_SECONDS = 10.0
PATIENCE_SECONDS = 35.0
ATTEMPTS = 40
_NAME = re.compile(r"lease-(\d{8,})(-[0-9a-f]+)?\.(json|beat)")


class Holder(Record):
    """The holder of a lease: machine and number of a process, and its start time."""

    host: Line
    machine: str
    process: PositiveInt
    began: FiniteFloat | None = None
    mark: str = ""
    since: FiniteFloat | None = None
    """When it took the lease, by its machine's monotonic clock, which nobody sets."""


class Pulse(Record):
    """The last heartbeat of a lease's holder: by its machine's clock, and ``at`` by the monotonic one."""

    time: FiniteFloat
    at: FiniteFloat | None = None
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Busy:
    """What holds a lease already: ``who``, its ``age``, and how long its heart has been ``silent``, both in seconds."""

    who: str
    age: float = 0.0
    silent: float = 0.0

    def __str__(self) -> str:
        silent = f", which gave no sign of life for {_ago(self.silent)}" if self.silent > PATIENCE_SECONDS else ""
        return f"{self.who}, at work for {_ago(self.age)}{silent}"


def _ago(seconds: float) -> str:
    minutes = int(seconds) // 60
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min" if minutes else "a moment"


@dataclass(slots=True)
class Lease:
    """A lease of a folder that this process holds; a context manager that ends it and removes its files."""

    url: str
    number: int
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
            files.remove(_beat_address(self.url, self.number, self.content))
            if files.read_if_there(_address(self.url, self.number)) == self.content:  # not those of a later lease
                files.remove(_address(self.url, self.number))
        for folder in reversed(self.made):
            with contextlib.suppress(OSError):
                os.rmdir(folder)

    def is_last(self) -> bool:
        """Say whether no other process considered this one dead and took its place."""
        there = _there(self.url)
        return max(there, default=0) == self.number and there[self.number] == self.content

    def beat(self) -> None:
        pulse = Pulse(time=time.time(), at=time.monotonic(), mark=secrets.token_hex(8))
        files.write_bytes(_beat_address(self.url, self.number, self.content), pulse.data(), private=True)

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            try:
                self.beat()
            except (CorpusveilError, OSError):
                continue  # the store is down for a moment


def hold(url: str) -> Lease:
    """Return the lease of a folder at any fsspec URL. Raises WorkError if another run holds it."""
    held = take(url)
    if isinstance(held, Busy):
        raise OtherRunError(f"Another run is in progress ({held}); nothing was done.")
    return held


def take(url: str, patience: float | None = None) -> Lease | Busy:
    """Return the lease of a folder at any fsspec URL, or what holds it.

    The heartbeat of another machine is watched for ``patience`` (35) seconds at most. Of several processes that request
    the lease, one gets it. Raises WorkError if it cannot be written.
    """
    patience = PATIENCE_SECONDS if patience is None else patience
    own = [files.absolute(url)] if posixpath.basename(url) == FOLDER and files.is_local(url) else []
    absent = tuple(files.missing_folders(url) or own)
    files.sweep(url)
    for _ in range(ATTEMPTS):
        there = _there(url)
        last = max(there, default=0)
        if last:
            if (busy := _busy(url, last, there[last], patience)) is not None:
                return busy
            if _there(url) != there:
                continue
        mine = Lease(url, last + 1, _me().data(), absent)
        try:
            if files.create_bytes(_address(url, mine.number), mine.content, private=True):
                if _is_alone(mine, there):
                    mine.beat()
                    _remove_before(mine)
                    return mine
                files.remove(_address(url, mine.number))  # others began at the same moment: each tries again
        except BaseException:
            mine.__exit__()  # also a file that was written although no answer came
            raise
        time.sleep(random.uniform(0, 0.3))  # noqa: S311 - nothing secret
    return Busy("a process that started at the same time")


def holder(url: str) -> Busy | None:
    """Return what seems to hold the lease of a folder; nothing is written, and no heartbeat is watched."""
    there = _there(url)
    return _busy(url, max(there), there[max(there)], None) if there else None


def _busy(url: str, number: int, content: bytes, patience: float | None) -> Busy | None:
    """Return the holder of a lease, None if it is gone; without ``patience``, only if that is seen at once."""
    holder = Holder.of(content)  # None if it is damaged: then its heartbeat decides
    running = None if holder is None else _is_running(holder)
    beats = running is None and patience is not None and _beats(url, number, content, patience)
    if running is False or (running is None and patience is not None and not beats):
        return None
    who = "another machine, process ?" if holder is None else f"{holder.host}, process {holder.process}"
    if holder is None or holder.since is None:
        return Busy(who)
    pulse = Pulse.of(files.read_if_there(_beat_address(url, number, content)) or b"")
    last = holder.since if pulse is None or pulse.at is None else pulse.at
    if holder.machine == _machine():
        now = time.monotonic()
        return Busy(who, now - holder.since, now - last)
    return Busy(who, last - holder.since, 0.0 if beats or pulse is None else max(0.0, time.time() - pulse.time))


def _address(url: str, number: int) -> str:
    return files.join(url, f"lease-{number:08d}.json")


def _beat_address(url: str, number: int, content: bytes) -> str:
    """Return the heartbeat file of a lease, whose name has its number and a digest of its content."""
    return files.join(url, f"lease-{number:08d}-{hashlib.sha256(content).hexdigest()[:16]}.beat")


def _there(url: str) -> dict[int, bytes]:
    """Return the leases of a folder by their numbers."""
    names = (_NAME.fullmatch(name) for name in files.listing(url))
    numbers = [int(name[1]) for name in names if name is not None and name[3] == "json"]
    read = {number: files.read_if_there(_address(url, number)) for number in numbers}
    return {number: content for number, content in read.items() if content is not None}


def _is_alone(lease: Lease, before: dict[int, bytes]) -> bool:
    """Say whether a folder has no leases other than the earlier ones, whose holders are gone."""
    now = _there(lease.url)
    return now.pop(lease.number, None) == lease.content and now.items() <= before.items()


def _remove_before(lease: Lease) -> None:
    """Remove the leases that this one follows, whose holders are gone."""
    for name in files.listing(lease.url):
        if (named := _NAME.fullmatch(name)) and int(named[1]) < lease.number:
            files.remove(files.join(lease.url, name))


def _beats(url: str, number: int, content: bytes, patience: float) -> bool:
    """Say whether the holder of a lease is alive: whether a further heartbeat comes; a recent one may be its last."""
    address = _beat_address(url, number, content)
    first, end = files.read_if_there(address), time.monotonic() + patience
    while time.monotonic() < end:
        time.sleep(min(1.0, patience / 8))
        if files.read_if_there(_address(url, number)) != content:
            return False
        if files.read_if_there(address) != first:
            return True
    return False


def _me() -> Holder:
    me = psutil.Process()
    return Holder(
        host=socket.gethostname(), machine=_machine(), process=me.pid, began=me.create_time(),
        mark=secrets.token_hex(8), since=time.monotonic(),
    )  # fmt: skip


def _machine() -> str:
    """Return an identifier of this machine since its start, and on Linux of its process namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{socket.gethostname()} {psutil.boot_time()}"


def _is_running(holder: Holder) -> bool | None:
    """Say whether a holder is a running process of this machine; None if only its heartbeat shows it."""
    if holder.machine != _machine() or holder.began is None:
        return None
    try:
        process = psutil.Process(holder.process)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        # Start times follow the clock of the machine, so another one means a later process, or a clock that was set.
        return True if abs(process.create_time() - holder.began) <= 1 else None
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return None
