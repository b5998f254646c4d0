"""``corpusveil schedule``: each start releases what came in since the last one, once."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

import corpusveil as cv
from corpusveil.errors import WorkError
from corpusveil.pipelines import schedule, scheduled
from corpusveil.storage import files, lease
from corpusveil.transforms.release import corpus, job
from tests.calls import QUIET, Ended, command, fails, succeeds
from tests.cli.test_run import basic, save
from tests.engines.corpora import WORDS, make_space, release_files


def lines(folder: Path, name: str, *documents: int) -> None:
    """Write a shard; a number stands for a document of seven words, with itself as id."""
    path = folder / "in" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [" ".join(WORDS[(7 * one + k) % len(WORDS)] for k in range(7)) for one in documents]
    path.write_text(
        "".join(json.dumps({"key": one, "text": t}) + "\n" for one, t in zip(documents, texts, strict=True))
    )


def touch(folder: Path, name: str) -> None:
    """Give a shard another time without another content: of a clock that is ahead by an hour."""
    path = folder / "in" / name
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 3600 * 10**9))


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


def failing(*_: Any) -> Any:
    raise WorkError("the disk is full")


def counted(folder: Path, *runs: int) -> int:
    """Return how many documents the ledger counts, once it agrees with the records of runs."""
    ledger = cv.Ledger(f"{folder}/ledger")
    assert ledger.verify([folder / f"records/run-{number:05d}" for number in runs]).differences == ()
    return sum(line["documents"] for line in ledger.spent().releases)


def test_what_a_schedule_cannot_do_is_refused(ground: Path) -> None:
    """It needs a key and an output, and hides secrets."""
    (ground / "link").symlink_to(ground / "out")
    for section, given, named in (
        ("schedule", {"settle": "ten minutes"}, "schedule.settle"),
        ("schedule", {"longest": "0h"}, "schedule.longest"),
        ("schedule", {"metrics": f"{ground}/release.key"}, "schedule.metrics"),
        ("key", None, "[key]"), ("output", None, "[output]"),
        ("output", {"path": f"{ground}/out", "records": f"{ground}/out/records"}, "overlapping-paths"),
        ("output", {"path": f"{ground}/ledger/out"}, "overlapping-paths"),
        ("ledger", {"path": f"{ground}/link/ledger"}, "overlapping-paths"),
        ("schedule", {"state": f"{ground}/out/state"}, "overlapping-paths"),
        ("denoise", {"path": f"{ground}/records/run", "model": f"{ground}/model"}, "overlapping-paths"),
    ):  # fmt: skip
        values = settings()
        values[section] = given or {}
        if given is None:
            del values[section]
        save(ground / "s.toml", values)
        (sentence,) = start(ground, 2).err.splitlines()
        assert named in sentence
    assert not (ground / "out").exists()


class TestWhatIsNew:
    def test_is_released_once_and_as_privatize_does(self, ground: Path) -> None:
        """New shards make a release of their own, with the bytes of one call over them; without any there is none."""
        start(ground)
        assert "there is nothing new" in start(ground).out
        lines(ground, "day-2/b.jsonl", 3)
        lines(ground, "day-2/c.jsonl", 4, 5)
        start(ground)
        start(ground)
        assert [len(released(ground, k)) for k in (1, 2, 3)] == [1, 2, 0]
        succeeds(
            "privatize", f"{ground}/in/day-2", "--root", f"{ground}/in", "--space", f"{ground}/space", "--id", "key",
            "--mechanism", "ring-geometric", "--epsilon", "1", "--key", f"{ground}/release.key", "--output",
            f"{ground}/alone", *QUIET,
        )  # fmt: skip
        assert release_files(ground / "alone") == release_files(ground / "out" / "run-00002")

    def test_a_changed_shard_is_a_further_release(self, ground: Path) -> None:
        """What did not change in it gets the noise it had and spends nothing new; what did is counted."""
        start(ground)
        lines(ground, "day-1/a.jsonl", 1, 2, 7)
        assert "1 changed shard" in start(ground).err
        (first,), (again,) = (released(ground, number).values() for number in (1, 2))
        assert again.startswith(first)
        assert again.count("\n") == 3
        assert counted(ground, 1, 2) == 3

    def test_without_an_id_a_changed_shard_is_told_before_with_what_it_released(self, ground: Path) -> None:
        values = settings()
        del values["corpus"]["id"]
        save(ground / "s.toml", values)
        assert "rows are identified by their place" in start(ground).out
        lines(ground, "day-1/a.jsonl", 2)
        assert "up to 2 documents of changed shards get other noise" in start(ground).err

    def test_a_replaced_shard_is_marked_in_an_index_that_verify_reads(self, ground: Path) -> None:
        """Also after the loss of the summary, or of the index; what the index lacks or has too much is a difference."""
        lines(ground, "day-1/b.jsonl", 3)
        start(ground)
        lines(ground, "day-1/b.jsonl", 3, 4)
        start(ground)
        index = ground / "out/index.json"
        first, second, third = json.loads(index.read_text())["shards"]
        assert [first["replaced_by"], third["replaced_by"]] == ["", ""]
        assert second["replaced_by"] == f"{third['run']}/{third['shard']}" == "run-00002/data/part-00000-of-00001.jsonl"
        data = index.read_bytes()
        for lost in (index, ground / "out.schedule/summary.json", ground / "out.schedule/runs/00002.done.json"):
            lost.unlink()
            start(ground)
            assert index.read_bytes() == data, lost
        digest = hashlib.sha256(data).hexdigest()
        for beside in ("index.json.sig", "README.md"):
            (ground / "out" / beside).touch()
        checked = succeeds("verify", ground / "out", "--digest", digest.upper()).out
        assert "1 file, by later runs" in checked
        assert "not checked  README.md, index.json.sig, run-00001.report.html" in checked
        for run in ("../run-00001", "", "run-1", "run-00001"):
            index.write_text(json.dumps({"runs": {run: digest[1:]}, "shards": []}))
            fails(["verify", ground / "out"], "damaged-record", index)
        index.write_bytes(data)
        fails(["verify", ground / "out", "--require", "nats<=0", "--require", "per=token"], "not-met", "run-00001")
        for require in (iter(["space=x"]), "space=x", ["space=x"]):  # which each run is asked again
            assert len(cv.verify(ground / "out", digest.upper(), require).unmet) == 2
        manifest = ground / "out/run-00001/manifest.json"
        for path, content in (
            (index, data.replace(b"run-00002/data", b"run-00001/data")), (index, data.replace(b"part-00001", b"p")),
            (manifest, manifest.read_bytes() + b"\n"), (ground / "out/more", b""),
        ):  # fmt: skip
            before = path.read_bytes() if path.exists() else None
            path.write_bytes(content)
            fails(["verify", ground / "out", *(["--digest", digest] if path == index else [])], "release-differs")
            path.unlink() if before is None else path.write_bytes(before)
        (ground / "out/run-00001").rename(ground / "moved")
        fails(["verify", ground / "out"], "release-differs", "run-00001")

    def test_a_touched_shard_is_none(self, ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another time, equal content: nothing is released, and the next start does not even read it."""
        start(ground)
        touch(ground, "day-1/a.jsonl")
        start(ground)
        monkeypatch.setattr(schedule, "keyed_digest", lambda *_: pytest.fail("read again"))
        assert "there is nothing new" in start(ground).out
        assert released(ground, 2) == {}

    def test_an_input_that_vanished_is_an_error(self, ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A folder that is not mounted, and then is: no unfinished run is given up."""
        lines(ground, "day-2/b.jsonl", 3)
        with monkeypatch.context() as patched:
            patched.setattr(corpus, "write_manifest", failing)
            start(ground, 1)
        for runs in ("run-00001: begun, not finished", "run-00001: 2 shards, 3 documents"):
            (ground / "in").rename(ground / "away")
            assert "[missing-file]" in start(ground, 2).err
            told = command("schedule", ground / "s.toml", "--status")
            assert (told.status, told.out.splitlines()[0]) == (2, runs)
            (ground / "away").rename(ground / "in")
            start(ground)
        assert len(released(ground, 1)) == 2


class TestKilled:
    @pytest.mark.parametrize(
        "step", [pytest.param(step, marks=[pytest.mark.nightly] * (step % 4 > 0)) for step in range(21)]
    )
    def test_the_next_start_makes_up_for_it(self, ground: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
        """Stopped at any write: one finished run has every shard, and nothing is counted low."""
        lines(ground, "day-1/b.jsonl", 3, 4)
        writes = iter(range(1000))

        def stopping(real: Any) -> Any:
            def write(url: str, *arguments: Any, **more: Any) -> Any:
                if next(writes) == step:
                    raise KeyboardInterrupt
                return real(url, *arguments, **more)

            return write

        monkeypatch.setattr(lease, "PATIENCE_SECONDS", 0.2)
        with monkeypatch.context() as patched:
            patched.setattr(files, "write_bytes", stopping(files.write_bytes))
            patched.setattr(files, "create_bytes", stopping(files.create_bytes))
            patched.setattr(files, "copy_file", stopping(files.copy_file))
            assert command("schedule", ground / "s.toml", *QUIET).status != 0
        start(ground)
        start(ground)
        done = [path for path in (ground / "out").iterdir() if (path / "manifest.json").exists()]
        assert len(done) == 1
        names = {done[0].name, f"{done[0].name}.report.html", "index.json"}
        assert {path.name for path in (ground / "out").iterdir()} == names
        assert counted(ground, int(done[0].name[-5:])) == 4

    def test_a_run_whose_shards_are_gone_is_given_up(self, ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its other shards are released by the next one, as the status says before, and nothing half-done stays."""
        lines(ground, "day-1/b.jsonl", 3)
        with monkeypatch.context() as patched:
            patched.setattr(corpus, "write_manifest", failing)
            start(ground, 1)
        assert not (ground / "out/run-00001/manifest.json").exists()
        (ground / "in/day-1/b.jsonl").unlink()
        said = "run-00001 will be abandoned: 1 of its 2 shards was removed\nrun-00002 is due: 1 new shard"
        assert said in status_of(ground)
        start(ground)
        assert [path.name for path in (ground / "out").iterdir() if path.is_dir()] == ["run-00002"]
        assert orjson.loads((ground / "out/run-00002/manifest.json").read_bytes())["documents"] == 2

    def test_a_shard_that_changes_under_a_run_is_done_once_more(
        self, ground: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One that changes then, too, is to be settled."""
        real = job.ShardJob.do
        changes = [3, 5, 7]

        def do(work: Any, task: Any) -> Any:
            if changes:
                lines(ground, "day-1/a.jsonl", 1, changes.pop())
            return real(work, task)

        monkeypatch.setattr(job.ShardJob, "do", do)
        assert "[input-changed]" in start(ground, 2).err
        assert "once more: " in start(ground).err
        (text,) = released(ground, 1).values()
        assert text.count("\n") == 2

    def test_a_shard_that_vanishes_under_a_run_stops_no_other(
        self, ground: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Before it is read, and when it was just released."""
        real = scheduled.privatize

        def privatize(*given: Any, **more: Any) -> Any:
            (ground / "in/day-1/b.jsonl").unlink(missing_ok=True)
            return real(*given, **more)

        def then_gone(*given: Any, **more: Any) -> None:
            real(*given, **more)
            privatize(*given, **more)

        for run, call in ((1, privatize), (3, then_gone)):
            lines(ground, "day-1/b.jsonl", run)
            monkeypatch.setattr(scheduled, "privatize", call)
            start(ground)
        assert [len(released(ground, run)) for run in (1, 2, 3)] == [0, 1, 1]
        assert "run-00001: abandoned: 1 of its 2 shards was removed" in status_of(ground)


class TestRefused:
    def test_another_configuration_spends_nothing(self, ground: Path) -> None:
        """What changed is named with both values; nothing is drawn or entered, and as before it goes on."""
        make_space(ground / "other", seed=1)
        cv.Key.generate().save(ground / "other.key")
        start(ground)
        lines(ground, "day-2/b.jsonl", 3)
        before = release_files(ground / "ledger")
        for section, name, value, said in (
            ("budget", "epsilon", 2.0, "budget.epsilon was 1.0 and is 2.0. Set this as before"),
            ("mechanism", "beta", 0.01, "mechanism.beta was 0.001 and is 0.01"),
            ("output", "duplicates", "drop", 'output.duplicates was not set and is "drop"'),
            ("key", "path", f"{ground}/other.key", "the fingerprint of the key was "),
            ("space", "path", f"{ground}/other", "the digest of space.path was "),
        ):  # fmt: skip
            values = settings()
            values[section][name] = value
            save(ground / "s.toml", values)
            err = start(ground, 2).err
            assert f"{ground}/s.toml: {said}" in err
            assert err.count(" was ") == 1
            assert (release_files(ground / "ledger"), released(ground, 2)) == (before, {}), said
        (ground / "out").rename(ground / "published")  # what the earlier runs were made with is gone
        assert "is not that of the earlier runs" in start(ground, 2).err
        save(ground / "s.toml", settings())
        start(ground)
        assert len(released(ground, 2)) == 1

    def test_other_inputs_replace_or_repeat_no_shard(self, ground: Path) -> None:
        """Of another file with this output, or below another root; a corpus that was moved whole is not another one."""
        start(ground)
        lines(ground, "day-2/b.jsonl", 3)
        lines(ground / "others", "day-1/a.jsonl", 5, 6)
        for inputs in ("others/in", "in/day-1"):
            values = settings()
            values["corpus"]["input"] = [f"{ground}/{inputs}"]
            save(ground / "s.toml", values)
            assert "[mismatch]" in start(ground, 2).err, inputs
            assert released(ground, 2) == {}
        (ground / "in").rename(ground / "moved")
        values["corpus"]["input"] = [f"{ground}/moved"]
        save(ground / "s.toml", values)
        assert "run-00002: 1 new shard" in start(ground).err

    def test_a_cap_stops_a_run_until_it_is_raised(self, ground: Path) -> None:
        """The run stays due; the sentence says what was spent."""
        values = settings()
        values["ledger"]["cap"] = 6.0
        save(ground / "s.toml", values)
        sentence = "cap 6: one value of key would have spent 7"
        assert sentence in start(ground, 2).err
        assert not (ground / "out").exists()
        assert "run-00001: begun, not finished" in status_of(ground)
        values["ledger"]["cap"] = 8.0
        save(ground / "s.toml", values)
        start(ground)
        assert len(released(ground, 1)) == 1
        assert "run-00001: 1 shard, 2 documents" in status_of(ground)

    def test_units_above_a_cap_are_dropped_and_counted_if_the_settings_say_so(self, ground: Path) -> None:
        values = settings()
        values["ledger"] |= {"cap": 6.0, "over_cap": "drop"}
        save(ground / "s.toml", values)
        assert "2 documents were left out: those of units above a cap" in start(ground).err
        line = json.loads((ground / "out.schedule/starts.jsonl").read_text())
        assert (line["documents"], line["dropped"], line["status"]) == (0, 2, 0)


class TestAStart:
    def test_that_meets_one_that_hangs_fails_and_names_it(self, ground: Path) -> None:
        """One that is stopped, or at work for too long; one that works is a success. The status says the same.

        Also when the clock was set since, and when it stopped before its first sign of life.
        """
        now, address = time.monotonic(), f"{ground}/out.schedule/lease"
        for age, silent, beats, ended in (
            (3600, 0, True, 0), (90_000, 0, True, 1), (3600, 1200, True, 1), (1200, 1200, False, 1),
        ):  # fmt: skip
            held = lease.take(address)
            assert isinstance(held, lease.Lease)
            (path,) = Path(address).glob("*.json")
            holder = lease.Holder.of(held.content)
            assert holder is not None
            held.content = holder.model_copy(update={"since": now - age}).data()
            path.write_bytes(held.content)
            pulse = lease.Pulse(time=time.time() + 1e8, at=now - silent).data()
            beat = Path(lease._beat_address(address, held.number, held.content))
            for old in Path(address).glob("*.beat"):
                old.unlink()
            if beats:
                beat.write_bytes(pulse)
            said = start(ground, ended).err
            spent = f"{age // 3600} h" if age >= 3600 else f"{age // 60} min"
            who = f"{holder.host}, process {os.getpid()}, at work for {spent}"
            assert f"({who}" in said
            assert ("[other-run]" in said) == bool(ended)
            assert ("no sign of life for 20 min" in said) == bool(silent)
            assert f"{'hangs' if ended else 'in progress'}: {who}" in status_of(ground)
            held.__exit__()
            line = json.loads((ground / "out.schedule/starts.jsonl").read_text().splitlines()[-1])
            assert (line["status"], line["holder"].startswith(who)) == (ended, True)
        start(ground)
        assert "at work" not in status_of(ground)

    def test_leaves_a_line_and_the_same_for_prometheus(self, ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whether it succeeds or fails; what it did not come to know is null, and no sample."""
        values = settings()
        values["schedule"]["metrics"] = f"{ground}/veil.prom"
        values["output"]["on_bad_rows"] = "quarantine"
        save(ground / "s.toml", values)
        lines(ground, "day-1/b.jsonl", 3)
        (ground / "in/day-1/b.jsonl").open("a").write("no json\n")
        start(ground)
        lines(ground, "day-2/c.jsonl", 4)
        (ground / "in/README.md").touch()
        with monkeypatch.context() as patched:
            patched.setattr(corpus, "write_manifest", failing)
            start(ground, 1)
        start(ground, 2)
        (ground / "release.key").unlink()
        start(ground, 2)
        path = ground / "out.schedule/starts.jsonl"
        assert path.stat().st_mode & 0o077 == 0
        noted = [json.loads(line) for line in path.read_text().splitlines()]
        names = ("run", "shards", "documents", "left_out", "quarantined", "due", "status", "holder")
        assert [[line[name] for name in names] for line in noted] == [
            ["run-00001", 2, 3, 0, 1, 0, 0, ""], ["", 0, 0, None, 0, 1, 1, ""],
            ["run-00002", 1, 1, 1, 0, 0, 2, ""], ["", 0, 0, None, 0, None, 2, ""],
        ]  # fmt: skip
        assert all(line["seconds"] >= 0 and line["time"].endswith("+00:00") for line in noted)
        text = (ground / "veil.prom").read_text()
        samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        label = f'{{schedule="{ground}/s.toml"}}'
        assert samples[f"corpusveil_schedule_exit_status{label}"] == "2"
        assert f"corpusveil_schedule_due_shards{label}" not in samples, "unknown"
        assert all(re.fullmatch(r"corpusveil_schedule_[a-z_]+", name.removesuffix(label)) for name in samples)
        assert (ground / "veil.prom").stat().st_mode & 0o777 == 0o644

    def test_leaves_numbers_that_any_collector_reads(self, ground: Path) -> None:
        """By the rules of the text format, whatever the name of the file; another user reads it, whatever the umask."""
        path = ground / 's\t"x\\n\n\udcff.toml'
        values = settings()
        values["schedule"]["metrics"] = f"{ground}/veil.prom"
        save(path, values)
        before = os.umask(0o077)
        try:
            succeeds("schedule", path, *QUIET)
        finally:
            os.umask(before)
        assert (ground / "veil.prom").stat().st_mode & 0o777 == 0o644
        sample = re.compile(r'[a-z_]+\{schedule="((?:[^\\"\n]|\\[\\"n])*)"\} [0-9.]+\n')
        samples = "".join(re.split(r"# .*\n", (ground / "veil.prom").read_text()))
        names = {
            re.sub(r"\\(.)", lambda one: {"n": "\n"}.get(one[1], one[1]), each) for each in sample.findall(samples)
        }
        assert (sample.sub("", samples), names) == ("", {str(path).replace(chr(0xDCFF), "?")})

    def test_leaves_whole_lines_with_the_status_that_it_ended_with(self, ground: Path) -> None:
        """After a line that was cut short, and when it is the numbers that cannot be written."""
        values = settings()
        values["schedule"]["metrics"] = f"{ground}/release.key/veil.prom"
        save(ground / "s.toml", values)
        path = ground / "out.schedule/starts.jsonl"
        path.parent.mkdir()
        path.write_text('{"time": "20')
        start(ground, 2)
        start(ground, 2)
        noted = [json.loads(line) for line in path.read_text().splitlines()[1:]]
        assert [(line["shards"], line["status"]) for line in noted] == [(1, 2), (0, 2)]
        save(ground / "s.toml", settings())
        path.unlink()
        path.mkdir()
        assert f"{path}" in start(ground, 2).err

    def test_names_the_steps_that_only_a_run_does(self, ground: Path) -> None:
        save(ground / "s.toml", settings() | {"denoise": {"path": f"{ground}/readable", "model": f"{ground}/m"}})
        assert "does not do [denoise]" in start(ground).err


class TestDamagedRecords:
    """A finished run is finished again from its plan; a shard is never released twice."""

    @pytest.mark.parametrize("which", ["done", "shards", "both"])
    def test_what_was_released_is_not_released_again(self, ground: Path, which: str) -> None:
        """Also of a run that others followed: its shards seemed new."""
        start(ground)
        lines(ground, "day-2/b.jsonl", 3)
        start(ground)
        before = release_files(ground / "out")
        done, record = ground / "out.schedule/runs/00001.done.json", ground / "records/run-00001/shards"
        (ground / "out.schedule/summary.json").unlink()
        if which != "shards":
            done.unlink()
        if which != "done":
            for path in record.iterdir():
                path.write_text(path.read_text()[:-20])
        start(ground)
        start(ground)
        assert release_files(ground / "out") == before
        lines(ground, "day-3/c.jsonl", 4)
        start(ground)
        assert len(released(ground, 3)) == 1

    def test_a_release_that_the_state_does_not_know_is_never_taken_for_its_own(self, ground: Path) -> None:
        """A state that was lost, restored from an old copy, or is another schedule's: no shard counts as released."""
        start(ground)
        old = ground / "old"
        shutil.copytree(ground / "out.schedule", old)
        lines(ground, "day-2/b.jsonl", 3)
        start(ground)
        lines(ground, "day-2/b.jsonl", 9)
        for state in ("lost", "old", "others"):
            values = settings()
            values["schedule"]["state"] = f"{ground}/{state}"
            if state == "others":
                values["corpus"]["input"] = [f"{ground}/others-in"]
                lines(ground / "others", "day-1/a.jsonl", 5, 6)
                (ground / "others/in").rename(ground / "others-in")
            save(ground / "s.toml", values)
            before = release_files(ground / "out")
            for _ in range(2):
                err = start(ground, 2).err
                assert "[output-in-use]" in err, state
                assert f"{ground}/{state}" in err
            assert release_files(ground / "out") == before

    def test_a_run_whose_plan_was_cut_short_is_given_up(self, ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Unless it was released: only its plan says what it has released."""
        plan = ground / "out.schedule/runs/00001.plan.json"
        with monkeypatch.context() as patched:
            patched.setattr(corpus, "write_manifest", failing)
            start(ground, 1)
        plan.write_bytes(plan.read_bytes()[:9])
        assert "run-00001 will be abandoned: its plan is damaged\nrun-00002 is due: 1 new shard" in status_of(ground)
        start(ground)
        assert (released(ground, 1), len(released(ground, 2))) == ({}, 1)
        for name in ("summary.json", "runs/00002.done.json"):
            (ground / "out.schedule" / name).unlink()
        (ground / "out.schedule/runs/00002.plan.json").write_bytes(b"")
        assert "[damaged-record]" in start(ground, 2).err

    def test_a_record_of_what_is_left_out_is_made_again(self, ground: Path) -> None:
        (ground / "in/day-1/b.jsonl").write_text("no json\n")
        start(ground, 2)
        (ground / "out.schedule/left_out.json").write_bytes(b"")
        assert "left out: " in start(ground, 2).err
        assert "left out: " in status_of(ground)


class TestWhatItTells:
    def test_the_guarantee_once_and_each_success(self, ground: Path) -> None:
        """The later starts make the same release, and say only what they did; the status writes nothing."""
        first = start(ground).out
        lines(ground, "day-2/b.jsonl", 3)
        before = {path: path.stat().st_mtime_ns for path in ground.rglob("*")}
        assert "run-00001: 1 shard, 2 documents\nrun-00002 is due: 1 new shard" in status_of(ground)
        assert {path: path.stat().st_mtime_ns for path in ground.rglob("*")} == before
        second = start(ground).out
        assert ["Guarantee: " in told for told in (first, second)] == [True, False]
        assert all("content sha256 " in told for told in (first, second))
