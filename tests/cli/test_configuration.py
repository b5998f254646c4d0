"""A configuration's values stay values, its paths begin where it lies, and a key in the wrong section is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import corpusveil as cv
from corpusveil.pipelines.settings.toml import read
from tests.calls import QUIET, save, succeeds
from tests.cli.test_run import basic
from tests.engines.corpora import WORDS, make_space


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
