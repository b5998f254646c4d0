"""Length policies on the command line: what is announced, planned, entered in the ledger, and refused in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import corpusveil as cv
from tests.calls import fails, succeeds
from tests.engines.corpora import WORDS, make_space

SIZES = (0, 3, 9, 17)
FILLED = ["--punctuation", "drop", "--contacts", "drop"]


@pytest.fixture
def call(tmp_path: Path) -> list[str]:
    """Return a call that lacks a length policy and the policies that it needs."""
    make_space(tmp_path / "space")
    rows = [{"text": " ".join(WORDS[n : n + size]) + "!", "id": n} for n, size in enumerate(SIZES)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    cv.Key.generate().save(str(tmp_path / "key"))
    found = ["privatize", str(tmp_path / "in.jsonl"), "--space", str(tmp_path / "space"), "--mechanism"]
    found += ["ring-geometric", "--epsilon", "1", "--key", str(tmp_path / "key"), "--output", str(tmp_path / "out")]
    return [*found, "--id", "id", "--corpus", "c"]


def test_a_grid_is_announced_and_kept(call: list[str], tmp_path: Path) -> None:
    out = succeeds(*call, *FILLED, "--pad", "8", "--delta", "1e-6").out
    assert "Disclosed: how many words a document has, rounded up to a point of the grid (8, 16, 24, …)." in out
    assert "with the same number of words of their own" in out
    (file,) = (tmp_path / "out" / "data").iterdir()
    assert [len(json.loads(line)["text"].split()) for line in file.open()] == [8, 8, 16, 24]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["tokens"] == 56
    assert manifest["configuration"]["length"] == {"policy": "grid", "step": 8, "growth": 1.0}
    assert {one["length_epsilon"] for one in manifest["documents_in_epsilon_delta"]} == {0.0}
    private = (tmp_path / "out.records" / "report.html").read_text()
    assert "Words before documents were padded or cut" in private
    assert ">29<" in private


def test_any_two_words_may_differ(call: list[str]) -> None:
    """``--distance inf``, as the help has it; between documents of one size, whatever their own lengths."""
    words = [*call, *FILLED, "--pad", "8"]
    assert "before documents are padded or cut, they have about 29 words" in succeeds(*words, "--plan").out
    fails([*words, "--delta", "1e-6", "--distance", "nan"], "wrong-value", "--distance nan")
    said = "documents of known words only, which may all differ, that are released with the same number of words"
    assert said in succeeds(*words, "--delta", "1e-6", "--distance", "inf").out


def test_the_ledger_has_the_noise_of_each_release(call: list[str], tmp_path: Path) -> None:
    """A cap in (epsilon, delta) composes it: two releases that words alone would allow are refused."""
    ledger = cv.Ledger(str(tmp_path / "ledger"))
    noise = [*FILLED, "--length-epsilon", "6", "--ledger", ledger.url, "--unit", "id", "--epsilon", "0.01"]
    succeeds(*call, *noise, "--cap", "8", "--cap-delta", "1e-6")
    assert all(ledger.spent_on(number).releases[0]["total"] > 6 for number in range(len(SIZES)))
    assert ledger.verify(tmp_path / "out.records").differences == ()
    again = [*noise, "--output", str(tmp_path / "again"), "--length-extra", "1"]
    fails([*call, *again, "--cap", "8", "--cap-delta", "1e-6"], "cap-exceeded", "id", " 12")


def test_what_would_show_the_length_is_refused(call: list[str], tmp_path: Path) -> None:
    for options, refusal in (
        (["--pad", "8"], ("conflicting-settings", "punctuation")),
        ([*FILLED, "--pad", "8", "--length-epsilon", "1"], ("conflicting-settings", "--length-epsilon", "--pad")),
        ([*FILLED, "--pad-growth", "2"], ("conflicting-settings", "--pad")),
        ([*FILLED, "--pad", "8", "--pad-growth", "1.001"], ("wrong-value", "growth = 1.001")),
    ):
        fails([*call, *options], *refusal)
        assert not (tmp_path / "out").exists()
