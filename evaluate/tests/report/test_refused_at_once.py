"""``evaluate release``: what can't be done is told before anything is measured, and nothing done is lost at the end."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from corpusveil.sampling.keys import Key
from corpusveil.spaces import Space
from corpusveil_evaluate.matching import match
from corpusveil_evaluate.report.evaluate_release import evaluate_release
from corpusveil_evaluate.report.question import Question
from evaluate.tests.releases import evaluate, manifest_of, privatize
from tests.engines.corpora import WORDS, write_shard

WRONG = {
    "--leaked-key KEY": "missing-setting",
    "--epsilon 1": "unknown-name",
    "--mechanism santext": "unknown-name",
    "--model nowhere": "wrong-value",
    "--model vectors": "missing-setting",
    "--seeds 1": "wrong-value",
    "--documents 3": "wrong-value",
    "--counts nowhere": "missing-artefact",
    "--words nowhere": "missing-file",
    "--second topic": "unknown-name",
    "--label topic --attribute topic": "conflicting-settings",
    "--encoder x --similarity-vectors y": "conflicting-settings",
    "--output FILE": "output-in-use",
    "--output FILE/below": "output-in-use",
    "--output RELEASE": "overlapping-paths",
    "--output RELEASE/report": "overlapping-paths",
}
"""Calls that are refused before a document is read, and their errors."""
FOUND_WRONG = {
    "--label nowhere": "unsuitable-data",
    "--text nowhere": "unsuitable-data",
    "--label text": "wrong-column",
    "--label url": "unsuitable-data",
    "--words TWICE": "bad-row",
}
"""Calls that are refused on reading."""


def test_what_cannot_be_done_is_one_sentence_and_writes_nothing(
    source: Path, private: Path, space: Space, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    Key.generate().save(tmp_path / "KEY")
    (tmp_path / "FILE").write_text("x")
    (tmp_path / "TWICE").write_text("a\na\n")
    named = {name: tmp_path / name for name in ("KEY", "FILE", "TWICE")}
    named |= {"SPACE": Path(str(space.url)), "RELEASE": private}
    before = sorted(private.rglob("*"))

    def refused(call: str, code: str) -> None:
        words = [re.sub("^[A-Z]+", lambda name: str(named[name[0]]), word) for word in call.split()]
        assert evaluate(source, private, tmp_path / "r", *words) == 2, call
        (sentence,) = capsys.readouterr().err.splitlines()
        assert sentence.startswith("corpusveil: "), call
        assert sentence.endswith(f"[{code}]"), call

    for call, code in FOUND_WRONG.items():
        refused(call, code)

    def read(*_: Any, **__: Any) -> None:
        raise AssertionError("documents were read before the call was looked at")

    monkeypatch.setattr("corpusveil_evaluate.report.beside_original.match", read)
    for call, code in WRONG.items():
        refused(call, code)
    assert sorted(private.rglob("*")) == before
    assert not (tmp_path / "r").exists()


def test_a_damaged_manifest_is_refused(
    source: Path, private: Path, space: Space, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(private, tmp_path / "p")
    address = tmp_path / "p" / "manifest.json"
    fields = json.loads(address.read_text())
    fields["configuration"]["mechanism"]["name"] = 1
    for damage in ("[]", "{}", "x", '{"configuration": {}}', json.dumps(fields)):
        address.write_text(damage)
        assert evaluate(source, tmp_path / "p", tmp_path / "r", "--space", str(space.url)) == 2
        assert "[damaged-record]" in capsys.readouterr().err, damage


def test_a_release_whose_files_are_not_those_of_its_manifest_is_refused(
    source: Path, private: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The guarantee that a report repeats is of the files that the manifest lists."""
    shutil.copytree(private, tmp_path / "p")
    (tmp_path / "p" / "data" / "more.jsonl").write_text('{"text": "more"}\n')
    assert evaluate(source, tmp_path / "p", tmp_path / "r") == 1
    assert "more.jsonl" in (sentence := capsys.readouterr().err)
    assert "[release-differs]" in sentence


def test_a_report_is_not_written_where_a_glob_of_the_input_finds_it(
    private: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next call would read report.csv as a part of the corpus."""
    (tmp_path / "x.csv").write_text("text\na b\n")
    assert evaluate(Path(f"{tmp_path}/*.csv"), private, tmp_path) == 2
    assert "[overlapping-paths]" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.csv"]


def test_documents_of_one_word_have_no_other_words_that_are_known(space: Space, tmp_path: Path) -> None:
    """Guessing one word of them ended the command: there was no document to try it on."""
    write_shard(tmp_path / "in" / "x.jsonl", [{"text": word} for word in WORDS[:40]])
    made = privatize(tmp_path / "in", space, tmp_path / "out", 0.05)
    matched = match([str(tmp_path / "in")], [str(made)])
    found = evaluate_release(matched, manifest_of(made), Question.of(seeds=2, space=space, keys=(Key.for_tests(),)))
    names = {one.name: one.value for one in found.measures}
    assert names["documents confirmed, whole guesses"] == 1
    assert "one unknown word recovered" not in names
    json.loads(found.as_json())
