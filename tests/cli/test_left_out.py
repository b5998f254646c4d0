"""``corpusveil schedule`` beside what cannot be used: a bad shard, a file that is none, and one that is too young."""

from __future__ import annotations

import os
import time
from pathlib import Path

import orjson
import pytest

from tests.calls import fails, succeeds
from tests.cli import test_schedule
from tests.cli.test_run import save
from tests.cli.test_schedule import counted, lines, released, settings, start, status_of, touch

ground = test_schedule.ground


class TestABadShard:
    """It is left out and said, the others are released, and it comes again when it changes."""

    @pytest.fixture
    def ground(self, ground: Path) -> Path:
        lines(ground, "day-1/c.jsonl", 3)
        (ground / "in/day-1/b.jsonl").write_text("no json\n")
        return ground

    @pytest.mark.parametrize("kind", ["no ledger", "split", "the demo space"])
    def test_is_left_out_and_told(self, ground: Path, kind: str) -> None:
        """The others spend what they would have spent. Status, which unpacks no space, knows the shard, too."""
        values = settings()
        if kind == "no ledger":
            del values["ledger"]
        elif kind == "split":
            values["output"]["rows_per_task"] = 8192
        else:
            values["space"]["path"] = "demo"
        save(ground / "s.toml", values)
        said = start(ground, 2).err
        assert said.count(f"left out: {ground}/in/day-1/b.jsonl, row 1: ") == 1
        assert len(released(ground, 2)) == 2
        assert not (ground / "out/run-00001").exists()
        assert orjson.loads((ground / "out/run-00002/manifest.json").read_bytes())["documents"] == 3
        assert kind == "no ledger" or counted(ground, 2) == 3
        assert start(ground, 2).err.count(f"left out: {ground}/in/day-1/b.jsonl, row 1") == 1
        assert f"left out: {ground}/in/day-1/b.jsonl, row 1" in succeeds("plan", ground / "s.toml").err
        status = status_of(ground)
        assert f"\nleft out: {ground}/in/day-1/b.jsonl, row 1" in status
        assert status.endswith("nothing is due\n")

    def test_comes_again_when_it_or_the_settings_change_or_by_hand(self, ground: Path) -> None:
        start(ground, 2)
        touch(ground, "day-1/b.jsonl")
        record = ground / "out.schedule/left_out.json"
        assert f"remove {record}" in start(ground, 2).err
        assert released(ground, 3) == {}
        record.unlink()
        assert f"left out: {ground}/in/day-1/b.jsonl, row 1" in start(ground, 2).err
        lines(ground, "day-1/b.jsonl", 9)
        text = (ground / "in/day-1/b.jsonl").read_text()
        (ground / "in/day-1/b.jsonl").write_text(f"{text}no json\n")
        start(ground, 2)
        values = settings()
        values["output"]["on_bad_rows"] = "quarantine"
        save(ground / "s.toml", values)
        start(ground)
        assert len(released(ground, 5)) == 1
        assert "left out" not in start(ground).err

    def test_is_no_longer_left_out_when_it_is_again_as_it_was_released(self, ground: Path) -> None:
        """Also when it is still damaged for a while, and when it is empty, of which a warning tells."""
        good = (ground / "in/day-1/c.jsonl").read_text()
        (ground / "in/day-1/b.jsonl").write_text(good)
        start(ground)
        for damaged in ("no json\n", "still no json\n"):
            (ground / "in/day-1/b.jsonl").write_text(damaged)
            assert "left out: " in start(ground, 2).err
        (ground / "in/day-1/b.jsonl").write_text(good)
        assert "left out: " not in start(ground).err
        assert "left out: " not in status_of(ground)
        (ground / "in/day-1/b.jsonl").write_text("")
        assert "1 changed shard is empty now" in start(ground).err

    def test_is_a_success_only_if_the_settings_say_so(self, ground: Path) -> None:
        """Every start fails while it is left out; with a warning instead, the first one succeeds, too."""
        values = settings()
        values["schedule"]["left_out"] = "warn"
        save(ground / "s.toml", values)
        assert "left out: " in start(ground).err
        assert "left out: " in start(ground).err
        save(ground / "s.toml", settings())
        for _ in range(2):
            start(ground, 2)


