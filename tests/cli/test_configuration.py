"""A configuration's values stay values, its paths begin where it lies, and a key in the wrong section is found."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

import corpusveil as cv
from corpusveil.cli import dataflow
from corpusveil.cli.derived import settings_of
from corpusveil.pipelines.run import steps
from corpusveil.pipelines.schedule import Plan
from corpusveil.pipelines.scheduled import schedule_of
from corpusveil.pipelines.scheduled import settings_of as settings_of_run
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.settings.fields import declared
from corpusveil.pipelines.settings.toml import read
from corpusveil.storage.inputs import InputShard
from tests.calls import QUIET, fails, refused, succeeds
from tests.cli.test_run import save, whole
from tests.engines.corpora import WORDS, make_space, release_files

OPTIONS = ("--accept-no-guarantee", "--test-key", "--keep=id", "-x", "--", "--debug", "--accept-no-guarantee://x")
PERMISSIONS = ("output.accept_no_guarantee", "key.test", "corpus.keep", "space.union")


class TestNoValueIsAnOption:
    def test_of_every_step_and_of_a_schedule(self, tmp_path: Path) -> None:
        """A step, and a run of a schedule, do what the file says, with the permissions in it."""
        (tmp_path / "public").mkdir()
        (tmp_path / "public" / "a.jsonl").write_text('{"text": "a"}\n')
        values = whole(tmp_path)
        document = read(save(tmp_path / "run.toml", values))
        assert [step.flow.name for step in steps(document)] == [
            "count",
            "score",
            "tokenize",
            "train",
            "space",
            "privatize",
        ]
        cv.Key.generate().save(tmp_path / "release.key")
        schedule = schedule_of(document)
        url = f"{tmp_path}/private/--accept-no-guarantee.jsonl"
        plan = Plan(1, (InputShard(url, "--accept-no-guarantee.jsonl", 1),), {"--accept-no-guarantee.jsonl": "new"})
        settings = settings_of_run(document, schedule, plan)
        assert settings.value("corpus.input") == [url]
        assert not any(settings.value(place) for place in PERMISSIONS)

    def test_one_that_is_given_is_seen(self, tmp_path: Path) -> None:
        """The test can fail: a permission that stands in the file is one."""
        values = whole(tmp_path)
        values["output"]["accept_no_guarantee"] = True
        settings = read(save(tmp_path / "run.toml", values)).settings
        assert any(settings.value(place) for place in PERMISSIONS)

    def test_of_a_template(self) -> None:
        """A parameter of the Flex Template is refused by its pattern."""
        for parameter in dataflow.parameters():
            for value in OPTIONS:
                with refused("wrong-value", f"Parameter {parameter.name}"):
                    parameter.value(value)


class TestBothCallers:
    """A rule stands once, and names settings as its caller does."""

    def given(self, **more: Any) -> dict[str, Any]:
        return {"input": ["in"], "space": "s", "output": "o", "mechanism": "ring-geometric", "epsilon": 1.0, **more}

    @pytest.mark.parametrize(("option", "value", "place", "code", "on_call", "in_file"), [
        ("master", "local", "engine.master", "conflicting-settings", ["--master", "--engine"], ["engine.name"]),
        ("average_words", 5.0, "budget.average_words", "conflicting-settings",
         ["--average-words", "--strategy", "--allocation"], ["budget.strategy", "budget.allocation"]),
        ("epsilon", -1.0, "budget.epsilon", "wrong-value", ["--epsilon -1.0"], ["= -1.0"]),
        ("weights", [2, 1], "budget.weights", "conflicting-settings", ["--weights", "--allocation"],
         ["budget.allocation"]),
        ("workers", 0, "engine.workers", "wrong-value", ["--workers 0"], ["= 0"]),
    ])  # fmt: skip
    def test_in_its_own_names(
        self, tmp_path: Path, option: str, value: Any, place: str, code: str, on_call: list[str],
        in_file: list[str],
    ) -> None:  # fmt: skip
        with refused(code, *on_call) as caught:
            settings_of("privatize", self.given(**{option: value}), [])
        assert place not in str(caught.value)
        values: dict[str, dict[str, Any]] = {
            "corpus": {"input": ["in"]}, "space": {"path": "s"}, "mechanism": {"name": "ring-geometric"},
            "budget": {"epsilon": 1.0}, "output": {"path": "o"},
        }  # fmt: skip
        section, key = place.split(".")
        values.setdefault(section, {})[key] = value
        file = save(tmp_path / "run.toml", values)
        with refused(code, f"{file}, {place}", *in_file) as caught:
            read(file)
        assert "--" not in str(caught.value)

    def test_the_two_are_one_tree(self, tmp_path: Path) -> None:
        """The same settings by options and by keys are equal."""
        file = save(tmp_path / "run.toml", {
            "corpus": {"input": ["in"]}, "space": {"path": "s"}, "mechanism": {"name": "ring-geometric", "beta": 0.01},
            "budget": {"epsilon": 1.0, "per": "document", "allocation": "position", "weights": [3, 3, 1]},
            "output": {"path": "o", "rows_per_task": 8192}, "key": {"test": True},
        })  # fmt: skip
        given = self.given(
            parameter=["beta=0.01"], per="document", allocation="position", weights="2:3,1", rows_per_task=8192,
            test_key=True,
        )  # fmt: skip
        assert settings_of("privatize", given, []) == read(file).written


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    """A release in a folder below the working folder, every path relative to its file."""
    folder = tmp_path / "releases" / "may"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.jsonl").write_text(json.dumps({"text": " ".join(WORDS[:9])}) + "\n")
    make_space(tmp_path / "releases" / "space")
    cv.Key.generate().save(folder / "release.key")
    values: dict[str, dict[str, Any]] = {
        "corpus": {"input": ["./in/*.jsonl"], "root": "in"},
        "space": {"path": "../space"},
        "mechanism": {"name": "ring-geometric"},
        "budget": {"epsilon": 1.0},
        "key": {"path": "release.key"},
        "ledger": {"path": "ledger"},
        "output": {"path": "out", "records": "records"},
        "schedule": {"state": "state", "prometheus": "metrics.prom"},
    }
    save(folder / "s.toml", values)
    return tmp_path


class TestPaths:
    @pytest.mark.parametrize("command", ["run", "plan", "schedule"])
    def test_begin_where_the_file_lies(self, ground: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
        """Whatever the working folder: nothing is read or written beside it."""
        (ground / "elsewhere").mkdir()
        monkeypatch.chdir(ground / "elsewhere")
        more = [] if command == "plan" else ["--progress", "none"]
        succeeds(command, "../releases/may/s.toml", *more)
        assert not list((ground / "elsewhere").iterdir())
        made = {path.name for path in (ground / "releases" / "may").iterdir()} - {"in", "s.toml", "release.key"}
        of_release = {"out", "records", "ledger"}
        expected = {"plan": set(), "run": of_release, "schedule": {*of_release, "state", "metrics.prom"}}
        assert made >= expected[command]
        assert command != "plan" or not made

    @pytest.mark.parametrize(
        "kind", ["cron", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("systemd", "airflow"))]
    )
    def test_mean_the_same_in_what_starts_a_schedule(
        self, ground: Path, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        """Written for a file in a subfolder, started from the root of the disk."""
        monkeypatch.chdir(ground)
        succeeds("schedule", "releases/may/s.toml", "--write", kind, "--to", "written")
        text = "\n".join(path.read_text() for path in (ground / "written").iterdir())
        assert "WorkingDirectory" not in text
        (line,) = (one for one in text.splitlines() if " schedule " in one.replace('"', " ") and "s.toml" in one)
        start = line.index("/")
        words = shlex.split(line[start:].split("{%")[0].rstrip('"')) if kind != "systemd" else shlex.split(line[10:])
        assert words[2] == str(ground / "releases" / "may" / "s.toml")
        done = subprocess.run(words[:5], cwd="/", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert (ground / "releases/may/out/run-00001/manifest.json").exists()

    def test_a_link_to_a_file_is_where_it_lies(self, ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """In the call and in what starts it alike."""
        (ground / "other").mkdir()
        (ground / "other" / "s.toml").symlink_to(ground / "releases" / "may" / "s.toml")
        monkeypatch.chdir(ground)
        assert read("other/s.toml").settings.value("output.path") == str(ground / "other" / "out")

    @pytest.mark.parametrize("path", ["/data/in", "s3://bucket/in", "~/in", "file:///data/in"])
    def test_of_other_kinds_stay(self, tmp_path: Path, path: str) -> None:
        values = whole(tmp_path)
        values["output"]["path"] = path
        assert read(save(tmp_path / "run.toml", values)).settings.value("output.path") == path

    def test_a_flow_that_was_moved_goes_on(self, tmp_path: Path) -> None:
        """What made an artefact is noted with paths as they are written, so a folder that holds all can be moved."""
        (tmp_path / "a" / "public").mkdir(parents=True)
        text = " ".join(WORDS[:6])
        (tmp_path / "a" / "public" / "a.jsonl").write_text(f'{{"text": "{text}"}}\n' * 9)
        flow = {"input": ["public"], "counts": "counts", "table": "table", "tokens": "tokens", "min_count": 1,
                "threshold": -100.0}  # fmt: skip
        save(tmp_path / "a" / "flow.toml", {"collocations": flow})
        succeeds("run", tmp_path / "a" / "flow.toml", "--only", "count", *QUIET)
        os.rename(tmp_path / "a", tmp_path / "b")
        succeeds("run", tmp_path / "b" / "flow.toml", "--only", "count", *QUIET)

    def test_every_key_that_names_a_place_is_one(self) -> None:
        """The kinds of the table: a path that stood as a text would begin at the working folder."""
        paths = {one.place for one in declared(Settings) if one.path}
        assert paths == {
            "audit.model", "audit.path", "budget.function_words", "budget.model", "collocations.add_to",
            "collocations.connectors", "collocations.counts", "collocations.input", "collocations.table",
            "collocations.tokens", "corpus.input", "corpus.root", "denoise.collocations", "denoise.model",
            "denoise.path", "denoise.release", "embeddings.vectors", "evaluate.collocations",
            "evaluate.counts", "evaluate.leaked_keys", "evaluate.original", "evaluate.path", "evaluate.private",
            "evaluate.second_private", "evaluate.vectors", "evaluate.words", "key.path", "ledger.path",
            "ledger.spill", "model.counts", "model.path", "output.log", "output.path", "output.records",
            "schedule.prometheus", "schedule.state", "space.counts", "space.harmless", "space.importance",
            "space.path", "space.sensitive", "space.vectors", "space.vocabulary", "spans.key", "text.collocations",
        }  # fmt: skip


class TestASpaceOfGivenVectors:
    def test_is_built_from_them(self, tmp_path: Path) -> None:
        """A file can begin at vectors; two embeddings are two lists; another start does nothing again."""
        for name in "ab":
            lines = [f"{word} {number}.5 {len(word)} {name == 'a':d}" for number, word in enumerate(WORDS[:20])]
            (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
        (tmp_path / "counts.tsv").write_text("".join(f"{word}\t3\n" for word in WORDS[:20]))
        space: dict[str, Any] = {"path": "space", "vectors": ["a.txt", "b.txt"], "counts": "counts.tsv", "seed": 2}
        file = save(tmp_path / "run.toml", {"space": space})
        succeeds("run", file, *QUIET)
        built = cv.load_space(str(tmp_path / "space"))
        assert len(built.lists) == 2
        assert built.counts is not None
        before = release_files(tmp_path / "space")
        assert f"{tmp_path}/space" in succeeds("run", file, *QUIET).err
        assert release_files(tmp_path / "space") == before
        (tmp_path / "b.txt").write_text((tmp_path / "a.txt").read_text() + "other 1 2 3\n")
        fails(["run", file, *QUIET], "output-in-use", f"{tmp_path}/space")

    def test_is_not_trained_as_well(self, tmp_path: Path) -> None:
        values = whole(tmp_path)
        values["space"]["vectors"] = ["a.txt"]
        with refused("conflicting-settings", "space.vectors", "[embeddings]"):
            read(save(tmp_path / "run.toml", values))


def test_an_unknown_key_is_looked_for_in_all_sections(tmp_path: Path) -> None:
    for section, name, nearest in (
        ("corpus", "epsilon", ["budget.epsilon"]), ("output", "gama", ["mechanism.gamma"]),
        ("corpus", "tokenizer", ["collocations.tokenizer", "text.tokenizer"]),
        ("budget", "gamma", ["mechanism.gamma"]), ("space", "vectors_", ["vectors?"]),
    ):  # fmt: skip
        values = whole(tmp_path)
        values[section][name] = 1.0
        with refused("unknown-name", f"{section}.{name}", *nearest):
            read(save(tmp_path / "run.toml", values))
    (tmp_path / "run.toml").write_text("epsilon = 1.0\n")
    with refused("unknown-name", "epsilon", "budget.epsilon"):
        read(str(tmp_path / "run.toml"))
