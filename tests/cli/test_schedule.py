"""``corpusveil schedule``: each start releases what came in since the last one, once."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import corpusveil as cv
from corpusveil.pipelines import schedule
from corpusveil.storage import files, lease
from tests.calls import QUIET, Ended, command, fails, save, succeeds
from tests.cli.test_run import basic
from tests.engines.corpora import WORDS, make_space, release_files, write_shard


def lines(folder: Path, name: str, *documents: int) -> None:
    """Write a shard; a number stands for a document of seven words, with itself as id."""
    texts = {one: " ".join(WORDS[(7 * one + k) % len(WORDS)] for k in range(7)) for one in documents}
    write_shard(folder / "in" / name, [{"key": one, "text": text} for one, text in texts.items()])


def settings() -> dict[str, dict[str, Any]]:
    return basic(
        corpus={"input": ["in"], "id": "key", "name": "news"}, ledger={"path": "ledger", "unit": ["key"]},
        output={"path": "out", "records": "records"}, schedule={},
    )  # fmt: skip


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    make_space(tmp_path / "space")
    cv.Key.generate().save(tmp_path / "release.key")
    lines(tmp_path, "day-1/a.jsonl", 1, 2)
    save(tmp_path / "s.toml", settings())
    return tmp_path


def start(folder: Path, status: int = 0) -> Ended:
    ended = command("schedule", folder / "s.toml", *QUIET)
    assert ended.status == status, ended
    return ended


def status_of(folder: Path) -> str:
    return succeeds("schedule", folder / "s.toml", "--status").out


def released(folder: Path, number: int) -> dict[str, str]:
    """Return what a run released: the text by the key of the document (which is not in it: by place)."""
    data = folder / "out" / f"run-{number:05d}" / "data"
    return {path.name: path.read_text() for path in sorted(data.iterdir())} if data.exists() else {}


def counted(folder: Path, *runs: int) -> int:
    """Return how many documents the ledger counts, once it agrees with the records of runs."""
    ledger = cv.Ledger(f"{folder}/ledger")
    for records in ([folder / f"records/run-{number:05d}" for number in runs], folder / "records"):
        checked = ledger.verify(records)
        assert (checked.differences, checked.records) == ((), len(runs)), records
    return sum(line["documents"] for line in ledger.spent().releases)


def stopped(monkeypatch: pytest.MonkeyPatch, folder: Path, step: int) -> None:
    """Start, and interrupt at a write, perhaps after the last one."""
    writes = iter(range(10_000))

    def stopping(real: Any) -> Any:
        def write(url: str, *arguments: Any, **more: Any) -> Any:
            if next(writes) == step:
                raise KeyboardInterrupt
            return real(url, *arguments, **more)

        return write

    with monkeypatch.context() as patched:
        for name in ("write_bytes", "create_bytes", "copy_file"):
            patched.setattr(files, name, stopping(getattr(files, name)))
        command("schedule", folder / "s.toml", *QUIET)


def test_what_is_new_is_released_once_and_as_privatize_does(ground: Path) -> None:
    start(ground)
    assert "there is nothing new" in start(ground).out
    lines(ground, "day-2/b.jsonl", 3)
    lines(ground, "day-2/c.jsonl", 4, 5)
    assert "run-00002 is due: 2 shards" in status_of(ground)
    start(ground)
    start(ground)
    assert [len(released(ground, k)) for k in (1, 2, 3)] == [1, 2, 0]
    alone = settings() | {"output": {"path": "alone"}}
    alone["corpus"] |= {"input": ["in/day-2"], "root": "in"}
    alone.pop("schedule", None)
    succeeds("run", save(ground / "alone.toml", alone), *QUIET)
    assert release_files(ground / "alone") == release_files(ground / "out" / "run-00002")


def test_a_changed_shard_is_a_further_release_or_refused(ground: Path) -> None:
    """What did not change in it gets the noise it had and spends nothing new; the index names what it replaces."""
    start(ground)
    lines(ground, "day-1/a.jsonl", 1, 2, 7)
    values = settings()
    values["schedule"]["changed"] = "refuse"
    save(ground / "s.toml", values)
    for _ in range(2):
        assert "a.jsonl: this shard has changed since run-00001" in start(ground, 2).err
    save(ground / "s.toml", settings())
    start(ground)
    (first,), (again,) = (released(ground, number).values() for number in (1, 2))
    assert again.startswith(first)
    assert counted(ground, 1, 2) == 3
    shards = json.loads((ground / "out/index.json").read_text())["shards"]
    assert [shard["replaced_by"] for shard in shards] == ["run-00002/data/part-00000-of-00001.jsonl", ""]
    succeeds("verify", ground / "out")


def test_a_touched_shard_is_none(ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another time, equal content: nothing is released, and the next start does not even read it."""
    start(ground)
    path = ground / "in/day-1/a.jsonl"
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 3600 * 10**9))  # of a clock that is ahead by an hour
    start(ground)
    monkeypatch.setattr(schedule, "keyed_digest", lambda *_: pytest.fail("read again"))
    assert "there is nothing new" in start(ground).out


