"""What each start of a schedule leaves for a rule to watch: a line of JSON, and the same numbers for Prometheus."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from corpusveil.errors import CorpusveilError
from corpusveil.pipelines.schedule_state import Finished
from corpusveil.storage import disk, files
from corpusveil.storage.failures import failing
from corpusveil.storage.records import Records

STARTS = "starts.jsonl"
MOST_LINES = 1000
"""The lines that are kept at a store, where the file is written as a whole."""
_GAUGES = {
    "time": ("start_timestamp_seconds", "When the last start began."),
    "seconds": ("duration_seconds", "How long the last start took."),
    "status": ("exit_status", "The exit status of the last start."),
    "shards": ("shards", "Shards that the last start released."),
    "documents": ("documents", "Documents that the last start released."),
    "left_out": ("left_out_files", "Files that cannot be used and are left out."),
    "quarantined": ("quarantined_rows", "Rows that the last start set aside."),
    "dropped": ("dropped_documents", "Copies, and documents above a cap, that the last start left out."),
    "due": ("due_shards", "Shards that were due and that the last start did not release."),
}


@dataclass(slots=True)
class Start:
    """What one start did; ``run`` is its last run, ``due`` is what remains, ``holder`` another start that works.

    ``left_out`` and ``due`` are None if the start did not come to know them.
    """

    time: float
    run: str = ""
    shards: int = 0
    documents: int = 0
    left_out: int | None = None
    quarantined: int = 0
    dropped: int = 0
    due: int | None = None
    seconds: float = 0.0
    status: int = 0
    holder: str = ""

    def add(self, run: str, finished: Finished) -> None:
        """Count a finished run."""
        self.run = run
        self.shards += len(finished.shards)
        self.documents += finished.documents
        self.quarantined += finished.quarantined
        self.dropped += finished.dropped


@contextlib.contextmanager
def noted(state: Records, name: str, metrics: str | None) -> Iterator[Start]:
    """Give a start to fill in; note it, and how it ended, in the state, and if ``metrics`` is a path, there.

    A note that cannot be written ends a start as any other error.
    """
    start, began = Start(time.time()), time.monotonic()
    notes = (functools.partial(_publish, start, name, metrics), functools.partial(_add_line, start, state))
    try:
        try:
            yield start
        finally:
            start.seconds = round(time.monotonic() - began, 3)
        for note in notes:
            note()
    except BaseException as error:
        interrupted = 128 + int((error.args or (2,))[0]) if isinstance(error, KeyboardInterrupt) else 1
        start.status = error.exit_status if isinstance(error, CorpusveilError) else interrupted
        for note in notes:
            with contextlib.suppress(CorpusveilError, OSError):  # what ended the start is raised
                note()
        raise


def _add_line(start: Start, state: Records) -> None:
    state.close()
    when = datetime.fromtimestamp(start.time, UTC).isoformat(timespec="seconds")
    line, address = f"{json.dumps(asdict(start) | {'time': when})}\n".encode(), state.address(STARTS)
    if not files.is_local(address):
        lines = (files.read_if_there(address) or b"").splitlines(keepends=True)
        files.write_bytes(address, b"".join([*lines[1 - MOST_LINES :], line]), private=True)
        return
    path = files.resolve(address)[1]
    # Added at once, as to a log: several starts may end together.
    with failing(address, "written"), open(path, "ab+", opener=disk.private_opener) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
        file.write(line if file.read() in (b"", b"\n") else b"\n" + line)  # the last one may be cut short


def _publish(start: Start, name: str, metrics: str | None) -> None:
    if metrics is None or (start.holder and not start.status):  # a start that works writes its own at its end
        return
    values = asdict(start)
    label = re.sub(r'[\\"\n]', lambda odd: "\\" + odd[0].replace("\n", "n"), name)
    text = "".join(
        f"# HELP corpusveil_schedule_{gauge} {help}\n# TYPE corpusveil_schedule_{gauge} gauge\n"
        f'corpusveil_schedule_{gauge}{{schedule="{label}"}} {values[field]}\n'
        for field, (gauge, help) in _GAUGES.items() if values[field] is not None
    )  # fmt: skip
    with files.open_write(metrics) as file:
        if files.is_local(metrics):
            os.fchmod(file.fileno(), 0o644)  # whatever the umask: a collector is another user
        file.write(text.encode(errors="replace"))
