"""A durable task: done once, recorded, and resumed after a crash. It never raises private text.

Shards of a release, the passes before it, the stages of counting and the cells of a study are all *work*, which an
engine maps over tasks. Doing a task writes its data first and its record last, so a record says that the task is done.
The record holds a mark of everything that decides the result, and a fingerprint of the input; if both are current, the
task is not done again. An error that the user must mend is recorded, not raised, so that no engine retries the task; it
is raised once, when the engine has ended. Other errors are raised without their text, which could quote a document.

A call that makes an output (a release, an artifact) claims it, lets an engine do tasks, finishes by
a last file, and tidies up (``once``).
"""

from __future__ import annotations

import abc
import hashlib
import json
import posixpath
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, get_args

from corpusveil.errors import (
    AddressError,
    ArtifactError,
    CorpusveilError,
    DataError,
    UserError,
    WorkError,
    bad_shards,
    of_code,
)
from corpusveil.storage import files, lease
from corpusveil.storage.engine import Engine
from corpusveil.storage.records import Failed, Record, Records
from corpusveil.waiting import waiting

R = TypeVar("R", bound=Record)
T = TypeVar("T")
_NUMBERED = re.compile(r"part-(\d+)-of-")


def stem(task: Any) -> str:
    """Return the stem of the names of a task's files: the name of its record, without the ending."""
    name: str = task.record_name
    return name.removesuffix(".json")


class Work(abc.ABC, Generic[R]):
    """The function that an engine maps over tasks; each task is safe to repeat."""

    __slots__ = ()
    kind: ClassVar[type[Record]] = Record
    """The model of its records: the type argument of its base class."""
    name: ClassVar[str]
    """Its name in sentences; for a stage, also its folder."""
    folder: ClassVar[str] = "done"
    """The folder of its records, in its place."""
    debug = False
    """Let errors keep their text and traceback, which can quote documents."""

    def __init_subclass__(cls) -> None:
        for base in vars(cls).get("__orig_bases__", ()):
            cls.kind = next((record for record in get_args(base) if isinstance(record, type)), cls.kind)

    @abc.abstractmethod
    def work_folder(self) -> Records:
        """Return where the records are written."""

    @abc.abstractmethod
    def do(self, task: Any) -> R:
        """Do one task: write its data, and return its record. Raises UserError if the input is faulty."""

    @abc.abstractmethod
    def is_mine(self, record: R, task: Any) -> bool:
        """Say whether a record has the mark of this work, and, as far as quickly known, this input."""

    def still_holds(self, record: R, task: Any) -> bool:  # noqa: ARG002 - most trust their records
        """Say whether input and data still match the record, which may require reading them."""
        return True

    def left(self, tasks: Sequence[Any]) -> Sequence[Any]:
        """Return the tasks that remain, as far as quickly known."""
        return [task for task in tasks if self.read(task) is None]

    def read(self, task: Any) -> R | None:
        """Return the record of a task if it is done, in the same way as it would be now."""
        record: Any = self.work_folder().read(f"{self.folder}/{task.record_name}", self.kind)
        return record if record is not None and self.is_mine(record, task) else None

    def is_done(self, task: Any) -> bool:
        """Say whether a task has a record that still describes both input and data."""
        record = self.read(task)
        return record is not None and self.still_holds(record, task)

    def note(self, record: R, task: Any) -> None:
        """Write the record of a task, whose data are written."""
        self.work_folder().remove(f"failed/{task.record_name}")
        self.work_folder().write(f"{self.folder}/{task.record_name}", record)

    def refuse(self, error: CorpusveilError, task: Any) -> None:
        self.work_folder().write(f"failed/{task.record_name}", Failed(sentence=str(error), code=error.code))

    def __call__(self, task: Any) -> None:
        """Do one task, unless it is done. Errors that may pass (a full disk) are raised."""
        try:
            if not self.is_done(task):
                self.note(self.do(task), task)
        except UserError as error:
            self.refuse(error, task)
        except CorpusveilError:
            raise
        except Exception as error:
            if self.debug:
                raise
            why = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror else ""
            what = f"Task {stem(task)} ({self.name}) failed"
            raise WorkError(f"{what}: {type(error).__name__}{why}.") from None