def test_a_file_that_is_no_shard_is_left_out_and_named(ground: Path) -> None:
    """One without a form, of another form, even of more files, with a name that is no address, or a lost link."""
    start(ground)
    lines(ground, "day-2/b.jsonl", 3)
    aliens = ["README.md", "day-2/c.jsonl.gz", "day-2/d.csv", "day-2/e.csv", "day-2/f.csv", "a::b.jsonl", "g.jsonl.tmp"]
    for name in [*aliens, b"\xff.jsonl", b"\x1b[2J.csv"]:
        Path(os.fsdecode(os.fsencode(ground / "in") + b"/" + os.fsencode(name))).write_bytes(b"x")
    (ground / "in/latest").symlink_to("day-2")
    (ground / "in/z.jsonl").symlink_to("gone")
    aliens += ["latest: links to folders", "z.jsonl: this link leads to no file", "\\x1b[2J.csv"]
    for _ in range(2):
        said = start(ground, 2).err
        assert said.count("left out: ") == len(aliens) + 1
        assert all(f"left out: {ground}/in/{name}" in said for name in aliens), said
    assert list(released(ground, 2)) == ["part-00000-of-00001.jsonl"]
    assert status_of(ground).count("left out: ") == len(aliens) + 1
    assert succeeds("plan", ground / "s.toml").err.count("left out: ") == len(aliens) + 1
    values = settings()
    values["corpus"]["input"] = ["in/*.jsonl", "in/*/*.jsonl"]
    save(ground / "s.toml", values)
    assert "z.jsonl: this link leads to no file" in start(ground, 2).err, "also what a glob matches"
    save(ground / "s.toml", settings())
    for name in os.listdir(os.fsencode(ground / "in")):
        if name not in (b"day-1", b"day-2"):
            os.unlink(os.fsencode(ground / "in") + b"/" + name)
    assert start(ground, 2).err.count("left out: ") == 4


def test_what_may_not_be_read_is_left_out_until_it_may(ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of another user, or a folder such as lost+found, does not stop the others."""
    lines(ground, "day-2/b.jsonl", 3)
    for name in ("lost+found", ".Trash-1000"):
        (ground / "in" / name).mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(
            os, "access", lambda path, mode: Path(path).name not in ("b.jsonl", "lost+found", ".Trash-1000")
        )
        said = start(ground, 2).err
        assert f"left out: {ground}/in/day-2/b.jsonl: there is no permission" in said
        assert f"left out: {ground}/in/lost+found: there is no permission" in said
        assert ".Trash" not in said
        fails(["preview", f"{ground}/in", "--space", f"{ground}/space"], "no-permission", "lost+found")
    start(ground)
    assert [len(released(ground, number)) for number in (1, 2)] == [1, 1]


def test_a_shard_waits_until_it_has_settled(ground: Path) -> None:
    """By its store's time of modification; one that was written before is released now."""
    values = settings()
    values["schedule"]["settle"] = "10m"
    save(ground / "s.toml", values)
    os.utime(ground / "in/day-1/a.jsonl", (0, time.time() - 700))
    lines(ground, "day-2/b.jsonl", 3)
    lines(ground, "day-3/c.jsonl", 4)  # by a clock that was years ahead, and that nobody waits for
    os.utime(ground / "in/day-3/c.jsonl", (0, time.time() + 1e8))
    assert "1 shard was written too recently" in start(ground).err
    assert "1 shard waits until it is 10m old\nnothing is due" in status_of(ground)
    assert (len(released(ground, 1)), released(ground, 2)) == (2, {})
    os.utime(ground / "in/day-2/b.jsonl", (0, time.time() - 700))
    start(ground)
    assert len(released(ground, 2)) == 1


def test_an_empty_export_of_csv_is_left_out_and_stops_no_later_one(ground: Path) -> None:
    """Nothing says what its columns are, and the next day's file is released."""
    for old in (ground / "in").rglob("*.jsonl"):
        old.unlink()
    (ground / "in/a.csv").touch()
    for _ in range(2):
        assert f"left out: {ground}/in/a.csv: this file is empty" in start(ground, 2).err
    (ground / "in/b.csv").write_text("key,author,text\n1,x,ba de\n")
    start(ground, 2)
    assert len(released(ground, 2)) == 1


def test_a_schedule_and_a_run_share_no_output(ground: Path) -> None:
    """A manifest and an index in one folder would each call the other's files added ones."""
    start(ground)
    said = fails(["run", ground / "s.toml", "--only", "privatize"], "output-in-use", "out")
    assert "choose another output" in said
    values = settings()
    values["output"]["path"] = "other"
    values["schedule"] = {}
    save(ground / "t.toml", values)
    succeeds("run", ground / "t.toml", "--only", "privatize")
    fails(["schedule", ground / "t.toml"], "output-in-use", "this is a release, and a schedule writes")
