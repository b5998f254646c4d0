"""Whatever an earlier version had and this one lacks is refused by a sentence that says what replaces it."""

from __future__ import annotations

from pathlib import Path

import pytest

import corpusveil as cv
from corpusveil.cli.derived import options_of
from corpusveil.gone import GONE, Gone
from corpusveil.pipelines.settings import Settings
from corpusveil.pipelines.settings.fields import declared, named
from tests.calls import command


@pytest.mark.parametrize("row", GONE, ids=lambda row: row.name)
def test_each_name_is_refused_by_what_replaces_it(row: Gone, tmp_path: Path) -> None:
    """In a file, on each command line that had it, and in Python; what it names instead is there."""
    setting, _, value = row.name.partition(" = ")
    places = {setting.place for setting in declared(Settings)}
    assert (setting in places) == bool(value), "a setting is gone, or a value of one that stays"
    instead = named(row.instead, lambda place: f"[{place}]" if "." not in place else place if place in places else "?")
    assert "?" not in instead, "a sentence that names a setting which is not there"
    if row.name.startswith("cv."):
        with pytest.raises(AttributeError) as caught:
            getattr(cv, row.name.removeprefix("cv."))
        assert instead in str(caught.value)
    elif "." in row.name:
        section, _, key = setting.partition(".")
        (tmp_path / "run.toml").write_text(f'[{section}]\n{key} = "{value}"\n')
        _refused(["run", str(tmp_path / "run.toml")], setting, instead)
    for line in row.options:
        name, _, option = line.partition(" --")
        options = {setting.place: f"--{key.replace('_', '-')}" for key, setting in options_of(name).items()}
        told = named(row.instead, lambda place, options=options: options.get(place, place))
        if not option:
            _refused([name, "--space", "en"], name, told)
            continue
        for words in (line.split(), [*line.split(), "1"], [*name.split(), f"--{option.replace(' ', '=')}"]):
            _refused(words, f"--{option}", told)


def _refused(words: list[str], name: str, instead: str) -> None:
    ended = command(*words)
    assert ended.status == 2, ended
    assert ended.err.count("\n") == 1, ended
    assert name in ended.err, ended
    assert f"this is gone; {instead}" in ended.err, ended
