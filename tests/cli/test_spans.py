"""Spans on the command line: what is announced, recorded and refused; the same bytes as in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import corpusveil as cv
from tests.calls import fails, succeeds
from tests.engines.corpora import WORDS, make_space, write_shard

NAMES = ("Zelda Quux", "zelda quux", "Bob Xyzzy", "Ann Frobnitz")


@pytest.fixture
def call(tmp_path: Path) -> list[Any]:
    """Return a call on four texts with a name each, from a file of terms."""
    make_space(tmp_path / "space")
    rows = [{"text": f"{WORDS[at]} {name} {WORDS[at + 1]}!", "id": at} for at, name in enumerate(NAMES)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "people.txt").write_text("Zelda Quux\nBob Xyzzy\nperson\tAnn Frobnitz\n")
    for name in ("key", "pseudonyms.key"):
        cv.Key.generate().save(str(tmp_path / name))
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


def test_pseudonyms_of_a_unit_need_no_ledger(call: list[Any], tmp_path: Path) -> None:
    """Its column is read, is written only if it is kept; another one is another run."""
    rows = [{"text": "zelda quux", "id": at, "of": of, "more": at} for at, of in enumerate(["ann", "ben", "ann"])]
    call[1] = str(write_shard(tmp_path / "units.jsonl", rows))
    options = ["--treat", "name=pseudonym", "--pseudonym-key", tmp_path / "pseudonyms.key", "--pseudonyms", "unit"]
    fails([*call, *options], "conflicting-settings", "--unit")
    fails([*call, *options, "--unit", "text"], "wrong-column", "another column")
    fails([*call, *options, "--unit", "of", "--keep", "all"], "conflicting-settings", "name the columns")
    for output, keep in (("out", []), ("kept", ["--keep", "of", "--keep", "more"])):
        call[call.index("--output") + 1] = str(tmp_path / output)
        said = succeeds(*call, *options, "--unit", "of", *keep, "--format", "jsonl").out
        assert "which spans of one unit" in said
        written = [json.loads(line) for line in next((tmp_path / output / "data").iterdir()).open()]
        ann, ben, again = (row["text"] for row in written)
        assert ann == again != ben
        assert all(text.startswith("NAME_") for text in (ann, ben))
        assert [row.get("of") for row in written] == (["ann", "ben", "ann"] if keep else [None] * 3)
    fails([*call, *options, "--unit", "more", *keep, "--format", "jsonl"], "output-in-use", "other columns")
    at = call.index("--output")
    assert ann in succeeds("preview", *call[1:at], *call[at + 2 :], *options, "--unit", "of").out


def test_a_misspelled_recognizer_is_told_and_nothing_is_written(call: list[Any], tmp_path: Path) -> None:
    for name, near in (("ruels", "did you mean rules"), ("presidoi", "presidio"), ("people", "terms:PATH")):
        fails([*call, "--spans", name], "unknown-name", name, near)
    assert not (tmp_path / "out").exists()
