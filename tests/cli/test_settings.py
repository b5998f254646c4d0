"""One tree: its schema, its template and its reference say what the settings are, and cannot say anything else."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusveil.cli import main
from corpusveil.cli.run import STEPS
from corpusveil.pipelines.fields import declared
from corpusveil.pipelines.flows import FLOWS, commands, options_of
from corpusveil.pipelines.settings import Settings, toml
from scripts import settings_page
from tests.calls import fails, succeeds
from tests.cli.test_run import EXAMPLE, whole
from tests.engines.corpora import ROOT

ALL = list(declared(Settings))


class TestTheReference:
    def test_is_the_tree_s(self) -> None:
        """Written by ``scripts/settings_page.py``."""
        assert settings_page.PAGE.read_text() == settings_page.page()


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """Return the schema, itself checked."""
    found: dict[str, Any] = json.loads(toml.schema())
    jsonschema.Draft7Validator.check_schema(found)
    return found


class TestTheSchema:
    def test_takes_what_is_right(self, made: dict[str, Any], tmp_path: Path) -> None:
        """An editor marks no sound file as wrong."""
        for values in (whole(tmp_path), tomllib.loads(EXAMPLE)):
            jsonschema.validate(values, made)
        assert json.loads(succeeds("run", "--schema").out) == made


class TestTheTemplate:
    def test_overwrites_nothing(self, tmp_path: Path) -> None:
        file = tmp_path / "new.toml"
        succeeds("run", "--init", file)
        assert json.loads((tmp_path / toml.SCHEMA).read_text()) == json.loads(toml.schema())
        assert file.read_text().startswith(f"#:schema ./{toml.SCHEMA}\n")
        fails(["run", "--init", file], "unusable-address", file)
        fails(["run"], "wrong-setting", "run --init FILE.toml")
        fails(["run", "--init", "passages"], "wrong-setting", "run --init FILE.toml")
        fails(["run", "--init", "full", tmp_path / "b.toml"], "wrong-setting", "write 'passages' here")

    def test_of_passages_runs_as_it_is(self, tmp_path: Path) -> None:
        """A release, once input and key are there."""
        file = tmp_path / "new.toml"
        succeeds("run", "--init", "passages", file)
        settings = toml.read(str(file)).settings
        assert (settings.store.path, settings.budget.epsilon, settings.budget.risk) == ("space://en", 10.0, None)
        pq.write_table(pa.table({"id": [1], "text": ["The river was cold."]}), tmp_path / "reviews.parquet")
        succeeds("key", "new", tmp_path / "release.key")
        succeeds("run", file)
        assert pq.read_table(tmp_path / "private" / "data").column_names == ["text"]

    def test_that_is_first_has_what_a_person_decides_and_runs_as_it_is(self, tmp_path: Path) -> None:
        """About fifteen lines, each with a sentence: a release, once input and key are there."""
        file = tmp_path / "new.toml"
        succeeds("run", "--init", file)
        entries = [line for line in file.read_text().splitlines() if not line.startswith(("#", "["))]
        assert len(entries) <= 15
        assert all(re.fullmatch(r"\w+ = .{3,} # \S.*\.", line) and len(line) <= 125 for line in entries)
        assert {"corpus.input", "output.path", "key.path", "space.path", "budget.risk", "corpus.id",
                "spans.find"} <= {one.setting for one in ALL if one.start is not None}  # fmt: skip
        settings = toml.read(str(file)).settings
        given = tomllib.loads(file.read_text())
        assert {f"{section}.{key}": value for section in given for key, value in given[section].items()} == {
            one.setting: one.start for one in ALL if one.start is not None
        }
        assert [flow.name for flow in FLOWS if flow.is_wanted(settings)] == ["privatize"]
        texts = {"id": range(3), "text": ["The river was cold and my sister works here."] * 3}
        pq.write_table(pa.table(texts), tmp_path / "reviews.parquet")
        succeeds("key", "new", tmp_path / "release.key")
        succeeds("run", file)
        assert len(list((tmp_path / "private" / "data").iterdir())) == 1


class TestTheCommands:
    def test_have_every_setting_but_those_of_files_alone(self) -> None:
        """A key that a file has and no command is forgotten in the table of flows."""
        offered = {setting.setting for command in commands() for setting in options_of(command).values()}
        assert {setting.setting for setting in ALL if setting.name != "schedule"} - offered == {
            s.setting for s in ALL if s.in_file
        }

    def test_all_that_a_command_can_be_told_a_file_can_be_told(self) -> None:
        """Options that are no settings concern the call: how progress is shown, and that nothing is to be done."""
        for command in STEPS:
            own = {one.name for one in main.command(command).params}
            of_call = own - set(options_of(command) if command in commands() else ()) - {"parameter", "help"}
            assert of_call <= {"_progress", "explain"}, command


def test_no_sentence_below_the_command_line_names_an_option() -> None:
    """A caller in Python, or of a file, has none: settings are named as {section.key}, or by plain words."""
    commands = [main.command(name) for name in main.COMMANDS]
    every = [sub for command in commands for sub in (command, *getattr(command, "commands", {}).values())]
    options = {option for command in every for one in command.params for option in one.opts} | {"--debug", "--VALUE"}
    # for spark-submit and gcloud; the help of commands; command lines that are gone
    command_lines = {"pipelines/flows.py", "gone.py"}
    named = []
    for file in sorted((ROOT / "corpusveil").rglob("*.py")):
        place = str(file.relative_to(ROOT / "corpusveil"))
        if not place.startswith("cli/") and place not in command_lines:
            flags = re.compile(r"--\w[\w-]*(?=[ :,;)]|\.$)")
            named += [(place, text) for text in _strings(file) if (options - {"--progress"}) & {*flags.findall(text)}]
    assert named == []


def _strings(file: Path) -> Iterator[str]:
    """Yield the strings of a file, with VALUE for what they are filled with; a docstring is none."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and id(node) not in docstrings:
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            yield "".join(str(one.value) if isinstance(one, ast.Constant) else "VALUE" for one in parts)
