"""Whatever an earlier version had and this one lacks is refused by a sentence that says what replaces it."""

from __future__ import annotations

from pathlib import Path

import pytest

import corpusveil as cv
from corpusveil import gone
from corpusveil.pipelines.fields import declared
from corpusveil.pipelines.settings import Settings
from tests.calls import fails

PROMISED = {
    "output.log": "the records have its figures, as {output.records} says",
    "text.layout = free": "normalize joins white space",
    "cv.term_vectors": "cv.privatize replaces words",
    "privatize --log": "{output.records} has its figures",
    "[page]": "the page is always written",
    "pages": "each release has one",
}
"""What a later version could have of each kind of name."""


def test_each_kind_of_name_is_refused_by_what_replaces_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gone, "GONE", PROMISED)
    file = tmp_path / "run.toml"
    for text, name, instead in (
        ("[output]\nlog = 'x'", "output.log", "this is gone; the records have its figures, as output.records says"),
        ("[text]\nlayout = 'free'", "text.layout", "this is gone; normalize joins white space"),
        ("[page]\nlayout = 'free'", "[page]", "this is gone; the page is always written."),
    ):
        file.write_text(text)
        assert instead in fails(["run", file], "wrong-setting", name)
    for words in ("--log x", "--log=x"):
        fails(["privatize", "in", *words.split()], "wrong-setting", "--log: this is gone; --records has its figures.")
    fails(["pages", "x"], "wrong-setting", "pages: this is gone; each release has one.")
    with pytest.raises(AttributeError, match=r"this is gone; cv\.privatize replaces words"):
        getattr(cv, "term_vectors")  # noqa: B009


def test_what_is_gone_is_not_there_and_its_replacement_is() -> None:
    """Of every row of the table, today and later."""
    places = {setting.setting for setting in declared(Settings)}
    for name, instead in gone.GONE.items():
        setting, _, value = name.partition(" = ")
        assert (setting in places) == bool(value), name
        if not name.startswith("[") and "." not in name:
            assert "this is gone; " in fails([*name.split(), "x"], "wrong-setting"), name
        assert not name.startswith("cv.") or not hasattr(cv, name.removeprefix("cv.")), name
        assert all(place.split("}")[0] in places for place in instead.split("{")[1:]), name
