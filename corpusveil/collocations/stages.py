"""Stages of a flow: a function mapped over tasks by any engine, each task done once and recorded."""

from __future__ import annotations

import abc
import hashlib
import json
import posixpath
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from corpusveil.errors import CorpusveilError, UserError, WorkError
from corpusveil.storage import files
from corpusveil.storage.shapes import fits, parsed

Watch = Callable[[str, str, int], AbstractContextManager[Any]]
"""``watch(name, folder, tasks)`` may show how many of the tasks have a record in the folder."""


class Task(Protocol):
    """A piece of work with a name of its own."""

    @property
    def record_name(self) -> str: ...


class Engine(Protocol):
    """Maps a function over tasks, somewhere; what the function writes is the result."""

    def run(self, function: Any, tasks: Sequence[Any]) -> Any: ...


@dataclass(frozen=True, slots=True)
class PartTask:
    """One of several parts of a key space."""

    part: int
    parts: int

    @property
    def record_name(self) -> str:
        """The name of the task's record."""
        return f"part-{self.part:05d}-of-{self.parts:05d}.json"


@dataclass(frozen=True, slots=True)
class Stage(abc.ABC):
    """What an engine maps over the tasks of one stage. ``mark`` is of everything that decides the result."""

    work: str
    mark: str

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The stage's folder in the work folder."""

    @abc.abstractmethod
    def do(self, task: Any) -> dict[str, Any]:
        """Do one task; return what its record is to say."""

    def fingerprint(self, task: Any) -> str:  # noqa: ARG002 - not every task has an input of its own
        """Return what tells whether the input of a task changed."""
        return ""

    def address(self, *parts: str) -> str:
        """Return an address in the stage's folder."""
        return files.join(self.work, self.name, *parts)

    def record(self, task: Any) -> dict[str, Any] | None:
        """Return the record of a task when it is done, and done as it would be now."""
        url = self.address("done", task.record_name)
        if not files.exists(url):
            return None
        record: dict[str, Any] = parsed(files.read_bytes(url))
        if not fits(record, {"mark": str, "input": str}):
            return None
        made = record.get("made", [])
        for one in made if isinstance(made, list) else [made]:
            if not isinstance(one, str) or not files.lies_in(one, posixpath.dirname(self.work)):
                raise UserError(f"{url}: this record names a file that is not of this work; remove the work folder.")
        return record if (record["mark"], record["input"]) == (self.mark, self.fingerprint(task)) else None

    def __call__(self, task: Any) -> None:
        """Do a task unless it is done. A wrong input is recorded, not raised, so that no engine tries it again."""
        try:
            if self.record(task) is not None:
                return
            began, before = time.monotonic(), self.fingerprint(task)
            told = self.do(task)
            record = {"mark": self.mark, "input": before, "seconds": round(time.monotonic() - began, 3), **told}
            files.write_bytes(self.address("done", task.record_name), json.dumps(record).encode())
        except UserError as error:
            files.write_bytes(self.address("failed", task.record_name), json.dumps(str(error)).encode())
        except CorpusveilError:
            raise
        except Exception as error:  # noqa: BLE001 - whose text could quote a document
            raise WorkError(f"{self.name} {task.record_name}: could not be done ({type(error).__name__}).") from None


def run_stage(stage: Stage, tasks: Sequence[Any], engine: Engine, watch: Watch | None = None) -> list[dict[str, Any]]:
    """Run a stage to its end and return the records of its tasks. Raises the first UserError of a task."""
    for name in files.listing(stage.address("failed")):
        files.remove(stage.address("failed", name))
    left = [task for task in tasks if stage.record(task) is None]
    if left:
        with watch(stage.name, stage.address("done"), len(tasks)) if watch is not None else nullcontext():
            engine.run(stage, left)
        failed = files.listing(stage.address("failed"))
        if failed:
            raise UserError(str(parsed(files.read_bytes(stage.address("failed", failed[0])))))
    records = [stage.record(task) for task in tasks]
    if None in records:
        raise WorkError(f"{stage.work}: a task of the stage {stage.name} left no record; run again.")
    return [record for record in records if record is not None]


def mark_of(*values: Any) -> str:
    """Return a digest of JSON-able values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
