"""``cv.release`` and ``cv.preview``: from names, with the defaults of the command, and nothing that is not shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import assert_type

import pandas as pd
import pytest

import corpusveil as cv
from tests.calls import QUIET, refused, succeeds
from tests.engines.corpora import TEST_KEY, WORDS, Ground, data_files, read_shard, write_shard

KEY = cv.Key(TEST_KEY)


@pytest.fixture(scope="module")
def space(ground: Ground) -> str:
    return str(ground.space_folder)


def test_a_release_is_that_of_the_command(space: str, tmp_path: Path) -> None:
    """The same settings under the same names give the same bytes; print shows what was chosen."""
    (tmp_path / "key").touch(mode=0o600)
    (tmp_path / "key").write_bytes(TEST_KEY)
    write_shard(tmp_path / "in" / "a.jsonl", [{"text": " ".join(WORDS[row : row + 9])} for row in range(8)])
    options = ["--space", space, "--mechanism", "ring-geometric", "--key", str(tmp_path / "key"), *QUIET]
    asked = ["--epsilon", "0.5", "--stop-words", "keep", "--numbers", "mask"]
    succeeds("privatize", tmp_path / "in", *options, *asked, "--output", tmp_path / "out")
    made = cv.release(key=KEY, space=space, epsilon=0.5, stop_words="keep", numbers="mask")
    assert_type(made, cv.Release)  # type checkers know it, and a PassageRelease of a store
    cv.privatize_corpus(tmp_path / "in", tmp_path / "again", made)
    assert [path.read_bytes() for path in data_files(tmp_path / "out")] == [
        path.read_bytes() for path in data_files(tmp_path / "again")
    ]
    for shown in ("ring-geometric", "stop_words keep", "numbers mask", "epsilon 0.5"):
        assert shown in " ".join(str(made).split())


def test_what_is_not_there_is_refused_by_its_name(space: str) -> None:
    for given, code, named in (
        ({"risk": 2.0}, "wrong-setting", "risk = 2.0"),
        ({"risc": 0.5}, "wrong-setting", "did you mean risk?"),
        ({"risk": 0.5, "epsilon": 1.0}, "wrong-setting", "epsilon"),
        ({}, "wrong-setting", "risk"),
        ({"epsilon": 1.0, "output": "out"}, "wrong-setting", "output"),
        ({"epsilon": 1.0, "delta": 1e-6}, "wrong-setting", "delta"),
    ):
        with refused(code, named, "cv.release"):
            cv.release(key=KEY, space=space, **given)  # type: ignore[arg-type]
    with refused("wrong-setting", "key"):
        cv.release(key=TEST_KEY, epsilon=1.0)  # type: ignore[arg-type]


def test_an_opened_space_is_as_good_as_its_address(space: str) -> None:
    opened = cv.load_space(space)
    assert cv.release(key=KEY, space=opened, epsilon=1.0) == cv.release(key=KEY, space=space, epsilon=1.0)
    with refused("wrong-setting", "space: this is not saved"):
        cv.release(key=KEY, space=opened.without([opened.word(0)]), epsilon=1.0)


def test_many_unknown_words_are_said_and_never_named(space: str, tmp_path: Path) -> None:
    """Their share is in a plan, which is private; what a log keeps has no figure of the texts."""
    texts = [{"text": f"{WORDS[row]} {WORDS[row + 1]} refund"} for row in range(40)]
    write_shard(tmp_path / "in" / "a.jsonl", texts)
    release = cv.release(epsilon=1.0, key=KEY, space=space)
    assert "33% of the words are not in the space" in " ".join(str(cv.plan(tmp_path / "in", release)).split())
    asked = ["--space", space, "--mechanism", "ring-geometric", "--epsilon", "1", *QUIET]
    told = succeeds("privatize", tmp_path / "in", *asked, "--output", tmp_path / "out")
    assert "more than 5% of the words are not in the space" in told.err
    assert not re.search("refund|33 ?%|0[.]33", told.err)
    written = [*(tmp_path / "out").rglob("*.json*"), tmp_path / "out.report.html"]
    assert all("refund" not in path.read_text() for path in written)
    assert len(read_shard(tmp_path / "out" / "data" / "part-00000-of-00001.jsonl")) == 40


def test_both_units_are_shown_in_a_notebook() -> None:
    """What words and passages are is what releases of these names write; markup of a text stays text."""
    frame, key = pd.DataFrame({"body": ["<b>The river</b> is cold.", None]}), cv.Key.for_tests()
    passage, words = cv.release(store="en", epsilon=10, key=key), cv.release(risk=0.5, key=key)
    made = cv.preview(frame, text="body", key=key)
    given, texts = list(frame["body"][:1]), [drawn.texts for drawn in made.drawn]
    assert texts == [cv.privatize(given, release, ["0"], "body") for release in (words, passage)]
    html = made._repr_html_()
    assert made.drawn[0].name in html
    assert "passage, epsilon 10" in html
    assert "&lt;b&gt;The river" in html
    assert "<b>" not in html
    assert str(made).count("Under the key that was given.") == 1
