"""What each start of a schedule leaves for a rule to watch: a line of JSON, and the same numbers for Prometheus."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from corpusveil.errors import CorpusveilError
from corpusveil.pipelines.schedule_state import Finished
from corpusveil.storage import disk, files
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


@contextlib.contextmanager
def noted(state: Records, name: str, metrics: str | None) -> Iterator[Start]:
    """Give a start to fill in; note it, and how it ended, in the state, and if ``metrics`` is a path, there."""
    start = Start(time.time())
    try:
        yield start
    except BaseException as error:
        interrupted = 128 + int((error.args or (2,))[0]) if isinstance(error, KeyboardInterrupt) else 1
        start.status = error.exit_status if isinstance(error, CorpusveilError) else interrupted
        with contextlib.suppress(CorpusveilError, OSError):  # what ended the start is raised
            _note(start, state, name, metrics)
        raise
    _note(start, state, name, metrics)


def _note(start: Start, state: Records, name: str, metrics: str | None) -> None:
    state.close()
    values = asdict(start) | {"seconds": round(time.time() - start.time, 3)}
    when = datetime.fromtimestamp(start.time, UTC).isoformat(timespec="seconds")
    line, address = f"{json.dumps(values | {'time': when})}\n".encode(), state.address(STARTS)
    if files.is_local(address):  # added at once, as to a log: several starts may end together
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with open(os.open(files.resolve(address)[1], flags, disk.PRIVATE_MODE), "wb") as file:
            file.write(line)
    else:
        lines = (files.read_if_there(address) or b"").splitlines(keepends=True)
        files.write_bytes(address, b"".join([*lines[1 - MOST_LINES :], line]), private=True)
    if metrics is not None and (start.status or not start.holder):  # a start that works writes its own at its end
        label = json.dumps(name, ensure_ascii=False)
        text = "".join(
            f"# HELP corpusveil_schedule_{gauge} {help}\n# TYPE corpusveil_schedule_{gauge} gauge\n"
            f"corpusveil_schedule_{gauge}{{schedule={label}}} {values[field]}\n"
            for field, (gauge, help) in _GAUGES.items() if values[field] is not None
        )  # fmt: skip
        files.write_bytes(metrics, text.encode())
