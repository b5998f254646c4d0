"""``corpusveil schedule``: each start releases what came in since the last one, once."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

import corpusveil as cv
from corpusveil.errors import WorkError
from corpusveil.pipelines import schedule_state
from corpusveil.storage import files, lease
from corpusveil.transforms.release import corpus
from tests.calls import QUIET, Ended, command, fails, succeeds
from tests.cli.test_run import save
from tests.engines.corpora import COMMAND, HANG_SECONDS, WORDS, make_space, release_files


def lines(folder: Path, name: str, *documents: int) -> None:
    """Write a shard; a number stands for a document of seven words, with itself as id."""
    path = folder / "in" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [" ".join(WORDS[(7 * one + k) % len(WORDS)] for k in range(7)) for one in documents]
    path.write_text(
        "".join(json.dumps({"key": one, "text": t}) + "\n" for one, t in zip(documents, texts, strict=True))
    )


def touch(folder: Path, name: str) -> None:
    """Give a shard another time without another content."""
    path = folder / "in" / name
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 10**9))


def settings(folder: Path) -> dict[str, dict[str, Any]]:
    return {
        "corpus": {"input": [f"{folder}/in"], "id": "key", "name": "news"},
        "space": {"path": f"{folder}/space"},
        "mechanism": {"name": "ring-geometric"},
        "budget": {"epsilon": 1.0},
        "key": {"path": f"{folder}/release.key"},
        "ledger": {"path": f"{folder}/ledger", "unit": ["key"]},
        "output": {"path": f"{folder}/out", "records": f"{folder}/records"},
        "schedule": {"prometheus": f"{folder}/metrics.prom"},
    }


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    make_space(tmp_path / "space")
    cv.Key.generate().save(tmp_path / "release.key")
    lines(tmp_path, "day-1/a.jsonl", 1, 2)
    save(tmp_path / "s.toml", settings(tmp_path))
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
    assert ledger.verify([folder / f"records/run-{number:05d}" for number in runs]).differences == ()
    return sum(line["documents"] for line in ledger.spent().releases)


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (folder / "out.schedule" / "metrics.jsonl").read_bytes().splitlines()]


def samples(folder: Path) -> dict[str, float]:
    """Return the metrics for Prometheus, read by its own parser, by their names without the prefix."""
    families = text_string_to_metric_families((folder / "metrics.prom").read_text())
    return {one.name.removeprefix("corpusveil_schedule_"): one.value for family in families for one in family.samples}


def test_a_run_that_nobody_waits_for_is_refused(ground: Path) -> None:
    """A schedule notes what a run did, so it can't begin one and leave it."""
    engine = {"engine": {"name": "beam", "options": ["--no_wait_until_finish"]}}
    fails(["schedule", save(ground / "s.toml", settings(ground) | engine), *QUIET], "wrong-value", "engine.options")


class TestWhatIsNew:
    def test_is_released_once(self, ground: Path) -> None:
        """New shards make a release of their own; without any there is none."""
        start(ground)
        assert "there is nothing new" in start(ground).out
        lines(ground, "day-2/b.jsonl", 3)
        lines(ground, "day-2/c.jsonl", 4, 5)
        start(ground)
        start(ground)
        assert [len(released(ground, k)) for k in (1, 2, 3)] == [1, 2, 0]
        manifest = orjson.loads((ground / "out/run-00002/manifest.json").read_bytes())
        assert manifest["documents"] == 3
        assert [(line["run"], line.get("new"), line["status"]) for line in metrics(ground)] == [
            (1, 1, 0), (None, None, 0), (2, 2, 0), (None, None, 0),
        ]  # fmt: skip

    def test_each_release_is_that_of_privatize(self, ground: Path) -> None:
        """The same bytes as one call over the same shards under the same key."""
        start(ground)
        lines(ground, "day-2/b.jsonl", 3)
        start(ground)
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
        start(ground)
        first = (ground / "out/run-00001/data/part-00000-of-00001.jsonl").read_text().splitlines()
        again = (ground / "out/run-00002/data/part-00000-of-00001.jsonl").read_text().splitlines()
        assert again[:2] == first
        assert len(again) == 3
        assert metrics(ground)[-1]["changed"] == 1
        assert counted(ground, 1, 2) == 3

    @pytest.mark.parametrize("compare", ["stamp", "content"])
    def test_a_touched_shard_is_none(self, ground: Path, compare: str) -> None:
        """Another time, equal content: nothing is released, and the next start does not even read it."""
        values = settings(ground)
        values["schedule"]["compare"] = compare
        save(ground / "s.toml", values)
        start(ground)
        touch(ground, "day-1/a.jsonl")
        start(ground)
        start(ground)
        assert [line["run"] for line in metrics(ground)] == [1, None, None]

    def test_identities_do_not_depend_on_what_else_is_new(self, ground: Path) -> None:
        """Without ids, equal names in different folders stay different documents, in whatever run they come."""
        values = settings(ground)
        del values["corpus"]["id"]
        save(ground / "s.toml", values)
        lines(ground, "day-1/a.jsonl", 1, 1)
        start(ground)
        lines(ground, "day-2/a.jsonl", 1, 1)
        start(ground)
        texts = [text for k in (1, 2) for part in released(ground, k).values() for text in part.splitlines()]
        assert len(texts) == len(set(texts)) == 4

    def test_an_empty_corpus_is_an_error_only_at_first(self, ground: Path) -> None:
        """A folder that was never filled is a typing error; one that was emptied has nothing new."""
        start(ground)
        (ground / "in/day-1/a.jsonl").unlink()
        start(ground)
        values = settings(ground)
        values["corpus"]["input"] = [f"{ground}/none"]
        values["output"]["path"] = f"{ground}/other"
        save(ground / "s.toml", values)
        assert "this matches no file" in start(ground, 2).err


