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
from corpusveil.cli import dataflow, main
from corpusveil.cli.configuration import SECTIONS, read_configuration
from corpusveil.cli.main import run
from corpusveil.cli.schedule import _arguments, _schedule
from corpusveil.cli.steps import behind, engine_arguments, privatize_arguments, steps
from corpusveil.errors import UserError
from corpusveil.jobs.schedule import Plan
from corpusveil.storage.inputs import InputShard
from tests.cli.test_run import save, whole
from tests.engines.corpora import WORDS, make_space

OPTIONS = ("--accept-no-guarantee", "--test-key", "--keep=id", "-x", "--", "--debug", "--accept-no-guarantee://x")
TEXTS = [
    (section, name) for section, kinds in SECTIONS.items() for name, kind in kinds.items()
    if kind.name in ("text", "texts", "path", "paths", "options")
]  # fmt: skip


def parsed(command: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Return what a command line of ours comes to: its options, and what goes to Beam."""
    own, passed, debug = main.split_arguments(command)
    context = main.command(own[0]).make_context(own[0], own[1:], resilient_parsing=False)
    return {**context.params, "debug": debug}, passed


class TestNoValueIsAnOption:
    @pytest.mark.parametrize("value", OPTIONS)
    @pytest.mark.parametrize(("section", "name"), TEXTS, ids=".".join)
    def test_of_any_key(self, tmp_path: Path, section: str, name: str, value: str) -> None:
        """Refused by file and key; options for the Beam runner go to it and nowhere else."""
        values = whole(tmp_path)
        if section == "engine":
            values["engine"] = {"name": "beam"}
        plain = values.get(section, {}).get(name)
        values[section][name] = [value] if SECTIONS[section][name].name in ("texts", "paths", "options") else value
        file = save(tmp_path / "run.toml", values)
        if name != "options":
            with pytest.raises(UserError) as told:
                read_configuration(file)
            assert str(told.value).startswith(f"{file}, {section}.{name} = ")
            return
        configuration = read_configuration(file)
        values["engine"] = {"name": "beam"} | ({} if plain is None else {"options": plain})
        without = read_configuration(save(tmp_path / "plain.toml", values))
        for made in (configuration, without):
            assert parsed(["privatize", *privatize_arguments(made), *engine_arguments(made)])[0]["test_key"] is False
        before, _ = parsed(["privatize", *privatize_arguments(without), *engine_arguments(without)])
        after, passed = parsed(
            ["privatize", *privatize_arguments(configuration), *engine_arguments(configuration), *behind(configuration)]
        )
        assert after == before
        assert passed == [value]

    @pytest.mark.parametrize("value", OPTIONS)
    def test_among_others(self, tmp_path: Path, value: str) -> None:
        """Second in a list, as it was found."""
        values = whole(tmp_path)
        values["corpus"]["input"].append(value)
        with pytest.raises(UserError, match=r"corpus\.input = "):
            read_configuration(save(tmp_path / "run.toml", values))

    def test_of_every_step_and_of_a_schedule(self, tmp_path: Path) -> None:
        """Every command that is composed parses to what the file says; flags are those that are true in it."""
        (tmp_path / "public").mkdir()
        (tmp_path / "public" / "a.jsonl").write_text('{"text": "a"}\n')
        values = whole(tmp_path)
        configuration = read_configuration(save(tmp_path / "run.toml", values))
        for step in steps(configuration):
            found, passed = parsed(step.command)
            assert passed == []
            assert not [name for name, value in found.items() if value is True], step.name
        cv.Key.generate().save(tmp_path / "release.key")
        schedule = _schedule(configuration)
        url = f"{tmp_path}/private/--accept-no-guarantee.jsonl"
        plan = Plan(1, (InputShard(url, "--accept-no-guarantee.jsonl", 1),), {"--accept-no-guarantee.jsonl": "new"})
        found, _ = parsed(["privatize", *_arguments(configuration, schedule, plan)])
        assert found["inputs"] == [url]
        assert found["accept_no_guarantee"] is False

    @pytest.mark.parametrize("value", OPTIONS)
    @pytest.mark.parametrize("name", [one.name for one in dataflow.parameters()])
    def test_of_a_template(self, name: str, value: str) -> None:
        """A parameter of the Flex Template is refused by its pattern."""
        (parameter,) = (one for one in dataflow.parameters() if one.name == name)
        with pytest.raises(UserError, match=f"Parameter {name}"):
            parameter.words(value)


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
        assert run([command, "../releases/may/s.toml", *more]) == 0
        assert not list((ground / "elsewhere").iterdir())
        made = {path.name for path in (ground / "releases" / "may").iterdir()} - {"in", "s.toml", "release.key"}
        of_release = {"out", "records", "ledger"}
        expected = {"plan": set(), "run": of_release, "schedule": {*of_release, "state", "metrics.prom"}}
        assert made >= expected[command]
        assert command != "plan" or not made

    @pytest.mark.parametrize("kind", ["cron", "systemd", "airflow"])
    def test_mean_the_same_in_what_starts_a_schedule(
        self, ground: Path, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        """Written for a file in a subfolder, started from the root of the disk."""
        monkeypatch.chdir(ground)
        assert run(["schedule", "releases/may/s.toml", "--write", kind, "--to", "written"]) == 0
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
        assert read_configuration("other/s.toml").values["output"]["path"] == str(ground / "other" / "out")

    @pytest.mark.parametrize("path", ["/data/in", "s3://bucket/in", "~/in", "file:///data/in"])
    def test_of_other_kinds_stay(self, tmp_path: Path, path: str) -> None:
        values = whole(tmp_path)
        values["output"]["path"] = path
        assert read_configuration(save(tmp_path / "run.toml", values)).values["output"]["path"] == path

    def test_a_flow_that_was_moved_goes_on(self, tmp_path: Path) -> None:
        """What made an artefact is noted with paths as they are written, so a folder that holds all can be moved."""
        (tmp_path / "a" / "public").mkdir(parents=True)
        text = " ".join(WORDS[:6])
        (tmp_path / "a" / "public" / "a.jsonl").write_text(f'{{"text": "{text}"}}\n' * 9)
        flow = {"input": ["public"], "counts": "counts", "table": "table", "tokens": "tokens", "min_count": 1,
                "threshold": -100.0}  # fmt: skip
        save(tmp_path / "a" / "flow.toml", {"collocations": flow})
        assert run(["run", str(tmp_path / "a" / "flow.toml"), "--only", "count", "--progress", "none"]) == 0
        os.rename(tmp_path / "a", tmp_path / "b")
        assert run(["run", str(tmp_path / "b" / "flow.toml"), "--only", "count", "--progress", "none"]) == 0

    def test_every_key_that_names_a_place_is_one(self) -> None:
        """The kinds of the table: a path that stood as a text would begin at the working folder."""
        paths = {
            f"{s}.{n}" for s, kinds in SECTIONS.items() for n, kind in kinds.items() if kind.name.startswith("path")
        }
        assert paths == {
            "corpus.input", "corpus.root", "space.path", "space.vectors", "space.counts", "space.vocabulary",
            "space.importance", "text.collocations", "key.path", "ledger.path", "output.path", "output.records",
            "schedule.state", "schedule.prometheus", "collocations.input", "collocations.counts", "collocations.table",
            "collocations.tokens", "collocations.connectors", "embeddings.vectors",
        }  # fmt: skip


class TestASpaceOfGivenVectors:
    def test_is_built_from_them(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A file can begin at vectors; two embeddings are two lists; another start does nothing again."""
        for name in "ab":
            lines = [f"{word} {number}.5 {len(word)} {name == 'a':d}" for number, word in enumerate(WORDS[:20])]
            (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
        (tmp_path / "counts.tsv").write_text("".join(f"{word}\t3\n" for word in WORDS[:20]))
        space: dict[str, Any] = {"path": "space", "vectors": ["a.txt", "b.txt"], "counts": "counts.tsv", "seed": 2}
        file = save(tmp_path / "run.toml", {"space": space})
        assert run(["run", file, "--progress", "none"]) == 0
        built = cv.load_space(str(tmp_path / "space"))
        assert len(built.lists) == 2
        assert built.counts is not None
        capsys.readouterr()
        assert run(["run", file, "--progress", "none"]) == 0
        assert "space is there already" in capsys.readouterr().err
        (tmp_path / "b.txt").write_text((tmp_path / "a.txt").read_text() + "other 1 2 3\n")
        assert run(["run", file, "--progress", "none"]) == 2
        assert "other settings or another corpus" in capsys.readouterr().err

    def test_is_not_trained_as_well(self, tmp_path: Path) -> None:
        values = whole(tmp_path)
        values["space"]["vectors"] = ["a.txt"]
        with pytest.raises(UserError, match=r"space\.vectors: \[embeddings\] trains the vectors"):
            read_configuration(save(tmp_path / "run.toml", values))


@pytest.mark.parametrize(("section", "name", "said"), [
    ("corpus", "epsilon", "did you mean budget.epsilon?"),
    ("corpus", "tokenizer", "did you mean text.tokenizer or collocations.tokenizer?"),
    ("output", "gama", "did you mean mechanism.gamma?"),
    ("budget", "gamma", "did you mean mechanism.gamma?"),
    ("space", "vectors_", "did you mean vectors?"),
])  # fmt: skip
def test_an_unknown_key_is_looked_for_in_all_sections(tmp_path: Path, section: str, name: str, said: str) -> None:
    values = whole(tmp_path)
    values[section][name] = 1.0
    with pytest.raises(UserError) as told:
        read_configuration(save(tmp_path / "run.toml", values))
    assert f"{section}.{name}: there is no such key; {said}" in str(told.value)


def test_a_key_outside_of_sections_is_told_where_it_belongs(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("epsilon = 1.0\n")
    with pytest.raises(UserError, match=r"epsilon: a key stands in a section; did you mean budget\.epsilon\?"):
        read_configuration(str(tmp_path / "run.toml"))
