"""A durable task: done once, recorded, gone on with after a crash; private text is in no error."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from corpusveil.errors import AddressError, DataError, WorkError
from corpusveil.jobs.local import Local
from corpusveil.ledger.account import AccountPass
from corpusveil.storage import files, lease
from corpusveil.storage.durable import Done, PartTask, Stage, claimed, once, run
from corpusveil.storage.records import Records
from corpusveil.storage.rows import Columns
from corpusveil.storage.tasks import ShardTask
from tests.calls import refused
from tests.engines.corpora import make_space
from tests.ledger.books import release_of

CANARY = "a sentence of a document"
TASKS = [PartTask(part, 4) for part in range(4)]


class Copied(Done):
    made: str | list[str]
    size: int


@dataclass(frozen=True, slots=True)
class Copy(Stage[Copied]):
    """Copies the part's input, and notes which parts were worked on."""

    name = "copies"

    source: str
    worked: list[int] = field(default_factory=list, compare=False)
    fault: Callable[[PartTask], None] = field(default=lambda _: None, compare=False)

    def fingerprint(self, task: PartTask) -> str:
        return str(files.size(files.join(self.source, str(task.part))))

    def do_task(self, task: PartTask) -> dict[str, Any]:
        self.worked.append(task.part)
        data = files.read_bytes(files.join(self.source, str(task.part)))
        url = self.address("made", str(task.part))
        files.write_bytes(url, data)
        self.fault(task)
        return {"made": url, "size": len(data)}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for task in TASKS:
        (folder / str(task.part)).write_text("x" * task.part)
    return folder


def stage(source: Path, mark: str = "m", **more: Any) -> Copy:
    return Copy(str(source.parent / "out" / "work"), mark, str(source), **more)


def raising(part: int, error: BaseException) -> Callable[[PartTask], None]:
    def fault(task: PartTask) -> None:
        if task.part == part:
            raise error

    return fault


def test_another_mark_or_another_input_is_other_work(source: Path) -> None:
    run(stage(source), TASKS, Local())
    other = stage(source, "other")
    run(other, TASKS, Local())
    assert other.worked == [0, 1, 2, 3]
    (source / "2").write_text("longer than before")
    changed = stage(source, "other")
    assert run(changed, TASKS, Local())[2].size == len("longer than before")
    assert changed.worked == [2]


def test_a_crash_between_data_and_record_costs_that_task(source: Path) -> None:
    """The record is written last, so what it says is there; the tasks before it stay done."""
    with pytest.raises(KeyboardInterrupt):
        run(stage(source, fault=raising(2, KeyboardInterrupt())), TASKS, Local())
    again = stage(source)
    assert len(run(again, TASKS, Local())) == 4
    assert again.worked == [2, 3]


def test_a_wrong_input_is_tried_once_and_said_once(source: Path) -> None:
    """All others are done; the sentence goes when the input is mended. A fault of anything else is raised as itself."""
    with refused("unusable-address", "out"):
        denied = AddressError("out: there is no permission to write here.")
        run(stage(source, fault=raising(1, denied)), TASKS[:2], Local())
    wrong = stage(source, fault=raising(1, DataError("in/1: this part is wrong.")))
    with refused("unsuitable-data", "in/1") as told:
        run(wrong, TASKS, Local())
    assert told.value.sentences == {1: "in/1: this part is wrong."}  # type: ignore[attr-defined]
    assert wrong.worked == [1, 2, 3]
    mended = stage(source)
    run(mended, TASKS, Local())
    assert mended.worked == [1]
    assert not Records(mended.address(), private=False).names("failed")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError(CANARY), "ValueError."),
        (OSError(28, "No space left on device", CANARY), "OSError (No space left on device)."),
        (MemoryError(), "MemoryError."),
    ],
)
def test_no_other_error_quotes_text(source: Path, error: Exception, said: str) -> None:
    """Neither in its sentence nor in its cause."""
    with pytest.raises(WorkError) as told:
        run(stage(source, fault=raising(3, error)), TASKS, Local())
    assert str(told.value) == f"Task part-00003-of-00004 (copies) failed: {said}"
    assert told.value.__cause__ is None