class TestStartedTwice:
    @pytest.mark.nightly
    def test_one_does_it_and_the_other_says_so(self, ground: Path) -> None:
        """Two processes at once: one release, one message, and both end well."""
        for k in range(8):
            lines(ground, f"day-1/{k}.jsonl", *range(20 * k, 20 * k + 20))
        words = [*COMMAND, "schedule", str(ground / "s.toml"), *QUIET]
        both = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        said = [process.communicate(timeout=HANG_SECONDS) for process in both]
        assert [process.returncode for process in both] == [0, 0]
        others = [error for _, error in said if "another run is in progress" in error]
        later = [out for out, _ in said if "there is nothing new" in out]
        assert len(others) + len(later) == 1
        assert sorted(path.name for path in (ground / "out").iterdir()) == ["run-00001", "run-00001.report.html"]

    def test_the_other_touches_nothing(self, ground: Path) -> None:
        held = lease.take(f"{ground}/out.schedule/lease")
        assert isinstance(held, lease.Lease)
        with held:
            assert "nothing was done" in start(ground).err
            assert not (ground / "out").exists()
        start(ground)
        assert (ground / "out/run-00001/manifest.json").exists()


class TestKilled:
    @pytest.mark.parametrize("step", range(24))
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
        assert {path.name for path in (ground / "out").iterdir()} == {done[0].name, f"{done[0].name}.report.html"}
        assert counted(ground, int(done[0].name[-5:])) == 4
        assert metrics(ground)[-1] | {"run": None} == metrics(ground)[-1]

    def test_a_run_whose_shards_are_gone_is_given_up(self, ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its other shards are released by the next one, as the status says before, and nothing half-done stays."""

        def failing(*_: Any) -> Any:
            raise WorkError("the disk is full")

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


class TestRefused:
    def test_another_configuration_spends_nothing(self, ground: Path) -> None:
        """A changed mechanism, budget or key is no continuation; nothing is drawn or entered."""
        start(ground)
        lines(ground, "day-2/b.jsonl", 3)
        values = settings(ground)
        values["budget"]["epsilon"] = 2.0
        save(ground / "s.toml", values)
        before = release_files(ground / "ledger")
        said = start(ground, 2).err
        assert f"{ground}/s.toml: budget.epsilon was 1.0 and is 2.0. Set this as before to continue" in said
        assert "another output.path" in said
        assert "only_release" not in said
        assert release_files(ground / "ledger") == before
        assert released(ground, 2) == {}
        assert metrics(ground)[-1]["status"] == 2
        save(ground / "s.toml", settings(ground))
        start(ground)
        assert len(released(ground, 2)) == 1

    @pytest.mark.parametrize(
        ("section", "name", "value", "said"),
        [
            ("mechanism", "beta", 0.01, "mechanism.beta was 0.001 and is 0.01"),
            ("text", "case", "restore", 'text.case was "lower" and is "restore"'),
            ("output", "duplicates", "drop", 'output.duplicates was not set and is "drop"'),
            ("key", "path", "other.key", "the fingerprint of the key was "),
            ("space", "path", "other", "the digest of space.path was "),
        ],
    )
    def test_a_changed_setting_is_named_with_both_values(
        self, ground: Path, section: str, name: str, value: Any, said: str
    ) -> None:
        make_space(ground / "other", seed=1)
        cv.Key.generate().save(ground / "other.key")
        start(ground)
        lines(ground, "day-2/b.jsonl", 3)
        values = settings(ground)
        values.setdefault(section, {})[name] = str(ground / value) if name == "path" else value
        save(ground / "s.toml", values)
        err = start(ground, 2).err
        assert f"{ground}/s.toml: {said}" in err
        assert err.count(" was ") == 1
        (ground / "out").rename(ground / "published")  # what the earlier runs were made with is gone
        assert "is not that of the earlier runs" in start(ground, 2).err

    def test_a_cap_stops_a_run_until_it_is_raised(self, ground: Path) -> None:
        """The run stays due; the sentence says what was spent."""
        values = settings(ground)
        values["ledger"]["cap"] = 6.0
        save(ground / "s.toml", values)
        said = start(ground, 2).err
        assert "cap 6: one value of key would have spent 7" in said
        assert not (ground / "out").exists()
        status = status_of(ground)
        assert "run-00001: refused: cap 6: one value of key would have spent 7" in status
        assert status.split("refused: ")[1].splitlines()[0] in said
        assert status.count("cap 6: ") == 1
        assert ". Correct this and start the schedule again.\n" in status
        assert "refused" not in (ground / "metrics.prom").read_text()
        values["ledger"]["cap"] = 8.0
        save(ground / "s.toml", values)
        start(ground)
        assert len(released(ground, 1)) == 1
        assert "run-00001: 1 shard, 2 documents" in status_of(ground)

    def test_a_run_that_failed_says_why(self, ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Failed work differs from refused work; an unexpected error has no sentence, and is recorded as failed."""
        for error, said in ((WorkError("The disk is full."), "failed: The disk is full."), (KeyError(), "begun, not")):

            def fail(*_: object, error: Exception = error, **__: object) -> None:
                raise error

            with monkeypatch.context() as patch:
                patch.setattr("corpusveil.transforms.release.corpus.Run.privatize", fail)
                start(ground, 1)
            assert metrics(ground)[-1]["status"] == 1
            status = status_of(ground)
            assert f"run-00001: {said}" in status
            assert "the last start failed, " in status
            assert ("Correct this" in status) == isinstance(error, WorkError)
            assert ("start the schedule again in debug mode" in status) == isinstance(error, KeyError)

    def test_a_start_that_failed_before_any_run_says_why(self, ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where nothing could be planned there is no run that could say it."""

        def fail(*_: object, **__: object) -> None:
            raise WorkError("The store is away.")

        with monkeypatch.context() as patch:
            patch.setattr("corpusveil.pipelines.schedule.find_shards", fail)
            start(ground, 1)
        assert "The store is away. Correct this and start the schedule again.\n" in status_of(ground)
        start(ground)
        assert "the last start failed" not in status_of(ground)

    @pytest.mark.parametrize(("section", "said"), [("key", "[key]"), ("output", "[output]")])
    def test_without_what_it_needs(self, ground: Path, section: str, said: str) -> None:
        values = settings(ground)
        del values[section]
        save(ground / "s.toml", values)
        (sentence,) = start(ground, 2).err.splitlines()
        assert said in sentence


class TestABadShard:
    """It is left out and said, the others are released, and it comes again when it changes."""

    @pytest.fixture(params=["no ledger", "a ledger", "a ledger, split"])
    def ground(self, ground: Path, request: pytest.FixtureRequest) -> Path:
        values = settings(ground)
        if request.param == "no ledger":
            del values["ledger"]
        if "split" in request.param:
            values["output"]["rows_per_task"] = 8192
        save(ground / "s.toml", values)
        lines(ground, "day-1/c.jsonl", 3)
        (ground / "in/day-1/b.jsonl").write_text("no json\n")
        return ground

    def test_is_left_out_and_told(self, ground: Path) -> None:
        said = start(ground, 2).err
        assert f"corpusveil: {ground}/in/day-1/b.jsonl, row 1: " in said
        assert "The shard is left out until it changes." in said
        assert len(released(ground, 2)) == 2
        assert not (ground / "out/run-00001").exists()
        manifest = orjson.loads((ground / "out/run-00002/manifest.json").read_bytes())
        assert manifest["documents"] == 3
        said = start(ground)
        assert "there is nothing new" in said.out
        assert f"left out: {ground}/in/day-1/b.jsonl, row 1" in said.err
        assert f"\nleft out: {ground}/in/day-1/b.jsonl, row 1" in status_of(ground)
        assert "corpusveil_schedule_left_out_shards 1" in (ground / "metrics.prom").read_text()

    def test_status_metrics_and_the_next_start_tell_one_story(self, ground: Path) -> None:
        """Of a start among good shards, of one with nothing else, and of one after the shard was removed."""

        def told() -> tuple[list[str], dict[str, float]]:
            return status_of(ground).splitlines(), samples(ground)

        start(ground, 2)
        status, figures = told()
        assert status[:2] == [
            "run-00001: abandoned: 1 of its 3 shards could not be used", "run-00002: 2 shards, 3 documents",
        ]  # fmt: skip
        assert any(line.startswith("the last start left out 1 unusable shard,") for line in status)
        assert status[-1] == "nothing is due"
        assert (figures["last_status"], figures["left_out_shards"], figures["shards_total"]) == (2, 1, 2)
        assert "last_success_timestamp_seconds" not in figures
        (ground / "in/day-1/d.jsonl").write_text("nor this\n")
        start(ground, 2)
        status, figures = told()
        assert "run-00003: abandoned: its only shard could not be used" in status
        assert sum(line.startswith("left out: ") for line in status) == figures["left_out_shards"] == 2
        for name in "bd":
            (ground / f"in/day-1/{name}.jsonl").unlink()
        start(ground)
        status, figures = told()
        assert not any("left out" in line for line in status)
        assert (figures["last_status"], figures["left_out_shards"]) == (0, 0)
        assert len(metrics(ground)) == 3

    def test_is_named_by_later_starts_with_other_work(self, ground: Path) -> None:
        """Once each, and each line of metrics counts it: also that of a start that had nothing to do."""
        assert "left out: " not in start(ground, 2).err
        lines(ground, "day-2/d.jsonl", 4)
        for _ in range(2):
            assert start(ground).err.count(f"left out: {ground}/in/day-1/b.jsonl, row 1") == 1
        assert [(line["run"], line["status"], line["left_out"]) for line in metrics(ground)] == [
            (2, 2, 1), (3, 0, 1), (None, 0, 1),
        ]  # fmt: skip

    def test_still_counts_after_a_start_that_was_refused(self, ground: Path) -> None:
        """A refused setting says nothing of the shard; with the setting as before, it stays out of what was planned."""
        start(ground, 2)
        before = (ground / "s.toml").read_text()
        lines(ground, "day-2/d.jsonl", 4)
        assert "epsilon = 1.0" in before
        (ground / "s.toml").write_text(before.replace("epsilon = 1.0", "epsilon = 2.0"))
        start(ground, 2)
        assert samples(ground)["left_out_shards"] == metrics(ground)[-1]["left_out"] == 1
        (ground / "s.toml").write_text(before)
        status = status_of(ground)
        assert f"\nleft out: {ground}/in/day-1/b.jsonl, row 1" in status
        assert "run-00003 will be abandoned: 1 of its 2 shards could not be used\nrun-00004 is due: 1 new" in status
        assert f"left out: {ground}/in/day-1/b.jsonl, row 1" in start(ground).err
        assert (len(released(ground, 4)), samples(ground)["left_out_shards"]) == (1, 1)

    def test_of_a_release_on_the_demo_space_is_not_due(self, ground: Path) -> None:
        """A start puts a folder in place of the name; status, which unpacks nothing, knows the shard, too."""
        written = (ground / "s.toml").read_text()
        (ground / "s.toml").write_text(written.replace(f"{ground}/space", "demo"))
        start(ground, 2)
        start(ground)
        said = status_of(ground)
        assert f"\nleft out: {ground}/in/day-1/b.jsonl, row 1" in said
        assert said.endswith("nothing is due\n")

    def test_comes_again_when_it_changes(self, ground: Path) -> None:
        start(ground, 2)
        touch(ground, "day-1/b.jsonl")
        start(ground)
        assert released(ground, 3) == {}
        lines(ground, "day-1/b.jsonl", 9)
        start(ground)
        assert len(released(ground, 3)) == 1
        assert "left out" not in start(ground).err

    def test_comes_again_when_the_settings_change(self, ground: Path) -> None:
        lines(ground, "day-1/b.jsonl", 9)
        with (ground / "in/day-1/b.jsonl").open("a") as file:
            file.write("no json\n")
        start(ground, 2)
        values = settings(ground)
        if "ledger" not in (ground / "s.toml").read_text():
            del values["ledger"]
        values["output"]["on_bad_rows"] = "quarantine"
        save(ground / "s.toml", values)
        start(ground)
        assert len(released(ground, 3)) == 1
        assert samples(ground)["left_out_shards"] == 0

    def test_alone_makes_no_release(self, ground: Path) -> None:
        for name in ("a", "c"):
            (ground / f"in/day-1/{name}.jsonl").unlink()
        start(ground, 2)
        start(ground)
        assert list((ground / "out").glob("*")) == []

    def test_spends_nothing_twice(self, ground: Path) -> None:
        """The others are drawn as they would have been: the ledger counts them once."""
        start(ground, 2)
        if (ground / "ledger").exists():
            assert counted(ground, 2) == 3


class TestManyRuns:
    """A start reads a summary, and no file of an earlier run."""

    def test_take_no_longer_to_start_after(self, ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        read = Counter[str]()

        def counted(url: str, real: Any = files.read_if_there) -> bytes | None:
            read["runs" if "/runs/" in url else "all"] += 1
            return real(url)

        for number in range(1, 61):
            plan = {"shards": [[f"{ground}/in/{number}.jsonl", f"{number}.jsonl", 3, "1"]], "why": {}}
            done = {"shards": {f"{number}.jsonl": [3, "1", "00"]}, "documents": 2, "tokens": 9}
            for kind, content in (("plan", plan), ("done", done)):
                files.write_bytes(f"{ground}/out.schedule/runs/{number:05d}.{kind}.json", orjson.dumps(content))
        start(ground)
        monkeypatch.setattr(files, "read_if_there", counted)
        start(ground)
        assert read["runs"] == 0
        assert read["all"] < 20
        assert (samples(ground)["shards_total"], samples(ground)["documents_total"]) == (61, 122)
        assert status_of(ground).startswith("41 earlier runs; 61 shards, 122 documents in all\nrun-00042: 1 shard")

    @pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_text("{")])
    def test_the_summary_is_made_again(self, ground: Path, harm: Any) -> None:
        start(ground)
        lines(ground, "day-2/b.jsonl", 3)
        start(ground)
        kept = ground / "out.schedule/summary.json"
        before = kept.read_bytes()
        harm(kept)
        start(ground)
        assert kept.read_bytes() == before
        assert samples(ground)["documents_total"] == 3


class TestAShardThatIsBeingWritten:
    def test_waits_until_it_has_settled(self, ground: Path) -> None:
        """By its store's time of modification; one that was written before is released now."""
        values = settings(ground)
        values["schedule"]["settle"] = "10m"
        save(ground / "s.toml", values)
        os.utime(ground / "in/day-1/a.jsonl", (0, time.time() - 700))
        lines(ground, "day-2/b.jsonl", 3)
        assert "1 shard was written too recently" in start(ground).err
        assert "1 shard waits until it is 10m old\nnothing is due" in status_of(ground)
        assert (len(released(ground, 1)), released(ground, 2)) == (1, {})
        os.utime(ground / "in/day-2/b.jsonl", (0, time.time() - 700))
        start(ground)
        assert len(released(ground, 2)) == 1

    def test_an_age_that_is_none_is_refused(self, ground: Path) -> None:
        values = settings(ground)
        values["schedule"]["settle"] = "ten minutes"
        save(ground / "s.toml", values)
        assert "schedule.settle" in start(ground, 2).err


class TestDamagedRecords:
    """A finished run is finished again from its plan; a shard is never released twice."""

    @pytest.mark.parametrize("harm", ["removed", "damaged"])
    @pytest.mark.parametrize("which", ["done", "shards", "both"])
    def test_what_was_released_is_not_released_again(self, ground: Path, harm: str, which: str) -> None:
        """Also of a run that others followed: its shards seemed new."""
        start(ground)
        lines(ground, "day-2/b.jsonl", 3)
        start(ground)
        before = release_files(ground / "out")
        (ground / "out.schedule/summary.json").unlink()
        harmed = [] if which == "shards" else [ground / "out.schedule/runs/00001.done.json"]
        harmed += [] if which == "done" else list((ground / "records/run-00001/shards").iterdir())
        for path in harmed:
            if harm == "damaged":
                path.write_text(path.read_text()[:-20])
            else:
                path.unlink()
        start(ground)
        start(ground)
        assert release_files(ground / "out") == before
        lines(ground, "day-3/c.jsonl", 4)
        start(ground)
        assert len(released(ground, 3)) == 1

    def test_what_changed_since_is_a_further_release(self, ground: Path) -> None:
        start(ground)
        (ground / "out.schedule/summary.json").unlink()
        (ground / "out.schedule/runs/00001.done.json").unlink()
        for path in (ground / "records/run-00001/shards").iterdir():
            path.unlink()
        lines(ground, "day-1/a.jsonl", 1, 2, 7)
        start(ground)
        assert metrics(ground)[-1]["changed"] == 1
        assert len(released(ground, 2)) == 1

    def test_a_damaged_plan_of_a_run_that_is_not_done_is_not_to_be_removed(self, ground: Path) -> None:
        start(ground)
        (ground / "out.schedule/summary.json").unlink()
        (ground / "out.schedule/runs/00001.done.json").unlink()
        (ground / "out.schedule/runs/00001.plan.json").write_text("{")
        said = start(ground, 2).err
        assert "this plan of a run is damaged; restore it from a copy" in said
        assert "remove" not in said


class TestWhatItTells:
    def test_the_guarantee_once_a_release(self, ground: Path) -> None:
        """The later starts of a schedule make the same release, and say only what they did."""
        said = []
        for number in (1, 2, 3):
            lines(ground, f"day-{number}/a.jsonl", 2 * number, 2 * number + 1)
            said.append(start(ground).out)
        assert ["Guarantee: " in told for told in said] == [True, False, False]
        assert all("content sha256 " in told for told in said)

    def test_status_writes_nothing(self, ground: Path) -> None:
        start(ground)
        lines(ground, "day-2/b.jsonl", 3)
        before = {path: path.stat().st_mtime_ns for path in ground.rglob("*")}
        assert "run-00001: 1 shard, 2 documents\nrun-00002 is due: 1 new shard" in status_of(ground)
        assert {path: path.stat().st_mtime_ns for path in ground.rglob("*")} == before

    def test_prometheus_reads_the_metrics(self, ground: Path) -> None:
        """Totals grow, and a failure shows."""
        start(ground)
        lines(ground, "day-2/b.jsonl", 3)
        start(ground)
        found = samples(ground)
        assert found["documents_total"] == 3
        assert found["runs_total"] == found["shards_total"] == 2
        assert found["last_status"] == 0
        (ground / "in/day-3").mkdir()
        (ground / "in/day-3/c.jsonl").write_text("no json\n")
        start(ground, 2)
        later = samples(ground)
        assert later["last_status"] == 2
        assert later["last_success_timestamp_seconds"] == found["last_success_timestamp_seconds"]

    def test_the_error_of_a_run_comes_before_that_of_its_metrics(self, ground: Path) -> None:
        """A folder that cannot be made is an error after a release, and a warning beside a run's own error."""
        (ground / "file").touch()
        values = settings(ground)
        values["schedule"]["prometheus"] = f"{ground}/file/metrics.prom"
        values["ledger"]["cap"] = 6.0
        save(ground / "s.toml", values)
        *_, warning, error = start(ground, 2).err.splitlines()
        assert f"warning: {ground}/file" in warning
        assert "corpusveil: cap 6" in error
        values["ledger"]["cap"] = 8.0
        save(ground / "s.toml", values)
        assert f"corpusveil: {ground}/file" in start(ground, 2).err
        assert len(released(ground, 1)) == 1

    def test_metrics_are_those_of_the_last_starts(self, ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """And of the last success, however long ago."""
        monkeypatch.setattr(schedule_state, "MOST_LINES", 3)
        start(ground)
        lines(ground, "day-2/b.jsonl", 3)
        values = settings(ground)
        values["budget"]["epsilon"] = 2.0
        save(ground / "s.toml", values)
        for _ in range(4):
            start(ground, 2)
        assert [line["status"] for line in metrics(ground)] == [0, 2, 2]
        assert "last_success_timestamp_seconds" in samples(ground)

    def test_its_state_is_for_its_owner(self, ground: Path) -> None:
        """It names input files and holds digests of them: mode 0600, and marked as private."""
        start(ground)
        kept = [path for path in (ground / "out.schedule").rglob("*") if path.is_file()]
        assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
        assert all("DO NOT PUBLISH" in path.read_text() for path in kept if path.parent.name == "runs")