def test_a_bad_shard_is_left_out_named_each_night_and_tried_again(ground: Path) -> None:
    lines(ground, "day-1/c.jsonl", 3)
    (ground / "in/day-1/b.jsonl").write_text("no json\n")
    (ground / "in/README.md").touch()
    for _ in range(2):
        said = start(ground, 2).err
        assert said.count(f"left out: {ground}/in/day-1/b.jsonl, row 1: ") == 1
        assert said.count("left out: ") == 2
    assert (len(released(ground, 1)), released(ground, 2)) == (2, {})
    (ground / "in/README.md").unlink()
    lines(ground, "day-1/b.jsonl", 9)
    start(ground)
    assert len(released(ground, 2)) == 1
    assert counted(ground, 1, 2) == 4


def test_a_half_deleted_output_is_noticed_and_written_again(ground: Path) -> None:
    lines(ground, "day-1/b.jsonl", 3)
    start(ground)
    before = release_files(ground / "out/run-00001")
    for name in ("data/part-00000-of-00002.jsonl", "manifest.json"):
        (ground / "out/run-00001" / name).unlink()
        assert f"damaged: {ground}/out/run-00001/{name}" in start(ground, 2).err
        succeeds("schedule", ground / "s.toml", "--repair", *QUIET)
        assert release_files(ground / "out/run-00001") == before
        start(ground)


def test_a_run_is_repaired_as_it_was_counted_and_cut_though_settings_have_changed(ground: Path) -> None:
    nights = [{name: section for name, section in settings().items() if name != "ledger"}, settings(), settings()]
    nights[2]["ledger"]["over_cap"] = "drop"
    for number, night in enumerate(nights, 2):
        save(ground / "s.toml", night)
        start(ground)
        lines(ground, f"day-{number}/b.jsonl", number)
    before = [release_files(ground / f"out/run-0000{run}") for run in (1, 2)]
    for again in (nights[2], nights[1]):
        for run in (1, 2):
            next((ground / f"out/run-0000{run}/data").iterdir()).unlink()
        succeeds("schedule", save(ground / "s.toml", again), "--repair", *QUIET)
        assert [release_files(ground / f"out/run-0000{run}") for run in (1, 2)] == before


def test_a_run_whose_input_has_changed_is_named_and_holds_up_no_repair_or_release(ground: Path) -> None:
    """And is repaired once its input is as it was."""
    start(ground)
    for number in (2, 3):
        lines(ground, f"day-{number}/a.jsonl", number)
        start(ground)
    before = [release_files(ground / f"out/run-0000{run}") for run in (1, 3)]
    lines(ground, "day-1/a.jsonl", 1, 8)
    start(ground)
    for run in (1, 3):
        (ground / f"out/run-0000{run}/data/part-00000-of-00001.jsonl").write_text("")
    lines(ground, "day-4/a.jsonl", 9)
    for words in (["--repair"], []):
        ended = command("schedule", ground / "s.toml", *words, *QUIET)
        assert (ended.status, ended.err.count("damaged: "), ended.err.count("--repair")) == (2, 1, 0)
        assert "run-00001/data/part-00000-of-00001.jsonl; input or records of this run have changed or" in ended.err
    assert (release_files(ground / "out/run-00003"), len(released(ground, 5))) == (before[1], 1)
    lines(ground, "day-1/a.jsonl", 1, 2)
    succeeds("schedule", ground / "s.toml", "--repair", *QUIET)
    assert release_files(ground / "out/run-00001") == before[0]


def test_a_lost_state_is_made_again_and_lost_records_are_refused(ground: Path) -> None:
    start(ground)
    lines(ground, "day-2/b.jsonl", 3)
    start(ground)
    before = release_files(ground / "out")
    for content in (None, b"{"):
        state = ground / "records/schedule.json"
        state.unlink() if content is None else state.write_bytes(content)
        assert "there is nothing new" in start(ground).out
        assert release_files(ground / "out") == before
    (ground / "records").rename(ground / "moved")
    assert "[unusable-address]" in start(ground, 2).err


