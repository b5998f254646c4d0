"""A configuration's values stay values, its paths begin where it lies, and a key in the wrong section is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import corpusveil as cv
from corpusveil.cli.derived import settings_of
from corpusveil.pipelines.settings.toml import read
from tests.calls import QUIET, refused, save, succeeds
from tests.cli.test_run import basic, whole
from tests.engines.corpora import WORDS, make_space


class TestBothCallers:
    """A rule stands once, and names settings as its caller does."""

    def given(self, **more: Any) -> dict[str, Any]:
        return {"input": ["in"], "space": "s", "output": "o", "mechanism": "ring-geometric", "epsilon": 1.0, **more}

    def test_in_its_own_names(self, tmp_path: Path) -> None:
        values = basic()
        for option, value, place, code, on_call, in_file in (
            ("master", "local", "engine.master", "wrong-setting", ["--master", "--engine"], ["engine.name"]),
            ("epsilon", -1.0, "budget.epsilon", "wrong-setting", ["--epsilon -1.0"], ["= -1.0"]),
        ):  # fmt: skip
            with refused(code, *on_call) as caught:
                settings_of("privatize", self.given(**{option: value}), [])
            assert place not in str(caught.value)
            section, key = place.split(".")
            file = save(tmp_path / "run.toml", {**values, section: {**values.get(section, {}), key: value}})
            with refused(code, f"{file}, {place}", *in_file) as caught:
                read(file)
            assert "--" not in str(caught.value)


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    """A release in a folder below the working folder, every path relative to its file."""
    folder = tmp_path / "releases" / "may"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.jsonl").write_text(json.dumps({"text": " ".join(WORDS[:9])}) + "\n")
    make_space(tmp_path / "releases" / "space")
    cv.Key.generate().save(folder / "release.key")
    values = basic(
        corpus={"input": ["./in/*.jsonl"], "root": "in"}, space={"path": "../space"}, ledger={"path": "ledger"},
        output={"path": "out", "records": "records"},
    )  # fmt: skip
    save(folder / "s.toml", values)
    return tmp_path


class TestPaths:
    def test_begin_where_the_file_lies(self, ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever the working folder: nothing is read or written beside it."""
        (ground / "elsewhere").mkdir()
        monkeypatch.chdir(ground / "elsewhere")
        of_release = {"out", "records", "ledger"}
        for command, expected in (
            (["plan"], set()), (["run", *QUIET], of_release),
            (["schedule", *QUIET], {*of_release, "nights"}),
        ):  # fmt: skip
            if "schedule" in command:  # which shares no output with a run
                file = ground / "releases" / "may" / "s.toml"
                file.write_text(file.read_text().replace('path = "out"', 'path = "nights"'))
            succeeds(*command, "../releases/may/s.toml")
            assert not list((ground / "elsewhere").iterdir())
            made = {path.name for path in (ground / "releases" / "may").iterdir()} - {"in", "s.toml", "release.key"}
            assert {name.partition(".report")[0] for name in made} == expected, command

    def test_a_link_to_a_file_is_where_it_lies(self, ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """In the call and in what starts it alike."""
        (ground / "other").mkdir()
        (ground / "other" / "s.toml").symlink_to(ground / "releases" / "may" / "s.toml")
        monkeypatch.chdir(ground)
        assert read("other/s.toml").settings.value("output.path") == str(ground / "other" / "out")


def test_an_unknown_key_is_looked_for_in_all_sections(tmp_path: Path) -> None:
    for section, name, nearest in (
        ("corpus", "epsilon", ["budget.epsilon"]), ("output", "gamma", ["mechanism.gamma"]),
        ("corpus", "tokenizer", ["collocations.tokenizer", "text.tokenizer"]),
    ):  # fmt: skip
        values = whole(tmp_path)
        values[section][name] = 1.0
        with refused("wrong-setting", f"{section}.{name}", *nearest):
            read(save(tmp_path / "run.toml", values))
    (tmp_path / "run.toml").write_text("epsilon = 1.0\n")
    with refused("wrong-setting", "epsilon", "budget.epsilon"):
        read(str(tmp_path / "run.toml"))