def once(
    folder: str, claim: Callable[[], T | None], do: Callable[[lease.Lease], T], tidy: Callable[[T], object]
) -> T:  # fmt: skip
    """Make an output once, and return the result; a repeated call continues after a crash at any moment.

    ``claim`` returns the result if the output is finished, and otherwise claims it. ``do`` does the tasks, and finishes
    the output by its last file. ``tidy`` removes what only an unfinished output needs, also when a crash came before
    it. Only one process at a time works in ``folder``, by a lease. Raises WorkError if another one does.
    """
    with lease.hold(folder) as held:
        result = claim()
        if result is None:
            result = do(held)
        tidy(result)
    return result


def claimed(place: Records, name: str, mine: R, foreign: str | None) -> R:
    """Return the claim on an output by the record ``name``; it is ``mine`` itself if there was none.

    ``foreign`` is a sentence if the output has files already. Raises AddressError, which says it, without a claim.
    """
    theirs = place.read(name, type(mine))
    if theirs is None and foreign is not None:
        raise AddressError(foreign)
    if theirs is None and not place.create(name, mine):
        theirs = place.read(name, type(mine))
    return theirs or mine


def run_tasks(work: Work[R], left: Sequence[Any], engine: Engine, shown: AbstractContextManager[Any]) -> None:
    """Let an engine do the tasks that are left, while progress is ``shown``.

    Raises DataError for tasks with faulty data, another UserError for another reason to refuse a task, and
    WorkError if the engine fails.
    """
    with shown:
        engine.run(work, left)
    refuse_failed(work.work_folder())


def run(work: Work[R], tasks: Sequence[Any], engine: Engine) -> list[R]:
    """Run work to its end, and return the records of its tasks, in order. Raises what ``run_tasks`` raises."""
    place = work.work_folder()
    forget_failed(place)
    left = work.left(tasks)
    if left:
        run_tasks(work, left, engine, waiting(work.name, lambda: (len(place.names(work.folder)), len(tasks), "")))
    records = [record for task in tasks if (record := work.read(task)) is not None]
    if len(records) < len(tasks):
        raise WorkError(f"{place.url}: a task left no record; run the same command again.")
    return records


def forget_failed(place: Records) -> None:
    """Remove the records of failed tasks, which are tried again."""
    for name in place.names("failed"):
        place.remove(f"failed/{name}")


def refuse_failed(place: Records) -> None:
    """Raise DataError if the data of tasks were faulty, and any other error of a task as itself."""
    sentences: dict[int, str] = {}
    for at, name in enumerate(place.names("failed")):
        if (failed := place.read(f"failed/{name}", Failed)) is not None:
            error = of_code(failed.code, failed.sentence)
            if not isinstance(error, DataError):
                raise error
            numbered = _NUMBERED.match(name)
            sentences.setdefault(int(numbered[1]) if numbered else at, failed.sentence)
    if sentences:
        raise bad_shards(sentences)


class Done(Record):
    """A finished task of a stage."""

    mark: str
    input: str


D = TypeVar("D", bound=Done)


@dataclass(frozen=True, slots=True)
class Stage(Work[D]):
    """Work whose data are stored next to its records, in a folder that is removed at the end.

    ``mark`` covers everything that decides the result.
    """

    work: str
    mark: str

    @abc.abstractmethod
    def do_task(self, task: Any) -> dict[str, Any]:
        """Do one task; return the fields of its record other than mark and input."""

    def fingerprint(self, task: Any) -> str:  # noqa: ARG002 - not every task has an input of its own
        """Return a fingerprint that shows whether the input of a task changed."""
        return ""

    def address(self, *parts: str) -> str:
        return files.join(self.work, self.name, *parts)

    def work_folder(self) -> Records:
        return Records(self.address(), private=False)

    def read(self, task: Any) -> D | None:
        try:
            return super(Stage, self).read(task)
        except ArtifactError:  # harmless: the task is done again
            return None

    def is_mine(self, record: D, task: Any) -> bool:
        made: str | list[str] = getattr(record, "made", [])
        for url in [made] if isinstance(made, str) else made:  # the next stage reads it
            if not files.lies_in(url, posixpath.dirname(self.work)):
                return False
        return (record.mark, record.input) == (self.mark, self.fingerprint(task))

    def do(self, task: Any) -> D:
        kind: Any = self.kind
        record: D = kind(mark=self.mark, input=self.fingerprint(task), **self.do_task(task))
        return record


@dataclass(frozen=True, slots=True)
class PartTask:
    """One of several parts of a key space."""

    part: int
    parts: int

    @property
    def record_name(self) -> str:
        return f"part-{self.part:05d}-of-{self.parts:05d}.json"


def mark_of(*values: Any) -> str:
    """Return a digest of JSON-able values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