def test_what_other_programs_wrote_stays_and_a_ledger_that_is_gone_is_not_begun_again(ground: Path) -> None:
    """androguard/androguard#768, on folders that have a run's name; Sohex/musefs#309, on a disk that is not mounted."""
    write_shard(ground / "out/run-00007/model.bin", [])
    fails(["schedule", ground / "s.toml"], "unusable-address", "out/run-00007", "does not know it; move it")
    (ground / "out/run-00007").rename(ground / "out/models")
    start(ground)
    lines(ground, "day-2/b.jsonl", 3)
    (ground / "ledger").rename(ground / "unmounted")
    (ground / "ledger").mkdir()  # the mount point
    fails(["schedule", ground / "s.toml", *QUIET], "wrong-setting", f"{ground}/ledger", "mount or restore it")
    (ground / "unmounted").rename(ground / "ledger")
    start(ground)


def test_another_configuration_or_root_spends_nothing(ground: Path) -> None:
    """What changed is named with both values; nothing is drawn or entered, and as before it goes on."""
    start(ground)
    lines(ground, "day-2/b.jsonl", 3)
    before = release_files(ground / "ledger")
    for section, name, value, said in (
        ("budget", "epsilon", 2.0, "budget.epsilon was 1.0 and is 2.0. Set this as before"),
        ("corpus", "input", [f"{ground}/in/day-2"], "paths began at"),
        ("corpus", "keep", ["key"], 'corpus.keep was [] and is ["key"]. Set this as before'),
        ("corpus", "id", "text", 'corpus.id was "key" and is "text"'),
        ("ledger", "path", None, "the address of the ledger was"),
    ):  # fmt: skip
        values = settings()
        values[section][name] = value
        if value is None:
            del values[section]
        save(ground / "s.toml", values)
        assert said in start(ground, 2).err
        assert (release_files(ground / "ledger"), released(ground, 2)) == (before, {}), said
    save(ground / "s.toml", settings())
    start(ground)
    assert len(released(ground, 2)) == 1


def test_a_second_start_leaves(ground: Path) -> None:
    """While a start works, another one changes nothing."""
    held = lease.take(f"{ground}/records")
    assert isinstance(held, lease.Lease)
    assert "another run is in progress" in start(ground).err
    assert "in progress" in status_of(ground)
    held.__exit__()
    start(ground)
    assert len(released(ground, 1)) == 1


def test_a_start_leaves_a_line_and_metrics_in_which_a_killed_one_is_not_green(
    ground: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = settings()
    values["schedule"]["metrics"] = f"{ground}/veil.prom"
    save(ground / "s.toml", values)

    def times() -> list[float]:
        text = (ground / "veil.prom").read_text()
        names = ("time", "success", "status")
        found = [re.search(rf"^corpusveil_schedule_{name}{{.* (.*)$", text, re.MULTILINE) for name in names]
        return [float(one[1]) for one in found if one is not None]

    start(ground)
    began, success, status = times()
    assert (began, status) == (success, 0)
    with monkeypatch.context() as patched:  # nothing is written after the start, as by SIGKILL
        patched.setattr(schedule, "_work", lambda *_: os._exit(9))
        if (child := os.fork()) == 0:
            command("schedule", ground / "s.toml", *QUIET)
        os.waitpid(child, 0)
    began, kept = times()  # and no status, which would alert while a start works
    assert (began > success, kept) == (True, success)
    start(ground)
    assert times()[0] == times()[1] > success
    with monkeypatch.context() as patched:
        patched.setattr(schedule, "_work", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        command("schedule", ground / "s.toml", *QUIET)
    assert times()[1] < times()[0]
    assert times()[2] == 1
    assert re.search(r"the last start, 20.* UTC, failed with work-failed\n", status_of(ground))
    noted = [json.loads(line) for line in (ground / "records/starts.jsonl").read_text().splitlines()]
    assert [(line["shards"], line["documents"], line["status"], line["due"]) for line in noted] == [
        (1, 2, 0, 0), (0, 0, 0, 0), (0, 0, 1, None),
    ]  # fmt: skip


@pytest.mark.parametrize("step", range(0, 24, 3))
def test_a_killed_run_is_finished_by_the_next_start(ground: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Stopped at any write: one finished run has every shard, and nothing is counted low."""
    lines(ground, "day-1/b.jsonl", 3, 4)
    monkeypatch.setattr(lease, "PATIENCE_SECONDS", 0.2)
    stopped(monkeypatch, ground, step)
    start(ground)
    start(ground)
    done = [path.name for path in (ground / "out").iterdir() if (path / "manifest.json").exists()]
    assert done == ["run-00001"]
    assert counted(ground, 1) == 4
