"""Spans on the command line: what is announced, recorded and refused; the same bytes as in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import corpusveil as cv
from tests.calls import fails
from tests.engines.corpora import WORDS, make_space

NAMES = ("Zelda Quux", "zelda quux", "Bob Xyzzy", "Ann Frobnitz")


@pytest.fixture
def call(tmp_path: Path) -> list[Any]:
    """Return a call on four texts with a name each, from a file of terms."""
    make_space(tmp_path / "space")
    rows = [{"text": f"{WORDS[at]} {name} {WORDS[at + 1]}!", "id": at} for at, name in enumerate(NAMES)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "people.txt").write_text("Zelda Quux\nBob Xyzzy\nperson\tAnn Frobnitz\n")
    cv.Key.generate().save(str(tmp_path / "key"))
    paths = {"--space": "space", "--key": "key", "--output": "out", "--spans": "people.txt"}
    named = [word for option, name in paths.items() for word in (option, str(tmp_path / name))]
    return ["privatize", str(tmp_path / "in.jsonl"), "--mechanism", "ring-geometric", "--epsilon", "1", *named,
            "--id", "id", "--corpus", "c"]  # fmt: skip


def test_what_terms_are_is_a_keyed_digest(call: list[Any], tmp_path: Path) -> None:
    """A list of one name is not to be guessed from the manifest; another list is another release."""
    assert call
    mechanism, spans = (
        cv.RingGeometric(cv.load_space(str(tmp_path / "space"))),
        cv.SpanPolicy(find=str(tmp_path / "people.txt")),
    )

    def digests(key: cv.Key) -> Any:
        return cv.Release(mechanism, cv.Budget(1.0), key=key, spans=spans).configuration()["spans"]["find"]

    key = cv.Key.generate()
    first = digests(key)
    assert first == digests(key) != digests(cv.Key.generate())
    (tmp_path / "people.txt").write_text("Zelda Quux\n")
    assert digests(key) != first


def test_a_misspelled_recognizer_is_told_and_nothing_is_written(call: list[Any], tmp_path: Path) -> None:
    for name, near in (("ruels", "did you mean rules"), ("presidoi", "presidio"), ("people", "terms:PATH")):
        fails([*call, "--spans", name], "wrong-setting", name, near)
    assert not (tmp_path / "out").exists()