def test_an_engine_that_loses_a_task_is_noticed(source: Path) -> None:
    class Losing(Local):
        def run(self, function: Any, tasks: Sequence[Any]) -> Any:
            return Local().run(function, tasks[:-1])

    with pytest.raises(WorkError):
        run(stage(source), TASKS, Losing())


def test_an_output_is_made_by_one_call_at_a_time_and_tidied_after_a_crash(tmp_path: Path) -> None:
    """A claim is that of the first call, also if a crash came before anything else was written."""
    place, file, happened = Records(str(tmp_path / "work")), tmp_path / "last", []

    def call(mark: str, crash: Callable[[], object] = list) -> str:
        def claim() -> str | None:
            mine = Done(mark=mark, input="")
            if claimed(place, "call.json", mine, "foreign" if file.exists() else None) != mine:
                raise AddressError("another call")
            return file.read_text() if file.exists() else None

        def do(_: lease.Lease) -> str:
            with pytest.raises(WorkError):
                once(place.url, lambda: "held", lambda _: "", list)
            crash()
            happened.append("made")
            file.write_text(mark)
            return mark

        return once(place.url, claim, do, happened.append)

    with pytest.raises(ZeroDivisionError):
        call("a", lambda: 1 / 0)
    with pytest.raises(AddressError, match="another call"):
        call("b")
    assert (call("a"), call("a")) == ("a", "a")
    assert happened == ["made", "a", "a"]
    place.remove("call.json")
    with pytest.raises(AddressError, match="foreign"):
        call("a")


def test_a_damaged_record_of_a_stage_is_written_anew(source: Path) -> None:
    """Also one that names a file elsewhere as what was made, which the next stage would read."""
    run(stage(source), TASKS, Local())
    out = source.parent / "out"
    names: tuple[Any, ...] = ("/etc/passwd", f"{out}/../x", str(out), "s3://elsewhere/x", "", [f"{out}/work/x", "/x"])
    elsewhere = [json.dumps({"mark": "m", "input": "1", "made": name, "size": 1}).encode() for name in names]
    for damage in (b"", b"{", b'{"mark": "m"}', b'{"mark": "m", "input": "1", "made": "x", "size": "1"}', *elsewhere):
        (source.parent / "out/work/copies/done" / TASKS[1].record_name).write_bytes(damage)
        again = stage(source)
        run(again, TASKS, Local())
        assert again.worked == [1]


def test_a_pass_looks_at_each_shard_once_and_again_at_what_changed(tmp_path: Path) -> None:
    """It goes on where it stopped, too; here the input of one shard has changed, and the note of another is damaged."""
    tasks = []
    for number in range(3):
        path = tmp_path / f"{number}.jsonl"
        path.write_text(f'{{"text": "{CANARY} {number % 2}"}}\n' * 5)
        tasks.append(ShardTask(number, 3, str(path), path.name, path.stat().st_size, ".jsonl"))
    records = Records(str(tmp_path / "records"))
    account = release_of(make_space(tmp_path / "space")).account("text")
    job = AccountPass(Columns(), records, b"k" * 32, skip_bad=False, account=account, corpus="corpus")

    def looked(tasks: list[ShardTask]) -> list[int]:
        """Run the pass; return the tasks whose notes were written."""
        before = {path: path.stat().st_mtime_ns for path in (tmp_path / "records").glob("*")}
        Local().run(job, tasks)
        return [task.shard for task in tasks for note in [Path(job.note_of(task))]
                if note.stat().st_mtime_ns != before.get(note)]  # fmt: skip

    assert looked(tasks[:2]) == [0, 1]
    assert looked(tasks) == [2]
    Path(tasks[0].url).write_text('{"text": "another"}\n')
    note = tmp_path / "records" / "part-00001-of-00003.parquet"
    note.write_bytes(note.read_bytes()[:-24])
    assert looked(tasks) == [0, 1]
